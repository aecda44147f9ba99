"""Listeners without a server, with `headgate.testing`."""

import asyncio
import json
import logging
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import headgate
from channels.schemas.event_schemas import SCHEMAS
from headgate.listener.handler_runner import ListenerBusy
from headgate.listener.sources import source_of
from headgate.testing import ListenerClient, notification

Json = Any
SOON = timedelta(seconds=0.2)


@pytest.mark.parametrize(
    ("point", "more"),
    [
        ("pre-create", {}),
        ("pre-delete", {"path": "web/0/db", "properties": {"size": 3}, "dry": True}),
        ("pre-stack-create", {"change": {"plan": [{"name": "a"}]}}),
    ],
)
def test_a_notification_is_as_headgate_sends_it(point: str, more: Json) -> None:
    jsonschema.validate(notification(point, **more), SCHEMAS["headgate.hook.waiting"])


async def answer_of(app: headgate.Listener, event: Json) -> Json:
    async with ListenerClient(app) as client:
        return (await client.notify(event)).answer


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (headgate.Continue(), {"decision": "continue", "reason": ""}),
        (headgate.Continue("a", 1), {"decision": "continue", "reason": "a", "data": 1}),
        (headgate.Reject("no"), {"decision": "reject", "reason": "no"}),
        (headgate.Patch({"n": 2}), {"decision": "patch", "reason": "", "properties": {"n": 2}}),
        (headgate.Run(), {"decision": "run", "reason": ""}),
        (headgate.SingleStep("into"), {"decision": "step", "reason": "", "how": "into"}),
        (headgate.Repair("yes"), {"decision": "repair", "reason": "yes"}),
        (headgate.Ignore("2h"), {"decision": "ignore", "reason": "", "data": {"for": "2h"}}),
        (headgate.Adopt("keep"), {"decision": "adopt", "reason": "keep"}),
    ],
)  # fmt: skip
async def test_an_answer_is_for_the_notified_change(
    answer: headgate.HookAnswer, body: Json
) -> None:
    app, event = headgate.Listener(), notification()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        return answer

    assert await answer_of(app, event) == {**body, "digest": event["data"]["hook"]["digest"]}


DB = notification("pre-delete", resource="db_1", type="OS::Trove::Instance", stack="prod-1")


@pytest.mark.parametrize(
    ("points", "options", "matches"),
    [
        (["pre-delete"], {}, True),
        (["pre-*"], {"at": "db_*"}, True),
        (["post-*"], {}, False),
        ([], {"at": ["web", "db_?"]}, True),
        ([], {"at": "db_*/x"}, False),
        ([], {"type": "OS::Trove::*"}, True),
        ([], {"type": ["OS::Nova::*", "X"]}, False),
        ([], {"stack": "prod-*"}, True),
        ([], {"stack": "test-*"}, False),
        ([], {"operator": True}, False),
        ([], {"operator": False}, True),
    ],
)
async def test_a_handler_gets_the_hooks_that_it_names(
    points: list[str], options: Mapping[str, Json], matches: bool
) -> None:
    app = headgate.Listener()

    @app.hook(*points, **options)
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        return headgate.Continue(hook.resource["name"])

    assert (await answer_of(app, DB) is not None) is matches


async def test_a_path_matches_level_by_level() -> None:
    app = headgate.Listener()

    @app.hook(at="web/*/db")
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        return headgate.Continue(hook.path)

    assert (await answer_of(app, notification(path="web/0/db")))["reason"] == "web/0/db"
    assert await answer_of(app, notification(path="web/0/1/db")) is None
    assert await answer_of(app, notification("pre-stack-create")) is None


async def test_the_first_handler_that_matches_is_called() -> None:
    app = headgate.Listener()

    @app.hook("pre-delete")
    async def first(hook: headgate.HookNotification) -> headgate.HookAnswer:
        return headgate.Reject("first")

    @app.hook()
    async def second(hook: headgate.HookNotification) -> headgate.HookAnswer | None:
        return None

    assert (await answer_of(app, DB))["reason"] == "first"
    assert await answer_of(app, notification()) is None


async def test_the_change_of_a_whole_stack() -> None:
    app = headgate.Listener()

    @app.hook("pre-stack-*")
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        with pytest.raises(LookupError, match="use `change`"):
            _ = hook.properties
        return headgate.Continue(hook.change["action"])

    assert (await answer_of(app, notification("pre-stack-update")))["reason"] == "UPDATE"


