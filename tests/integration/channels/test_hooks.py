"""Hook notifications: their content, the urgent queue, answers, and the deadline of the hook."""

import asyncio
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from aiohttp import web

from channels.contract import Channel, ReceiverDecision
from channels.envelope import notification_documents, notified_documents
from channels.retry import RetryPolicy
from channels.store.hook_notifications import sent_notifications_of
from channels.webhook.client import WebhookChannel
from engine.errors import Unavailable
from engine.hooks.answer_rights import Automation
from tests.integration.channels.conftest import LOOPBACK, RecordedAnswers, RunDispatcher, token_for
from tests.support.engine_rows import NOTIFICATION, EngineRows, hook_event, resource_event
from tests.support.receiver import Received, Receiver, until


async def test_a_notification_contains_what_an_answer_needs(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack("web")
    chosen = await engine_rows.subscription(receiver.url, events=["headgate.hook.*"])
    async with run_dispatcher():
        hook_id = await engine_rows.hook(stack, "db")
        await until(lambda: _notified_at(engine_rows, hook_id))
    event = receiver.events[0]
    data = event["data"]
    assert event["type"] == "headgate.hook.waiting"
    assert event["subject"] == "db"
    assert data["hook"]["id"] == str(hook_id)
    assert (data["hook"]["state"], data["hook"]["allowed"]) == (
        "waiting", ["continue", "reject", "step", "run", "progress"],
    )  # fmt: skip
    assert data["resource"]["properties"] == NOTIFICATION["properties"]
    assert data["resource"]["changes"] == NOTIFICATION["changes"]
    assert data["resource"]["dependents"] == ["web"]
    assert data["signal_url"] == f"http://hub.test/hooks/{hook_id}/signal"
    assert data["token"] == token_for(hook_id, chosen.id)


async def test_a_notification_in_mode_notify_contains_no_token(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url)
    async with run_dispatcher():
        await engine_rows.hook(stack, mode="notify")
        await until(lambda: receiver.received)
    data = receiver.events[0]["data"]
    assert (data["token"], data["signal_url"], data["hook"]["allowed"]) == (None, None, [])


async def test_a_late_notification_contains_the_state_at_its_event(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url, events=["headgate.hook.*"])
    hook_id = await engine_rows.hook(stack)
    await engine_rows.value(
        "update hook set state = 'answered', decision = 'continue', decided_by = 'me',"
        " decided_at = now()"
    )
    await engine_rows.record(stack, hook_event(hook_id, "db", state="answered"))
    async with run_dispatcher():
        await until(lambda: len(receiver.received) == 2)
    first, second = (event["data"]["hook"] for event in receiver.events)
    assert first["state"] == "waiting"
    assert "decision" not in first
    assert (second["state"], second["decision"]) == ("answered", "continue")


async def test_an_answer_in_the_response_is_accepted(
    engine_rows: EngineRows,
    receiver: Receiver,
    run_dispatcher: RunDispatcher,
    answers: RecordedAnswers,
) -> None:
    stack = await engine_rows.stack()
    chosen = await engine_rows.subscription(receiver.url)
    receiver.respond_with({"decision": "reject", "reason": "no change today"})
    async with run_dispatcher():
        hook_id = await engine_rows.hook(stack)
        await until(lambda: answers.accepted)
        await until(lambda: _notified_at(engine_rows, hook_id))
    assert answers.accepted == [(hook_id, "reject", "no change today", str(chosen.id))]


async def test_a_refused_answer_is_recorded(
    engine_rows: EngineRows,
    receiver: Receiver,
    run_dispatcher: RunDispatcher,
    answers: RecordedAnswers,
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url)
    receiver.respond_with({"decision": "continue"})
    answers.refuse = "it was already answered: reject by me"
    async with run_dispatcher():
        hook_id = await engine_rows.hook(stack)
        await until(lambda: _notified_at(engine_rows, hook_id))
    row = (await engine_rows.deliveries())[0]
    assert row["state"] == "delivered"
    assert row["error"] == "the answer was refused: it was already answered: reject by me"
    assert row["response"] == '{"decision": "continue"}'


async def test_a_notification_is_retried_if_its_answer_cannot_be_stored(
    engine_rows: EngineRows,
    receiver: Receiver,
    run_dispatcher: RunDispatcher,
    answers: RecordedAnswers,
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url, events=["headgate.hook.*"])
    receiver.respond_with({"decision": "continue"})
    original_call = type(answers).__call__
    left = [Unavailable("not now"), Unavailable("not now")]

    class FailingAnswers(RecordedAnswers):
        async def __call__(
            self, hook_id: UUID, decision: ReceiverDecision, by: Automation, target: str
        ) -> str | None:
            if left:
                raise left.pop()
            return await original_call(answers, hook_id, decision, by, target)

    async with run_dispatcher(answer=FailingAnswers()):
        hook_id = await engine_rows.hook(stack)
        await until(lambda: _notified_at(engine_rows, hook_id))
    assert len(receiver.received) == 3
    assert [one[0] for one in answers.accepted] == [hook_id]


async def test_only_hook_notifications_can_be_answered(
    engine_rows: EngineRows,
    receiver: Receiver,
    run_dispatcher: RunDispatcher,
    answers: RecordedAnswers,
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url)
    receiver.respond_with({"decision": "continue"})
    async with run_dispatcher():
        await engine_rows.record(stack, resource_event("a"))
        await engine_rows.hook(stack, mode="notify")
        await until(lambda: _pending(engine_rows, 0))
    assert answers.accepted == []


async def test_a_hanging_endpoint_does_not_delay_notifications(
    engine_rows: EngineRows,
    receiver: Receiver,
    other_receiver: Receiver,
    run_dispatcher: RunDispatcher,
) -> None:
    stack = await engine_rows.stack()
    for _ in range(3):
        await engine_rows.subscription(receiver.url, ordered=False)
    receiver.never_respond()
    patient = RetryPolicy(attempt_timeout=300.0)
    async with WebhookChannel(replace(LOOPBACK, timeout=300.0)) as webhook:
        channels: dict[str, Channel] = {"webhook": webhook}
        async with run_dispatcher(channels=channels, retry=patient, capacity=2, each=2, drain=0.05):
            await engine_rows.record(stack, *(resource_event(f"r{number}") for number in range(9)))
            await until(
                lambda: receiver.in_progress == 2
            )  # all workers of the ordinary queue are blocked
            await engine_rows.subscription(other_receiver.url)
            await engine_rows.record(stack, resource_event("s"), resource_event("t"))
            await until(lambda: engine_rows.value("select count(*) = 2 from delivery where sequence = 11"
                                            " and state = 'pending' and next_at is null"
                                            " or sequence = 10 and next_at is not null"
                                            " and subscription_id = (select id from subscription"
                                            " where ordered)"))  # fmt: skip
            assert other_receiver.received == []
            hook_id = await engine_rows.hook(stack)
            await until(lambda: _notified_at(engine_rows, hook_id))
        # In order: the earlier deliveries of the same stack were urgent, too.
        assert [event["sequence"] for event in other_receiver.events] == [10, 11, 12]
        assert receiver.max_in_progress > 2  # the hanging endpoints have the notification, too


async def test_the_deadline_starts_at_the_first_delivery(
    engine_rows: EngineRows,
    receiver: Receiver,
    other_receiver: Receiver,
    run_dispatcher: RunDispatcher,
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url)
    await engine_rows.subscription(other_receiver.url)
    receiver.respond_with_statuses(500, 200)
    go = asyncio.Event()

    async def later(_: Received) -> web.StreamResponse:
        await go.wait()
        return web.Response()

    other_receiver.handle = later
    hook_id = await engine_rows.hook(stack, seconds=100.0)
    opened = await engine_rows.hook_row(hook_id)
    async with run_dispatcher():
        await until(lambda: _notified_at(engine_rows, hook_id))
        row = await engine_rows.hook_row(hook_id)
        go.set()
        await until(lambda: _pending(engine_rows, 0))
    assert await engine_rows.hook_row(hook_id) == row  # the second delivery changed nothing
    assert await engine_rows.value("select min(ended_at) from delivery") <= row["notified_at"]
    assert _seconds(row["deadline"], row["notified_at"]) == 100.0
    assert row["deadline"] > opened["deadline"]
    notices = [event for event in receiver.events if event["type"] == "headgate.hook.waiting"]
    deadline = datetime.fromisoformat(notices[-1]["data"]["hook"]["deadline"])
    assert opened["deadline"] < deadline <= row["deadline"]


async def test_the_deadline_is_extended_until_the_delivery(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url)
    receiver.never_respond()
    hook_id = await engine_rows.hook(stack, seconds=100.0)
    async with run_dispatcher(drain=0.05):
        await until(lambda: receiver.received)
        row = await engine_rows.hook_row(hook_id)
        queued = await engine_rows.value("select created_at from delivery")
        # 3 attempts of 30 s and two waits between them, of 0.02 s and 0.04 s.
        assert 190.06 <= _seconds(row["deadline"], queued) < 195.0


async def test_the_deadline_starts_when_the_notification_is_dead(
    engine_rows: EngineRows,
    receiver: Receiver,
    other_receiver: Receiver,
    run_dispatcher: RunDispatcher,
) -> None:
    stack = await engine_rows.stack()
    for one in (receiver, other_receiver):
        await engine_rows.subscription(one.url, events=["headgate.hook.waiting"])
        one.respond_with_statuses(500)
    hook_id = await engine_rows.hook(stack, seconds=100.0)
    async with run_dispatcher():
        await until(lambda: _pending(engine_rows, 0))
    row = await engine_rows.hook_row(hook_id)
    last = await engine_rows.value("select max(ended_at) from delivery")
    assert row["notified_at"] is None
    assert 100.0 <= _seconds(row["deadline"], last) < 110.0


async def test_the_deadline_is_extended_while_one_notification_is_pending(
    engine_rows: EngineRows,
    receiver: Receiver,
    other_receiver: Receiver,
    run_dispatcher: RunDispatcher,
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url, events=["headgate.hook.*"])
    await engine_rows.subscription(other_receiver.url, events=["headgate.hook.*"])
    receiver.respond_with_statuses(410)
    other_receiver.respond_with_statuses(500)
    slow = RetryPolicy(attempts=2, first=500.0, max_pause=500.0, attempt_timeout=1.0)
    hook_id = await engine_rows.hook(stack, seconds=100.0)
    opened = await engine_rows.hook_row(hook_id)
    async with run_dispatcher(retry=slow):
        await until(
            lambda: engine_rows.value("select count(*) = 2 from delivery where code is not null")
        )
    row = await engine_rows.hook_row(hook_id)
    assert _seconds(row["deadline"], opened["deadline"]) > 250
    assert row["notified_at"] is None


async def test_retry_after_extends_the_deadline(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url)
    receiver.respond_with_statuses(429, headers={"Retry-After": "900"})
    policy = RetryPolicy(attempts=2, first=0.02, max_pause=1000.0, attempt_timeout=1.0)
    hook_id = await engine_rows.hook(stack, seconds=100.0)
    async with run_dispatcher(retry=policy):
        await until(lambda: engine_rows.value("select 1 from delivery where code = 429"))
    row = await engine_rows.hook_row(hook_id)
    repeated = await engine_rows.value("select next_at from delivery")
    assert 100.0 < _seconds(row["deadline"], repeated) < 110.0


async def test_a_hook_without_subscribers_keeps_its_deadline(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url, stacks=["other"])
    hook_id = await engine_rows.hook(stack)
    before = await engine_rows.hook_row(hook_id)
    async with run_dispatcher():
        await until(lambda: engine_rows.value("select position from outbox"))
    assert await engine_rows.hook_row(hook_id) == before


async def test_notifications_and_notified_subscriptions_of_a_hook(
    engine_rows: EngineRows,
    receiver: Receiver,
    other_receiver: Receiver,
    run_dispatcher: RunDispatcher,
) -> None:
    stack = await engine_rows.stack()
    good = await engine_rows.subscription(f"{receiver.url}/path?secret=1")
    await engine_rows.subscription(other_receiver.url)
    other_receiver.respond_with_statuses(500)
    hook_id = await engine_rows.hook(stack)
    async with run_dispatcher():
        await until(
            lambda: _pending(engine_rows, 1)
        )  # the event about the dead delivery goes to the good one
        await until(lambda: engine_rows.value("select 1 from delivery where state = 'dead'"))
        async with engine_rows.database.connection() as conn:
            notices = (await sent_notifications_of(conn, [(stack.id, hook_id)]))[hook_id]
    notifications, notified = notification_documents(notices), notified_documents(notices)
    assert {one["state"] for one in notifications} == {"delivered", "dead"}
    assert [one["subscription"] for one in notified] == [str(good.id)]
    assert notified[0]["target"] == receiver.url
    assert notified[0]["at"].endswith("Z")


async def test_only_the_delivery_of_a_notification_is_an_event(
    engine_rows: EngineRows,
    receiver: Receiver,
    other_receiver: Receiver,
    run_dispatcher: RunDispatcher,
) -> None:
    stack = await engine_rows.stack()
    good = await engine_rows.subscription(f"{receiver.url}/secret-path")
    await engine_rows.subscription(other_receiver.url, events=["headgate.delivery.*"])
    hook_id = await engine_rows.hook(stack)
    await engine_rows.record(stack, resource_event("a"))
    async with run_dispatcher():
        await until(lambda: other_receiver.received)
        await until(lambda: _pending(engine_rows, 0))
    (event,) = other_receiver.events
    assert event["type"] == "headgate.delivery.delivered"
    data = event["data"]
    assert (data["subscription"]["id"], data["subscription"]["target"]) == (
        str(good.id), receiver.url,
    )  # fmt: skip
    assert data["event"]["type"] == "headgate.hook.waiting"
    assert (data["delivery"]["attempts"], data["delivery"]["code"]) == (1, 200)
    assert await engine_rows.value("select count(*) from event") == 3
    # The notified subscription also gets the event, so its sequence has no gap.
    assert [one["sequence"] for one in receiver.events] == [1, 2, 3]
    assert str(hook_id) in str(receiver.events[0])


async def _notified_at(engine_rows: EngineRows, hook_id: UUID) -> Any:
    return (await engine_rows.hook_row(hook_id))["notified_at"]


async def _pending(engine_rows: EngineRows, max_count: int) -> bool:
    rows = await engine_rows.deliveries()
    return bool(rows) and sum(row["state"] == "pending" for row in rows) <= max_count


def _seconds(later: datetime, earlier: datetime) -> float:
    return (later - earlier).total_seconds()
