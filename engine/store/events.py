"""The events that the Orchestration API lists (those with a status), a page at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.store.database import Connection
from engine.store.records import EventRecord
from engine.words import Json

LIST_EVENTS = """
select e.stack_id, e.sequence, e.id, e.type, e.time, e.resource_name, e.resource_type,
       e.physical_id, e.action, e.status, e.reason, e.data
  from event e join stack s on s.id = e.stack_id
 where e.stack_id = $1 and e.status is not null
   and ($2::text[] is null or coalesce(e.resource_name, s.name) = any ($2))
   and ($8::text[] is null or coalesce(e.resource_type, $3) = any ($8))
   and ($9::text[] is null or e.action = any ($9))
   and ($10::text[] is null or e.status = any ($10) or e.action || '_' || e.status = any ($10))
   and ($6::uuid is null
        or not $4 and not $5
           and e.sequence > (select sequence from event where stack_id = $1 and id = $6)
        or not $4 and $5
           and e.sequence < (select sequence from event where stack_id = $1 and id = $6)
        or $4 and not $5
           and (coalesce(e.resource_type, $3), e.sequence) > (
               select coalesce(resource_type, $3), sequence
                 from event where stack_id = $1 and id = $6)
        or $4 and $5
           and (coalesce(e.resource_type, $3), e.sequence) < (
               select coalesce(resource_type, $3), sequence
                 from event where stack_id = $1 and id = $6))
 order by case when $4 and not $5 then coalesce(e.resource_type, $3) end,
          case when $4 and $5 then coalesce(e.resource_type, $3) end desc,
          case when not $5 then e.sequence end, case when $5 then e.sequence end desc
 limit $7
"""
READ_EVENT = """
select e.stack_id, e.sequence, e.id, e.type, e.time, e.resource_name, e.resource_type,
       e.physical_id, e.action, e.status, e.reason, e.data,
       coalesce(r.shown, r.properties) as properties
  from event e
  left join resource r
    on r.stack_id = e.stack_id and r.name = e.resource_name and r.replaced_by is null
 where e.stack_id = $1 and e.id = $2 and e.status is not null
"""
#: What the type of a stack's own events is called.
STACK_TYPE = "OS::Heat::Stack"


@dataclass(frozen=True, slots=True)
class EventFilter:
    """None: not asked for; else: is one of them. marker: the last event of the page before.

    A stack's own events have the stack's name and the type `STACK_TYPE`. by_type: sorted by type
    first; else as they happened.
    """

    names: Sequence[str] | None = None
    types: Sequence[str] | None = None
    actions: Sequence[str] | None = None
    statuses: Sequence[str] | None = None
    by_type: bool = False
    descending: bool = False
    marker: UUID | None = None
    limit: int | None = None


async def list_events(conn: Connection, stack_id: UUID, wanted: EventFilter) -> list[EventRecord]:
    """In a transaction that plans anew: then a page is read by the index, whatever there is."""
    rows = await conn.fetch(
        LIST_EVENTS, stack_id, wanted.names, STACK_TYPE, wanted.by_type, wanted.descending,
        wanted.marker, wanted.limit, wanted.types, wanted.actions, wanted.statuses,
    )  # fmt: skip
    return [EventRecord(**row) for row in rows]


async def read_event(
    conn: Connection, stack_id: UUID, event_id: UUID
) -> tuple[EventRecord, dict[str, Json]] | None:
    """An event, and what its resource's properties are now, secret ones masked."""
    row = await conn.fetchrow(READ_EVENT, stack_id, event_id)
    if row is None:
        return None
    told = dict(row)
    properties = told.pop("properties")
    return EventRecord(**told), properties or {}
