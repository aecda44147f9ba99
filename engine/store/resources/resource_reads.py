"""Reads resources: for lists, for details, for plans and for exports."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any
from uuid import UUID

from engine.store.connection import Connection
from engine.store.encryption.encrypted_rows import (
    decrypt_record,
    decrypt_row,
    display_record,
    display_row,
    try_decrypt_row,
)
from engine.store.records import NodeRecord, PlannedRecord, ResourceRecord
from engine.store.traversals.advance import Claim, Work, readable_work
from engine.words import Json

#: $3: levels of nested stacks.
READ_RESOURCES = """
with recursive tree (id, project, name, depth, path_names, parent_resource) as (
    select s.id, s.project, s.name, 0, array[]::text[],
           (select q.name from resource q
             where q.stack_id = s.parent_id and q.id = s.parent_resource)
      from stack s where s.id = $1
    union all
    select c.id, c.project, c.name, t.depth + 1, t.path_names || q.name, q.name
      from tree t
     cross join lateral (select id, project, name, parent_resource from stack
                          where parent_id = t.id and deleted_at is null offset 0) c
     cross join lateral (select name from resource
                          where stack_id = t.id and id = c.parent_resource and replaced_by is null
                         offset 0) q
     where t.depth < $3
)
select t.id as stack_id, t.project, t.name as stack_name, t.parent_resource, c.id as nested_id,
       c.name as nested_name, r.id, r.name, r.type, r.physical_id, r.action, r.status, r.reason,
       case when $4 then r.properties end as properties,
       case when $4 then r.masked_properties end as masked_properties, r.secret_attributes,
       case when $4 then r.attributes end as attributes,
       case when $4 then r.metadata end as metadata,
       array(select q.name
               from unnest(r.requires) k (id)
              cross join lateral (select name from resource
                                   where stack_id = r.stack_id and id = k.id offset 0) q
              order by q.name) as requires,
       r.deletion_policy, r.protected, r.created_at, r.updated_at, r.label
  from tree t
 cross join lateral (select * from resource
                      where $2::text is null and stack_id = t.id and replaced_by is null
                     union all
                     select * from resource
                      where name = $2 and stack_id = t.id and replaced_by is null offset 0) r
  left join lateral (select id, name from stack
                      where parent_id = r.stack_id and parent_resource = r.id and deleted_at is null
                     offset 0) c on true
 order by t.depth, t.path_names, r.created_at, r.name
"""
#: Separate from READ_RESOURCES: in one statement, PostgreSQL may read all nodes of a stack for each
#: of its resources. $3: levels of nested stacks.
READ_OPERATIONS = """
with recursive tree (id, depth) as (
    select $1::uuid, 0
    union all
    select c.id, t.depth + 1
      from tree t
     cross join lateral (select id from stack where parent_id = t.id and deleted_at is null
                         offset 0) c
     where t.depth < $3
)
select o.stack_id, o.resource_id, o.action, o.reason
  from tree t
 cross join lateral (
       select * from running_operation where $2::text is null and stack_id = t.id
        union all
       select p.*
         from (select stack_id, id from resource where name = $2 and stack_id = t.id offset 0) r
        cross join lateral (select * from running_operation
                             where stack_id = r.stack_id and resource_id = r.id offset 0) p
       offset 0) o
"""
#: $2: null: all names.
READ_NAMES = """
select name from resource where $2::text[] is null and stack_id = $1 and replaced_by is null
union all
select r.name
  from unnest($2::text[]) w (name)
 cross join lateral (select name from resource
                      where name = w.name and stack_id = $1 and replaced_by is null offset 0) r
"""
READ_DESCRIPTIONS = """
select t.stack_id, r.key as name, d.description
  from stack s
  join template t on t.stack_id = s.id and t.version = s.version
 cross join lateral (
       select coalesce(nullif(t.template -> 'resources', 'null'),
                       nullif(t.template -> 'Resources', 'null'), '{}') as declared offset 0) f
 cross join lateral (
       select key, value from jsonb_each(case when $2::text is null then f.declared end)
        union all
       select $2, f.declared -> $2 where $2 is not null) r
 cross join coalesce(r.value ->> 'description', r.value ->> 'Description') as d (description)
 where s.id = any ($1::uuid[]) and d.description is not null
"""
READ_PLANNED = """
select r.id, r.name, r.type, r.action, r.status, r.physical_id, r.reference, r.properties,
       r.masked_properties, r.secret_attributes, r.attributes, r.data, r.metadata, r.tainted,
       r.protected, r.deletion_policy, r.replaced_by, r.lifecycle, s.project
  from resource r join stack s on s.id = r.stack_id
 where r.stack_id = $1 and (r.id = any ($2::uuid[]) or r.name = any ($3) and r.replaced_by is null)
"""
READ_VALUES = """
select r.name, r.reference, r.attributes, r.secret_attributes, s.project
  from resource r join stack s on s.id = r.stack_id
 where r.stack_id = $1 and r.replaced_by is null and ($2::text[] is null or r.name = any ($2))
