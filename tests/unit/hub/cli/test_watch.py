"""headgate watch reconnects after the stream ends."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

import headgate.client
from engine.back_off import BackOff
from headgate.client import EventClient
from headgate.errors import RequestError
from hub.cli.commands import watch, watch_forward
from hub.cli.connection import outage
from hub.cli.connection.client import ApiClient
from hub.cli.exit_codes import ExitCode
from tests.unit.hub.cli.stub import Handler, running_stub

STACK = {"id": "1", "stack_name": "web", "path": "", "stack_status": "CREATE_IN_PROGRESS"}


def event(kind: str, **data: Any) -> bytes:
    document = {"type": f"headgate.{kind}", "time": "2026-11-20T20:16:36Z", "data": data}
    return json.dumps(document).encode()


STARTED = event("resource.create.started", resource={"name": "a"})
CLOSED = event("stack.create.stopped", traversal=1,
               stack={"id": "1", "name": "web", "action": "CREATE",
                      "status": "STOPPED"})  # fmt: skip


def broken_streams(*streams: list[tuple[str, bytes]], state: str = "running") -> Handler:
    """A server whose event stream ends after each of these responses: IDs and documents; without a
    document, only the place is sent."""
    left = iter(streams)

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/stream"):
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            for event_id, document in next(left):
                data = b"data: %b\n" % document if document else b""
                await response.write(b"id: %b\n%b\n" % (event_id.encode(), data))
            return response
        if request.path.endswith("/graph"):
            traversal = {"number": 1, "action": "CREATE", "state": state, "started_at": ""}
            return web.json_response({"nodes": [], "edges": [], "traversal": traversal})
        if request.path.endswith("/hooks"):
            return web.json_response({"hooks": [], "next": None})
        return web.json_response({"stack": STACK})

    return handler


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "RECONNECT_SECONDS", 0.01)
    monkeypatch.setattr(outage, "PAUSES", BackOff(0.01, 0.01))


async def test_a_broken_stream_is_resumed_after_its_last_event(
    capsys: pytest.CaptureFixture[str],
) -> None:
    handler = broken_streams([("1-1", STARTED)], [], [("2-1", CLOSED)])
    async with running_stub(handler) as stub, ApiClient(stub.url, "p") as client:
        assert await watch.watch(client, "web", as_json=True) is ExitCode.STOPPED
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["type"].rpartition(".")[2] for line in lines] == ["started", "stopped"]
    streams = [one for one in stub.seen if "/stream" in one.path]
    assert [one.headers.get("last-event-id") for one in streams] == [None, "1-1", "1-1"]


FOLLOWERS: dict[str, Callable[[ApiClient], Awaitable[object]]] = {
    "watch": lambda client: watch.watch(client, "web", as_json=True),
    "events": lambda client: watch.follow(client, "web", as_json=True),
    "forward": lambda client: watch_forward.forward(client, "http://127.0.0.1:9", None, ""),
    "client": lambda client: anext(EventClient(client).stream()),
}


@pytest.mark.parametrize("follow", FOLLOWERS.values(), ids=FOLLOWERS)
async def test_a_stream_that_breaks_before_its_first_event_is_resumed_at_its_start(
    follow: Callable[[ApiClient], Awaitable[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_forward, "RECONNECT_SECONDS", 0.01)
    monkeypatch.setattr(watch_forward, "ATTEMPT_SECONDS", 0.01)
    monkeypatch.setattr(headgate.client, "FIRST_RETRY", 0.01)
    handler = broken_streams([("7-1", b"")], [], [("8-1", CLOSED)], [])
    async with running_stub(handler) as stub, ApiClient(stub.url, "p") as client:
        following = asyncio.ensure_future(follow(client))
        seen: list[str | None] = []
        while len(seen) < 3:
            await asyncio.sleep(0.01)
            streams = [one for one in stub.seen if "/stream" in one.path]
            seen = [one.headers.get("last-event-id") for one in streams]
        following.cancel()
        await asyncio.wait({following})
    assert seen[:3] == [None, "7-1", "7-1"]


async def test_the_stream_is_connected_before_the_graph_is_fetched() -> None:
    handler = broken_streams([("1-1", CLOSED)])
    async with running_stub(handler) as stub, ApiClient(stub.url, "p") as client:
        await watch.watch(client, "web", as_json=True)
    paths = [one.path.partition("?")[0].rpartition("/")[2] for one in stub.seen]
    assert paths.index("stream") < paths.index("graph")


async def test_watch_of_an_ended_stack_returns_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    handler = broken_streams([], state="failed")
    async with running_stub(handler) as stub, ApiClient(stub.url, "p") as client:
        assert await watch.watch(client, "web", as_json=False) is ExitCode.FAILED
    assert capsys.readouterr().out == "web: CREATE_FAILED\n"


async def test_watch_fails_after_a_long_outage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(outage, "MAX_SECONDS", 0.03)

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/stream") and request.transport is not None:
            request.transport.close()
        return web.json_response({"stack": STACK})

    async with running_stub(handler) as stub, ApiClient(stub.url, "p") as client:
        with pytest.raises(RequestError, match="no response from http://127"):
            await watch.watch(client, "web", as_json=False)
    assert sum("/stream" in one.path for one in stub.seen) >= 3
    assert capsys.readouterr().err.count("connection lost") == 1


async def test_a_refusal_of_the_stream_ends_the_watch() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/stream"):
            return web.json_response({"error": {"message": "not yours"}}, status=403)
        return web.json_response({"stack": STACK})

    async with running_stub(handler) as stub, ApiClient(stub.url, "p") as client:
        with pytest.raises(RequestError, match="not yours"):
            await watch.watch(client, "web", as_json=False)
