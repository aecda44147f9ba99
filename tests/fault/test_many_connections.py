"""Connections, streams and unfinished requests are limited per address and per user; other clients
are served meanwhile.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import aiohttp
import pytest

from hub.api.client_limits import OpenCount
from hub.api.request_validation import UNAUTHENTICATED_BODY
from hub.auth.throttle import block_of
from tests.integration.api.test_access import bearer, run_with_tokens
from tests.support.access import insert_credential
from tests.support.program import Http, Program, eventually, program, resource
from tests.support.wire import Wire, exchange, open_wire, parse_responses, request

SESSION = "POST /v1/p/session"


@pytest.fixture
async def run(database_url: str) -> AsyncIterator[Program]:
    limits = {"server.connections_per_address": 3, "server.streams_per_user": 2}
    async with program(database_url, limits) as run:
        await run.session.close()  # persistent connections would count
        yield run


async def test_connections_per_address_are_limited(run: Program) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(3):
            wire = await stack.enter_async_context(open_wire(run.url))
            await wire.send(request("GET /healthz"))
            assert b"200 OK" in await wire.reader.readuntil(b"\r\n")
        async with open_wire(run.url) as fourth:
            await fourth.send(request("GET /healthz"))
            response = await fourth.read_to_end()
        assert b"Retry-After: " in response
        ((status, document),) = parse_responses(response)
        assert (status, document["error"]["type"]) == (429, "TooManyRequests")
        assert "[server] connections_per_address" in document["error"]["remedy"]

    async def is_free_again() -> bool:
        async with open_wire(run.url) as wire:
            await wire.send(request("GET /healthz", "Connection: close"))
            return b"200 OK" in await wire.read_to_end()

    await eventually(is_free_again)


@pytest.mark.parametrize(
    ("first", "second"),
    [("203.0.113.1", "203.0.113.2"), ("2001:db8::1", "2001:db8:0:1::1")],
)
async def test_behind_a_proxy_the_forwarded_addresses_are_limited(
    database_url: str, first: str, second: str
) -> None:
    limits = {
        "server.connections_per_address": 2, "server.trusted_proxies": ["127.0.0.1/32"],
    }  # fmt: skip

    async with run_with_tokens(database_url, limits) as (run, admin), AsyncExitStack() as stack:
        await run.session.close()
        token = f"Authorization: {admin['Authorization']}"

        async def open_stream(address: str) -> bytes:
            wire = await stack.enter_async_context(open_wire(run.url))
            named = f"X-Forwarded-For: {address}"
            await wire.send(request("GET /v1/p/events/stream", token, named))
            return await wire.reader.readuntil(b"\r\n")

        assert b"200" in await open_stream(first)
        assert b"200" in await open_stream(first)
        same_network = first if "." in first else "2001:db8::ffff"
        assert b"429" in await open_stream(same_network)
        assert b"200" in await open_stream(second)


async def test_streams_per_user_are_limited(run: Program) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(2):
            wire = await stack.enter_async_context(open_wire(run.url))
            await wire.send(request("GET /v1/p/events/stream"))
            assert b"200 OK" in await wire.reader.readuntil(b"\r\n")
        async with open_wire(run.url) as third:
            await third.send(request("GET /v1/p/events/stream", "Connection: close"))
            ((status, document),) = parse_responses(await third.read_to_end())
        assert status == 429 and "[server] streams_per_user" in document["error"]["remedy"]

    # The server finds that a client has left when it writes: events, or a heartbeat each 15 s.
    async with aiohttp.ClientSession() as session:
        await Http(session, run.url).create("s", {"a": resource()})

    async def is_free_again() -> bool:
        async with open_wire(run.url) as wire:
            await wire.send(request("GET /v1/p/events/stream"))
            return b"200 OK" in await wire.reader.readuntil(b"\r\n")

    await eventually(is_free_again)


@pytest.mark.parametrize(
    "sent",
    [
        request(SESSION, "Content-Length: 200000", body=b"x" * 1000),
        request(SESSION, "Transfer-Encoding: chunked", body=b"4e20\r\n" + b"x" * 20_000),
    ],
    ids=["length", "chunks"],
)
async def test_the_body_of_an_unauthenticated_request_is_limited(
    database_url: str, sent: bytes
) -> None:
    """The body never ends; the response does not wait for it."""
    async with run_with_tokens(database_url) as (run, _), open_wire(run.url) as wire:
        await wire.send(sent)
        head = await wire.reader.readuntil(b"\r\n")
        assert b" 413 " in head
        assert str(UNAUTHENTICATED_BODY).encode() in await wire.reader.readuntil(b"}")


async def test_a_wrong_token_is_refused_before_the_body_is_read(database_url: str) -> None:
    partial_request = [
        request("POST /v1/p/stacks", "Authorization: Bearer wrong", "Content-Length: 900000"),
        request(
            "POST /hooks/00000000-0000-0000-0000-000000000000/signal",
            "Authorization: Bearer wrong",
            "Content-Length: 900000",
        ),
    ]
    async with run_with_tokens(database_url) as (run, _):
        for sent in partial_request:
            async with open_wire(run.url) as wire:
                await wire.send(sent)
                assert b" 401 " in await wire.reader.readuntil(b"\r\n")


async def test_unfinished_bodies_per_user_are_limited(database_url: str) -> None:
    async with run_with_tokens(database_url, {"server.bodies_per_user": 2}) as (run, _):
        author = bearer(await insert_credential(run.database, "p", "ann", ["author"]))
        other = bearer(await insert_credential(run.database, "p", "bob", ["author"]))

        def partial_request(headers: dict[str, str]) -> bytes:
            return request(
                "POST /v1/p/stacks",
                f"Authorization: {headers['Authorization']}",
                "Content-Length: 900000",
                body=b"{",
            )

        async with AsyncExitStack() as stack:
            heads = []
            for _ in range(6):
                wire: Wire = await stack.enter_async_context(open_wire(run.url))
                await wire.send(partial_request(author))
                heads.append(asyncio.create_task(wire.reader.readuntil(b"\r\n")))

            async def any_refused() -> bool:
                return sum(head.done() for head in heads) == 4

            await eventually(any_refused)
            assert all(b" 429 " in head.result() for head in heads if head.done())
            whole = b'{"stack_name": "s", "template": {}}'
            length = f"Content-Length: {len(whole)}"
            for headers, body in ((author, whole), (other, whole)):
                header = f"Authorization: {headers['Authorization']}"
                head = request("POST /v1/p/stacks", header, length, "Connection: close", body=body)
                ((status, _document),) = await exchange(run.url, head)
                assert status == 400  # it was read
            for waiting in heads:
                waiting.cancel()


def test_open_requests_are_counted_by_client_and_removed() -> None:
    count = OpenCount(2, "things", "things_per_user")
    assert [count.enter("a") for _ in range(3)] == [True, True, False]
    assert count.enter("b")
    count.leave("a")
    assert count.enter("a") and not count.enter("a")
    for client in "aab":
        count.leave(client)
    assert not count._open
    assert all(OpenCount(0, "things", "x").enter("a") for _ in range(1000))
    assert block_of("2001:db8::1") == block_of("2001:db8::ffff") != block_of("2001:db8:0:1::1")
