"""Clients that are slow, gone, or speak something else: let go in bounded time."""

import asyncio
import io
from collections.abc import AsyncIterator

import orjson
import pytest
from structlog.testing import capture_logs

from tests.support.program import PATIENCE, Program, eventually, program, resource, template
from tests.support.wire import Wire, answers_in, exchange, request, wired

#: All that the server waits for.
SHORT = {"server.idle_timeout": "1s", "server.request_timeout": "1s"}
POST = "POST /v1/p/stacks"
#: Beginnings of requests, which never end.
UNENDED = {
    "nothing": b"",
    "half a line": b"GET /heal",
    "half a header": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: b",
    "headers without an end": b"GET /healthz HTTP/1.1\r\nHost: x\r\n",
    "no body": request(POST, "Content-Length: 10"),
    "half a body": request(POST, "Content-Length: 10", body=b'{"a'),
    "half a chunk": request(POST, "Transfer-Encoding: chunked", body=b"9\r\n{}"),
    "a body that nobody reads": request("GET /healthz", "Content-Length: 10", body=b"{"),
    "half a handshake": bytes.fromhex("16030100a5"),
}
LENGTHS = ("Content-Length: 4", "Transfer-Encoding: chunked")
#: What is no request, or is one to one reader and two to another.
UNREADABLE = {
    "no HTTP": b"\x00\xff\xfe nonsense\r\n\r\n",
    "TLS": bytes.fromhex("16030100a5010000a1") + b"\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/3.7": b"GET /healthz HTTP/3.7\r\nHost: x\r\n\r\n",
    "no method": request("G@T /healthz"),
    "two hosts": request("GET /healthz", "Host: a", "Host: b"),
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "length and chunks": request(POST, *LENGTHS, body=b"0\r\n\r\n" + request("GET /healthz")),
    "chunks and length": request(POST, *reversed(LENGTHS), body=b"0\r\n\r\n"),
    "two lengths": request(POST, "Content-Length: 2", "Content-Length: 3", body=b"{}x"),
    "less than nothing": request(POST, "Content-Length: -1"),
    "a sum": request(POST, "Content-Length: +2", body=b"{}"),
    "no end in sight": request(POST, f"Content-Length: {'9' * 24}", body=b"{}"),
    "other chunks": request(POST, "Transfer-Encoding: xchunked", body=b"0\r\n\r\n"),
    "chunks twice": request(POST, "Transfer-Encoding: chunked, chunked", body=b"0\r\n\r\n"),
    "chunks before a colon": request(POST, "Transfer-Encoding : chunked", body=b"0\r\n\r\n"),
    "no number of bytes": request(POST, LENGTHS[1], body=b"zz\r\n{}\r\n0\r\n\r\n"),
    "a chunk too short": request(POST, LENGTHS[1], body=b"1\r\n{}\r\n0\r\n\r\n"),
    "a chunk too long": request(POST, LENGTHS[1], body=b"f" * 20 + b"\r\n{}\r\n0\r\n\r\n"),
    "bare line feeds": b"GET /healthz HTTP/1.1\nHost: x\n\n",
    "a folded header": request("GET /healthz", "X-A: b\r\n c"),
    "NUL in a header": request("GET /healthz", "X-A: b\0c"),
    "a header without a colon": request("GET /healthz", "X-Auth-Token swordfish"),
    "no address": request("GET "),
    "half an address": request("GET http://[::1/"),
    "five hundred headers": request("GET /healthz", *(f"X-{n}: 1" for n in range(500))),
}  # fmt: skip
TOO_LONG = {
    "an address": request(f"GET /{'a' * 9000}"),
    "a header": request("GET /healthz", f"X-A: {'a' * 9000}"),
}


@pytest.fixture
async def run(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url, SHORT) as made:
        yield made


async def dripping(wire: Wire, data: bytes) -> None:
    """A byte of it again and again, until the server has let go."""
    while not wire.reader.at_eof():
        try:
            await wire.say(data)
        except ConnectionError:
            return
        await asyncio.sleep(0.05)


async def let_go(run: Program, data: bytes, drip: bytes) -> bytes:
    """What the server said until then."""
    async with wired(run.url) as wire, asyncio.TaskGroup() as group:
        await wire.say(data)
        dropping = group.create_task(dripping(wire, drip)) if drip else None
        said = await wire.rest()
        if dropping:
            dropping.cancel()
        return said


