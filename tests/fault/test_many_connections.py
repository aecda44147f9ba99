"""One address, and one user, may have only so much open; others are answered meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from hub.api.client_limits import OpenCount
from hub.api.parts import UNAUTHENTICATED_BODY
from hub.auth.address_blocks import block_of
from tests.integration.api.test_access import bearer, guarded
from tests.support.access import given_directly
from tests.support.program import Program, eventually, program
from tests.support.wire import Wire, answers_in, exchange, request, wired

SESSION = "POST /v1/p/session"


@pytest.fixture
async def run(database_url: str) -> AsyncIterator[Program]:
    limits = {"server.connections_per_address": 3, "server.streams_per_user": 2}
    async with program(database_url, limits) as made:
        await made.session.close()  # it would keep connections open
        yield made


async def test_one_address_has_only_so_many_connections(run: Program) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(3):
            wire = await stack.enter_async_context(wired(run.url))
            await wire.say(request("GET /healthz"))
            assert b"200 OK" in await wire.reader.readuntil(b"\r\n")
        async with wired(run.url) as fourth:
            await fourth.say(request("GET /healthz"))
            said = await fourth.rest()
        assert b"Retry-After: " in said
        ((status, document),) = answers_in(said)
        assert (status, document["error"]["type"]) == (429, "TooManyRequests")
        assert "[server] connections_per_address" in document["error"]["remedy"]

    async def free_again() -> bool:
        async with wired(run.url) as wire:
            await wire.say(request("GET /healthz", "Connection: close"))
            return b"200 OK" in await wire.rest()

    await eventually(free_again)


@pytest.mark.parametrize(
    ("first", "second"),
    [("203.0.113.1", "203.0.113.2"), ("2001:db8::1", "2001:db8:0:1::1")],
)
async def test_behind_a_proxy_the_addresses_that_it_names_are_counted(
    database_url: str, first: str, second: str
) -> None:
    limits = {
        "server.connections_per_address": 2, "server.trusted_proxies": ["127.0.0.1/32"],
    }  # fmt: skip

    async with guarded(database_url, limits) as (run, admin), AsyncExitStack() as stack:
        await run.session.close()
        token = f"Authorization: {admin['Authorization']}"

        async def opened(address: str) -> bytes:
            wire = await stack.enter_async_context(wired(run.url))
            named = f"X-Forwarded-For: {address}"
            await wire.say(request("GET /v1/p/events/stream", token, named))
            return await wire.reader.readuntil(b"\r\n")

        assert b"200" in await opened(first)
        assert b"200" in await opened(first)
        same_network = first if "." in first else "2001:db8::ffff"
        assert b"429" in await opened(same_network)
        assert b"200" in await opened(second)


async def test_one_user_has_only_so_many_streams(run: Program) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(2):
            wire = await stack.enter_async_context(wired(run.url))
            await wire.say(request("GET /v1/p/events/stream"))
            assert b"200 OK" in await wire.reader.readuntil(b"\r\n")
        async with wired(run.url) as third:
            await third.say(request("GET /v1/p/events/stream", "Connection: close"))
            ((status, document),) = answers_in(await third.rest())
        assert status == 429 and "[server] streams_per_user" in document["error"]["remedy"]

    async def free_again() -> bool:
        async with wired(run.url) as wire:
            await wire.say(request("GET /v1/p/events/stream"))
            return b"200 OK" in await wire.reader.readuntil(b"\r\n")

    await eventually(free_again)


@pytest.mark.parametrize(
    "sent",
    [
        request(SESSION, "Content-Length: 200000", body=b"x" * 1000),
        request(SESSION, "Transfer-Encoding: chunked", body=b"4e20\r\n" + b"x" * 20_000),
    ],
    ids=["length", "chunks"],
)
async def test_little_is_read_of_who_is_not_authenticated(database_url: str, sent: bytes) -> None:
    """The body never ends: what is answered is answered without it."""
    async with guarded(database_url) as (run, _), wired(run.url) as wire:
        await wire.say(sent)
        head = await wire.reader.readuntil(b"\r\n")
        assert b" 413 " in head
        assert str(UNAUTHENTICATED_BODY).encode() in await wire.reader.readuntil(b"}")


async def test_a_token_that_is_wrong_is_refused_before_the_body_comes(database_url: str) -> None:
    half = [
        request("POST /v1/p/stacks", "Authorization: Bearer wrong", "Content-Length: 900000"),
        request(
            "POST /hooks/00000000-0000-0000-0000-000000000000/signal",
            "Authorization: Bearer wrong",
            "Content-Length: 900000",
        ),
    ]
    async with guarded(database_url) as (run, _):
        for sent in half:
            async with wired(run.url) as wire:
                await wire.say(sent)
                assert b" 401 " in await wire.reader.readuntil(b"\r\n")


async def test_one_user_has_only_so_many_unfinished_bodies(database_url: str) -> None:
    async with guarded(database_url, {"server.bodies_per_user": 2}) as (run, _):
        author = bearer(await given_directly(run.database, "p", "ann", ["author"]))
        other = bearer(await given_directly(run.database, "p", "bob", ["author"]))

        def half(who: dict[str, str]) -> bytes:
            return request(
                "POST /v1/p/stacks",
                f"Authorization: {who['Authorization']}",
                "Content-Length: 900000",
                body=b"{",
            )

        async with AsyncExitStack() as stack:
            heads = []
            for _ in range(6):
                wire: Wire = await stack.enter_async_context(wired(run.url))
                await wire.say(half(author))
                heads.append(asyncio.create_task(wire.reader.readuntil(b"\r\n")))

            async def refused() -> bool:
                return sum(head.done() for head in heads) == 4

            await eventually(refused)
            assert all(b" 429 " in head.result() for head in heads if head.done())
            whole = b'{"stack_name": "s", "template": {}}'
            length = f"Content-Length: {len(whole)}"
            for who, body in ((author, whole), (other, whole)):
                said = f"Authorization: {who['Authorization']}"
                head = request("POST /v1/p/stacks", said, length, "Connection: close", body=body)
                ((status, _document),) = await exchange(run.url, head)
                assert status == 400  # it was read
            for waiting in heads:
                waiting.cancel()


def test_what_is_open_is_counted_by_client_and_forgotten() -> None:
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
