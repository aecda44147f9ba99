"""A listener that reads the event stream of a real server."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

import headgate
from tests.support.program import Http, Json, Program, ServerProcess, eventually, program, resource

ENVIRONMENT = {"hooks": [{"at": "*", "on": "pre-create"}, {"on": "pre-stack-create"}]}


@pytest.fixture
async def run(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url, {"engine.poll": "1s"}) as opened:
        yield opened


def stream_of(url: str, **more: Json) -> headgate.EventStream:
    return headgate.EventStream(url, "p", headgate.ClientCredentials(user="robot"), **more)


async def hooks_of(http: Http, name: str) -> list[Json]:
    _, response = await http.call("GET", f"/hooks?stack={name}")
    return list(response["hooks"])


async def test_hooks_from_before_and_after_the_connection_are_answered_once(run: Program) -> None:
    app, calls = headgate.Listener(), list[str]()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        calls.append(f"{hook.stack['name']} {hook.point} {hook.stack['project']}")
        await hook.progress("looking")
        return headgate.Continue("by stream")

    await run.create("early", {"a": resource()}, environment=ENVIRONMENT)
    await run.waiting_hooks("early")
    async with app.serving(stream_of(run.url)):
        assert await run.until_ended("early") == "CREATE_COMPLETE"
        await run.create("late", {"a": resource()}, environment=ENVIRONMENT)
        assert await run.until_ended("late") == "CREATE_COMPLETE"
    assert sorted(calls) == sorted(
        f"{stack} {point} p"
        for stack in ("early", "late")
        for point in ("pre-stack-create", "pre-create")
    )
    (_, hook) = await hooks_of(run, "late")
    assert (hook["decided_by"], hook["reason"], hook["channel"]) == ("robot", "by stream", "api")


async def test_only_the_hooks_of_the_stack_are_answered(run: Program) -> None:
    app = headgate.Listener()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        return headgate.Continue()

    for name in ("s", "other"):
        await run.create(name, {"a": resource()}, environment=ENVIRONMENT)
    async with app.serving(stream_of(run.url, stack="s")):
        assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert [one["state"] for one in await hooks_of(run, "other")] == ["waiting"]


async def test_a_handler_is_cancelled_when_a_person_answers(run: Program) -> None:
    app, started, cancelled = headgate.Listener(), asyncio.Event(), asyncio.Event()

    @app.hook("pre-create")
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    async with app.serving(stream_of(run.url)):
        await run.create("s", {"a": resource()}, environment={"hooks": ENVIRONMENT["hooks"][:1]})
        async with asyncio.timeout(60):
            await started.wait()
            (hook,) = await run.waiting_hooks("s")
            assert (await run.signal(hook, user="ada"))[0] == 200
            await cancelled.wait()
        assert await run.until_ended("s") == "CREATE_COMPLETE"


def test_a_server_that_is_away_ends_the_listener(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.listener.stream.RECONNECT_TIMEOUT", 0.0)
    with pytest.raises(SystemExit):
        headgate.Listener().run(stream="http://127.0.0.1:9")
    assert "the listener ends: no response from http://127.0.0.1:9" in caplog.text


async def test_the_listener_goes_on_after_a_restart_of_the_server(
    database_url: str, tmp_path: Path
) -> None:
    server = ServerProcess(tmp_path, database_url=database_url)
    await asyncio.to_thread(server.start)
    try:
        async with aiohttp.ClientSession() as session:
            await answer_over_a_restart(server, Http(session, server.url))
    finally:
        await asyncio.to_thread(server.stop)


async def answer_over_a_restart(server: ServerProcess, http: Http) -> None:
    app, calls, go_on = headgate.Listener(), list[str](), asyncio.Event()

    @app.hook("pre-create")
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        calls.append(hook.id)
        await go_on.wait()
        return headgate.Continue("survived")

    async def is_called() -> bool:
        return bool(calls)

    environment = {"hooks": ENVIRONMENT["hooks"][:1]}
    async with app.serving(stream_of(server.url)):
        await http.create("s", {"a": resource()}, environment=environment)
        await eventually(is_called)
        await asyncio.to_thread(server.kill)
        go_on.set()
        await asyncio.to_thread(server.start)
        assert await http.until_ended("s") == "CREATE_COMPLETE"
        await http.create("t", {"a": resource()}, environment=environment)
        assert await http.until_ended("t") == "CREATE_COMPLETE"
    assert len(calls) == 2