"""
EXPORTED = """
select r.name, r.physical_id, r.type, r.action, r.status, r.metadata, r.data, s.project,
       r.reference, r.properties, r.attributes
  from resource r join stack s on s.id = r.stack_id
 where r.stack_id = $1 and r.replaced_by is null order by r.name
"""


@dataclass(frozen=True, slots=True)
class ResourceValues:
    """by_name: name -> [reference, attributes, secret]. undecryptable: name -> the reason why these
    cannot be decrypted."""

    by_name: dict[str, list[Json]]
    undecryptable: dict[str, str]


@dataclass(frozen=True, slots=True)
class ExportedResource:
    name: str
    physical_id: str | None
    type: str
    action: str
    status: str
    metadata: Json
    data: Json


async def read_resources(
    conn: Connection,
    stack_id: UUID,
    name: str | None = None,
    *,
    depth: int = 0,
    with_values: bool = True,
) -> list[ResourceRecord]:
    """Resources of the stack, then of its nested stacks. depth: levels of nested stacks.
    with_values: also their properties, attributes and metadata, which are null without it.

    Operations are read first, so that none ends unseen: its result would be missing.
    """
    running = {
        (row["stack_id"], row["resource_id"]): row
        for row in await conn.fetch(READ_OPERATIONS, stack_id, name, depth)
    }
    rows = await conn.fetch(READ_RESOURCES, stack_id, name, depth, with_values)
    found = [display_record(ResourceRecord, row, row["stack_id"], "resource") for row in rows]
    return [_with_operation(one, running.get((one.stack_id, one.id))) for one in found]


def _with_operation(resource: ResourceRecord, operation: Any) -> ResourceRecord:
    """operation: a row of READ_OPERATIONS; None: no operation runs on the resource."""
    if operation is None:
        return resource
    reason = resource.reason if operation["reason"] is None else operation["reason"]
    return replace(resource, action=operation["action"], status="IN_PROGRESS", reason=reason)


async def read_names(
    conn: Connection, stack_id: UUID, names: Sequence[str] | None = None
) -> set[str]:
    """The names of resources of the stack; names: only those of these."""
    rows = await conn.fetch(READ_NAMES, stack_id, None if names is None else list(names))
    return {row["name"] for row in rows}


async def read_descriptions(
    conn: Connection, stacks: Sequence[UUID], name: str | None
) -> dict[tuple[UUID, str], str]:
    """Descriptions in the template, by stack and resource name. name: only of this resource."""
    rows = await conn.fetch(READ_DESCRIPTIONS, list(stacks), name)
    return {(row["stack_id"], row["name"]): row["description"] for row in rows}


async def read_planned(
    conn: Connection, stack_id: UUID, ids: Sequence[UUID], names: Sequence[str]
) -> list[PlannedRecord]:
    """Current resources by ID or name. Raises DecryptionFailed."""
    rows = await conn.fetch(READ_PLANNED, stack_id, list(ids), list(names))
    return [decrypt_record(PlannedRecord, row, stack_id, "resource") for row in rows]


async def read_values(
    conn: Connection, stack_id: UUID, names: Sequence[str] | None
) -> ResourceValues:
    values = ResourceValues({}, {})
    for row in await conn.fetch(READ_VALUES, stack_id, None if names is None else list(names)):
        plain, reason = try_decrypt_row(row, row["project"], stack_id, "resource")
        if reason:
            values.undecryptable[row["name"]] = reason
        else:
            values.by_name[row["name"]] = [
                plain[name] for name in ("reference", "attributes", "secret_attributes")
            ]
    return values


async def read_exported(conn: Connection, stack_id: UUID) -> list[ExportedResource]:
    """Raises DecryptionFailed, also for values that are not exported."""
    rows = await conn.fetch(EXPORTED, stack_id)
    return [
        _exported_resource(decrypt_row(row, row["project"], stack_id, "resource")) for row in rows
    ]


async def display_exported(conn: Connection, stack_id: UUID) -> list[ExportedResource]:
    """As `read_exported`, but a column that cannot be decrypted is replaced by the reason."""
    rows = await conn.fetch(EXPORTED, stack_id)
    return [
        _exported_resource(display_row(row, row["project"], stack_id, "resource")) for row in rows
    ]


def _exported_resource(row: dict[str, Any]) -> ExportedResource:
    return ExportedResource(**{one.name: row[one.name] for one in fields(ExportedResource)})


#: Nodes of the current traversal, forward before cleanup.
READ_NODES = """
select n.id, n.name as resource_name, n.type, n.operation, n.direction, n.state, n.phase,
       n.pending_dependencies, n.dependents, n.rules, n.reason, n.wake_at, n.started_at,
       n.ended_at, n.label, n.traversal, n.claim, n.resource_id, n.replacement_id, n.definition,
       n.breakpoints_hit, n.operation_key, n.patched, n.restarts, s.project,
       s.name as stack_name, s.path, t.state as traversal_state,
       array(select b.name from node b
              where b.stack_id = n.stack_id and b.traversal = n.traversal
                and n.id = any (b.dependents) and b.state <> 'done' order by b.name) as waiting_for,
       r.type as row_type, r.action, r.status, r.physical_id, r.reference, r.properties,
       r.masked_properties, r.secret_attributes, r.attributes, r.metadata, r.digest, r.tainted,
       r.protected, r.deletion_policy, r.replaced_by, r.lifecycle,
       (select jsonb_object_agg(x.name, jsonb_build_array(x.reference, x.attributes,
                                                          x.secret_attributes))
          from resource x
         where x.stack_id = n.stack_id and x.name = any (n.reads)
           and x.replaced_by is null) as inputs,
       clock_timestamp() as now
  from stack s
  join traversal t on t.stack_id = s.id and t.number = s.traversal
  join node n on n.stack_id = s.id and n.traversal = s.traversal
  left join resource r on r.stack_id = n.stack_id and r.id = n.resource_id
 where s.id = $1 and n.name = $2 and n.name <> ''
 order by n.direction desc, n.id
