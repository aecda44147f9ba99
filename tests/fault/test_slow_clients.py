"""Slow and disconnected clients, and invalid protocols: connections end in bounded time."""

import asyncio
import io
from collections.abc import AsyncIterator

import orjson
import pytest
from structlog.testing import capture_logs

from tests.support.program import PATIENCE, Program, eventually, program, resource, template
from tests.support.wire import Wire, exchange, open_wire, parse_responses, request

#: All timeouts of the server.
SHORT = {"server.idle_timeout": "1s", "server.request_timeout": "1s"}
POST = "POST /v1/p/stacks"
#: Beginnings of requests that never end.
UNFINISHED = {
    "nothing": b"",
    "half a line": b"GET /heal",
    "half a header": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: b",
    "headers without an end": b"GET /healthz HTTP/1.1\r\nHost: x\r\n",
    "no body": request(POST, "Content-Length: 10"),
    "half a body": request(POST, "Content-Length: 10", body=b'{"a'),
    "half a chunk": request(POST, "Transfer-Encoding: chunked", body=b"9\r\n{}"),
    "a body that is not read": request("GET /healthz", "Content-Length: 10", body=b"{"),
    "partial TLS handshake": bytes.fromhex("16030100a5"),
}
LENGTHS = ("Content-Length: 4", "Transfer-Encoding: chunked")
#: Invalid requests, and those that two parsers read as one or as two requests.
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
    "negative length": request(POST, "Content-Length: -1"),
    "length with a sign": request(POST, "Content-Length: +2", body=b"{}"),
    "huge length": request(POST, f"Content-Length: {'9' * 24}", body=b"{}"),
    "other chunks": request(POST, "Transfer-Encoding: xchunked", body=b"0\r\n\r\n"),
    "chunks twice": request(POST, "Transfer-Encoding: chunked, chunked", body=b"0\r\n\r\n"),
    "chunks before a colon": request(POST, "Transfer-Encoding : chunked", body=b"0\r\n\r\n"),
    "chunk without a size": request(POST, LENGTHS[1], body=b"zz\r\n{}\r\n0\r\n\r\n"),
    "a chunk too short": request(POST, LENGTHS[1], body=b"1\r\n{}\r\n0\r\n\r\n"),
    "a chunk too long": request(POST, LENGTHS[1], body=b"f" * 20 + b"\r\n{}\r\n0\r\n\r\n"),
    "bare line feeds": b"GET /healthz HTTP/1.1\nHost: x\n\n",
    "a folded header": request("GET /healthz", "X-A: b\r\n c"),
    "NUL in a header": request("GET /healthz", "X-A: b\0c"),
    "a header without a colon": request("GET /healthz", "X-Auth-Token swordfish"),
    "no address": request("GET "),
    "invalid IPv6 address": request("GET http://[::1/"),
    "five hundred headers": request("GET /healthz", *(f"X-{n}: 1" for n in range(500))),
}  # fmt: skip
TOO_LONG = {
    "an address": request(f"GET /{'a' * 9000}"),
    "a header": request("GET /healthz", f"X-A: {'a' * 9000}"),
}


@pytest.fixture
async def run(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url, SHORT) as run:
        yield run


async def send_slowly(wire: Wire, data: bytes) -> None:
    """Send a byte repeatedly until the server closes the connection."""
    while not wire.reader.at_eof():
        try:
            await wire.send(data)
        except ConnectionError:
            return
        await asyncio.sleep(0.05)


async def until_closed(run: Program, data: bytes, slowly: bytes) -> bytes:
    """The response of the server until it closes the connection."""
    async with open_wire(run.url) as wire, asyncio.TaskGroup() as group:
        await wire.send(data)
        dropping = group.create_task(send_slowly(wire, slowly)) if slowly else None
        response = await wire.read_to_end()
        if dropping:
            dropping.cancel()
        return response


