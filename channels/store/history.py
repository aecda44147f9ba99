"""The events of one stack or stack tree, in the form of the event stream."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from channels.store.records import PublishedEvent
from channels.store.stream import published_event
from engine.store.connection import Connection

#: A traversal extends from its `started` event to the one of the next traversal. If its own is
#: purged, it begins with the oldest event, or is empty if a later traversal began before the oldest
#: one.
BOUNDS = """
with begun as materialized (
    select (data ->> 'traversal')::integer as number, sequence
      from event where stack_id = $1 and type like 'headgate.stack.%.started'
)
select coalesce((select min(sequence) from begun where number = t.number),
                case when coalesce(n.begun, s.traversal + 1) = t.number + 1 then 0
                     else coalesce(n.sequence, 9223372036854775807) end) as first,
       n.sequence as next, t.started_at,
       (select min(started_at) from traversal
         where stack_id = t.stack_id and number > t.number) as ended_at
  from traversal t join stack s on s.id = t.stack_id
  left join lateral (select number as begun, sequence from begun where number > t.number
                      order by sequence limit 1) n on true
 where t.stack_id = $1 and t.number = $2
"""
READ = """
select e.sequence as place, e.stack_project as project, e.* from event_details e
 where e.stack_id = $1 and e.sequence >= $2 and ($3::bigint is null or e.sequence < $3)
   and e.sequence > $4
 order by e.sequence limit $5
"""
#: With the events of nested stacks, including deleted ones, in the time of the traversal. Stacks
#: are merged by time; the events of one stack stay in order of their sequence numbers, because a
#: transaction that waited for a lock has an earlier time.
READ_NESTED = """
with recursive tree (id, depth) as (
    select $1::uuid, 0
    union all
    select c.id, t.depth + 1 from tree t join stack c on c.parent_id = t.id
), numbered as (
    select e.stack_id, e.sequence, t.depth,
           max(e.time) over (partition by e.stack_id order by e.sequence) as moment
      from tree t join event e on e.stack_id = t.id
     where case when t.depth = 0
                then e.sequence >= $2 and ($3::bigint is null or e.sequence < $3)
                else ($6::timestamptz is null or e.time >= $6)
                     and ($7::timestamptz is null or e.time < $7) end
), page as materialized (
    select p.* from (
        select stack_id, sequence,
               row_number() over (order by moment, depth, stack_id, sequence) as place
          from numbered) p
     where p.place > $4 order by p.place limit $5
)
select p.place, e.stack_project as project, e.*
  from page p join event_details e on e.stack_id = p.stack_id and e.sequence = p.sequence
 order by p.place
"""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The events of a traversal: sequence numbers from `first` to before `next` (None: it is the
    last traversal); for nested stacks, the times from `started_at` to before `ended_at`."""

    first: int = 0
    next: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """place: the sequence number for one stack; with nested stacks, the position in the result
    from 1."""

    place: int
    published: PublishedEvent


async def bounds_of(conn: Connection, stack_id: UUID, traversal: int) -> Bounds | None:
    """None: the traversal does not exist or was purged."""
    row = await conn.fetchrow(BOUNDS, stack_id, traversal)
    return Bounds(**row) if row else None


async def history(
    conn: Connection, stack_id: UUID, within: Bounds, *, nested: bool, after: int, limit: int
) -> list[HistoryEvent]:
    """At most `limit` events after a place. nested: with the events of nested stacks."""
    arguments = (stack_id, within.first, within.next, after, limit)
    if nested:
        rows = await conn.fetch(READ_NESTED, *arguments, within.started_at, within.ended_at)
    else:
        rows = await conn.fetch(READ, *arguments)
    return [HistoryEvent(row["place"], published_event(row)) for row in rows]