async def test_a_hook_that_does_not_wait_has_no_handler() -> None:
    app = headgate.Listener()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        raise AssertionError

    assert await answer_of(app, notification(mode="notify")) is None


async def test_a_notification_that_arrives_again_is_handled_once() -> None:
    app, calls = headgate.Listener(), list[str]()
    go_on = asyncio.Event()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        calls.append(hook.id)
        await go_on.wait()
        return headgate.Continue()

    event = notification()
    async with ListenerClient(app) as client:
        first = client.start(event)
        await asyncio.sleep(0)
        assert client.start(event) is first
        go_on.set()
        await client.notify(event)
        assert client.start(event) is None
        assert app.earlier_answer(event) == client.result(event).answer
        await client.notify(notification())
    assert len(calls) == 2


async def test_a_failed_handler_rejects_and_its_message_is_only_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = headgate.Listener()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        raise RuntimeError("the password is swordfish")

    body = await answer_of(app, notification())
    assert body["decision"] == "reject"
    assert body["reason"].startswith("the handler decide failed: RuntimeError; see error ")
    assert "swordfish" not in body["reason"] and "swordfish" in caplog.text


async def test_after_a_failure_the_configured_answer_is_sent() -> None:
    for on_error, decision in ((None, None), (headgate.Reject("closed for today"), "reject")):
        app = headgate.Listener(on_error=on_error)

        @app.hook()
        async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
            raise RuntimeError

        body = await answer_of(app, notification())
        assert (body and body["decision"]) == decision
        assert body is None or body["reason"] == "closed for today"


async def test_a_result_that_is_no_answer_is_a_failure() -> None:
    app = headgate.Listener()

    @app.hook()  # type: ignore[arg-type]
    async def decide(hook: headgate.HookNotification) -> str:
        return "continue"

    body = await answer_of(app, notification())
    assert (body["decision"], "TypeError" in body["reason"]) == ("reject", True)


async def test_the_deadline_is_extended_while_a_handler_runs() -> None:
    app, extended = headgate.Listener(), asyncio.Event()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        await hook.moved.wait()
        extended.set()
        return headgate.Continue()

    async with ListenerClient(app) as client:
        result = await client.notify(notification(timeout=SOON))
    assert extended.is_set()
    assert (result.progress, result.decision) == (["the handler decide is running"], "continue")


async def test_a_handler_reports_progress_but_not_of_a_dry_run() -> None:
    app = headgate.Listener()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        return headgate.Continue(str(await hook.progress("half")))

    async with ListenerClient(app) as client:
        result = await client.notify(notification())
        assert (result.progress, result.reason) == (["half"], "True")
        result = await client.notify(notification(dry=True))
        assert (result.progress, result.reason) == ([], "False")


async def test_the_handler_of_a_closed_hook_is_cancelled_and_gives_no_answer() -> None:
    app, events = headgate.Listener(), asyncio.Queue[str]()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        events.put_nowait("started")
        try:
            await asyncio.Event().wait()
        finally:
            events.put_nowait("cancelled")
        raise AssertionError

    event = notification()
    async with ListenerClient(app) as client:
        client.start(event)
        assert await events.get() == "started"
        await client.close(event)
        assert (await client.notify(event)).answer is None
        assert events.get_nowait() == "cancelled"