async def test_a_client_that_never_ends_its_request_is_disconnected(run: Program) -> None:
    """All concurrently, some silent and some slow; other clients are served meanwhile."""
    async with asyncio.TaskGroup() as group, asyncio.timeout(PATIENCE):
        tasks = {
            (name, slowly): group.create_task(until_closed(run, data, slowly))
            for name, data in UNFINISHED.items()
            for slowly in (b"", b"a")
        }
        sent = {"stack_name": "s", "template": template({"a": resource()})}
        status, response = await run.call("POST", "/stacks", sent)
        assert status == 201, response
        assert not all(task.done() for task in tasks.values())
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    timed_out = parse_responses(tasks["half a body", b""].result())
    assert [status for status, _ in timed_out] == [408]
    assert timed_out[0][1]["error"]["type"] == "RequestTimeout"
    (answered,) = parse_responses(tasks["a body that is not read", b""].result())
    assert answered == (200, {"alive": True})
    assert tasks["nothing", b""].result() == b""


async def test_a_client_that_does_not_read_its_response_is_disconnected(database_url: str) -> None:
    # More than the system buffers for a reader that does not read.
    size = 12_000_000
    async with program(database_url, {"server.max_body": 2 * size}) as run:
        big = io.BytesIO(orjson.dumps({"config": "#" * size}))
        _, response = await run.call("POST", "/software_configs", data=big)
        path = f"/v1/p/software_configs/{response['software_config']['id']}"
        # On a busy machine, it takes a second to read the text from the database.
        limited = program(database_url, {"server.request_timeout": "3s"})
        async with limited as other, open_wire(other.url) as wire:
            with capture_logs() as logged:
                await wire.send(request(f"GET {path}"))

                async def is_disconnected() -> bool:
                    return any(one["event"] == "request.timed_out" for one in logged)

                await eventually(is_disconnected)
            assert len(await wire.read_to_end()) < size
        status, document = await run.call("GET", f"/{path}")
        assert status == 200 and len(document["software_config"]["config"]) == size


async def test_an_invalid_request_is_refused_and_never_read_as_two(run: Program) -> None:
    with capture_logs() as logged:
        for name, data in UNREADABLE.items():
            answers = await exchange(run.url, data)
            assert [status for status, _ in answers] == [400], (name, answers)
            error = answers[0][1]["error"]
            assert error["type"] == "Invalid" and error["message"] and error["remedy"], name
        for name, data in TOO_LONG.items():
            [(status, response)] = await exchange(run.url, data)
            assert (status, response["error"]["type"]) == (431, "RequestHeadersTooLarge"), name
    assert "swordfish" not in str(logged)
    assert {one["log_level"] for one in logged} == {"info"}


async def test_data_after_a_request_does_not_change_its_response(run: Program) -> None:
    whole = request("GET /healthz")
    for data, statuses in {
        # In one packet; the first is not read further, either.
        whole + b"\0\xffnonsense\r\n\r\n": [400],
        request(POST, "Content-Length: 1", body=b"{") + request("G@T /"): [400],
        whole + whole + request("GET /nowhere", "Connection: close"): [200, 200, 404],
        b"GET /healthz HTTP/1.0\r\n\r\n": [200],
        request("GET /healthz", "Expect: 100-continue", "Connection: close"): [100, 200],
        request("GET /healthz", "Upgrade: websocket", "Connection: Upgrade") + b"\0": [200, 400],
    }.items():
        assert [status for status, _ in await exchange(run.url, data)] == statuses, data


async def test_a_client_that_disconnected_before_the_response_can_repeat_the_request(
    run: Program,
) -> None:
    """Half-closed or disconnected: the request runs once or not at all; half of it
    changes nothing.
    """
    sent = {"stack_name": "s", "template": template({"a": resource()})}
    whole = orjson.dumps(sent)
    key = "Idempotency-Key: once"
    for body, size in ((whole, len(whole)), (whole.replace(b'"s"', b'"t"'), len(whole) + 1)):
        async with open_wire(run.url) as wire:
            await wire.send(request(POST, key, f"Content-Length: {size}", body=body))
            wire.writer.write_eof()
            await wire.read_to_end()
    status, response = await run.call("POST", "/stacks", sent, headers={"Idempotency-Key": "once"})
    assert status == 201, response
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    _, response = await run.call("GET", "/stacks")
    assert [one["stack_name"] for one in response["stacks"]] == ["s"]
