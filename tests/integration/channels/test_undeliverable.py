"""Undeliverable hooks: the event, the deadline, and their representation."""

from typing import Any
from uuid import UUID

from channels.envelope import notification_documents
from channels.store import deliveries, subscriptions
from channels.store.hook_notifications import notifications_of
from channels.store.records import SubscriptionChange, SubscriptionState
from engine.store.database import Database
from engine.store.hooks.hook_lists import read_hook
from tests.integration.channels.conftest import RunDispatcher
from tests.support.engine_rows import EngineRows, resource_event
from tests.support.receiver import Receiver, until

UNDELIVERABLE = "select count(*) from event where type = 'headgate.hook.undeliverable'"
NOTIFICATIONS = ["headgate.hook.waiting"]


async def test_only_dead_notifications_cause_an_event(
    engine_rows: EngineRows,
    receiver: Receiver,
    other_receiver: Receiver,
    run_dispatcher: RunDispatcher,
) -> None:
    stack = await engine_rows.stack()
    for _ in range(2):
        await engine_rows.subscription(receiver.url, events=NOTIFICATIONS)
    await engine_rows.subscription(other_receiver.url, events=["headgate.hook.undeliverable"])
    receiver.respond_with_statuses(500)
    hook_id = await engine_rows.hook(stack)
    async with run_dispatcher():
        await until(lambda: other_receiver.received)
        await until(
            lambda: engine_rows.value("select count(*) = 0 from delivery where state = 'pending'")
        )
    (event,) = other_receiver.events
    assert event["data"]["hook"]["id"] == str(hook_id)
    assert event["data"]["details"]["reason"] == (
        "Hook pre-create of db is waiting, and its notification could not be delivered"
    )
    assert await engine_rows.value(UNDELIVERABLE) == 1
    assert (await engine_rows.hook_row(hook_id))["undeliverable_at"] is not None


async def test_one_delivered_notification_is_enough(
    engine_rows: EngineRows,
    receiver: Receiver,
    other_receiver: Receiver,
    run_dispatcher: RunDispatcher,
) -> None:
    stack = await engine_rows.stack()
    for one in (receiver, other_receiver):
        await engine_rows.subscription(one.url, events=NOTIFICATIONS)
    receiver.respond_with_statuses(500)
    await engine_rows.hook(stack)
    async with run_dispatcher():
        await until(
            lambda: engine_rows.value("select count(*) = 0 from delivery where state = 'pending'")
        )
    assert await engine_rows.value(UNDELIVERABLE) == 0


