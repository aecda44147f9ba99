"""Moves the deadlines of hooks, by the rules of `engine.hooks.deadline`.

Channels report here what became of the notices of hooks. The caller has locked the hooks' stacks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any
from uuid import UUID

from engine.hooks.deadline import HookClock, NoticeReport, apply_reports
from engine.store.connection import Connection
from engine.words import HookState

# One time for all hooks: their stacks are locked before the statement begins.
READ_CLOCKS = """
select h.stack_id, h.id, h.state, h.opened_at, h.timeout, h.deadline, h.notified_at,
       h.undeliverable_at,
       statement_timestamp() as now
  from unnest($1::uuid[], $2::uuid[]) k (stack_id, id)
  join hook h on h.stack_id = k.stack_id and h.id = k.id
"""
WRITE_CLOCKS = """
update hook h
   set deadline = c.deadline, notified_at = c.notified_at, undeliverable_at = c.undeliverable_at
  from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[])
       c (stack_id, id, deadline, notified_at, undeliverable_at)
 where h.stack_id = c.stack_id and h.id = c.id
"""
RECORD_UNDELIVERABLE = """
select record_events(array_agg(
           row (h.stack_id, 'headgate.hook.undeliverable', nullif(h.resource_name, ''),
                h.notice ->> 'type', h.notice ->> 'physical_id', 'INIT', 'COMPLETE',
                'Hook ' || h.point || ' of ' || coalesce(nullif(h.resource_name, ''), 'the stack')
                    || ' is waiting, and its notification could not be delivered',
                jsonb_build_object('hook_id', h.id, 'point', h.point, 'mode', h.mode))::event_draft
           order by h.stack_id, h.id))
  from unnest($1::uuid[], $2::uuid[]) k (stack_id, id)
  join hook h on h.stack_id = k.stack_id and h.id = k.id
having count(*) > 0
"""
WAKE_TIMERS = "select pg_notify('headgate_hook', '')"

#: Columns of a hook that make its clock.
CLOCK_COLUMNS = tuple(field.name for field in fields(HookClock))

#: (stack, hook).
HookKey = tuple[UUID, UUID]


async def report_notices(
    conn: Connection,
    reports: Mapping[HookKey, Sequence[NoticeReport]],
    *,
    record: bool = True,
) -> None:
    """Move the deadlines of hooks by what became of their notices.

    A hook whose last notice was given up for the first time gets an event. record: False: no event,
    for a hook at which recording it raised an internal error.
    """
    if not reports:
        return
    rows = await conn.fetch(READ_CLOCKS, *_columns(list(reports)))
    moved: dict[HookKey, HookClock] = {}
    undeliverable: list[HookKey] = []
    nearer = False
    for row in rows:
        key, clock = (row["stack_id"], row["id"]), clock_of(row)
        waiting = row["state"] == HookState.WAITING
        after = apply_reports(clock, reports[key], row["now"], waiting=waiting)
        if after != clock:
            moved[key] = after
            nearer = nearer or after.deadline < clock.deadline
            if after.undeliverable_at is not None and clock.undeliverable_at is None:
                undeliverable.append(key)
    await write_clocks(conn, moved)
    if undeliverable and record:
        await conn.execute(RECORD_UNDELIVERABLE, *_columns(undeliverable))
    if nearer:
        await conn.execute(WAKE_TIMERS)


async def write_clocks(conn: Connection, clocks: Mapping[HookKey, HookClock]) -> None:
    if clocks:
        await conn.execute(
            WRITE_CLOCKS,
            *_columns(list(clocks)),
            [one.deadline for one in clocks.values()],
            [one.notified_at for one in clocks.values()],
            [one.undeliverable_at for one in clocks.values()],
        )


def clock_of(row: Any, prefix: str = "") -> HookClock:
    """The clock in a hook's columns. prefix: of their names."""
    return HookClock(**{name: row[prefix + name] for name in CLOCK_COLUMNS})


def _columns(keys: Sequence[HookKey]) -> tuple[list[UUID], list[UUID]]:
    return [stack_id for stack_id, _ in keys], [hook_id for _, hook_id in keys]
