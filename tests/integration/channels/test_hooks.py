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
from channels.store.hook_notifications import notices_of
from channels.webhook.client import WebhookChannel
from engine.errors import Unavailable
from engine.hooks.automation import Automation
from tests.integration.channels.conftest import LOOPBACK, Answers, Dispatching, token_for
from tests.support.events import NOTICE, Scene, hook_event, resource_event
from tests.support.receiver import Received, Receiver, until


async def test_a_notification_contains_what_an_answer_needs(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack("web")
    chosen = await scene.subscription(receiver.url, events=["headgate.hook.*"])
    async with dispatching():
        hook_id = await scene.hook(stack, "db")
        await until(lambda: _notified_at(scene, hook_id))
    event = receiver.events[0]
    data = event["data"]
    assert event["type"] == "headgate.hook.waiting"
    assert event["subject"] == "db"
    assert data["hook"]["id"] == str(hook_id)
    assert (data["hook"]["state"], data["hook"]["allowed"]) == (
        "waiting", ["continue", "reject", "step", "run", "progress"],
    )  # fmt: skip
    assert data["resource"]["properties"] == NOTICE["properties"]
    assert data["resource"]["changes"] == NOTICE["changes"]
    assert data["resource"]["dependents"] == ["web"]
    assert data["signal_url"] == f"http://hub.test/hooks/{hook_id}/signal"
    assert data["token"] == token_for(hook_id, chosen.id)


async def test_a_notification_in_mode_notify_contains_no_token(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    async with dispatching():
        await scene.hook(stack, mode="notify")
        await until(lambda: receiver.received)
    data = receiver.events[0]["data"]
    assert (data["token"], data["signal_url"], data["hook"]["allowed"]) == (None, None, [])


async def test_a_late_notification_contains_the_state_at_its_event(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url, events=["headgate.hook.*"])
    hook_id = await scene.hook(stack)
    await scene.value(
        "update hook set state = 'answered', decision = 'continue', decided_by = 'me',"
        " decided_at = now()"
    )
    await scene.record(stack, hook_event(hook_id, "db", state="answered"))
    async with dispatching():
        await until(lambda: len(receiver.received) == 2)
    first, second = (event["data"]["hook"] for event in receiver.events)
    assert first["state"] == "waiting"
    assert "decision" not in first
    assert (second["state"], second["decision"]) == ("answered", "continue")


async def test_an_answer_in_the_response_is_accepted(
    scene: Scene, receiver: Receiver, dispatching: Dispatching, answers: Answers
) -> None:
    stack = await scene.stack()
    chosen = await scene.subscription(receiver.url)
    receiver.says({"decision": "reject", "reason": "no change today"})
    async with dispatching():
        hook_id = await scene.hook(stack)
        await until(lambda: answers.taken)
        await until(lambda: _notified_at(scene, hook_id))
    assert answers.taken == [(hook_id, "reject", "no change today", str(chosen.id))]


async def test_a_refused_answer_is_recorded(
    scene: Scene, receiver: Receiver, dispatching: Dispatching, answers: Answers
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    receiver.says({"decision": "continue"})
    answers.refuse = "it was already answered: reject by me"
    async with dispatching():
        hook_id = await scene.hook(stack)
        await until(lambda: _notified_at(scene, hook_id))
    row = (await scene.deliveries())[0]
    assert row["state"] == "delivered"
    assert row["error"] == "the answer was refused: it was already answered: reject by me"
    assert row["answer"] == '{"decision": "continue"}'


async def test_a_notification_is_retried_if_its_answer_cannot_be_stored(
    scene: Scene, receiver: Receiver, dispatching: Dispatching, answers: Answers
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url, events=["headgate.hook.*"])
    receiver.says({"decision": "continue"})
    taken = type(answers).__call__
    left = [Unavailable("not now"), Unavailable("not now")]

    class Shaky(Answers):
        async def __call__(
            self, hook_id: UUID, said: ReceiverDecision, by: Automation, target: str
        ) -> str | None:
            if left:
                raise left.pop()
            return await taken(answers, hook_id, said, by, target)

    async with dispatching(answer=Shaky()):
        hook_id = await scene.hook(stack)
        await until(lambda: _notified_at(scene, hook_id))
    assert len(receiver.received) == 3
    assert [one[0] for one in answers.taken] == [hook_id]


async def test_only_hook_notifications_can_be_answered(
    scene: Scene, receiver: Receiver, dispatching: Dispatching, answers: Answers
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    receiver.says({"decision": "continue"})
    async with dispatching():
        await scene.record(stack, resource_event("a"))
        await scene.hook(stack, mode="notify")
        await until(lambda: _pending(scene, 0))
    assert answers.taken == []


async def test_a_hanging_endpoint_does_not_delay_notifications(
    scene: Scene, receiver: Receiver, other_receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    for _ in range(3):
        await scene.subscription(receiver.url, ordered=False)
    receiver.hangs()
    patient = RetryPolicy(attempt_timeout=300.0)
    async with WebhookChannel(replace(LOOPBACK, timeout=300.0)) as webhook:
        channels: dict[str, Channel] = {"webhook": webhook}
        async with dispatching(channels=channels, retry=patient, capacity=2, each=2, drain=0.05):
            await scene.record(stack, *(resource_event(f"r{number}") for number in range(9)))
            await until(lambda: receiver.under_way == 2)  # the ordinary lane is full for good
            await scene.subscription(other_receiver.url)
            await scene.record(stack, resource_event("s"), resource_event("t"))
            await until(lambda: scene.value("select count(*) = 2 from delivery where sequence = 11"
                                            " and state = 'pending' and next_at is null"
                                            " or sequence = 10 and next_at is not null"
                                            " and subscription_id = (select id from subscription"
                                            " where ordered)"))  # fmt: skip
            assert other_receiver.received == []
            hook_id = await scene.hook(stack)
            await until(lambda: _notified_at(scene, hook_id))
        # In order: the deliveries before it in the same stack were urgent too.
        assert [event["sequence"] for event in other_receiver.events] == [10, 11, 12]
        assert receiver.most_under_way > 2  # the hanging ones have the notice, too


async def test_the_deadline_starts_at_the_first_delivery(
    scene: Scene, receiver: Receiver, other_receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    await scene.subscription(other_receiver.url)
    receiver.answers(500, 200)
    go = asyncio.Event()

    async def later(_: Received) -> web.StreamResponse:
        await go.wait()
        return web.Response()

    other_receiver.handle = later
    hook_id = await scene.hook(stack, seconds=100.0)
    opened = await scene.hook_row(hook_id)
    async with dispatching():
        await until(lambda: _notified_at(scene, hook_id))
        row = await scene.hook_row(hook_id)
        go.set()
        await until(lambda: _pending(scene, 0))
    assert await scene.hook_row(hook_id) == row  # the second arrival changed nothing
    assert await scene.value("select min(settled_at) from delivery") <= row["notified_at"]
    assert _seconds(row["deadline"], row["notified_at"]) == 100.0
    assert row["deadline"] > opened["deadline"]
    notices = [event for event in receiver.events if event["type"] == "headgate.hook.waiting"]
    said = datetime.fromisoformat(notices[-1]["data"]["hook"]["deadline"])
    assert opened["deadline"] < said <= row["deadline"]


async def test_the_deadline_is_extended_until_the_delivery(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    receiver.hangs()
    hook_id = await scene.hook(stack, seconds=100.0)
    async with dispatching(drain=0.05):
        await until(lambda: receiver.received)
        row = await scene.hook_row(hook_id)
        queued = await scene.value("select created_at from delivery")
        # 3 attempts of 30 s and two waits between them, of 0.02 s and 0.04 s.
        assert 190.06 <= _seconds(row["deadline"], queued) < 195.0


async def test_the_deadline_starts_when_the_notification_is_dead(
    scene: Scene, receiver: Receiver, other_receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    for one in (receiver, other_receiver):
        await scene.subscription(one.url, events=["headgate.hook.waiting"])
        one.answers(500)
    hook_id = await scene.hook(stack, seconds=100.0)
    async with dispatching():
        await until(lambda: _pending(scene, 0))
    row = await scene.hook_row(hook_id)
    last = await scene.value("select max(settled_at) from delivery")
    assert row["notified_at"] is None
    assert 100.0 <= _seconds(row["deadline"], last) < 110.0


async def test_the_deadline_is_extended_while_one_notification_is_pending(
    scene: Scene, receiver: Receiver, other_receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url, events=["headgate.hook.*"])
    await scene.subscription(other_receiver.url, events=["headgate.hook.*"])
    receiver.answers(410)
    other_receiver.answers(500)
    slow = RetryPolicy(attempts=2, first=500.0, longest=500.0, attempt_timeout=1.0)
    hook_id = await scene.hook(stack, seconds=100.0)
    opened = await scene.hook_row(hook_id)
    async with dispatching(retry=slow):
        await until(lambda: scene.value("select count(*) = 2 from delivery where code is not null"))
    row = await scene.hook_row(hook_id)
    assert _seconds(row["deadline"], opened["deadline"]) > 250
    assert row["notified_at"] is None


async def test_retry_after_extends_the_deadline(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    receiver.answers(429, headers={"Retry-After": "900"})
    policy = RetryPolicy(attempts=2, first=0.02, longest=1000.0, attempt_timeout=1.0)
    hook_id = await scene.hook(stack, seconds=100.0)
    async with dispatching(retry=policy):
        await until(lambda: scene.value("select 1 from delivery where code = 429"))
    row = await scene.hook_row(hook_id)
    again = await scene.value("select next_at from delivery")
    assert 100.0 < _seconds(row["deadline"], again) < 110.0


async def test_a_hook_without_subscribers_keeps_its_deadline(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url, stacks=["other"])
    hook_id = await scene.hook(stack)
    before = await scene.hook_row(hook_id)
    async with dispatching():
        await until(lambda: scene.value("select position from outbox"))
    assert await scene.hook_row(hook_id) == before


async def test_notifications_and_notified_subscriptions_of_a_hook(
    scene: Scene, receiver: Receiver, other_receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    good = await scene.subscription(f"{receiver.url}/path?secret=1")
    await scene.subscription(other_receiver.url)
    other_receiver.answers(500)
    hook_id = await scene.hook(stack)
    async with dispatching():
        await until(lambda: _pending(scene, 1))  # the news of the death goes to the good one
        await until(lambda: scene.value("select 1 from delivery where state = 'dead'"))
        async with scene.database.connection() as conn:
            notices = (await notices_of(conn, [(stack.id, hook_id)]))[hook_id]
    notifications, notified = notification_documents(notices), notified_documents(notices)
    assert {one["state"] for one in notifications} == {"delivered", "dead"}
    assert [one["subscription"] for one in notified] == [str(good.id)]
    assert notified[0]["target"] == receiver.url
    assert notified[0]["at"].endswith("Z")


async def test_only_the_delivery_of_a_notification_is_an_event(
    scene: Scene, receiver: Receiver, other_receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    good = await scene.subscription(f"{receiver.url}/secret-path")
    await scene.subscription(other_receiver.url, events=["headgate.delivery.*"])
    hook_id = await scene.hook(stack)
    await scene.record(stack, resource_event("a"))
    async with dispatching():
        await until(lambda: other_receiver.received)
        await until(lambda: _pending(scene, 0))
    (event,) = other_receiver.events
    assert event["type"] == "headgate.delivery.delivered"
    data = event["data"]
    assert (data["subscription"]["id"], data["subscription"]["target"]) == (
        str(good.id), receiver.url,
    )  # fmt: skip
    assert data["event"]["type"] == "headgate.hook.waiting"
    assert (data["delivery"]["attempts"], data["delivery"]["code"]) == (1, 200)
    assert await scene.value("select count(*) from event") == 3
    # The notified subscription also gets the event, so its sequence has no gap.
    assert [one["sequence"] for one in receiver.events] == [1, 2, 3]
    assert str(hook_id) in str(receiver.events[0])


async def _notified_at(scene: Scene, hook_id: UUID) -> Any:
    return (await scene.hook_row(hook_id))["notified_at"]


async def _pending(scene: Scene, most: int) -> bool:
    rows = await scene.deliveries()
    return bool(rows) and sum(row["state"] == "pending" for row in rows) <= most


def _seconds(later: datetime, earlier: datetime) -> float:
    return (later - earlier).total_seconds()