async def test_progress_at_a_closed_hook_ends_the_handler(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = headgate.Listener()
    closed = notification()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        client._sender.closed.add(hook.id)
        await hook.progress("more")
        raise AssertionError

    async with ListenerClient(app) as client:
        caplog.set_level(logging.INFO)
        assert (await client.notify(closed)).answer is None
    assert "no answer: the hook is closed" in caplog.text


async def test_handlers_are_bounded_and_further_notifications_refused() -> None:
    app = headgate.Listener(concurrency=2, backlog=1)
    running, highest, go_on, both_run = 0, 0, asyncio.Event(), asyncio.Event()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        nonlocal running, highest
        running += 1
        highest = max(highest, running)
        if running == 2:
            both_run.set()
        await go_on.wait()
        running -= 1
        return headgate.Continue()

    events = [notification() for _ in range(4)]
    async with ListenerClient(app) as client:
        for event in events[:3]:
            client.start(event)
        with pytest.raises(ListenerBusy):
            client.start(events[3])
        free = asyncio.ensure_future(app.until_free())
        await both_run.wait()
        assert not free.done()
        go_on.set()
        await free
        for event in events:
            assert (await client.notify(event)).decision == "continue"
    assert highest == 2


async def test_a_stopping_listener_waits_for_handlers_and_then_cancels_them(
    tmp_path: Path,
) -> None:
    journal, ends = tmp_path / "journal.json", list[str]()

    def listener(grace: float) -> headgate.Listener:
        app = headgate.Listener(grace=grace, journal=journal)

        @app.hook()
        async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
            try:
                await asyncio.wait_for(go_on.wait(), 30)
            except asyncio.CancelledError:
                ends.append("cancelled")
                raise
            ends.append("ended")
            return headgate.Continue()

        return app

    event, go_on = notification(), asyncio.Event()
    app = listener(0)
    async with ListenerClient(app) as client:
        run = client.start(event)
        assert run is not None
        app.keep(run)
        await asyncio.sleep(0)
        assert journal.stat().st_mode & 0o077 == 0
    assert ends == ["cancelled"]
    # Its handler runs again after the restart, and the listener waits for it.
    app = listener(30)
    async with ListenerClient(app) as client:
        app.resume(client._sender)
        go_on.set()
    assert ends == ["cancelled", "ended"]
    assert client.result(event).decision == "continue"
    assert journal.read_text() == "{}"


async def test_the_journal_keeps_no_hook_that_no_handler_accepts(tmp_path: Path) -> None:
    journal, go_on = tmp_path / "journal.json", asyncio.Event()

    def listener(*points: str) -> headgate.Listener:
        app = headgate.Listener(grace=0, journal=journal)

        @app.hook(*points)
        async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
            await go_on.wait()
            return headgate.Continue()

        return app

    kept, obsolete = notification("pre-create"), notification("pre-delete")
    app = listener("pre-create", "pre-delete")
    async with ListenerClient(app) as client:
        for event in (kept, obsolete):
            run = client.start(event)
            assert run is not None
            app.keep(run)
    assert len(json.loads(journal.read_text())) == 2
    app = listener("pre-create")
    async with ListenerClient(app) as client:
        app.resume(client._sender)
        assert list(json.loads(journal.read_text())) == [kept["data"]["hook"]["id"]]


async def test_other_events_have_handlers_of_their_own() -> None:
    app, seen = headgate.Listener(), []

    @app.event("headgate.stack.*.completed")
    async def note(event: Mapping[str, Json]) -> None:
        seen.append(event["type"])

    async with ListenerClient(app) as client:
        await client.send({"type": "headgate.stack.create.completed", "data": {}})
        await client.send({"type": "headgate.stack.create.failed", "data": {}})
    assert seen == ["headgate.stack.create.completed"]


def test_wrong_arguments_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADGATE_SECRET", raising=False)
    with pytest.raises(ValueError, match="exactly one of webhook, amqp and stream"):
        headgate.Listener().run(webhook="127.0.0.1:0", amqp="amqp://x")
    with pytest.raises(ValueError, match="exactly one"):
        source_of(None, None, None)
    with pytest.raises(ValueError, match="secret of the subscription is missing"):
        headgate.WebhookServer("127.0.0.1:0").secrets()
    with pytest.raises(ValueError, match="followed by base64"):
        headgate.WebhookServer("127.0.0.1:0", "whsec_x").secrets()
    with pytest.raises(ValueError, match="concurrency must be at least 1"):
        headgate.Listener(concurrency=0)
    with pytest.raises(ValueError, match="at least one event type"):
        headgate.Listener().event()
    (tmp_path / "journal").write_text("[]")
    with pytest.raises(ValueError, match="is not the journal of a listener"):
        headgate.Listener(journal=tmp_path / "journal")


async def test_an_address_that_is_none_is_refused() -> None:
    server = headgate.WebhookServer("9000", secret="whsec_" + "A" * 32)
    with pytest.raises(ValueError, match='"9000" is not an address; write HOST:PORT'):
        async with headgate.Listener().serving(server):
            raise AssertionError
