"""What people and planning read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from engine.store.database import Connection
from engine.store.records import (
    EventRecord,
    HookRecord,
    NodeRecord,
    PlannedRecord,
    ResourceRecord,
    StackRecord,
    TemplateRecord,
    TraversalRecord,
    VersionRecord,
)
from engine.words import Json

STACK_EXISTS = "select exists (select from stack where id = $1)"
FIND_STACK = """
select s.id, s.project, s.name, v.description, t.action,
       case t.state when 'complete' then 'COMPLETE' when 'failed' then 'FAILED'
                    when 'stopped' then 'STOPPED' else 'IN_PROGRESS' end as status,
       t.reason, s.owner, s.tags, s.timeout_mins, s.disable_rollback, s.created_at,
       case when t.number > 1 then t.started_at end as updated_at, s.deleted_at,
       s.traversal, s.version
  from stack s
  join traversal t on t.stack_id = s.id and t.number = s.traversal
  join template v on v.stack_id = s.id and v.version = s.version
 where s.project = $1 and (s.id = $2 or s.name = $3 and s.deleted_at is null)
 order by s.id = $2 desc limit 1
"""
LIST_STACKS = """
with listed as (
    select s.id, s.project, s.name, v.description, t.action,
           case t.state when 'complete' then 'COMPLETE' when 'failed' then 'FAILED'
                        when 'stopped' then 'STOPPED' else 'IN_PROGRESS' end as status,
           t.reason, s.owner, s.tags, s.timeout_mins, s.disable_rollback, s.created_at,
           case when t.number > 1 then t.started_at end as updated_at, s.deleted_at,
           s.traversal, s.version
      from stack s
      join traversal t on t.stack_id = s.id and t.number = s.traversal
      join template v on v.stack_id = s.id and v.version = s.version
     where s.project = $1 and ($2 or s.deleted_at is null)
), sorted as (
    select l.*, array(
               select case u.key when 'stack_name' then l.name
                                 when 'stack_status' then l.action || '_' || l.status
                                 when 'updated_time'
                                 then coalesce(to_char(l.updated_at, 'YYYYMMDDHH24MISSUS'), '')
                                 else to_char(l.created_at, 'YYYYMMDDHH24MISSUS') end
                 from unnest($8::text[]) with ordinality u (key, nth) order by u.nth) as keys
      from listed l
), wanted as (
    select *, row_number() over (order by case when not $9 then keys end asc,
                                          case when $9 then keys end desc, id) as place
      from sorted
     where ($3::text[] is null or name = any ($3)) and ($4::uuid[] is null or id = any ($4))
       and ($5::text[] is null or status = any ($5) or action || '_' || status = any ($5))
       and ($6::text[] is null or action = any ($6)) and ($7::text[] is null or tags @> $7)
       and ($12::text[] is null or tags && $12) and ($13::text[] is null or not tags @> $13)
       and ($14::text[] is null or not tags && $14) and ($15::text[] is null or owner = any ($15))
)
select * from wanted
 where $10::uuid is null or place > (select place from wanted where id = $10)
 order by place limit $11
"""
READ_TEMPLATE = """
select version, template, environment, files, parameters, hidden, created_at
  from template where stack_id = $1 and version = $2
"""
READ_GIVEN = """
select parameters, environment -> 'parameters' as by_environment
  from template where stack_id = $1 and version = $2
"""
READ_VERSIONS = """
select t.version, t.description, t.requested_by, t.created_at, t.version = s.version as current,
       exists (select from traversal v
                where v.stack_id = t.stack_id and v.version = t.version and v.state = 'complete'
                  and v.action in ('CREATE', 'UPDATE', 'ROLLBACK', 'ADOPT', 'RESTORE')) as reached
  from template t join stack s on s.id = t.stack_id
 where t.stack_id = $1 order by t.version desc
"""
READ_TRAVERSALS = """
select number, action, state, reason, digest, version, stale, requested_by, started_at, ended_at,
       extract(epoch from worked + case when working_since is null then '0'
               else clock_timestamp() - working_since end)::double precision as worked
  from traversal where stack_id = $1 order by number desc limit $2
"""
READ_SHOWN = "select shown, outputs from template where stack_id = $1 and version = $2"
READ_PLANNED = """
select r.id, r.name, r.type, r.action, r.status, r.physical_id, r.reference, r.properties, r.shown,
       r.attributes, r.data, r.metadata, r.broken, r.protected, r.deletion_policy, r.replaced_by
  from resource r
 where r.stack_id = $1 and (r.id = any ($2::uuid[]) or r.name = any ($3) and r.replaced_by is null)
"""
READ_RESOURCES = """
select r.id, r.name, r.type, r.physical_id, r.shown_action as action, r.shown_status as status,
       r.reason, r.properties, r.attributes, r.metadata,
       array(select q.name from resource q where q.stack_id = r.stack_id and q.id = any (r.requires)
              order by q.name) as requires,
       r.deletion_policy, r.protected, r.created_at, r.updated_at
  from resource_now r
 where r.stack_id = $1 and ($2::text is null or r.name = $2) and r.replaced_by is null
 order by r.created_at, r.name
