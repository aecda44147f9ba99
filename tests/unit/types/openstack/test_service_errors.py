"""Error responses of OpenStack services become reasons with the services' own words."""

import orjson
import pytest

from engine.types.http_client import Response
from engine.types.openstack.service_errors import MAX_MESSAGE, MAX_RETRY_AFTER, read_error
from engine.types.openstack.services import (
    COMPUTE,
    DNS,
    IMAGE,
    KEY_MANAGER,
    NETWORK,
    VOLUME,
    Service,
)
from engine.words import Json

#: (service, body, kind, message), as real services answer.
FORMS: list[tuple[Service, Json, str, str]] = [
    (
        NETWORK,
        {
            "NeutronError": {
                "type": "NetworkNotFound",
                "message": "No network.",
                "detail": "",
            }
        },
        "NetworkNotFound",
        "No network",
    ),
    (COMPUTE, {"itemNotFound": {"code": 404, "message": "No a."}}, "itemNotFound", "No a"),
    (
        VOLUME,
        {"badRequest": {"message": "Bad size.", "code": 400}},
        "badRequest",
        "Bad size",
    ),
    (
        NETWORK,
        {"error": {"code": 403, "title": "Forbidden", "message": "You may not."}},
        "Forbidden",
        "You may not",
    ),
    (
        KEY_MANAGER,
        {"code": 403, "title": "Forbidden", "description": "Quota reached."},
        "Forbidden",
        "Quota reached",
    ),
    (
        DNS,
        {
            "type": "invalid_object",
            "errors": {"errors": [{"path": ["records", 0], "message": "'x' is no 'A'"}]},
        },
        "invalid_object",
        "records.0: 'x' is no 'A'",
    ),
    (NETWORK, {"faultcode": "Client", "faultstring": "Wrong pool."}, "Client", "Wrong pool"),
    (NETWORK, {"errors": [{"title": "Conflict", "detail": "Taken."}]}, "Conflict", "Taken"),
    (IMAGE, {"message": "No image found<br /><br />\n\n", "code": "404"}, "", "No image found"),
]


def response(status: int, body: Json, headers: dict[str, str] | None = None) -> Response:
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    return Response(status, headers or {}, raw)


@pytest.mark.parametrize(("service", "body", "kind", "message"), FORMS)
def test_each_form_has_its_message(service: Service, body: Json, kind: str, message: str) -> None:
    error = read_error(service, "do it", response(404, body))
    assert (error.kind, error.message) == (kind, message)
    assert str(error) == f"{service.name} refused to do it: {message} (HTTP 404)"
    assert error.is_missing
    assert message not in error.public


def test_html_is_read_as_text() -> None:
    page = b"<html><head><title>x</title></head><body><h1>413</h1>Too large</body></html>"
    assert read_error(IMAGE, "do it", response(413, page)).message == "413 Too large"


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'{"a": 1}', b"\xff\x00"])
def test_any_body_is_read(body: bytes) -> None:
    assert "refused to do it" in str(read_error(IMAGE, "do it", response(500, body)))


def test_long_messages_are_shortened() -> None:
    error = read_error(IMAGE, "do it", response(500, b"x" * 100_000))
    assert len(error.message) == MAX_MESSAGE


@pytest.mark.parametrize("part", ["<head>", "<a", "</a ", "<", "<head></head"])
def test_no_message_is_expensive(part: str) -> None:
    """With a search from each `<` to the end, the service's answer takes minutes to read."""
    name = part * (2_000_000 // len(part))
    text = f"No <b>network</b> {name}."
    error = read_error(NETWORK, "do it", response(404, {"NeutronError": {"message": text}}))
    assert error.message.startswith("No network")
    assert len(error.message) <= MAX_MESSAGE


def test_a_long_head_is_removed() -> None:
    page = f"<html><head><style>{'p {} ' * 10_000}</style></head><body>Too large</body></html>"
    assert read_error(IMAGE, "do it", response(413, page.encode())).message == "Too large"


@pytest.mark.parametrize(
    ("status", "kind", "retry"),
    [
        (400, "Bad", False),
        (403, "Forbidden", False),
        (404, "NotFound", False),
        (409, "NetworkInUse", False),
        (409, "OverQuota", False),
        (409, "SecurityGroupRuleExists", False),
        (409, "IpAddressAlreadyAllocated", False),
        (409, "Conflict", True),
        (429, "overLimit", True),
        (500, "computeFault", True),
        (501, "", False),
        (503, "", True),
    ],
)
def test_what_can_pass_is_retried(status: int, kind: str, retry: bool) -> None:
    body = {"NeutronError": {"type": kind, "message": "m"}}
    assert read_error(NETWORK, "do it", response(status, body)).retry is retry


@pytest.mark.parametrize(("header", "limited"), [("7", True), ("0", False), ("", False)])
def test_a_limit_of_requests_is_not_a_quota(header: str, limited: bool) -> None:
    """Cinder and Manila answer 413 with the pause 0 beyond a quota."""
    error = read_error(VOLUME, "do it", response(413, b"", {"retry-after": header}))
    assert (error.retry, error.throttled) == (limited, 7.0 if limited else None)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("", None), ("soon", None), ("-1", None), ("99999999", MAX_RETRY_AFTER)],
)
def test_retry_after(header: str, seconds: float | None) -> None:
    error = read_error(COMPUTE, "do it", response(429, b"", {"retry-after": header}))
    assert error.retry_after == seconds
