"""Undeliverable hooks: all their notifications are dead or belong to disabled subscriptions. They
are reported to the engine."""

from collections.abc import Sequence

from engine.hooks.deadline import NotificationUndeliverable
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.hooks.deadlines import HookKey, report_notifications
from engine.store.stacks.stack_locks import lock_stacks

# Pending notifications to disabled subscriptions do not count; they are sent once these are
# enabled.
WITHOUT_NOTIFICATION = """
select distinct n.stack_id, n.hook_id
  from unnest($1::uuid[], $2::uuid[]) n (stack_id, hook_id)
 where not exists (select 1 from delivery d
                     join subscription s on s.id = d.subscription_id and s.state = 'enabled'
                    where d.stack_id = n.stack_id and d.hook_id = n.hook_id
                      and d.state = 'pending')
"""
OF_DISABLED = """
select distinct d.stack_id, d.hook_id
  from subscription s
  join delivery d on d.subscription_id = s.id and d.state = 'pending' and d.hook_id is not null
  join hook h on h.stack_id = d.stack_id and h.id = d.hook_id
   and h.state = 'waiting' and h.notified_at is null and h.undeliverable_at is null
   and not hook_has_expired(h.deadline, statement_timestamp())
 where s.state = 'disabled'
   and not exists (select 1 from delivery o
                     join subscription t on t.id = o.subscription_id and t.state = 'enabled'
                    where o.stack_id = d.stack_id and o.hook_id = d.hook_id
                      and o.state = 'pending')
 limit $1
"""

#: Hooks in one transaction.
AT_ONCE = 500


async def without_notification(conn: Connection, hooks: Sequence[HookKey]) -> list[HookKey]:
    """The hooks among these without a deliverable notification."""
    if not hooks:
        return []
    rows = await conn.fetch(WITHOUT_NOTIFICATION, *map(list, zip(*hooks, strict=True)))
    return [(row["stack_id"], row["hook_id"]) for row in rows]


async def report_given_up(
    conn: Connection, hooks: Sequence[HookKey], *, record: bool = True
) -> None:
    """Report the hooks among these without a deliverable notification. The stacks are locked.

    record: see `report_notifications`.
    """
    reports = {
        key: [NotificationUndeliverable()] for key in await without_notification(conn, hooks)
    }
    await report_notifications(conn, reports, record=record)


async def find_undeliverable(database: Database) -> list[HookKey]:
    """At most AT_ONCE hooks whose pending notifications all belong to disabled subscriptions."""
    async with database.connection() as conn:
        return [(row["stack_id"], row["hook_id"]) for row in await conn.fetch(OF_DISABLED, AT_ONCE)]


async def mark_undeliverable(
    database: Database, hooks: Sequence[HookKey], *, record: bool = True
) -> None:
    """Lock the stacks of hooks from `find_undeliverable`, and report the hooks.

    record: see `report_notifications`.
    """
    async with database.transaction("deliver") as conn:
        await lock_stacks(conn, {stack_id for stack_id, _ in hooks})
        await report_given_up(conn, hooks, record=record)