async def test_whoever_does_not_end_a_request_is_let_go(run: Program) -> None:
    """All at once, some silent and some dripping; others are answered meanwhile."""
    async with asyncio.TaskGroup() as group, asyncio.timeout(PATIENCE):
        tasks = {
            (name, drip): group.create_task(let_go(run, data, drip))
            for name, data in UNENDED.items()
            for drip in (b"", b"a")
        }
        sent = {"stack_name": "s", "template": template({"a": resource()})}
        status, said = await run.call("POST", "/stacks", sent)
        assert status == 201, said
        assert not all(task.done() for task in tasks.values())
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    timed_out = answers_in(tasks["half a body", b""].result())
    assert [status for status, _ in timed_out] == [408]
    assert timed_out[0][1]["error"]["type"] == "RequestTimeout"
    (answered,) = answers_in(tasks["a body that nobody reads", b""].result())
    assert answered == (200, {"alive": True})
    assert tasks["nothing", b""].result() == b""


async def test_whoever_does_not_read_an_answer_is_let_go(database_url: str) -> None:
    # More than systems keep for a reader that does not read.
    size = 12_000_000
    async with program(database_url, {"server.max_body": 2 * size}) as run:
        big = io.BytesIO(orjson.dumps({"config": "#" * size}))
        _, made = await run.call("POST", "/software_configs", data=big)
        path = f"/v1/p/software_configs/{made['software_config']['id']}"
        async with program(database_url, SHORT) as other, wired(other.url) as wire:
            with capture_logs() as logged:
                await wire.say(request(f"GET {path}"))

                async def cut_off() -> bool:
                    return any(one["event"] == "request.cut_off" for one in logged)

                await eventually(cut_off)
            assert len(await wire.rest()) < size
        status, whole = await run.call("GET", f"/{path}")
        assert status == 200 and len(whole["software_config"]["config"]) == size


async def test_what_is_no_request_is_refused_and_never_taken_for_two(run: Program) -> None:
    with capture_logs() as logged:
        for name, data in UNREADABLE.items():
            answers = await exchange(run.url, data)
            assert [status for status, _ in answers] == [400], (name, answers)
            error = answers[0][1]["error"]
            assert error["type"] == "Invalid" and error["message"] and error["remedy"], name
        for name, data in TOO_LONG.items():
            [(status, said)] = await exchange(run.url, data)
            assert (status, said["error"]["type"]) == (431, "RequestHeadersTooLarge"), name
    assert "swordfish" not in str(logged)
    assert {one["log_level"] for one in logged} == {"info"}


async def test_what_comes_after_a_request_does_not_change_its_answer(run: Program) -> None:
    whole = request("GET /healthz")
    for data, statuses in {
        # In one packet: the first is not looked at either.
        whole + b"\0\xffnonsense\r\n\r\n": [400],
        request(POST, "Content-Length: 1", body=b"{") + request("G@T /"): [400],
        whole + whole + request("GET /nowhere", "Connection: close"): [200, 200, 404],
        b"GET /healthz HTTP/1.0\r\n\r\n": [200],
        request("GET /healthz", "Expect: 100-continue", "Connection: close"): [100, 200],
        request("GET /healthz", "Upgrade: websocket", "Connection: Upgrade") + b"\0": [200, 400],
    }.items():
        assert [status for status, _ in await exchange(run.url, data)] == statuses, data


async def test_who_has_gone_before_the_answer_may_ask_again(run: Program) -> None:
    """Half-closed, and gone: done or not, it is done once; half of one is nothing."""
    sent = {"stack_name": "s", "template": template({"a": resource()})}
    whole = orjson.dumps(sent)
    key = "Idempotency-Key: once"
    for body, size in ((whole, len(whole)), (whole.replace(b'"s"', b'"t"'), len(whole) + 1)):
        async with wired(run.url) as wire:
            await wire.say(request(POST, key, f"Content-Length: {size}", body=body))
            wire.writer.write_eof()
            await wire.rest()
    status, said = await run.call("POST", "/stacks", sent, headers={"Idempotency-Key": "once"})
    assert status == 201, said
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    _, said = await run.call("GET", "/stacks")
    assert [one["stack_name"] for one in said["stacks"]] == ["s"]
