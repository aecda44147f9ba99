"""Failing services: reasons and retries."""

from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from engine.types.contract import Failed
from engine.types.http import Http, HttpSettings
from engine.types.operator_credentials import Credentials
from hub.http.outbound import Outbound, OutboundSettings
from tests.support import bad_receivers
from tests.support.bad_receivers import Fault, faulty_receiver, respond, send_bytes
from tests.support.certificates import Authority
from tests.unit.types.calls import a_call, findings_of, run

LOOPBACK = (ip_network("127.0.0.0/8"),)
SHORT: dict[str, Any] = {"timeout": 0.3, "connect_timeout": 0.3, "max_response": 2_000}
JSON = "Content-Type: application/json"


async def refused_call(url: str, **settings: Any) -> Failed:
    """The outcome of a create request to this service."""
    values = OutboundSettings(**({"allow": LOOPBACK, "remedy": "Ask them."} | SHORT | settings))
    async with Outbound(values) as web:
        http = Http(HttpSettings(enabled=True), web, Credentials({}))
        properties = {"create": {"url": url, "body": {"a": 1}}, "id": "$.id"}
        outcome = await run(http, "create", a_call(http, properties))
    assert isinstance(outcome, Failed), outcome
    return outcome


@pytest.mark.parametrize(
    ("fault", "reason", "retry"),
    [
        (bad_receivers.never_respond, "create: no complete response within 0.3 s", True),
        (bad_receivers.respond_slowly, "create: no complete response within 0.3 s", True),
        (bad_receivers.respond_endlessly, "create: the response is longer than 2000 bytes", False),
        (send_bytes(b""), "create: the connection was closed before the response was complete", True),
        (send_bytes(b"SSH-2.0-x\r\n"), "create: the response is not valid HTTP", True),
        (respond("500 Oops", body=b"a <b>trace</b>"),
         "create: the service answered 500: a <b>trace</b>", False),
        (respond("503 Busy"), "create: the service answered 503", True),
        (respond("302 Found", "Location: http://169.254.169.254/x"),
         "redirects to http://169.254.169.254/x; redirects are not followed", False),
        (respond("200 OK", body=b"<html>"), "create: the response is not valid JSON", False),
        (respond("200 OK", JSON, body=b'{"id": null}'), "the response has no id at $.id", False),
        (respond("201 Created"), "the response has no id at $.id", False),
        (respond("200 OK", "Content-Encoding: gzip", body=b"x"), "not valid JSON", False),
        (respond("404 Gone", body=b"\x00\xff"), "answered 404: \ufffd\ufffd", False),
    ],
    ids=["hangs", "drips", "huge", "closes", "not http", "500", "503", "redirects", "no json",
         "no id", "empty", "compressed", "binary"],
)  # fmt: skip
async def test_failed_requests_have_reasons(fault: Fault, reason: str, retry: bool) -> None:
    async with faulty_receiver(fault) as url:
        failed = await refused_call(url)
    assert reason in failed.reason
    assert failed.retry is retry
    assert "/hook" not in failed.reason  # a path may hold a secret


async def test_an_invalid_certificate_is_refused(tmp_path: Path) -> None:
    for pair in (
        Authority(tmp_path).self_signed("127.0.0.1"),
        Authority(tmp_path, "other").issue("expired", "127.0.0.1", expired=True),
    ):
        async with faulty_receiver(respond("200 OK"), pair) as url:
            failed = await refused_call(url)
        assert "no secure connection to 127.0.0.1" in failed.reason and not failed.retry


async def test_a_connection_failure_is_retried() -> None:
    async with faulty_receiver(respond("200 OK")) as url:
        pass
    failed = await refused_call(url)
    assert "no connection to 127.0.0.1" in failed.reason and failed.retry


async def test_an_internal_address_is_refused_before_a_connection() -> None:
    async with faulty_receiver(respond("200 OK", body=b'{"id": 1}')) as url:
        failed = await refused_call(url, allow=())
        assert "may not be reached: 127.0.0.1 is loopback. Ask them." in failed.reason
        assert not failed.retry
        async with Outbound(OutboundSettings(remedy="Ask them.")) as web:
            http = Http(HttpSettings(enabled=True), web, Credentials({}))
            (wrong,) = findings_of(http, {"create": {"url": url}})
        assert (wrong.place, wrong.remedy) == ("resources.r.properties.create.url", "Ask them.")


async def test_a_name_that_resolves_to_an_internal_address_is_refused() -> None:
    async def lookup(host: str, port: int) -> Sequence[str]:
        return ["1.1.1.1", "127.0.0.1"]

    async with Outbound(OutboundSettings(remedy="Ask them."), lookup=lookup) as web:
        http = Http(HttpSettings(enabled=True), web, Credentials({}))
        call = a_call(http, {"create": {"url": "http://service.example.org/"}})
        outcome = await run(http, "create", call)
    assert isinstance(outcome, Failed) and not outcome.retry
    assert "service.example.org has an address that is not allowed. Ask them." in outcome.reason
    assert "127.0.0.1" not in outcome.reason and "loopback" not in outcome.reason
