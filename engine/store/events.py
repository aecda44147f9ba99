"""The events that the Orchestration API lists (those with a status), a page at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.store.connection import Connection
from engine.store.records import EventRecord
from engine.store.secret_rows import show_row
from engine.words import Json

LIST_EVENTS = """
select e.stack_id, e.sequence, e.id, e.type, e.time, e.resource_name, e.resource_type,
       e.physical_id, e.action, e.status, e.reason, e.data, s.name as stack_name
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
#: Of a stack and its nested stacks, also deleted ones. Between stacks by time, and each
#: stack's in its own order: a transaction that waited for its turn has an earlier time.
LIST_TREE_EVENTS = """
with recursive tree (id, name, depth) as (
    select s.id, s.name, 0 from stack s where s.id = $1
    union all
    select c.id, c.name, t.depth + 1
      from tree t join stack c on c.parent_id = t.id where t.depth < $11
), told as materialized (
    select e.*, row_number() over (order by e.moment, e.depth, e.stack_id, e.sequence) as place
      from (select e.stack_id, e.sequence, e.id, t.name as stack_name, t.depth,
                   coalesce(e.resource_type, $3) as of_type,
                   max(e.time) over (partition by e.stack_id order by e.sequence) as moment
              from tree t join event e on e.stack_id = t.id and e.status is not null) e
), marked as (
    select of_type, place from told where id = $6
)
select e.stack_id, e.sequence, e.id, e.type, e.time, e.resource_name, e.resource_type,
       e.physical_id, e.action, e.status, e.reason, e.data, o.stack_name
  from told o
  join event e on e.stack_id = o.stack_id and e.sequence = o.sequence
  left join marked m on true
 where ($2::text[] is null or coalesce(e.resource_name, o.stack_name) = any ($2))
   and ($8::text[] is null or o.of_type = any ($8))
   and ($9::text[] is null or e.action = any ($9))
   and ($10::text[] is null or e.status = any ($10) or e.action || '_' || e.status = any ($10))
   and ($6::uuid is null
        or case when $5 then (case when $4 then o.of_type else '' end, o.place)
                             < (case when $4 then m.of_type else '' end, m.place)
                else (case when $4 then o.of_type else '' end, o.place)
                     > (case when $4 then m.of_type else '' end, m.place) end)
 order by case when $4 and not $5 then o.of_type end, case when $4 and $5 then o.of_type end desc,
          case when not $5 then o.place end, case when $5 then o.place end desc
 limit $7
"""
READ_EVENT = """
select e.stack_id, e.sequence, e.id, e.type, e.time, e.resource_name, e.resource_type,
       e.physical_id, e.action, e.status, e.reason, e.data,
       coalesce(r.shown, r.properties) as properties, s.project
  from event e join stack s on s.id = e.stack_id
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
    first; else as they happened. depth: levels of stacks inside whose events are wanted, too.
    """

    names: Sequence[str] | None = None
    types: Sequence[str] | None = None
    actions: Sequence[str] | None = None
    statuses: Sequence[str] | None = None
    by_type: bool = False
    descending: bool = False
    marker: UUID | None = None
    limit: int | None = None
    depth: int = 0


async def list_events(conn: Connection, stack_id: UUID, wanted: EventFilter) -> list[EventRecord]:
    """In a transaction that plans anew: then a page is read by the index, whatever there is."""
    common = (
        stack_id, wanted.names, STACK_TYPE, wanted.by_type, wanted.descending, wanted.marker,
        wanted.limit, wanted.types, wanted.actions, wanted.statuses,
    )  # fmt: skip
    if wanted.depth:
        rows = await conn.fetch(LIST_TREE_EVENTS, *common, wanted.depth)
    else:
        rows = await conn.fetch(LIST_EVENTS, *common)
    return [EventRecord(**row) for row in rows]


async def read_event(
    conn: Connection, stack_id: UUID, event_id: UUID
) -> tuple[EventRecord, dict[str, Json]] | None:
    """An event, with the current properties of its resource, secrets masked."""
    row = await conn.fetchrow(READ_EVENT, stack_id, event_id)
    if row is None:
        return None
    told = show_row(row, row["project"], stack_id, "resource", ("properties",))
    del told["project"]
    properties = told.pop("properties")
    return EventRecord(**told), properties or {}
