"""The webhook client against correct and faulty servers."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from ipaddress import ip_network
from uuid import UUID

import pytest
from aiohttp import web

from channels.contract import Delivered, Endpoint, EventMessage, Failed, ReceiverDecision
from channels.webhook.client import WebhookChannel, WebhookSettings
from channels.webhook.sign import secret_of
from engine.errors import Invalid
from engine.outgoing_address_check import Lookup, Network
from tests.support.receiver import Received, Receiver

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LOOPBACK = (ip_network("127.0.0.0/8"),)
SECRET = secret_of(bytes(range(24)))


def make_message(*, waiting: bool = False) -> EventMessage:
    return EventMessage("an-id", "headgate.hook.waiting", {"id": "an-id"}, NOW, waiting)


def make_endpoint(target: str) -> Endpoint:
    return Endpoint(UUID(int=1), target, (SECRET,))


@asynccontextmanager
async def make_channel(
    allow: Sequence[Network] = LOOPBACK,
    *,
    lookup: Lookup | None = None,
    bound: float = 5.0,
    max_response: int = 1000,
) -> AsyncIterator[WebhookChannel]:
    settings = WebhookSettings(tuple(allow), bound, bound, max_response)
    async with WebhookChannel(settings, lookup=lookup) as channel:
        yield channel


async def send(target: str, *, waiting: bool = False, bound: float = 5.0) -> Delivered | Failed:
    async with make_channel(bound=bound) as channel:
        return await channel.deliver(make_message(waiting=waiting), make_endpoint(target))


@pytest.mark.parametrize("status", [200, 201, 204, 299])
async def test_every_2xx_is_a_delivery(receiver: Receiver, status: int) -> None:
    receiver.respond_with_statuses(status)
    outcome = await send(receiver.url)
    assert isinstance(outcome, Delivered)
    assert outcome.code == status


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
async def test_other_statuses_are_retried(receiver: Receiver, status: int) -> None:
    receiver.respond_with_statuses(status)
    assert await send(receiver.url) == Failed(f"it answered {status}", status)


async def test_gone_is_final(receiver: Receiver) -> None:
    receiver.respond_with_statuses(410)
    assert await send(receiver.url) == Failed("it answered 410", 410, final=True)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        (format_datetime(NOW + timedelta(minutes=2), usegmt=True), 120.0),
        (format_datetime(NOW - timedelta(minutes=2), usegmt=True), 0.0),
        ("soon", None),
        ("-1", None),
        ("1e9", None),
        ("\u0663", None),
        ("9" * 400, None),
    ],
)
async def test_retry_after(receiver: Receiver, header: str, seconds: float | None) -> None:
    receiver.respond_with_statuses(429, headers={"Retry-After": header})
    outcome = await send(receiver.url)
    assert isinstance(outcome, Failed)
    assert outcome.retry_after == seconds


async def test_a_hanging_endpoint_times_out(receiver: Receiver) -> None:
    receiver.never_respond()
    async with asyncio.timeout(10):
        outcome = await send(receiver.url, bound=0.2)
    assert outcome == Failed("no complete response within 0.2 s")


async def test_a_slow_response_times_out(receiver: Receiver) -> None:
    async def respond_slowly(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"x")
        await asyncio.Event().wait()
        return response

    receiver.handle_raw = respond_slowly
    assert await send(receiver.url, bound=0.3) == Failed("no complete response within 0.3 s")


async def test_a_huge_response_is_not_read(receiver: Receiver) -> None:
    written = 0

    async def respond_endlessly(request: web.Request) -> web.StreamResponse:
        nonlocal written
        response = web.StreamResponse()
        await response.prepare(request)
        for _number in range(2000):
            await response.write(b"x" * 65_536)
            written += 65_536
        return response

    receiver.handle_raw = respond_endlessly
    outcome = await send(receiver.url, waiting=True)
    assert isinstance(outcome, Delivered)
    assert outcome.decision is None
    assert "too long" in outcome.note
    assert written < 2000 * 65_536


@pytest.mark.parametrize(
    ("body", "decision"),
    [
        (b'{"decision": "continue"}', ReceiverDecision("continue")),
        (b'{"decision": "reject", "reason": "no"}', ReceiverDecision("reject", "no")),
        (b'{"decision": "reject", "reason": 7}', ReceiverDecision("reject")),
        (b"thanks", None),
        (b"", None),
        (b"[1]", None),
        (b'{"decision": ', None),
        (b'{"decision": ["continue"]}', None),
        (b'{"decision": "delete everything"}', None),
        (b"\xff\x00", None),
        (b"[" * 900, None),
    ],
)
async def test_decisions_in_responses(
    receiver: Receiver, body: bytes, decision: ReceiverDecision | None
) -> None:
    async def handle(_: Received) -> web.StreamResponse:
        return web.Response(body=body)

    receiver.handle = handle
    outcome = await send(receiver.url, waiting=True)
    assert isinstance(outcome, Delivered)
    assert outcome.decision == decision
    assert "\x00" not in outcome.response
    unasked = await send(receiver.url)
    assert isinstance(unasked, Delivered)
    assert unasked.decision is None


async def test_redirects_are_not_followed(receiver: Receiver, other_receiver: Receiver) -> None:
    receiver.respond_with_statuses(302, headers={"Location": other_receiver.url})
    outcome = await send(receiver.url)
    assert outcome == Failed("it redirects; redirects are not followed", 302)
    assert other_receiver.received == []


async def test_no_connection_is_a_failure() -> None:
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    assert await send(f"http://127.0.0.1:{port}/?secret=1") == Failed(
        "the connection was closed before the response was complete"
    )
    server.close()
    await server.wait_closed()
    outcome = await send(f"http://127.0.0.1:{port}/?secret=1")
    assert isinstance(outcome, Failed)
    assert outcome.reason.startswith(f"no connection to 127.0.0.1:{port}")
    assert "secret" not in outcome.reason


async def test_the_proxy_of_the_environment_is_not_used(
    receiver: Receiver, other_receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", other_receiver.url)
    monkeypatch.setenv("HTTP_PROXY", other_receiver.url)
    assert isinstance(await send(receiver.url), Delivered)
    assert other_receiver.received == []


async def test_a_literal_address_is_checked_at_the_connection(receiver: Receiver) -> None:
    async with make_channel(allow=()) as channel:
        outcome = await channel.deliver(make_message(), make_endpoint(receiver.url))
    assert isinstance(outcome, Failed)
    assert "loopback" in outcome.reason
    assert receiver.received == []


async def test_dns_rebinding_is_refused_at_the_connection(
    receiver: Receiver,
) -> None:
    answers = [["8.8.8.8"], ["127.0.0.1"], ["8.8.8.8", "127.0.0.1"]]

    async def lookup(host: str, port: int) -> Sequence[str]:
        assert host == "good.test"
        return answers.pop(0)

    target = receiver.url.replace("127.0.0.1", "good.test")
    async with make_channel(allow=(), lookup=lookup) as channel:
        await channel.check_target(target)
        for _ in range(2):
            outcome = await channel.deliver(make_message(), make_endpoint(target))
            assert isinstance(outcome, Failed)
            assert "good.test has an address that is not allowed" in outcome.reason
    assert receiver.received == []


async def test_a_name_reaches_the_checked_address(receiver: Receiver) -> None:
    async def lookup(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    target = receiver.url.replace("127.0.0.1", "good.test")
    async with make_channel(lookup=lookup) as channel:
        await channel.check_target(target)
        assert isinstance(await channel.deliver(make_message(), make_endpoint(target)), Delivered)
    assert receiver.received[0].headers["Host"].startswith("good.test:")


async def test_the_checked_address_is_the_one_that_is_reached(receiver: Receiver) -> None:
    answers = [["127.0.0.1"], ["127.0.0.1"], ["8.8.8.8"]]

    async def lookup(host: str, port: int) -> Sequence[str]:
        return answers.pop(0)

    target = receiver.url.replace("127.0.0.1", "good.test")
    async with make_channel(lookup=lookup) as channel:
        await channel.check_target(target)
        assert isinstance(await channel.deliver(make_message(), make_endpoint(target)), Delivered)
    assert answers == [["8.8.8.8"]]  # resolved once for the check, and once for the connection
    assert len(receiver.received) == 1


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("http://localhost:1/", "not allowed"),
        ("http://127.0.0.1:1/", "loopback"),
        ("http://[::1]/", "loopback"),
        ("http://2130706433/", "ambiguous notation"),
        ("ftp://example.org/", 'scheme "ftp"'),
        ("http://nobody.invalid/", "does not resolve"),
    ],
)
async def test_targets_are_checked_before_they_are_stored(target: str, error: str) -> None:
    async with make_channel(allow=()) as channel:
        with pytest.raises(Invalid, match=error) as caught:
            await channel.check_target(target)
    assert caught.value.findings[0].place == "target"
    assert caught.value.code == "InvalidTarget"
