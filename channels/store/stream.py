"""The events of a project in the order they were published, after a place in it."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from channels.store.claim import hook_of, plate_of
from channels.store.records import Cursor, StreamEvent
from engine.store.database import Connection
from engine.store.records import EventRecord

TOP = "select position from publishing"
FLOOR = "select position, sequence from stream_floor where project = $1"
READ_AFTER = """
select o.position, o.project, s.name as stack_name, s.owner, coalesce(r.tags, s.tags) as tags,
       s.created_at as stack_created_at, s.path as stack_path, s.root_id, r.name as root_name,
       e.stack_id, e.sequence, e.id, e.type, e.time,
       e.resource_name, e.resource_type, e.physical_id, e.action, e.status, e.reason, e.data,
       e.traceparent,
       h.id as h_id, h.project as h_project, h.traversal as h_traversal,
       h.node as h_node,
       h.root_stack_id as h_root_stack_id, h.root_stack_name as h_root_stack_name,
       h.resource_name as h_resource_name, h.path as h_path, h.point as h_point, h.mode as h_mode,
       h.state as h_state, h.opened_at as h_opened_at, h.deadline as h_deadline,
       h.on_timeout as h_on_timeout, h.digest as h_digest, h.decision as h_decision,
       h.reason as h_reason, h.decided_by as h_decided_by, h.door as h_door,
       h.decided_at as h_decided_at, h.notice as h_notice, h.rule as h_rule,
       h.requested_by as h_requested_by, h.assigned as h_assigned,
       h.escalated_at as h_escalated_at, h.reminders as h_reminders,
       h.approved_by as h_approved_by
  from outbox o
  join event e on e.stack_id = o.stack_id and e.sequence between o.first and o.last
  left join stack s on s.id = o.stack_id
  left join stack r on r.id = s.root_id
  left join hook_now h on h.stack_id = e.stack_id and h.id = (e.data ->> 'hook_id')::uuid
 where o.project = $1 and o.position >= $2 and (o.position > $2 or e.sequence > $3)
   and ($5::uuid[] is null or o.stack_id = any ($5) or s.root_id = any ($5))
 order by o.position, e.sequence limit $4
"""
_EVENT = (
    "stack_id", "sequence", "id", "type", "time", "resource_name", "resource_type", "physical_id",
    "action", "status", "reason", "data", "traceparent",
)  # fmt: skip

#: After every event of its commit.
AFTER_ALL = 2**63 - 1


async def top(conn: Connection) -> Cursor:
    """The end of what is published: whoever reads from here hears only what is new."""
    return Cursor(await conn.fetchval(TOP), AFTER_ALL)


async def floor(conn: Connection, project: str) -> Cursor:
    """The last place of which something is gone: whoever has read less has missed something."""
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
    """At most `limit` published events after the cursor, in the order they were published. stacks:
    only of these, and of those inside of them that are outermost."""
    rows = await conn.fetch(READ_AFTER, project, cursor.position, cursor.sequence, limit, stacks)
    return [_stream_event(row) for row in rows]


def _stream_event(row: Any) -> StreamEvent:
    return StreamEvent(
        cursor=Cursor(row["position"], row["sequence"]),
        project=row["project"],
        plate=plate_of(row),
        event=EventRecord(**{name: row[name] for name in _EVENT}),
        hook=hook_of(row) if row["h_id"] is not None else None,
    )
