"""Detects that the database's clock was set back, and corrects the times of waiting work.

Work waits for times of the database's clock. If the clock is set back by an hour, work would wait
for an hour longer. A row has the latest time that any process has read; a clock that is behind it
was set back. Then one process corrects, for all:

- Ready work and work with a timer becomes due now. A timer that has not expired is set again.
- Leases end after one lease from now at the latest; running processes renew theirs before.
- Deliveries and ends of traversals keep their remaining time.
- The clocks of hooks follow `engine.hooks.deadline.set_back`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from engine.hooks.deadline import set_back
from engine.store.connection import Connection
from engine.store.hooks.deadlines import clock_of

BEHIND = """
select clock_timestamp() as now,
       greatest(seen_at - clock_timestamp(), interval '0') as behind from database_clock for update
"""
SEEN = "update database_clock set seen_at = clock_timestamp()"
SET_BACK = """
update database_clock
   set seen_at = statement_timestamp(), set_back_at = statement_timestamp(), set_back_by = $1
"""
#: In the order of the IDs, like all locks of stacks.
STACKS = """
select s.id from stack s
 where s.id in (select stack_id from traversal where wake_at is not null
                 union
                select stack_id from hook
                 where state = 'waiting' and opened_at > statement_timestamp())
 order by s.id for no key update
"""
NODES = """
update node n
   set wake_at = case n.state
                     when 'running' then least(n.wake_at, statement_timestamp() + $2::interval)
                     else statement_timestamp() end
  from traversal t
 where t.stack_id = any ($1::uuid[]) and t.wake_at is not null
   and n.stack_id = t.stack_id and n.traversal = t.number
   and n.wake_at > statement_timestamp() and n.state in ('ready', 'running', 'parked')
"""
TRAVERSALS = """
update traversal
   set wake_at = statement_timestamp(),
       working_since = least(working_since, statement_timestamp())
 where stack_id = any ($1::uuid[]) and wake_at > statement_timestamp()
"""
READ_HOOKS = """
select stack_id, id, opened_at, timeout, deadline, notified_at, undeliverable_at,
       statement_timestamp() as now
  from hook where stack_id = any ($1::uuid[]) and state = 'waiting'
"""
#: The times of reminders move with the deadlines.
WRITE_HOOKS = """
update hook h
   set opened_at = c.opened_at, deadline = c.deadline, wake_at = h.wake_at - $5::interval
  from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::timestamptz[])
       c (stack_id, id, opened_at, deadline)
 where h.stack_id = c.stack_id and h.id = c.id
"""
#: Deliveries with a lease have times within a minute.
DELIVERIES = """
update delivery set next_at = greatest(next_at - $1::interval, statement_timestamp())
 where state = 'pending' and next_at > statement_timestamp() + interval '1 minute'
"""
PROCESSES = "update process set seen_at = clock_timestamp() where seen_at > clock_timestamp()"
WAKE = """
select pg_notify('headgate_work', ''), pg_notify('headgate_hook', ''),
       pg_notify('headgate_delivery', '')
"""
READ_LAST_SET_BACK = """
select set_back_at, set_back_by, greatest(seen_at - clock_timestamp(), interval '0') as behind
  from database_clock
"""
WAS_SET_BACK = "select set_back_at > clock_timestamp() - $1::interval from database_clock"


@dataclass(frozen=True, slots=True)
class ClockReading:
    """now: of the database. behind: how far it is behind the latest time that was read."""

    now: datetime
    behind: timedelta


@dataclass(frozen=True, slots=True)
class LastSetBack:
    """When, and by how much, the clock was last set back; None: never. behind: how far it is behind
    the latest time now."""

    set_back_at: datetime | None
    set_back_by: timedelta | None
    behind: timedelta


async def read_clock(conn: Connection, lease: timedelta, min_behind: timedelta) -> ClockReading:
    """Read and record the time. If the clock was set back by at least `min_behind`, correct the
    times of waiting work. In a transaction. lease: of nodes."""
    row = await conn.fetchrow(BEHIND)
    if row is None:
        raise LookupError("the table database_clock is empty")
    if row["behind"] >= min_behind:
        await _correct(conn, row["behind"], lease)
    elif not row["behind"]:
        await conn.execute(SEEN)
    return ClockReading(row["now"], row["behind"])


async def _correct(conn: Connection, behind: timedelta, lease: timedelta) -> None:
    stacks = [row["id"] for row in await conn.fetch(STACKS)]
    await conn.execute(NODES, stacks, lease)
    await conn.execute(TRAVERSALS, stacks)
    await _correct_hooks(conn, stacks, behind)
    await conn.execute(DELIVERIES, behind)
    await conn.execute(PROCESSES)
    await conn.execute(SET_BACK, behind)
    await conn.execute(WAKE)


async def _correct_hooks(conn: Connection, stacks: Sequence[UUID], behind: timedelta) -> None:
    corrected = []
    for row in await conn.fetch(READ_HOOKS, stacks):
        before = clock_of(row)
        after = set_back(before, behind, row["now"])
        if after != before:
            corrected.append((row["stack_id"], row["id"], after.opened_at, after.deadline))
    if corrected:
        await conn.execute(WRITE_HOOKS, *map(list, zip(*corrected, strict=True)), behind)


async def read_last_set_back(conn: Connection) -> LastSetBack:
    row = await conn.fetchrow(READ_LAST_SET_BACK)
    return LastSetBack(**row) if row else LastSetBack(None, None, timedelta(0))


async def was_set_back_within(conn: Connection, within: timedelta) -> bool:
    return bool(await conn.fetchval(WAS_SET_BACK, within))
