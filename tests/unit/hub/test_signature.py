"""AWS signatures, version 2."""

import pytest

from hub.api.headgate.server_metadata import is_signed, sign

#: A request of os-collect-config 14.1 with its signature.
RECORDED = {
    "Action": "DescribeStackResource",
    "StackName": "s",
    "LogicalResourceId": "server",
    "AWSAccessKeyId": "key id",
    "SignatureVersion": "2",
    "SignatureMethod": "HmacSHA256",
    "Signature": "qvdiQuPhypCB/Vu40lR6wvGmyM4kWX0WaHwD3wYOpas=",
}
SECRET, HOST, PATH = "s3cret/+", "127.0.0.1:8004", "/cfn/v1/"


def test_a_signature_of_the_agent_is_valid() -> None:
    assert is_signed(SECRET, "GET", HOST, PATH, RECORDED)
    assert sign(SECRET, "GET", HOST, PATH, RECORDED) == RECORDED["Signature"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("StackName", "other"),
        ("LogicalResourceId", "other"),
        ("AWSAccessKeyId", "other"),
        ("Signature", ""),
        ("Signature", "ü"),
        ("SignatureVersion", "1"),
        ("SignatureMethod", "HmacSHA1"),
        ("More", "1"),
    ],
)
def test_a_changed_request_is_invalid(name: str, value: str) -> None:
    assert not is_signed(SECRET, "GET", HOST, PATH, RECORDED | {name: value})


@pytest.mark.parametrize(
    ("secret", "verb", "host", "path"),
    [
        ("other", "GET", HOST, PATH),
        (SECRET, "POST", HOST, PATH),
        (SECRET, "GET", "127.0.0.1", PATH),
        (SECRET, "GET", HOST, "/v1/"),
    ],
)
def test_another_host_or_key_is_invalid(secret: str, verb: str, host: str, path: str) -> None:
    assert not is_signed(secret, verb, host, path, RECORDED)
