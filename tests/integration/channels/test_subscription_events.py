"""Events about subscriptions: one for every change of state, for other subscriptions."""

from dataclasses import replace
from typing import Any

import pytest

from channels.selection import Selection
from channels.store import secret_rotation, subscriptions
from channels.store.records import Origin, SubscriptionChange, SubscriptionState
from channels.store.subscriptions import configure
from channels.webhook.sign import secret_of
from engine.store.database import Database
from tests.integration.channels.conftest import RunDispatcher
from tests.support.engine_rows import EngineRows, resource_event
from tests.support.receiver import Receiver, until

READ_EVENTS = """
select e.type, e.sequence, e.reason, e.data from event e
 where e.type like 'headgate.subscription.%' order by e.time, e.stack_id, e.sequence
"""
PAUSED = SubscriptionChange(state=SubscriptionState.DISABLED)
RESUMED = SubscriptionChange(state=SubscriptionState.ENABLED)


@pytest.fixture
def recording(engine_rows: EngineRows) -> EngineRows:
    return replace(engine_rows, with_subscriptions=True)


async def _subscription_events(database: Database) -> list[dict[str, Any]]:
    async with database.connection() as conn:
        return [dict(row) for row in await conn.fetch(READ_EVENTS)]


async def test_every_change_of_a_subscription_is_an_event_without_a_stack(
    recording: EngineRows, database: Database, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    await recording.subscription(receiver.url, events=["headgate.subscription.*"])
    subscription = await recording.subscription("https://a.test/secret-path?key=1", events=["x"])
    change = SubscriptionChange(events=["y"])
    async with database.connection() as conn:
        await subscriptions.update(conn, "demo", subscription.id, change, "bob")
        await subscriptions.update(conn, "demo", subscription.id, change, "bob")  # no change
        await subscriptions.update(conn, "demo", subscription.id, PAUSED, "bob")
        await subscriptions.update(conn, "demo", subscription.id, RESUMED, "eve")
        await secret_rotation.rotate(conn, "demo", subscription.id, secret_of(b"n" * 24), "eve")
        await subscriptions.delete(conn, "demo", subscription.id, "eve")
    async with run_dispatcher():
        await until(lambda: len(receiver.events) == 6)
    events = receiver.events
    assert [
        (event["type"].rpartition(".")[2], event["sequence"], event["data"]["by"])
        for event in events
    ] == [
        ("enabled", 1, "ann"), ("changed", 2, "bob"), ("disabled", 3, "bob"),
        ("enabled", 4, "eve"), ("rotated", 5, "eve"), ("deleted", 6, "eve"),
    ]  # fmt: skip
    assert {event["source"] for event in events} == {f"/v1/demo/subscriptions/{subscription.id}"}
    assert events[1]["data"]["subscription"]["events"] == ["y"]
    assert events[2]["data"]["reason"] == "disabled on request"
    assert all("stack" not in event["data"] for event in events)
    assert "secret-path" not in str(events)
    assert "whsec_" not in str(events)


async def test_a_subscription_gets_no_events_about_itself(
    recording: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    await recording.subscription(receiver.url)
    stack = await recording.stack()
    await recording.record(stack, resource_event("a"))
    async with run_dispatcher():
        await until(lambda: receiver.events)
    assert [event["type"] for event in receiver.events] == ["headgate.resource.create.started"]


async def test_a_project_gets_events_about_its_own_subscriptions_only(
    recording: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    await recording.subscription(receiver.url, events=["headgate.subscription.*"])
    await recording.subscription("https://a.test/", project="other")
    mine = await recording.subscription("https://b.test/")
    async with run_dispatcher():
        await until(lambda: receiver.events)
        await until(lambda: recording.value("select count(*) = 3 from outbox where position > 0"))
    subjects = [event["data"]["subscription"]["id"] for event in receiver.events]
    assert subjects == [str(mine.id)]


async def test_a_failing_endpoint_disables_its_subscription_with_an_event(
    recording: EngineRows, database: Database, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    chosen = await recording.subscription(receiver.url, events=["headgate.resource.*"])
    receiver.respond_with_statuses(410)
    stack = await recording.stack()
    await recording.record(stack, resource_event("a"))
    async with run_dispatcher():
        await until(lambda: recording.value("select state = 'disabled' from subscription"))
    last = (await _subscription_events(database))[-1]
    assert last["type"] == "headgate.subscription.disabled"
    assert last["reason"] == "its endpoint answered that it is permanently gone"
    assert (last["data"]["subscription"], last["data"]["by"]) == (str(chosen.id), "headgate")


async def test_the_settings_file_records_events_only_for_changes(
    recording: EngineRows, database: Database
) -> None:
    one = replace(
        await recording.subscription("https://a.test/"),
        origin=Origin.CONFIGURATION, project="*", keeps_secret=True,
    )  # fmt: skip
    async with database.connection() as conn:
        await subscriptions.delete(conn, "demo", one.id, "ann")
        await conn.execute("delete from event")
        await configure(conn, [one])
        await configure(conn, [one])
        other = replace(one, selection=Selection(events=["headgate.hook.*"]))
        await configure(conn, [other])
        await configure(conn, [])
    events = await _subscription_events(database)
    assert [row["type"].rpartition(".")[2] for row in events] == ["enabled", "changed", "deleted"]
    assert {row["data"]["by"] for row in events} == {"configuration"}


async def test_a_configured_subscription_keeps_its_generated_secret(
    engine_rows: EngineRows, database: Database
) -> None:
    one = replace(
        await engine_rows.subscription("https://a.test/"),
        origin=Origin.CONFIGURATION, keeps_secret=True,
    )  # fmt: skip
    async with database.connection() as conn:
        await configure(conn, [replace(one, secret=secret_of(b"x" * 24))])
        found = await secret_rotation.secrets_now(conn, one.id)
        assert found is not None
        assert found[0] == (one.secret,)
