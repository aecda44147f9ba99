"""All that happened to a stack, in order, as the stream tells it."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from channels.store.records import PublishedEvent
from channels.store.stream import published_event
from engine.store.connection import Connection

#: Where a traversal begins and where it ends: with the first event of the one after it. What its
#: first event was is gone where it is kept no longer; then what is left of it comes first.
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
#: Of stacks inside, also those that are gone, what happened meanwhile. Between stacks by time, and
#: each stack's in its own order: a transaction that waited for its turn has an earlier time.
READ_NESTED = """
with recursive tree (id, depth) as (
    select $1::uuid, 0
    union all
    select c.id, t.depth + 1 from tree t join stack c on c.parent_id = t.id
), told as (
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
               row_number() over (order by moment, depth, stack_id, sequence) as place from told) p
     where p.place > $4 order by p.place limit $5
)
select p.place, e.stack_project as project, e.*
  from page p join event_details e on e.stack_id = p.stack_id and e.sequence = p.sequence
 order by p.place
"""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of the events of a traversal: from number `first` to before `next`, None: it is the last; of
    those of stacks inside by time."""

    first: int = 0
    next: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Happened:
    """place: where it stands among all that were asked for, from 1."""

    place: int
    told: PublishedEvent


async def bounds_of(conn: Connection, stack_id: UUID, traversal: int) -> Bounds | None:
    """None: there is no such traversal, or it is kept no longer."""
    row = await conn.fetchrow(BOUNDS, stack_id, traversal)
    return Bounds(**row) if row else None


async def history(
    conn: Connection, stack_id: UUID, within: Bounds, *, nested: bool, after: int, limit: int
) -> list[Happened]:
    """At most `limit` events behind a place, which of one stack alone is an event's number."""
    asked = (stack_id, within.first, within.next, after, limit)
    if nested:
        rows = await conn.fetch(READ_NESTED, *asked, within.started_at, within.ended_at)
    else:
        rows = await conn.fetch(READ, *asked)
    return [Happened(row["place"], published_event(row)) for row in rows]
