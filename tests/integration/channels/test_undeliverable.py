"""Undeliverable hooks: the event, the deadline, and their representation."""

from typing import Any
from uuid import UUID

from channels.envelope import notification_documents
from channels.store import deliveries, subscriptions
from channels.store.hook_notifications import notifications_of
from channels.store.records import SubscriptionChange, SubscriptionState
from engine.store.database import Database
from engine.store.stack_queries import read_hook
from tests.integration.channels.conftest import Dispatching
from tests.support.events import Scene, resource_event
from tests.support.receiver import Receiver, until

UNDELIVERABLE = "select count(*) from event where type = 'headgate.hook.undeliverable'"
NOTICES = ["headgate.hook.waiting"]


async def test_only_dead_notifications_cause_an_event(
    scene: Scene, receiver: Receiver, other_receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    for _ in range(2):
        await scene.subscription(receiver.url, events=NOTICES)
    await scene.subscription(other_receiver.url, events=["headgate.hook.undeliverable"])
    receiver.answers(500)
    hook_id = await scene.hook(stack)
    async with dispatching():
        await until(lambda: other_receiver.received)
        await until(
            lambda: scene.value("select count(*) = 0 from delivery where state = 'pending'")
        )
    (event,) = other_receiver.events
    assert event["data"]["hook"]["id"] == str(hook_id)
    assert event["data"]["said"]["reason"] == (
        "Hook pre-create of db is waiting, and its notification could not be delivered"
    )
    assert await scene.value(UNDELIVERABLE) == 1
    assert (await scene.hook_row(hook_id))["undeliverable_at"] is not None


async def test_one_delivered_notification_is_enough(
    scene: Scene, receiver: Receiver, other_receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    for one in (receiver, other_receiver):
        await scene.subscription(one.url, events=NOTICES)
    receiver.answers(500)
    await scene.hook(stack)
    async with dispatching():
        await until(
            lambda: scene.value("select count(*) = 0 from delivery where state = 'pending'")
        )
    assert await scene.value(UNDELIVERABLE) == 0


async def test_a_subscription_that_is_disabled_leaves_its_hooks_undeliverable(
    scene: Scene, database: Database, receiver: Receiver, dispatching: Dispatching
) -> None:
    """Their notifications follow a delivery with the response 410 and are never attempted."""
    stacks = [await scene.stack() for _ in range(2)]
    await scene.subscription(receiver.url)
    for stack in stacks:
        await scene.record(stack, resource_event("a"))
    hooks = [await scene.hook(stack, seconds=100.0) for stack in stacks]
    receiver.answers(410)
    async with dispatching():
        await until(lambda: scene.value(UNDELIVERABLE + " having count(*) = 2"))
    assert {event["type"] for event in receiver.events} == {"headgate.resource.create.started"}
    for hook_id in hooks:
        row = await scene.hook_row(hook_id)
        assert (row["deadline"] - row["undeliverable_at"]).total_seconds() == 100.0
        (asked,) = await _notifications(database, hook_id)
        assert (asked["state"], asked["attempts"]) == ("disabled", 0)
        assert "gone" in asked["error"]


async def test_disabling_a_subscription_makes_its_pending_hook_undeliverable(
    scene: Scene, database: Database, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    chosen = await scene.subscription(receiver.url)
    await scene.record(stack, resource_event("a"))
    receiver.hangs()
    async with dispatching(drain=0.05):
        await until(lambda: receiver.under_way)
        await scene.hook(stack)
        await until(lambda: scene.value("select 1 from delivery where hook_id is not null"))
        async with database.connection() as conn:
            change = SubscriptionChange(state=SubscriptionState.DISABLED)
            await subscriptions.update(conn, "demo", chosen.id, change, "ann")
        await until(lambda: scene.value(UNDELIVERABLE))


async def test_a_resend_that_fails_causes_no_second_event(
    scene: Scene, database: Database, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    chosen = await scene.subscription(receiver.url, events=NOTICES)
    receiver.answers(500)
    hook_id = await scene.hook(stack, seconds=100.0)
    async with dispatching():
        await until(lambda: scene.value(UNDELIVERABLE))
        tried = len(receiver.received)
        async with database.connection() as conn:
            assert await deliveries.redeliver_dead(conn, chosen.id) == 1
        await until(lambda: len(receiver.received) == 2 * tried)
        await until(
            lambda: scene.value("select count(*) = 0 from delivery where state = 'pending'")
        )
    assert await scene.value(UNDELIVERABLE) == 1
    row, last = await scene.hook_row(hook_id), "select max(settled_at) from delivery"
    # The deadline starts at the last failure; the attempts before had extended it by far more.
    assert (row["deadline"] - await scene.value(last)).total_seconds() < 105.0


async def test_a_new_dispatcher_finds_undeliverable_hooks_of_a_killed_one(
    scene: Scene, database: Database, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    chosen = await scene.subscription(receiver.url)
    receiver.answers(500)
    hook_id = await scene.hook(stack)
    async with dispatching():
        await until(lambda: scene.value("select 1 from delivery where attempts > 0"))
    await scene.value("update delivery set state = 'pending', attempts = 1, next_at = now()")
    await scene.value("update subscription set state = 'disabled', reason = 'why not'")
    await scene.value("update hook set undeliverable_at = null")
    await scene.value("delete from event where type = 'headgate.hook.undeliverable'")
    async with dispatching():
        await until(lambda: scene.value(UNDELIVERABLE))
    assert [(one["subscription"], one["state"], one["error"])
            for one in await _notifications(database, hook_id)] == [
        (str(chosen.id), "disabled", "why not"),
    ]  # fmt: skip


async def test_hooks_show_disabled_subscriptions_that_select_them(
    scene: Scene, database: Database
) -> None:
    stack = await scene.stack("web-1")
    wanted = await scene.subscription("https://a.test/p?key=1", stacks=["web-*"], points=["pre-*"])
    elsewhere = await scene.subscription("https://b.test/", stacks=["db-*"])
    async with database.connection() as conn:
        for one in (wanted, elsewhere):
            change = SubscriptionChange(state=SubscriptionState.DISABLED)
            await subscriptions.update(conn, "demo", one.id, change, "ann")
    hook_id = await scene.hook(stack)
    assert [
        (one["subscription"], one["target"], one["state"], one["error"])
        for one in await _notifications(database, hook_id)
    ] == [(str(wanted.id), "https://a.test", "disabled", "disabled on request")]


async def test_a_late_delivery_restarts_the_deadline(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    chosen = await scene.subscription(receiver.url, events=NOTICES)
    receiver.answers(410)
    hook_id = await scene.hook(stack, seconds=100.0)
    async with dispatching():
        await until(lambda: scene.value(UNDELIVERABLE))
        receiver.answers(200)
        async with scene.database.connection() as conn:
            change = SubscriptionChange(state=SubscriptionState.ENABLED)
            await subscriptions.update(conn, "demo", chosen.id, change, "ann")
            await scene.value("update delivery set state = 'pending', next_at = now()")
            await conn.execute("select pg_notify('headgate_delivery', '')")
        await until(lambda: scene.value("select 1 from hook where notified_at is not null"))
    row = await scene.hook_row(hook_id)
    assert (row["deadline"] - row["notified_at"]).total_seconds() == 100.0


async def _notifications(database: Database, hook_id: UUID) -> list[Any]:
    async with database.connection() as conn:
        hook = await read_hook(conn, hook_id, None)
        assert hook is not None
        return notification_documents((await notifications_of(conn, [hook]))[hook_id])
