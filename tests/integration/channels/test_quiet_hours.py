"""Deliveries that quiet hours hold, to a real SMTP relay."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from channels.contract import Channel
from channels.email.channel import EmailChannel
from channels.email.relay import EmailSettings, Encryption
from channels.quiet_hours import HELD
from channels.store import subscriptions
from channels.store.records import NewSubscription, SubscriptionChange
from engine.store.database import Database
from engine.words import Json
from tests.integration.channels.conftest import RunDispatcher
from tests.support.engine_rows import EngineRows
from tests.support.smtp import Relay, running_relay

PERSON = "ops@example.org"


@pytest.fixture
def relay() -> Iterator[Relay]:
    with running_relay() as started:
        yield started


def channels(relay: Relay) -> dict[str, Channel]:
    settings = EmailSettings(
        "127.0.0.1", relay.port, "headgate@example.org", Encryption.NONE, recipients=["*"]
    )
    return {"email": EmailChannel(settings, "https://headgate.example")}


def quiet_around(now: datetime, hours: int = 3) -> Json:
    """From one hour before now until `hours` later, in UTC."""
    start, end = now - timedelta(hours=1), now + timedelta(hours=hours)
    return {"from": f"{start:%H:%M}", "to": f"{end:%H:%M}"}


async def subscribe(rows: EngineRows, quiet_hours: Json) -> NewSubscription:
    return await rows.subscription(
        PERSON, channel="email", ordered=False, quiet_hours=quiet_hours,
        events=["headgate.hook.*"],
    )  # fmt: skip


async def delivery_with(
    rows: EngineRows, condition: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    async with asyncio.timeout(20):
        while not (found := [one for one in await rows.deliveries() if condition(one)]):
            await asyncio.sleep(0.02)
    return found[0]


async def held(rows: EngineRows) -> dict[str, Any]:
    return await delivery_with(rows, is_held)


def is_held(delivery: dict[str, Any]) -> bool:
    return str(delivery["error"] or "").startswith(HELD)


def is_held_of(subscription: UUID, delivery: dict[str, Any]) -> bool:
    return delivery["subscription_id"] == subscription and is_held(delivery)


async def delivered(rows: EngineRows) -> dict[str, Any]:
    return await delivery_with(rows, lambda one: bool(one["state"] == "delivered"))


async def test_a_held_notification_is_not_attempted_and_keeps_the_hook_open(
    engine_rows: EngineRows, run_dispatcher: RunDispatcher, relay: Relay
) -> None:
    now = await engine_rows.now()
    await subscribe(engine_rows, quiet_around(now))
    stack = await engine_rows.stack()
    hook_id = await engine_rows.hook(stack, seconds=60)
    async with run_dispatcher(channels=channels(relay)):
        found = await held(engine_rows)
    end = (now + timedelta(hours=3)).replace(second=0, microsecond=0)
    assert found["state"] == "pending"
    assert found["attempts"] == 0
    assert abs(found["next_at"] - end) < timedelta(minutes=1)
    assert (await engine_rows.hook_row(hook_id))["deadline"] >= end + timedelta(seconds=60)
    assert relay.messages == []


async def test_the_settings_file_releases_what_removed_quiet_hours_held(
    engine_rows: EngineRows, run_dispatcher: RunDispatcher, relay: Relay, database: Database
) -> None:
    """Another configured subscription keeps its quiet hours, and holds its delivery."""
    now = await engine_rows.now()
    one, other = [await subscribe(engine_rows, quiet_around(now)) for _ in range(2)]
    await engine_rows.value("update subscription set origin = 'configuration'")
    await engine_rows.hook(await engine_rows.stack())
    async with run_dispatcher(channels=channels(relay)):
        await delivery_with(engine_rows, partial(is_held_of, one.id))
        found = await delivery_with(engine_rows, partial(is_held_of, other.id))
        async with database.connection() as conn:
            new = [replace(one, quiet_hours=None), replace(other, target="dev@example.org")]
            await subscriptions.configure(conn, new)
        assert (await delivered(engine_rows))["subscription_id"] == one.id
    kept = await held(engine_rows)
    assert (kept["subscription_id"], kept["next_at"]) == (other.id, found["next_at"])


async def remove_quiet_hours(database: Database, one: NewSubscription) -> None:
    async with database.connection() as conn:
        change = SubscriptionChange(quiet_hours=None, sets_quiet_hours=True)
        changed = await subscriptions.update(conn, one.project, one.id, change, "ann")
    assert changed is not None and changed.quiet_hours is None


@pytest.mark.parametrize("failed", [0, 1])
async def test_without_quiet_hours_a_held_notification_is_sent(
    engine_rows: EngineRows,
    run_dispatcher: RunDispatcher,
    relay: Relay,
    database: Database,
    failed: int,
) -> None:
    """failed: attempts before the quiet hours."""
    one = await subscribe(engine_rows, quiet_around(await engine_rows.now()))
    await engine_rows.hook(await engine_rows.stack())
    async with run_dispatcher(channels=channels(relay)):
        await held(engine_rows)
        await engine_rows.value("update delivery set attempts = $1 returning 1", failed)
        await remove_quiet_hours(database, one)
        found = await delivered(engine_rows)
    assert found["attempts"] == failed + 1
    assert found["error"] is None
    assert len(relay.messages) == 1


async def test_an_attempt_after_quiet_hours_is_not_released(
    engine_rows: EngineRows, run_dispatcher: RunDispatcher, relay: Relay, database: Database
) -> None:
    """Its claim has the reason of the held delivery until its result is written."""
    one = await subscribe(engine_rows, quiet_around(await engine_rows.now()))
    await engine_rows.hook(await engine_rows.stack())
    async with run_dispatcher(channels=channels(relay)):
        await held(engine_rows)
    until = await engine_rows.value(
        "update delivery set error = $1, attempts = 1 returning next_at",
        f"{HELD}2026-01-01T06:00:00.000000Z",
    )
    await remove_quiet_hours(database, one)
    (found,) = await engine_rows.deliveries()
    assert found["next_at"] == until


async def test_outside_of_quiet_hours_a_notification_is_sent(
    engine_rows: EngineRows, run_dispatcher: RunDispatcher, relay: Relay
) -> None:
    later = await engine_rows.now() + timedelta(hours=6)
    await subscribe(engine_rows, quiet_around(later))
    await engine_rows.hook(await engine_rows.stack())
    async with run_dispatcher(channels=channels(relay)):
        await delivered(engine_rows)
    assert len(relay.messages) == 1


@pytest.mark.parametrize(("seconds", "sent"), [(60, True), (86_400, False)])
async def test_a_hook_with_a_fixed_deadline_in_quiet_hours_is_sent_at_once(
    engine_rows: EngineRows, run_dispatcher: RunDispatcher, relay: Relay, seconds: int, sent: bool
) -> None:
    await subscribe(engine_rows, quiet_around(await engine_rows.now()))
    hook_id = await engine_rows.hook(await engine_rows.stack(), seconds=seconds)
    await engine_rows.value(
        "update hook set notified_at = now() where id = $1 returning 1", hook_id
    )
    async with run_dispatcher(channels=channels(relay)):
        await (delivered(engine_rows) if sent else held(engine_rows))
    assert len(relay.messages) == int(sent)
