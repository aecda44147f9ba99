"""Reads published events: of a project in the order of their publication, and of one traversal of a
stack or stack tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from channels.store.claim import hook_of, stack_header_of
from channels.store.records import Cursor, PublishedEvent, StreamEvent
from engine.store.connection import Connection
from engine.store.records import EventRecord

TOP = "select position from outbox_cursor"
#: start: if the project has left this database, nothing of it is published here any more, and the
#: other one continues after the last of its events.
READ_START = """
select c.position as top,
       case when p.move_state in ('taken', 'moved')
            then coalesce(greatest((select max(position) from outbox where project = $1),
                                   (select position from purged_position where project = $1)), 0)
            else c.position end as start
  from outbox_cursor c left join cell_project p on p.project = $1
"""
READ_SHIFTS = """
select boundary, shift, last from position_shift where project = $1 order by boundary
"""
FLOOR = "select position, sequence from purged_position where project = $1"
READ_AFTER = """
select o.position, o.project, e.*
  from outbox o
 cross join lateral (select * from event_details
                      where stack_id = o.stack_id and sequence between o.first and o.last
                      offset 0) e
 where o.project = $1 and o.position >= $2 and (o.position > $2 or e.sequence > $3)
   and ($5::uuid[] is null or o.stack_id = any ($5) or e.root_id = any ($5))
 order by o.position, e.sequence limit $4
"""
#: With the last position of the project, of the same moment: a move to another cell deletes all
#: rows of the project at once.
READ_STACKS_AFTER = f"""
with last as (
    select greatest((select max(position) from outbox where project = $1),
                    (select position from purged_position where project = $1)) as position
)
select l.position as last_position, r.*
  from last l left join lateral ({READ_AFTER}) r on true
 order by r.position, r.sequence
"""  # noqa: S608 - of a constant
NEXT_POSITION = """
select o.position, e.sequence
  from outbox o
  join event e on e.stack_id = o.stack_id and e.sequence between o.first and o.last
 where o.project = $1 and o.position >= $2 and (o.position > $2 or e.sequence > $3)
 order by o.position, e.sequence limit 1
"""
_EVENT = (
    "stack_id", "sequence", "id", "type", "time", "resource_name", "resource_type", "physical_id",
    "action", "status", "reason", "data", "traceparent",
)  # fmt: skip

#: After every event of its commit.
AFTER_ALL = 2**63 - 1


async def top(conn: Connection) -> Cursor:
    """The position after the last published event."""
    return Cursor(await conn.fetchval(TOP), AFTER_ALL)


async def read_start(conn: Connection, project: str) -> tuple[Cursor, Cursor]:
    """The positions after the last published event, and after the last one of the project that can
    precede a stream that starts now."""
    row = await conn.fetchrow(READ_START, project)
    top, start = (row["top"], row["start"]) if row else (0, 0)
    return Cursor(top, AFTER_ALL), Cursor(start, AFTER_ALL)


async def current_cursor(conn: Connection, project: str, cursor: Cursor) -> Cursor:
    """The same place of the stream in this database, if the cursor is of one from which the project
    has moved; otherwise the cursor."""
    for boundary, shift, last in await conn.fetch(READ_SHIFTS, project):
        if cursor.position > boundary:
            continue
        position = cursor.position + shift
        if position > last:
            cursor = Cursor(last, AFTER_ALL)
        elif position <= boundary:
            cursor = Cursor(boundary + 1, 0)
        else:
            cursor = Cursor(position, cursor.sequence)
    return cursor


async def floor(conn: Connection, project: str) -> Cursor:
    """The position of the last purged event: a reader before it has missed events."""
    row = await conn.fetchrow(FLOOR, project)
    return Cursor(*row) if row else Cursor(0, 0)


async def events_after(
    conn: Connection,
    project: str,
    cursor: Cursor,
    *,
    limit: int,
) -> list[StreamEvent]:
    """At most `limit` published events after the cursor, in order."""
    rows = await conn.fetch(READ_AFTER, project, cursor.position, cursor.sequence, limit, None)
    return [_stream_event(row) for row in rows]


async def stack_events_after(
    conn: Connection, project: str, cursor: Cursor, *, limit: int, stacks: Sequence[UUID]
) -> tuple[list[StreamEvent], Cursor | None]:
    """As `events_after`, only of these stacks and of the stack trees of those that are root stacks;
    and the place after the last event of the project, if it has one."""
    rows = await conn.fetch(
        READ_STACKS_AFTER, project, cursor.position, cursor.sequence, limit, stacks
    )
    last = rows[0]["last_position"]
    events = [_stream_event(row) for row in rows if row["position"] is not None]
    return events, None if last is None else Cursor(last, AFTER_ALL)


async def next_position(conn: Connection, project: str, cursor: Cursor) -> Cursor | None:
    """The position of the next event after a cursor, without reading the event; None: no more."""
    row = await conn.fetchrow(NEXT_POSITION, project, cursor.position, cursor.sequence)
    return Cursor(*row) if row else None


def _stream_event(row: Any) -> StreamEvent:
    return StreamEvent(published_event(row), Cursor(row["position"], row["sequence"]))


def published_event(row: Any) -> PublishedEvent:
    """row: has the columns of `event_details`, and `project`."""
    return PublishedEvent(
        project=row["project"],
        stack_header=stack_header_of(row),
        event=EventRecord(**{name: row[name] for name in _EVENT}),
        hook=hook_of(row) if row["h_id"] is not None else None,
    )


#: A traversal extends from its `started` event to the one of the next traversal. If its own is
#: purged, it begins with the oldest event, or is empty if a later traversal began before the oldest
#: one.
BOUNDS = """
with started as materialized (
    select (data ->> 'traversal')::integer as number, sequence
      from event where stack_id = $1 and type like 'headgate.stack.%.started'
)
select coalesce((select min(sequence) from started where number = t.number),
                case when coalesce(n.started, s.traversal + 1) = t.number + 1 then 0
                     else coalesce(n.sequence, 9223372036854775807) end) as first,
       n.sequence as next, t.started_at,
       (select min(started_at) from traversal
         where stack_id = t.stack_id and number > t.number) as ended_at
  from traversal t join stack s on s.id = t.stack_id
  left join lateral (select number as started, sequence from started where number > t.number
                      order by sequence limit 1) n on true
 where t.stack_id = $1 and t.number = $2
"""
READ = """
with page as materialized (
    select stack_id, sequence from event
     where stack_id = $1 and sequence >= $2 and ($3::bigint is null or sequence < $3)
       and sequence > $4
     order by sequence limit $5
)
select e.sequence as place, e.stack_project as project, e.*
  from page p
 cross join lateral (select * from event_details k
                      where k.stack_id = p.stack_id and k.sequence = p.sequence offset 0) e
 order by p.sequence
"""
#: With the events of nested stacks, including deleted ones, in the time of the traversal. Stacks
#: are merged by time; the events of one stack stay in order of their sequence numbers, because a
#: transaction that waited for a lock has an earlier time.
READ_NESTED = """
with recursive tree (id, depth) as (
    select $1::uuid, 0
    union all
    select c.id, t.depth + 1 from tree t
     cross join lateral (select id from stack where parent_id = t.id offset 0) c
), numbered as (
    select e.stack_id, e.sequence, t.depth,
           max(e.time) over (partition by e.stack_id order by e.sequence) as moment
      from tree t
     cross join lateral (select * from event where stack_id = t.id offset 0) e
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
  from page p
 cross join lateral (select * from event_details
                      where stack_id = p.stack_id and sequence = p.sequence offset 0) e
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
