"""A listener that receives webhooks of a real server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import orjson
import pytest

import headgate
from headgate.signatures import sign
from headgate.testing import notification
from tests.support.changes import thing
from tests.support.ports import free_port
from tests.support.program import Http, Json, Program, ServerProcess, eventually, program, resource
from tests.support.scripted_type import Thing, World

SECRET = "whsec_" + "A" * 32


@pytest.fixture
async def run(database_url: str) -> AsyncIterator[Program]:
    settings = {"engine.poll": "1s", "channels.webhook.first_retry": "1s"}
    async with program(database_url, settings, types=[Thing(World())]) as opened:
        yield opened


@asynccontextmanager
async def serving(
    app: headgate.Listener, http: Http | None = None, *events: str
) -> AsyncIterator[str]:
    """Serve webhooks for a new subscription; yields the URL."""
    address, secret = f"127.0.0.1:{free_port()}", SECRET
    if http is not None:
        body = {"target": f"http://{address}/", "events": [*events] or ["headgate.hook.*"]}
        status, subscription = await http.call("POST", "/subscriptions", body)
        assert status == 201, subscription
        secret = subscription["secret"]
    async with app.serving(headgate.WebhookServer(address, secret)):
        yield f"http://{address}/"


def rules(**rule: Json) -> Json:
    return {"hooks": [{"at": "*", "on": "pre-create", **rule}]}


async def hook_of(http: Http, name: str = "s") -> Json:
    _, response = await http.call("GET", f"/hooks?stack={name}")
    (hook,) = response["hooks"]
    return hook


async def decisions(http: Http, hook: Json) -> list[str]:
    _, response = await http.call("GET", f"/hooks/{hook['id']}/decisions")
    return [one["kind"] for one in response["decisions"]]


async def test_handlers_answer_in_the_response(run: Program) -> None:
    app = headgate.Listener(answer_within=60)

    @app.hook("pre-create", at="b")
    async def reject(hook: headgate.HookNotification) -> headgate.HookAnswer:
        return headgate.Reject(f"{hook.resource['name']} is not wanted")

    @app.hook("pre-create", type="Test::*")
    async def shrink(hook: headgate.HookNotification) -> headgate.HookAnswer:
        return headgate.Patch({"size": hook.properties["size"] - 1}, "smaller")

    async with serving(app, run):
        things = {"a": thing(3), "b": thing()}
        await run.create("s", things, environment=rules(patch=["size"]))
        assert await run.until_ended("s") == "CREATE_FAILED"
    _, response = await run.call("GET", "/hooks?stack=s")
    found = {one["path"]: (one["decision"], one["channel"]) for one in response["hooks"]}
    assert found == {"a": ("patch", "webhook"), "b": ("reject", "webhook")}
    inspected = await run.stack_request("GET", "s", "/resources/a/inspect")
    assert inspected["properties"]["size"] == 2


async def test_a_slow_handler_answers_with_the_token(run: Program) -> None:
    app = headgate.Listener(answer_within=0)

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        async def is_delivered() -> bool:
            return bool((await hook_of(run))["told"])

        await eventually(is_delivered)
        return headgate.Continue("at last")

    async with serving(app, run):
        await run.create("s", {"a": resource()}, environment=rules())
        assert await run.until_ended("s") == "CREATE_COMPLETE"
    hook = await hook_of(run)
    assert (hook["decision"], hook["reason"], hook["channel"]) == ("continue", "at last", "token")


async def post(url: str, event: Json, secret: str = SECRET, age: float = 0) -> tuple[int, str]:
    """Status and body of the response to a signed request."""
    raw = orjson.dumps(event)
    headers = sign("an-id", datetime.now(UTC) - timedelta(seconds=age), raw, [secret])
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=raw, headers=headers) as response,
    ):
        return response.status, await response.text()


async def test_a_notification_that_is_delivered_again_gets_the_same_answer() -> None:
    app, calls = headgate.Listener(), list[str]()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        calls.append(hook.id)
        return headgate.Continue(str(len(calls)))

    event = notification()
    async with serving(app) as url:
        first = await post(url, event)
        assert (first[0], orjson.loads(first[1])["reason"]) == (200, "1")
        assert await post(url, event) == first
        both = await asyncio.gather(*(post(url, one) for one in [notification()] * 2))
        assert both[0] == both[1]
    assert len(calls) == 2


async def test_a_request_without_a_valid_signature_is_refused() -> None:
    app, event = headgate.Listener(), notification()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        raise AssertionError

    async with serving(app) as url:
        assert (await post(url, event, "whsec_" + "B" * 32))[0] == 401
        assert (await post(url, event, age=301))[0] == 401
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, json=event) as response,
        ):
            assert response.status == 401
        assert await post(url, [1]) == (400, "the body is not an event of Headgate")


async def test_a_subscription_that_may_not_answer_calls_no_handler() -> None:
    app, event = headgate.Listener(), notification()
    event["data"] |= {"token": None, "signal_url": None}

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        raise AssertionError

    async with serving(app) as url:
        assert await post(url, event) == (204, "")


async def test_a_handler_that_raises_rejects(run: Program) -> None:
    app = headgate.Listener(answer_within=60)

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        raise RuntimeError("swordfish")

    async with serving(app, run):
        await run.create("s", {"a": resource()}, environment=rules())
        assert await run.until_ended("s") == "CREATE_FAILED"
    reason = (await run.stack("s"))["stack_status_reason"]
    assert "the handler decide failed: RuntimeError" in reason and "swordfish" not in reason


async def test_an_answer_that_headgate_refuses_is_a_failure_of_the_handler(run: Program) -> None:
    app = headgate.Listener(answer_within=0)

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        return headgate.Patch({"colour": "red"})

    async with serving(app, run):
        await run.create("s", {"a": thing()}, environment=rules(patch=True))
        assert await run.until_ended("s") == "CREATE_FAILED"
    assert "Headgate refused its answer patch" in (await hook_of(run))["reason"]


async def test_a_handler_may_run_for_longer_than_the_timeout(run: Program) -> None:
    app = headgate.Listener(answer_within=0)

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        opened = hook.deadline

        async def is_over() -> bool:
            assert opened is not None
            return datetime.now(UTC) > opened and "progress" in await decisions(run, hook.hook)

        await eventually(is_over)
        return headgate.Continue()

    async with serving(app, run):
        await run.create("s", {"a": resource()}, environment=rules(timeout="10s"))
        assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert (await hook_of(run))["decision"] == "continue"


async def test_a_handler_that_is_slower_than_its_deadline_is_cancelled(
    run: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, ended = headgate.Listener(answer_within=0), asyncio.Event()
    monkeypatch.setattr("headgate.listener.hook_run.CANCEL_AFTER", 0.0)

    @app.hook(extend=False)
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    # Without events about hooks, the listener knows only the deadline.
    async with serving(app, run, "headgate.hook.waiting"):
        await run.create("s", {"a": resource()}, environment=rules(timeout="1s"))
        async with asyncio.timeout(60):
            await ended.wait()
        assert await run.until_ended("s") == "CREATE_STOPPED"
    assert (await hook_of(run))["state"] == "expired"


async def test_a_handler_is_cancelled_when_an_update_supersedes_its_hook(run: Program) -> None:
    app = headgate.Listener(answer_within=0)
    started, superseded = asyncio.Event(), asyncio.Event()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        if superseded.is_set():
            return headgate.Continue("the second one")
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            superseded.set()
            raise
        raise AssertionError

    async with serving(app, run):
        await run.create("s", {"a": resource()}, environment=rules())
        async with asyncio.timeout(60):
            await started.wait()
            await run.update("s", parameters={}, tags="changed")
            await superseded.wait()
        await run.until_ended("s")
    _, response = await run.call("GET", "/hooks?stack=s")
    assert [one["state"] for one in response["hooks"]] == ["superseded", "answered"]


async def test_a_busy_listener_gets_the_notification_later(run: Program) -> None:
    app, go_on = headgate.Listener(concurrency=1, backlog=0, answer_within=0), asyncio.Event()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        await go_on.wait()
        return headgate.Continue()

    async with serving(app, run):
        await run.create("s", {"a": resource(), "b": resource()}, environment=rules())
        await run.waiting_hooks("s", 2)

        async def is_refused() -> bool:
            _, response = await run.call("GET", "/hooks?stack=s")
            return 503 in [asked["code"] for one in response["hooks"] for asked in one["asked"]]

        await eventually(is_refused)
        go_on.set()
        assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_an_event_whose_handler_fails_is_delivered_again(run: Program) -> None:
    app, seen = headgate.Listener(), list[str]()

    @app.event("headgate.stack.create.completed")
    async def note(event: Json) -> None:
        seen.append(event["id"])
        if len(seen) == 1:
            raise RuntimeError("not now")

    async def is_seen_twice() -> bool:
        return len(seen) == 2

    async with serving(app, run, "headgate.stack.*"):
        await run.create("s", {})
        await eventually(is_seen_twice)
    assert len(set(seen)) == 1


async def test_an_answer_survives_a_restart_of_the_server(
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
    app = headgate.Listener(answer_within=0)
    started, go_on = asyncio.Event(), asyncio.Event()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        started.set()
        await go_on.wait()
        await hook.progress("the server is away")
        return headgate.Continue("survived")

    async with serving(app, http):
        await http.create("s", {"a": resource()}, environment=rules())
        async with asyncio.timeout(60):
            await started.wait()
        await asyncio.to_thread(server.kill)
        go_on.set()
        await asyncio.to_thread(server.start)
        assert await http.until_ended("s") == "CREATE_COMPLETE"
    assert (await hook_of(http))["reason"] == "survived"
