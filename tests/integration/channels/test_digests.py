"""Digests: one message for the notifications of a period, to a real SMTP relay and a chat."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest

from channels.chat.channel import ChatChannel
from channels.contract import Channel
from channels.digest import GATHERED
from channels.digest_summary import DECIDED
from channels.email.channel import EmailChannel
from channels.email.relay import EmailSettings, Encryption
from channels.retry import RetryPolicy
from channels.store import subscriptions
from channels.store.claim import Capacity, claim_keys, read_claimed
from channels.store.digests import gather
from channels.store.records import NewSubscription, SubscriptionChange
from channels.webhook.client import WebhookChannel
from engine.store.database import Database
from engine.words import DRIFT
from tests.integration.channels.conftest import RunDispatcher
from tests.support.engine_rows import EngineRows
from tests.support.receiver import Receiver, until
from tests.support.smtp import Relay, running_relay

HOURLY = {"every": "1h", "at": None, "timezone": None}
LONG = 86_400
CAPACITY = Capacity(free=64, retries=32, each=20, busy={})
#: What the clock does.
ARRIVE = """
with due as (
    update delivery set next_at = now(), digest_at = now() where digest_at > now() returning 1
)
select count(*), pg_notify('headgate_delivery', '') from due
"""
#: The pause before the next attempt ends.
TRY_AGAIN = """
with due as (update delivery set next_at = now() where state = 'pending' returning 1)
select count(*), pg_notify('headgate_delivery', '') from due
"""


@pytest.fixture
def relay() -> Iterator[Relay]:
    with running_relay() as started:
        yield started


@pytest.fixture
async def chat(webhook: WebhookChannel) -> AsyncIterator[dict[str, Channel]]:
    yield {"slack": ChatChannel("slack", webhook, "https://headgate.example")}


def email(relay: Relay) -> dict[str, Channel]:
    settings = EmailSettings(
        "127.0.0.1", relay.port, "headgate@example.org", Encryption.NONE, recipients=["*"]
    )
    return {"email": EmailChannel(settings, "https://headgate.example")}


async def subscribe(
    rows: EngineRows, target: str = "ops@example.org", channel: str = "email", **more: Any
) -> NewSubscription:
    return await rows.subscription(
        target, channel=channel, ordered=False, digest=HOURLY, events=["headgate.hook.waiting"],
        **more,
    )  # fmt: skip


async def until_states(rows: EngineRows, state: str, count: int) -> list[dict[str, Any]]:
    async def found() -> list[dict[str, Any]]:
        those = [one for one in await rows.deliveries() if one["state"] == state]
        return those if len(those) == count else []

    return list(await until(found, f"{count} deliveries {state}"))


async def until_failed(rows: EngineRows, count: int) -> list[dict[str, Any]]:
    """The deliveries that failed once and are tried again later."""

    async def found() -> list[dict[str, Any]]:
        those = [one for one in await rows.deliveries() if one["code"] == 500]
        tried = [one for one in those if (one["state"], one["attempts"]) == ("pending", 1)]
        return tried if len(tried) == count else []

    return list(await until(found, f"{count} deliveries are tried again later"))


async def until_gathered(rows: EngineRows, count: int) -> list[dict[str, Any]]:
    async def found() -> list[dict[str, Any]]:
        those = [one for one in await rows.deliveries() if is_gathered(one)]
        return those if len(those) == count else []

    return list(await until(found, f"{count} deliveries wait for the digest"))


def is_gathered(delivery: dict[str, Any]) -> bool:
    return delivery["state"] == "pending" and str(delivery["error"] or "").startswith(GATHERED)


async def test_notifications_of_a_period_are_one_message(
    engine_rows: EngineRows, run_dispatcher: RunDispatcher, relay: Relay
) -> None:
    """Of more deliveries than one claim has, in two queues."""
    await subscribe(engine_rows)
    stack = await engine_rows.stack()
    for _ in range(30):
        await engine_rows.hook(stack, seconds=LONG)
    now = await engine_rows.now()
    async with run_dispatcher(channels=email(relay)):
        held = await until_gathered(engine_rows, 30)
        assert {one["attempts"] for one in held} == {0}
        assert len({one["digest_at"] for one in held}) == 1
        assert now < held[0]["digest_at"] <= now + timedelta(hours=1, minutes=1)
        assert relay.messages == []
        await engine_rows.value(ARRIVE)
        sent = await until_states(engine_rows, "delivered", 30)
    assert {one["attempts"] for one in sent} == {1}
    (message,) = relay.messages
    assert "30 notifications, 30 wait for an answer" in str(message)


async def test_a_hook_about_drift_waits_for_an_answer(
    engine_rows: EngineRows, run_dispatcher: RunDispatcher, relay: Relay
) -> None:
    """It has no deadline that a digest could miss, and is not decided."""
    await subscribe(engine_rows)
    stack = await engine_rows.stack()
    await engine_rows.hook(stack, seconds=LONG, point=DRIFT)
    await engine_rows.hook(stack, seconds=LONG, point=DRIFT)
    async with run_dispatcher(channels=email(relay)):
        await until_gathered(engine_rows, 2)
        await engine_rows.value(ARRIVE)
        await until_states(engine_rows, "delivered", 2)
    (message,) = relay.messages
    assert "2 notifications, 2 wait for an answer" in str(message)
    assert DECIDED not in str(message)


async def test_several_dispatchers_send_one_message(
    engine_rows: EngineRows, run_dispatcher: RunDispatcher, relay: Relay
) -> None:
    await subscribe(engine_rows)
    stack = await engine_rows.stack()
    for _ in range(45):
        await engine_rows.hook(stack, seconds=LONG)
    async with run_dispatcher(channels=email(relay)):
        await until_gathered(engine_rows, 45)
    await engine_rows.value(ARRIVE)
    async with (
        run_dispatcher(channels=email(relay)),
        run_dispatcher(channels=email(relay)),
        run_dispatcher(channels=email(relay)),
    ):
        await until_states(engine_rows, "delivered", 45)
    assert len(relay.messages) == 1


async def test_a_digest_that_another_process_has_claimed_is_taken_once(
    engine_rows: EngineRows, run_dispatcher: RunDispatcher, relay: Relay, database: Database
) -> None:
    """Two processes have claimed some deliveries each, before either takes the digest."""
    one = await subscribe(engine_rows)
    stack = await engine_rows.stack()
    for _ in range(30):
        await engine_rows.hook(stack, seconds=LONG)
    async with run_dispatcher(channels=email(relay)):
        await until_gathered(engine_rows, 30)
    await engine_rows.value(ARRIVE)
    async with database.connection() as conn:
        first = await claim_keys(conn, urgent=True, capacity=CAPACITY, lease=60.0)
        second = await claim_keys(conn, urgent=True, capacity=CAPACITY, lease=60.0)
    assert (len(first), len(second)) == (20, 10)
    taken = await gather(database, one.id, first, lease=60.0)
    assert len(taken) == 30
    assert await gather(database, one.id, second, lease=60.0) == []
    async with database.connection() as conn:
        assert await read_claimed(conn, second) == []
        assert len(await read_claimed(conn, taken)) == 30
    # The process ends: another one takes the digest when the lease has ended.
    await engine_rows.value("update delivery set next_at = now() returning 1")
    assert len(await gather(database, one.id, [], lease=60.0)) == 30


async def test_a_hook_that_expires_before_the_digest_is_sent_at_once(
    engine_rows: EngineRows, run_dispatcher: RunDispatcher, relay: Relay
) -> None:
    await subscribe(engine_rows)
    stack = await engine_rows.stack()
    urgent = await engine_rows.hook(stack, seconds=1)
    await engine_rows.hook(stack, seconds=LONG)
    async with run_dispatcher(channels=email(relay)):
        (sent,) = await until_states(engine_rows, "delivered", 1)
        await until_gathered(engine_rows, 1)
    assert sent["hook_id"] == urgent
    assert len(relay.messages) == 1


async def test_the_deadline_moves_with_the_digest(
    engine_rows: EngineRows, run_dispatcher: RunDispatcher, relay: Relay
) -> None:
    await subscribe(engine_rows)
    hook_id = await engine_rows.hook(await engine_rows.stack(), seconds=LONG)
    async with run_dispatcher(channels=email(relay)):
        (held,) = await until_gathered(engine_rows, 1)
    row = await engine_rows.hook_row(hook_id)
    assert row["deadline"] >= held["digest_at"] + timedelta(seconds=LONG)


async def test_a_failed_digest_is_sent_again_as_one(
    engine_rows: EngineRows,
    run_dispatcher: RunDispatcher,
    receiver: Receiver,
    chat: dict[str, Channel],
) -> None:
    await subscribe(engine_rows, f"{receiver.url}/room", "slack")
    stack = await engine_rows.stack()
    for _ in range(30):
        await engine_rows.hook(stack, seconds=LONG)
    receiver.respond_with_statuses(500, 200)
    async with run_dispatcher(channels=chat):
        await until_gathered(engine_rows, 30)
        await engine_rows.value(ARRIVE)
        sent = await until_states(engine_rows, "delivered", 30)
    assert {one["attempts"] for one in sent} == {2}
    assert len(receiver.received) == 2
    blocks = receiver.events[1]["blocks"]
    links = [one["accessory"]["url"] for one in blocks if "accessory" in one]
    assert len(links) == 20
    assert all("/inbox/" in link for link in links)
    assert b'"token"' not in receiver.received[1].body


async def test_a_digest_leaves_out_what_failed_and_waits_to_be_tried_again(
    engine_rows: EngineRows,
    run_dispatcher: RunDispatcher,
    receiver: Receiver,
    chat: dict[str, Channel],
) -> None:
    """Else, each digest would count as an attempt, and those that failed would end early."""
    await subscribe(engine_rows, f"{receiver.url}/room", "slack")
    stack = await engine_rows.stack()
    receiver.respond_with_statuses(500, 200)
    slow = RetryPolicy(attempts=3, first=LONG, max_pause=LONG, attempt_timeout=30.0)

    async def next_digest() -> None:
        for _ in range(2):
            await engine_rows.hook(stack, seconds=2 * LONG)
        await until_gathered(engine_rows, 2)
        await engine_rows.value(ARRIVE)

    async with run_dispatcher(channels=chat, retry=slow):
        await next_digest()
        await until(lambda: receiver.received, "the digest that fails")
        failed = await until_failed(engine_rows, 2)
        await next_digest()
        sent = await until_states(engine_rows, "delivered", 2)
        assert {one["attempts"] for one in sent} == {1}
        assert await until_failed(engine_rows, 2) == failed
        await engine_rows.value(TRY_AGAIN)
        sent = await until_states(engine_rows, "delivered", 4)
    assert sorted(one["attempts"] for one in sent) == [1, 1, 2, 2]
    assert len(receiver.received) == 3


async def test_one_notification_is_sent_as_usual(
    engine_rows: EngineRows,
    run_dispatcher: RunDispatcher,
    receiver: Receiver,
    chat: dict[str, Channel],
) -> None:
    await subscribe(engine_rows, f"{receiver.url}/room", "slack")
    await engine_rows.hook(await engine_rows.stack(), seconds=LONG)
    async with run_dispatcher(channels=chat):
        await until_gathered(engine_rows, 1)
        await engine_rows.value(ARRIVE)
        await until_states(engine_rows, "delivered", 1)
    assert "waits for approval" in receiver.events[0]["text"]


@pytest.mark.parametrize(
    ("change", "sent"),
    [
        (SubscriptionChange(digest=None, sets_digest=True), True),
        (SubscriptionChange(digest=HOURLY, sets_digest=True), False),
        (SubscriptionChange(quiet_hours=None, sets_quiet_hours=True), False),
    ],
    ids=["removed", "the-same", "quiet-hours"],
)
async def test_a_change_applies_to_what_waits(
    engine_rows: EngineRows,
    run_dispatcher: RunDispatcher,
    relay: Relay,
    database: Database,
    change: SubscriptionChange,
    sent: bool,
) -> None:
    one = await subscribe(engine_rows)
    await engine_rows.hook(await engine_rows.stack(), seconds=LONG)
    async with run_dispatcher(channels=email(relay)):
        (before,) = await until_gathered(engine_rows, 1)
        async with database.connection() as conn:
            assert await subscriptions.update(conn, one.project, one.id, change, "ann")
        if sent:
            await until_states(engine_rows, "delivered", 1)
        else:
            async with asyncio.timeout(20):
                while (await until_gathered(engine_rows, 1))[0]["claim"] == before["claim"]:
                    await asyncio.sleep(0.02)
    assert len(relay.messages) == int(sent)
