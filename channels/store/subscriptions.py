"""Subscriptions: made, read, changed, removed. Called by the API and when the program starts."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from channels.selection import EVERY_PROJECT, Selection
from channels.store.records import NewSubscription, SubscriptionChange, SubscriptionRecord
from engine.store.database import Connection

#: How long the secret before the newest still signs, too.
ROTATION = timedelta(days=1)

INSERT = """
insert into subscription (id, project, channel, target, events, stacks, resources, types, points,
                          ordered, secrets, state, origin, tags)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, array[$11::text], 'enabled', $12, $13)
"""
READ = """
select id, project, channel, target, events, stacks, resources, types, points, tags, ordered, state,
       reason, origin, failures, created_at
  from subscription where project = $1 and id = $2
"""
LIST = """
select id, project, channel, target, events, stacks, resources, types, points, tags, ordered, state,
       reason, origin, failures, created_at
  from subscription
 where project = $1
   and ($2::uuid is null
        or (created_at, id) > (select created_at, id from subscription where id = $2))
 order by created_at, id limit $3
"""
ENABLED = """
select id, project, channel, target, events, stacks, resources, types, points, tags, ordered, state,
       reason, origin, failures, created_at
  from subscription where state = 'enabled' and (project = any ($1::text[]) or project = $2)
 order by id
"""
LOCK_ENABLED = """
select id from subscription where id = any ($1::uuid[]) and state = 'enabled' order by id
   for no key update
"""
CHANGE = """
update subscription
   set target = coalesce($3, target), events = coalesce($4, events),
       stacks = coalesce($5, stacks), resources = coalesce($6, resources),
       types = coalesce($7, types), points = coalesce($8, points),
       ordered = coalesce($9, ordered), tags = coalesce($11, tags), state = coalesce($10, state),
       reason = case $10 when 'enabled' then '' when 'disabled' then 'disabled on request'
                         else reason end,
       failures = case when $10 = 'enabled' then 0 else failures end
 where project = $1 and id = $2
returning id, project, channel, target, events, stacks, resources, types, points, tags, ordered,
          state, reason, origin, failures, created_at
"""
RELEASE_ALL = """
update delivery set next_at = clock_timestamp()
 where subscription_id = $1 and state = 'pending' and next_at is null
"""
WAKE = "select pg_notify('headgate_delivery', '')"
ROTATE = """
update subscription set secrets = array[$3::text] || secrets[1:1], rotated_at = clock_timestamp()
 where project = $1 and id = $2
returning id
"""
SECRETS = """
select case when rotated_at > now() - $2::interval then secrets else secrets[1:1] end as secrets,
       now() as now
  from subscription where id = $1
"""
LOCK_ONE = "select id from subscription where project = $1 and id = $2 for update"
FORGET_DELIVERIES = "delete from delivery where subscription_id = any ($1::uuid[])"
FORGET = "delete from subscription where id = any ($1::uuid[])"
LOCK_CONFIGURED = """
select id from subscription where origin = 'configuration' order by id for update
"""
CONFIGURE = """
insert into subscription (id, project, channel, target, events, stacks, resources, types, points,
                          ordered, secrets, state, origin, tags)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, array[$11::text], 'enabled', $12, $13)
on conflict (id) do update
   set project = excluded.project, channel = excluded.channel, target = excluded.target,
       events = excluded.events, stacks = excluded.stacks, resources = excluded.resources,
       types = excluded.types, points = excluded.points, tags = excluded.tags,
       ordered = excluded.ordered,
       secrets = case when excluded.secrets[1] = subscription.secrets[1]
                      then subscription.secrets else excluded.secrets end,
       state = 'enabled', reason = '', failures = 0
"""


async def create(conn: Connection, new: NewSubscription) -> None:
    await conn.execute(INSERT, *_columns(new))


def _columns(new: NewSubscription) -> tuple[Any, ...]:
    chosen = new.selection
    return (
        new.id, new.project, new.channel, new.target, list(chosen.events), list(chosen.stacks),
        list(chosen.resources), list(chosen.types), list(chosen.points), new.ordered, new.secret,
        new.origin, list(chosen.tags),
    )  # fmt: skip


async def get(conn: Connection, project: str, subscription_id: UUID) -> SubscriptionRecord | None:
    row = await conn.fetchrow(READ, project, subscription_id)
    return _record(row) if row else None


async def list_page(
    conn: Connection, project: str, *, marker: UUID | None, limit: int
) -> list[SubscriptionRecord]:
    """In the order they were made. marker: the last of the page before."""
    return [_record(row) for row in await conn.fetch(LIST, project, marker, limit)]


async def update(
    conn: Connection, project: str, subscription_id: UUID, change: SubscriptionChange
) -> SubscriptionRecord | None:
    """None: there is no such subscription in the project."""
    async with conn.transaction():
        row = await conn.fetchrow(
            CHANGE, project, subscription_id, change.target, change.events, change.stacks,
            change.resources, change.types, change.points, change.ordered, change.state,
            change.tags,
        )  # fmt: skip
        if row is None:
            return None
        if change.ordered is False:
            await conn.execute(RELEASE_ALL, subscription_id)
        await conn.execute(WAKE)
        return _record(row)


async def rotate(conn: Connection, project: str, subscription_id: UUID, secret: str) -> bool:
    """Sign with a new secret, and for a day with the one before, too. False: no such one."""
    return await conn.fetchval(ROTATE, project, subscription_id, secret) is not None


async def secrets_now(
    conn: Connection, subscription_id: UUID
) -> tuple[tuple[str, ...], datetime] | None:
    """The secrets that sign now, newest first, and the database's time. None: no such one."""
    row = await conn.fetchrow(SECRETS, subscription_id, ROTATION)
    return (tuple(row["secrets"]), row["now"]) if row else None


async def delete(conn: Connection, project: str, subscription_id: UUID) -> bool:
    """Its deliveries go with it. False: there is no such subscription in the project."""
    async with conn.transaction():
        if await conn.fetchval(LOCK_ONE, project, subscription_id) is None:
            return False
        await _forget(conn, [subscription_id])
        return True


async def configure(conn: Connection, wanted: Sequence[NewSubscription]) -> None:
    """Make the subscriptions of the configuration be exactly these, by their ids."""
    async with conn.transaction():
        known = {row["id"] for row in await conn.fetch(LOCK_CONFIGURED)}
        await _forget(conn, sorted(known - {new.id for new in wanted}))
        await conn.executemany(CONFIGURE, [_columns(new) for new in wanted])
        await conn.execute(WAKE)


async def _forget(conn: Connection, ids: Sequence[UUID]) -> None:
    await conn.execute(FORGET_DELIVERIES, ids)
    await conn.execute(FORGET, ids)


async def enabled(conn: Connection, projects: Sequence[str]) -> list[SubscriptionRecord]:
    """Those that hear of any of these projects."""
    return [_record(row) for row in await conn.fetch(ENABLED, projects, EVERY_PROJECT)]


async def lock_enabled(conn: Connection, ids: Sequence[UUID]) -> set[UUID]:
    """Lock those of these subscriptions that are enabled still, in the order of their ids."""
    return {row["id"] for row in await conn.fetch(LOCK_ENABLED, ids)}


def _record(row: Any) -> SubscriptionRecord:
    fields = dict(row)
    names = ("events", "stacks", "resources", "types", "points", "tags")
    return SubscriptionRecord(selection=Selection(*(fields.pop(n) for n in names)), **fields)
