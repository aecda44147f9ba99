"""Pages of the events that the Orchestration API lists: those with a status."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.store.connection import Connection
from engine.store.encryption.encrypted_rows import display_row
from engine.store.records import EventRecord
from engine.words import Json

#: As in Heat, an event from before there is a physical ID has the name of the nested stack. Clients
#: find the paths of nested resources by it. The name ends with the key in the data of the event; a
#: nested stack with another key is of a later operation. Events of earlier versions have no key.
#: $11: written types: {stack: {resource: {type of the row: type in the template}}}; of resources
#: with `for_each`, under their name without the key.
#: $12, $13: see `sequence_range`. $14: the only resource of $2 with events;
#: null: there is none, or more than one.
LIST_EVENTS = """
with typed as not materialized (
    select e.*, coalesce(coalesce($11::jsonb #> array[e.stack_id::text, e.resource_name],
                                  $11 #> array[e.stack_id::text,
                                               split_part(e.resource_name, '["', 1)])
                             ->> e.resource_type, e.resource_type, $3) as of_type
      from event e where e.stack_id = $1 and ($14::text is null or e.resource_name = $14)
)
select e.stack_id, e.sequence, e.id, e.type, e.time, e.resource_name, e.resource_type,
       coalesce(case when e.data ? 'key' then null else e.physical_id end,
                case when e.status = 'IN_PROGRESS' then (
           select c.name
             from resource r join stack c on c.parent_id = r.stack_id and c.parent_resource = r.id
            where r.name = e.resource_name and r.stack_id = e.stack_id and c.created_at >= e.time
              and c.name like '%-' || coalesce(e.data ->> 'key', '')
            order by c.created_at limit 1) end) as physical_id,
       e.action, e.status, e.reason, e.data, s.name as stack_name
  from typed e join stack s on s.id = e.stack_id
 where e.status is not null
   and ($2::text[] is null or coalesce(e.resource_name, s.name) = any ($2))
   and ($8::text[] is null or e.of_type = any ($8))
   and ($9::text[] is null or e.action = any ($9))
   and ($10::text[] is null or e.status = any ($10) or e.action || '_' || e.status = any ($10))
   and ($6::uuid is null
        or not $4 and not $5
           and e.sequence > (select sequence from event where stack_id = $1 and id = $6
                                and sequence between $12 and $13)
        or not $4 and $5
           and e.sequence < (select sequence from event where stack_id = $1 and id = $6
                                and sequence between $12 and $13)
        or $4 and not $5
           and (e.of_type, e.sequence) > (select of_type, sequence from typed where id = $6
                                             and sequence between $12 and $13)
        or $4 and $5
           and (e.of_type, e.sequence) < (select of_type, sequence from typed where id = $6
                                             and sequence between $12 and $13))
 order by case when $4 and not $5 then e.of_type end,
          case when $4 and $5 then e.of_type end desc,
          case when not $5 then e.sequence end, case when $5 then e.sequence end desc
 limit $7
"""
#: Of a stack and its nested stacks, also deleted ones. By time between stacks, and by number within
#: a stack: a transaction that waited for its lock has an earlier time.
LIST_TREE_EVENTS = """
with recursive tree (id, name, depth) as (
    select s.id, s.name, 0 from stack s where s.id = $1
    union all
    select c.id, c.name, t.depth + 1
      from tree t
     cross join lateral (select id, name from stack where parent_id = t.id offset 0) c
     where t.depth < $12
), ordered as materialized (
    select e.*, row_number() over (order by e.moment, e.depth, e.stack_id, e.sequence) as position
      from (select e.stack_id, e.sequence, e.id, t.name as stack_name, t.depth,
                   coalesce(coalesce($11::jsonb #> array[e.stack_id::text, e.resource_name],
                                     $11 #> array[e.stack_id::text,
                                                  split_part(e.resource_name, '["', 1)])
                                ->> e.resource_type, e.resource_type, $3) as of_type,
                   max(e.time) over (partition by e.stack_id order by e.sequence) as moment
              from tree t
             cross join lateral (select * from event
                                  where stack_id = t.id and status is not null offset 0) e) e
), marker as (
    select of_type, position from ordered where id = $6
)
select e.stack_id, e.sequence, e.id, e.type, e.time, e.resource_name, e.resource_type,
       coalesce(case when e.data ? 'key' then null else e.physical_id end,
                case when e.status = 'IN_PROGRESS' then (
           select c.name
             from resource r join stack c on c.parent_id = r.stack_id and c.parent_resource = r.id
            where r.name = e.resource_name and r.stack_id = e.stack_id and c.created_at >= e.time
              and c.name like '%-' || coalesce(e.data ->> 'key', '')
            order by c.created_at limit 1) end) as physical_id,
       e.action, e.status, e.reason, e.data, o.stack_name
  from ordered o
 cross join lateral (select * from event
                      where stack_id = o.stack_id and sequence = o.sequence offset 0) e
  left join marker m on true
 where ($2::text[] is null or coalesce(e.resource_name, o.stack_name) = any ($2))
   and ($8::text[] is null or o.of_type = any ($8))
   and ($9::text[] is null or e.action = any ($9))
   and ($10::text[] is null or e.status = any ($10) or e.action || '_' || e.status = any ($10))
   and ($6::uuid is null
        or case when $5 then (case when $4 then o.of_type else '' end, o.position)
                             < (case when $4 then m.of_type else '' end, m.position)
                else (case when $4 then o.of_type else '' end, o.position)
                     > (case when $4 then m.of_type else '' end, m.position) end)
 order by case when $4 and not $5 then o.of_type end, case when $4 and $5 then o.of_type end desc,
          case when not $5 then o.position end, case when $5 then o.position end desc
 limit $7
