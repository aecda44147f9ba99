"""Reads the events of a project in the order of their publication, after a position."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from channels.store.claim import hook_of, stack_header_of
from channels.store.records import Cursor, PublishedEvent, StreamEvent
from engine.store.connection import Connection
from engine.store.records import EventRecord

TOP = "select position from publishing"
FLOOR = "select position, sequence from stream_floor where project = $1"
READ_AFTER = """
select o.position, o.project, e.*
  from outbox o
  join event_details e on e.stack_id = o.stack_id and e.sequence between o.first and o.last
 where o.project = $1 and o.position >= $2 and (o.position > $2 or e.sequence > $3)
   and ($5::uuid[] is null or o.stack_id = any ($5) or e.root_id = any ($5))
 order by o.position, e.sequence limit $4
"""
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
    stacks: Sequence[UUID] | None = None,
) -> list[StreamEvent]:
    """At most `limit` published events after the cursor, in order. stacks: only the events of these
    stacks and of the stack trees of those that are root stacks."""
    rows = await conn.fetch(READ_AFTER, project, cursor.position, cursor.sequence, limit, stacks)
    return [_stream_event(row) for row in rows]


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