"""
#: Without the row that a replacement replaces.
READ_RULES = """
select r.rules,
       array(select q.name
               from (select stack_id, name, replaced_by from resource
                      where requires @> array[r.id] and requires <> '{}' offset 0) q
              where q.stack_id = r.stack_id and q.replaced_by is null
              order by q.name) as required_by
  from resource r where r.stack_id = $1 and r.name = $2 and r.replaced_by is null
"""
#: Breakpoints of the stack and of its parents. path: of the breakpoint's stack.
READ_LIVE_BREAKPOINTS = """
with recursive ancestor (id, parent_id, path) as (
    select id, parent_id, path from stack where id = $1
    union all
    select p.id, p.parent_id, p.path from ancestor a join stack p on p.id = a.parent_id
)
select b.id, b.rule, b.created_by, ltrim(a.path || '/' || b.pattern, '/') as pattern
  from ancestor a
 cross join lateral (select * from breakpoint where stack_id = a.id offset 0) b
 where b.pattern <> ''
 order by b.created_at, b.id
"""
_NODE = ("id", "resource_name", "type", "operation", "direction", "state", "phase",
         "pending_dependencies", "dependents", "rules", "reason", "wake_at", "started_at",
         "ended_at", "label")  # fmt: skip
_WORK = ("project", "stack_name", "resource_id", "replacement_id", "type", "operation",
         "direction", "phase", "definition", "rules", "breakpoints_hit", "operation_key",
         "row_type", "action", "status", "physical_id", "reference", "properties",
         "masked_properties", "secret_attributes", "attributes", "metadata", "digest", "tainted",
         "protected", "deletion_policy", "replaced_by", "inputs", "now", "patched", "path",
         "traversal_state", "restarts", "lifecycle")  # fmt: skip


@dataclass(frozen=True, slots=True)
class NodeDetails:
    """work: as a worker gets it, without progress and signals. waiting_for: the names of resources
    whose nodes have not ended."""

    node: NodeRecord
    work: Work
    waiting_for: Sequence[str]


@dataclass(frozen=True, slots=True)
class LiveBreakpoint:
    """A breakpoint on a running stack. pattern: path from the root stack."""

    id: UUID
    rule: Json
    created_by: str
    pattern: str


@dataclass(frozen=True, slots=True)
class ResourceRules:
    """rules: hook rules that stay with the resource. required_by: the names of its dependents."""

    rules: Json
    required_by: Sequence[str]


async def read_node_details(conn: Connection, stack_id: UUID, name: str) -> list[NodeDetails]:
    return [_node_details(stack_id, row) for row in await conn.fetch(READ_NODES, stack_id, name)]


async def read_resource_rules(conn: Connection, stack_id: UUID, name: str) -> ResourceRules:
    row = await conn.fetchrow(READ_RULES, stack_id, name)
    return ResourceRules(**row) if row else ResourceRules(None, ())


async def read_live_breakpoints(conn: Connection, stack_id: UUID) -> list[LiveBreakpoint]:
    return [LiveBreakpoint(**row) for row in await conn.fetch(READ_LIVE_BREAKPOINTS, stack_id)]


def _node_details(stack_id: UUID, row: Any) -> NodeDetails:
    work = readable_work(
        Claim(stack_id, row["traversal"], row["id"], row["claim"]),
        name=row["resource_name"],
        started=row["started_at"] is not None,
        progress=None, attempts=0, dependents=None, data=None,
        **{name: row[name] for name in _WORK},
    )  # fmt: skip
    node = NodeRecord(stack_id=stack_id, **{name: row[name] for name in _NODE})
    return NodeDetails(node, work, row["waiting_for"])