"""
#: Of a stack and its nested stacks, also deleted ones. $2: levels.
READ_TREE_IDS = """
with recursive tree (id, depth) as (
    select $1::uuid, 0
    union all
    select c.id, t.depth + 1 from tree t
     cross join lateral (select id from stack where parent_id = t.id offset 0) c
     where t.depth < $2
)
select id from tree
"""
READ_EVENT = """
select e.stack_id, e.sequence, e.id, e.type, e.time, e.resource_name, e.resource_type,
       coalesce(case when e.data ? 'key' then null else e.physical_id end,
                case when e.status = 'IN_PROGRESS' then (
           select c.name
             from resource r join stack c on c.parent_id = r.stack_id and c.parent_resource = r.id
            where r.name = e.resource_name and r.stack_id = e.stack_id and c.created_at >= e.time
              and c.name like '%-' || coalesce(e.data ->> 'key', '')
            order by c.created_at limit 1) end) as physical_id,
       e.action, e.status, e.reason, e.data,
       coalesce(r.masked_properties, r.properties) as properties, s.project
  from event e join stack s on s.id = e.stack_id
  left join resource r
    on r.stack_id = e.stack_id and r.name = e.resource_name and r.replaced_by is null
 where e.stack_id = $1 and e.id = $2 and e.sequence between $3 and $4
   and e.status is not null
"""
WITH_EVENTS = """
select distinct w.name
  from unnest($2::text[]) w (name)
 where exists (select from event where stack_id = $1 and resource_name = w.name)
"""
#: The version of the IDs that contain the sequence number (`new_event_id` in SQL), and the largest
#: number.
NUMBERED_VERSION, LAST_SEQUENCE = 8, 2**60 - 1
#: The resource type of a stack's own events.
STACK_TYPE = "OS::Heat::Stack"


@dataclass(frozen=True, slots=True)
class EventFilter:
    """None: does not filter; otherwise, an event has one of the values.

    A stack's own events have the stack's name and the type `STACK_TYPE`. by_type: sort by type
    first. marker: the last event of the previous page. depth: levels of nested stacks.
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


def sequence_range(event_id: UUID) -> tuple[int, int]:
    """The first and last sequence number that an event with this ID can have: any, if an earlier
    version has recorded the event."""
    if event_id.version != NUMBERED_VERSION:
        return 0, LAST_SEQUENCE
    return event_id.int & LAST_SEQUENCE, event_id.int & LAST_SEQUENCE


async def read_tree_ids(conn: Connection, stack_id: UUID, depth: int) -> list[UUID]:
    """The stack, and its nested stacks of so many levels."""
    return [row["id"] for row in await conn.fetch(READ_TREE_IDS, stack_id, depth)]


async def list_events(
    conn: Connection,
    stack_id: UUID,
    stack_name: str,
    filters: EventFilter,
    written_types: Mapping[UUID, Mapping[str, Mapping[str, str]]],
) -> list[EventRecord]:
    """Call it in `ReadDatabase.page`.

    written_types: stack -> resource -> type of the row -> type in the template, where they differ.
    """
    written = {str(stack): types for stack, types in written_types.items()}
    common = (
        stack_id, filters.names, STACK_TYPE, filters.by_type, filters.descending, filters.marker,
        filters.limit, filters.types, filters.actions, filters.statuses, written,
    )  # fmt: skip
    if filters.depth:
        rows = await conn.fetch(LIST_TREE_EVENTS, *common, filters.depth)
    else:
        marked = filters.marker and sequence_range(filters.marker)
        resource = await _only_resource(conn, stack_id, stack_name, filters.names)
        rows = await conn.fetch(LIST_EVENTS, *common, *(marked or (None, None)), resource)
    return [EventRecord(**row) for row in rows]


async def _only_resource(
    conn: Connection, stack_id: UUID, stack_name: str, names: Sequence[str] | None
) -> str | None:
    """The only one of these names that has events, if it is one. Of a name with dashes, the API
    requests also what it can stand for."""
    if not names or stack_name in names:
        return None
    if len(names) > 1:
        names = [row["name"] for row in await conn.fetch(WITH_EVENTS, stack_id, names)]
    return names[0] if len(names) == 1 else None


async def read_event(
    conn: Connection, stack_id: UUID, event_id: UUID
) -> tuple[EventRecord, dict[str, Json]] | None:
    """An event, with the current properties of its resource, secrets masked."""
    row = await conn.fetchrow(READ_EVENT, stack_id, event_id, *sequence_range(event_id))
    if row is None:
        return None
    shown = display_row(row, row["project"], stack_id, "resource", ("properties",))
    del shown["project"]
    properties = shown.pop("properties")
    return EventRecord(**shown), properties or {}
