"""Detects that the database's clock was set back, and corrects the times of waiting work.

Every time that work waits for is one of the database's clock. Set back by an hour, all that was
written before waits for an hour more. The latest time that any process has seen is kept in a row;
a clock that is behind it was set back. Then, once for all processes:

- Work that is ready, or that has a timer, is looked at now; a timer that is not over is set anew.
- Leases end one lease from now, at the latest; those of live processes are renewed long before.
- Deliveries and the ends of traversals wait as long as they had left.
- Hooks that opened after the new time keep the time that they had left. Other deadlines are times
  of day that users were shown: they stay.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.store.connection import Connection

BEHIND = """
select clock_timestamp() as now,
       greatest(seen_at - clock_timestamp(), interval '0') as behind from clock_mark for update
"""
SEEN = "update clock_mark set seen_at = clock_timestamp()"
SET_BACK = """
update clock_mark
   set seen_at = clock_timestamp(), set_back_at = clock_timestamp(), set_back_by = $1
"""
# In the order of their ids, as all who lock stacks.
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
HOOKS = """
update hook
   set deadline = deadline - $2::interval, wake_at = wake_at - $2::interval,
       opened_at = statement_timestamp()
 where stack_id = any ($1::uuid[]) and state = 'waiting' and opened_at > statement_timestamp()
"""
# Those that are tried now were renewed since, and are due soon.
DELIVERIES = """
update delivery set next_at = greatest(next_at - $1::interval, statement_timestamp())
 where state = 'pending' and next_at > statement_timestamp() + interval '1 minute'
"""
PROCESSES = "update process set seen_at = clock_timestamp() where seen_at > clock_timestamp()"
WAKE = """
select pg_notify('headgate_work', ''), pg_notify('headgate_hook', ''),
       pg_notify('headgate_delivery', '')
"""
LAST_SET_BACK = """
select set_back_at, set_back_by, greatest(seen_at - clock_timestamp(), interval '0') as behind
  from clock_mark
"""
SET_BACK_LATELY = "select set_back_at > clock_timestamp() - $1::interval from clock_mark"


@dataclass(frozen=True, slots=True)
class ClockReading:
    """now: of the database. behind: how far it is before the latest time that was seen."""

    now: datetime
    behind: timedelta


@dataclass(frozen=True, slots=True)
class SetBack:
    """When the clock was set back last, by how much; None: never. behind: as it is now."""

    set_back_at: datetime | None
    set_back_by: timedelta | None
    behind: timedelta


async def read_clock(conn: Connection, lease: timedelta, least: timedelta) -> ClockReading:
    """Read the clock, and mark the time; correct what waits when it was set back by `least` or
    more. In a transaction. lease: of nodes."""
    row = await conn.fetchrow(BEHIND)
    if row is None:
        raise LookupError("the table clock_mark is empty")
    if row["behind"] >= least:
        await _correct(conn, row["behind"], lease)
    elif not row["behind"]:
        await conn.execute(SEEN)
    return ClockReading(row["now"], row["behind"])


async def _correct(conn: Connection, behind: timedelta, lease: timedelta) -> None:
    stacks = [row["id"] for row in await conn.fetch(STACKS)]
    await conn.execute(NODES, stacks, lease)
    await conn.execute(TRAVERSALS, stacks)
    await conn.execute(HOOKS, stacks, behind)
    await conn.execute(DELIVERIES, behind)
    await conn.execute(PROCESSES)
    await conn.execute(SET_BACK, behind)
    await conn.execute(WAKE)


async def last_set_back(conn: Connection) -> SetBack:
    row = await conn.fetchrow(LAST_SET_BACK)
    return SetBack(**row) if row else SetBack(None, None, timedelta(0))


async def set_back_lately(conn: Connection, within: timedelta) -> bool:
    return bool(await conn.fetchval(SET_BACK_LATELY, within))