"""
READ_RESOURCE_NAMES = """
select distinct name from resource where stack_id = $1 order by name
"""
READ_VALUES = """
select name, reference, attributes from resource
 where stack_id = $1 and replaced_by is null and ($2::text[] is null or name = any ($2))
"""
READ_EVENTS = """
select stack_id, sequence, id, type, time, resource_name, resource_type, physical_id, action,
       status, reason, data
  from event
 where stack_id = $1 and status is not null and ($2::text is null or resource_name = $2)
   and ($3::uuid is null
        or case when $5 then sequence < (select sequence from event where stack_id = $1 and id = $3)
                else sequence > (select sequence from event where stack_id = $1 and id = $3) end)
 order by case when $5 then -sequence else sequence end limit $4
"""
READ_TRAVERSAL = """
select number, action, state, reason, digest, version, stale, requested_by, started_at, ended_at,
       extract(epoch from worked + case when working_since is null then '0'
               else clock_timestamp() - working_since end)::double precision as worked
  from traversal where stack_id = $1 and number = $2
"""
READ_NODES = """
select id, name as resource_name, type, operation, direction, state, phase, waits, requirers,
       rules, reason, wake_at, started_at
  from node where stack_id = $1 and traversal = $2 order by id
"""
READ_HOOKS = """
select h.id, h.project, h.stack_id, h.stack_name, h.traversal, h.resource_name, h.path,
       h.point, h.mode, h.state, h.opened_at, h.deadline, h.on_timeout, h.digest, h.decision,
       h.reason, h.decided_by, h.door, h.decided_at, h.notice, h.rule, h.requested_by, h.assigned,
       h.escalated_at, h.reminders, h.approved_by
  from hook_now h
 where h.project = $1 and ($2::text is null or h.state = $2)
   and ($3::uuid is null or h.stack_id = $3) and ($4::text is null or h.point like $4)
   and ($7::interval is null or h.opened_at <= clock_timestamp() - $7)
   and ($8::text[] is null
        or h.assigned = any ($8)
        or (h.rule -> 'answer_by' is null or h.rule -> 'answer_by' ?| $8
            or h.escalated_at is not null and h.rule #> '{escalate,to}' ?| $8)
           and not (h.rule ->> 'exclude' = 'requester' and h.requested_by = $9)
           and not ($9 = any (h.approved_by)))
   and ($10::boolean is null or coalesce((h.rule ->> 'dry')::boolean, false) = $10)
   and ($5::uuid is null or (h.opened_at, h.id) > (select opened_at, id from hook where id = $5))
 order by h.opened_at, h.id limit $6
"""
READ_HOOK = """
select h.id, h.project, h.stack_id, h.stack_name, h.traversal, h.resource_name, h.path,
       h.point, h.mode, h.state, h.opened_at, h.deadline, h.on_timeout, h.digest, h.decision,
       h.reason, h.decided_by, h.door, h.decided_at, h.notice, h.rule, h.requested_by, h.assigned,
       h.escalated_at, h.reminders, h.approved_by
  from hook_now h
 where h.id = $1 and ($2::text is null or h.project = $2)
"""


async def stack_exists(conn: Connection, stack_id: UUID) -> bool:
    """Whether it is or was there."""
    found: bool = await conn.fetchval(STACK_EXISTS, stack_id)
    return found


async def find_stack(
    conn: Connection, project: str, stack_id: UUID | None, name: str
) -> StackRecord | None:
    """By id, deleted ones too; else by name."""
    row = await conn.fetchrow(FIND_STACK, project, stack_id, name)
    return StackRecord(**row) if row else None


@dataclass(frozen=True, slots=True)
class StackFilter:
    """None: not asked for. marker: the last stack of the page before.

    tags: has all of them; tags_any: has one of them; not_tags: has not all of them; not_tags_any:
    has none of them.
    """

    names: Sequence[str] | None = None
    ids: Sequence[UUID] | None = None
    statuses: Sequence[str] | None = None
    actions: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    tags_any: Sequence[str] | None = None
    not_tags: Sequence[str] | None = None
    not_tags_any: Sequence[str] | None = None
    owners: Sequence[str] | None = None
    show_deleted: bool = False
    sort_keys: Sequence[str] = ("creation_time",)
    descending: bool = True
    marker: UUID | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class HookFilter:
    """None: not asked for. older: open for longer than this. mine: what these, such as ``user:ada``
    and ``role:dba``, may answer and have not answered; me: the name. point: a glob."""

    state: str | None = None
    stack_id: UUID | None = None
    point: str | None = None
    older: timedelta | None = None
    mine: Sequence[str] | None = None
    me: str = ""
    dry: bool | None = None
    marker: UUID | None = None
    limit: int = 100


async def list_stacks(conn: Connection, project: str, wanted: StackFilter) -> list[StackRecord]:
    rows = await conn.fetch(
        LIST_STACKS, project, wanted.show_deleted, wanted.names, wanted.ids, wanted.statuses,
        wanted.actions, wanted.tags, wanted.sort_keys, wanted.descending, wanted.marker,
        wanted.limit, wanted.tags_any, wanted.not_tags, wanted.not_tags_any, wanted.owners,
    )  # fmt: skip
    return [StackRecord(**_without(row, "place", "keys")) for row in rows]


def _there(row: Any) -> Any:
    """A row that another row refers to; without it the database is broken."""
    if row is None:
        raise LookupError("a stack's version or traversal is missing from the database")
    return row


def _without(row: Any, *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


async def read_template(conn: Connection, stack_id: UUID, version: int) -> TemplateRecord:
    return TemplateRecord(**_there(await conn.fetchrow(READ_TEMPLATE, stack_id, version)))


async def read_given(conn: Connection, stack_id: UUID, version: int) -> dict[str, Json]:
    """The parameters that a version was given, without reading the whole of it."""
    row = _there(await conn.fetchrow(READ_GIVEN, stack_id, version))
    return {**(row["by_environment"] or {}), **row["parameters"]}


async def read_versions(conn: Connection, stack_id: UUID) -> list[VersionRecord]:
    """Newest first."""
    return [VersionRecord(**row) for row in await conn.fetch(READ_VERSIONS, stack_id)]


async def read_traversals(conn: Connection, stack_id: UUID, limit: int) -> list[TraversalRecord]:
    """Newest first."""
    return [TraversalRecord(**row) for row in await conn.fetch(READ_TRAVERSALS, stack_id, limit)]


async def find_version(conn: Connection, stack_id: UUID, version: int) -> TemplateRecord | None:
    row = await conn.fetchrow(READ_TEMPLATE, stack_id, version)
    return TemplateRecord(**row) if row else None


async def read_shown(conn: Connection, stack_id: UUID, version: int) -> tuple[Json, Json]:
    """(parameters as shown, outputs as stored) of a version."""
    row = _there(await conn.fetchrow(READ_SHOWN, stack_id, version))
    return row["shown"], row["outputs"]


async def read_planned(
    conn: Connection, stack_id: UUID, ids: Sequence[UUID], names: Sequence[str]
) -> list[PlannedRecord]:
    """The rows that a plan is about, and those that its resources read."""
    rows = await conn.fetch(READ_PLANNED, stack_id, list(ids), list(names))
    return [PlannedRecord(**row) for row in rows]


async def read_resources(
    conn: Connection, stack_id: UUID, name: str | None = None
) -> list[ResourceRecord]:
    rows = await conn.fetch(READ_RESOURCES, stack_id, name)
    return [ResourceRecord(**row) for row in rows]


async def read_resource_names(conn: Connection, stack_id: UUID) -> list[str]:
    return [row["name"] for row in await conn.fetch(READ_RESOURCE_NAMES, stack_id)]


async def read_values(
    conn: Connection, stack_id: UUID, names: Sequence[str] | None
) -> dict[str, list[Json]]:
    """name -> [reference, attributes] of the resources that stand for their names."""
    rows = await conn.fetch(READ_VALUES, stack_id, None if names is None else list(names))
    return {row["name"]: [row["reference"], row["attributes"]] for row in rows}


async def read_events(
    conn: Connection,
    stack_id: UUID,
    *,
    resource_name: str | None,
    marker: UUID | None,
    limit: int | None,
    newest_first: bool,
) -> list[EventRecord]:
    rows = await conn.fetch(READ_EVENTS, stack_id, resource_name, marker, limit, newest_first)
    return [EventRecord(**row) for row in rows]


async def read_traversal(conn: Connection, stack_id: UUID, number: int) -> TraversalRecord:
    return TraversalRecord(**_there(await conn.fetchrow(READ_TRAVERSAL, stack_id, number)))


async def read_nodes(conn: Connection, stack_id: UUID, traversal: int) -> list[NodeRecord]:
    return [NodeRecord(**row) for row in await conn.fetch(READ_NODES, stack_id, traversal)]


def _like(glob: str | None) -> str | None:
    """A glob with stars as SQL says it."""
    if glob is None:
        return None
    plain = glob.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return plain.replace("*", "%")


async def read_hooks(
    conn: Connection,
    project: str,
    wanted: HookFilter,
) -> list[HookRecord]:
    rows = await conn.fetch(
        READ_HOOKS, project, wanted.state, wanted.stack_id, _like(wanted.point), wanted.marker,
        wanted.limit, wanted.older, wanted.mine, wanted.me, wanted.dry,
    )  # fmt: skip
    return [HookRecord(**row) for row in rows]


async def read_hook(conn: Connection, hook_id: UUID, project: str | None) -> HookRecord | None:
    row = await conn.fetchrow(READ_HOOK, hook_id, project)
    return HookRecord(**row) if row else None