async def test_a_subscription_that_is_disabled_leaves_its_hooks_undeliverable(
    engine_rows: EngineRows, database: Database, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    """Their notifications follow a delivery with the response 410 and are never attempted."""
    stacks = [await engine_rows.stack() for _ in range(2)]
    await engine_rows.subscription(receiver.url)
    for stack in stacks:
        await engine_rows.record(stack, resource_event("a"))
    hooks = [await engine_rows.hook(stack, seconds=100.0) for stack in stacks]
    receiver.respond_with_statuses(410)
    async with run_dispatcher():
        await until(lambda: engine_rows.value(UNDELIVERABLE + " having count(*) = 2"))
    assert {event["type"] for event in receiver.events} == {"headgate.resource.create.started"}
    for hook_id in hooks:
        row = await engine_rows.hook_row(hook_id)
        assert (row["deadline"] - row["undeliverable_at"]).total_seconds() == 100.0
        (notification,) = await _notifications(database, hook_id)
        assert (notification["state"], notification["attempts"]) == ("disabled", 0)
        assert "gone" in notification["error"]


async def test_disabling_a_subscription_makes_its_pending_hook_undeliverable(
    engine_rows: EngineRows, database: Database, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    chosen = await engine_rows.subscription(receiver.url)
    await engine_rows.record(stack, resource_event("a"))
    receiver.never_respond()
    async with run_dispatcher(drain=0.05):
        await until(lambda: receiver.in_progress)
        await engine_rows.hook(stack)
        await until(lambda: engine_rows.value("select 1 from delivery where hook_id is not null"))
        async with database.connection() as conn:
            change = SubscriptionChange(state=SubscriptionState.DISABLED)
            await subscriptions.update(conn, "demo", chosen.id, change, "ann")
        await until(lambda: engine_rows.value(UNDELIVERABLE))


async def test_a_resend_that_fails_causes_no_second_event(
    engine_rows: EngineRows, database: Database, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    chosen = await engine_rows.subscription(receiver.url, events=NOTIFICATIONS)
    receiver.respond_with_statuses(500)
    hook_id = await engine_rows.hook(stack, seconds=100.0)
    async with run_dispatcher():
        await until(lambda: engine_rows.value(UNDELIVERABLE))
        tried = len(receiver.received)
        async with database.connection() as conn:
            assert await deliveries.redeliver_dead(conn, chosen.id) == 1
        await until(lambda: len(receiver.received) == 2 * tried)
        await until(
            lambda: engine_rows.value("select count(*) = 0 from delivery where state = 'pending'")
        )
    assert await engine_rows.value(UNDELIVERABLE) == 1
    row, last = await engine_rows.hook_row(hook_id), "select max(ended_at) from delivery"
    # The deadline starts at the last failure; the attempts before it had extended it by much more.
    assert (row["deadline"] - await engine_rows.value(last)).total_seconds() < 105.0


async def test_a_new_dispatcher_finds_undeliverable_hooks_of_a_killed_one(
    engine_rows: EngineRows, database: Database, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    chosen = await engine_rows.subscription(receiver.url)
    receiver.respond_with_statuses(500)
    hook_id = await engine_rows.hook(stack)
    async with run_dispatcher():
        await until(lambda: engine_rows.value("select 1 from delivery where attempts > 0"))
    await engine_rows.value("update delivery set state = 'pending', attempts = 1, next_at = now()")
    await engine_rows.value("update subscription set state = 'disabled', reason = 'why not'")
    await engine_rows.value("update hook set undeliverable_at = null")
    await engine_rows.value("delete from event where type = 'headgate.hook.undeliverable'")
    async with run_dispatcher():
        await until(lambda: engine_rows.value(UNDELIVERABLE))
    assert [(one["subscription"], one["state"], one["error"])
            for one in await _notifications(database, hook_id)] == [
        (str(chosen.id), "disabled", "why not"),
    ]  # fmt: skip


async def test_hooks_show_disabled_subscriptions_that_select_them(
    engine_rows: EngineRows, database: Database
) -> None:
    stack = await engine_rows.stack("web-1")
    wanted = await engine_rows.subscription(
        "https://a.test/p?key=1", stacks=["web-*"], points=["pre-*"]
    )
    other_subscription = await engine_rows.subscription("https://b.test/", stacks=["db-*"])
    async with database.connection() as conn:
        for one in (wanted, other_subscription):
            change = SubscriptionChange(state=SubscriptionState.DISABLED)
            await subscriptions.update(conn, "demo", one.id, change, "ann")
    hook_id = await engine_rows.hook(stack)
    assert [
        (one["subscription"], one["target"], one["state"], one["error"])
        for one in await _notifications(database, hook_id)
    ] == [(str(wanted.id), "https://a.test", "disabled", "disabled on request")]


async def test_a_late_delivery_restarts_the_deadline(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    chosen = await engine_rows.subscription(receiver.url, events=NOTIFICATIONS)
    receiver.respond_with_statuses(410)
    hook_id = await engine_rows.hook(stack, seconds=100.0)
    async with run_dispatcher():
        await until(lambda: engine_rows.value(UNDELIVERABLE))
        receiver.respond_with_statuses(200)
        async with engine_rows.database.connection() as conn:
            change = SubscriptionChange(state=SubscriptionState.ENABLED)
            await subscriptions.update(conn, "demo", chosen.id, change, "ann")
            await engine_rows.value("update delivery set state = 'pending', next_at = now()")
            await conn.execute("select pg_notify('headgate_delivery', '')")
        await until(lambda: engine_rows.value("select 1 from hook where notified_at is not null"))
    row = await engine_rows.hook_row(hook_id)
    assert (row["deadline"] - row["notified_at"]).total_seconds() == 100.0


async def _notifications(database: Database, hook_id: UUID) -> list[Any]:
    async with database.connection() as conn:
        hook = await read_hook(conn, hook_id, None)
        assert hook is not None
        return notification_documents((await notifications_of(conn, [hook]))[hook_id])
