"""Resources as the API shows them: in lists, across nested stacks, and one in detail."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import itemgetter
from typing import Any
from uuid import UUID

from engine.store.advance import Claim, Work, readable_work
from engine.store.connection import Connection
from engine.store.records import HookRecord, NodeRecord, ResourceRecord
from engine.store.secret_rows import show_row
from engine.words import Json

READ_RESOURCES = """
with recursive tree (id, project, name, depth, way, parent_resource) as (
    select s.id, s.project, s.name, 0, array[]::text[], null::text from stack s where s.id = $1
    union all
    select c.id, c.project, c.name, t.depth + 1, t.way || q.name, q.name
      from tree t
      join stack c on c.parent_id = t.id and c.deleted_at is null
      join resource q on q.stack_id = t.id and q.id = c.parent_resource and q.replaced_by is null
     where t.depth < $3
)
select t.id as stack_id, t.project, t.name as stack_name, t.parent_resource, c.id as nested_id,
       c.name as nested_name, r.id, r.name, r.type, r.physical_id, r.shown_action as action,
       r.shown_status as status, r.shown_reason as reason, r.properties, r.shown, r.secret,
       r.attributes, r.metadata,
       array(select q.name from resource q where q.stack_id = r.stack_id and q.id = any (r.requires)
              order by q.name) as requires,
       r.deletion_policy, r.protected, r.created_at, r.updated_at
  from tree t
  join current_resource r on r.stack_id = t.id and r.replaced_by is null
  left join stack c
    on c.parent_id = r.stack_id and c.parent_resource = r.id and c.deleted_at is null
 where $2::text is null or r.name = $2
 order by t.depth, t.way, r.created_at, r.name
"""
READ_DESCRIPTIONS = """
select t.stack_id, r.key as name, d.description
  from stack s
  join template t on t.stack_id = s.id and t.version = s.version
 cross join jsonb_each(coalesce(nullif(t.template -> 'resources', 'null'),
                                nullif(t.template -> 'Resources', 'null'), '{}')) r
 cross join coalesce(r.value ->> 'description', r.value ->> 'Description') as d (description)
 where s.id = any ($1::uuid[]) and d.description is not null and ($2::text is null or r.key = $2)
"""


async def read_resources(
    conn: Connection, stack_id: UUID, name: str | None = None, *, depth: int = 0
) -> list[ResourceRecord]:
    """Resources of the stack, then of its nested stacks. depth: levels of nested stacks."""
    rows = await conn.fetch(READ_RESOURCES, stack_id, name, depth)
    return [_shown(row) for row in rows]


def _shown(row: Any) -> ResourceRecord:
    shown = show_row(row, row["project"], row["stack_id"], "resource")
    del shown["project"]
    return ResourceRecord(**shown)


async def read_descriptions(
    conn: Connection, stacks: Sequence[UUID], name: str | None
) -> dict[tuple[UUID, str], str]:
    """Descriptions in the template, by stack and resource name. name: only of this resource."""
    rows = await conn.fetch(READ_DESCRIPTIONS, list(stacks), name)
    return {(row["stack_id"], row["name"]): row["description"] for row in rows}


#: Nodes of the current traversal, forward before cleanup.
READ_NODES = """
select n.id, n.name as resource_name, n.type, n.operation, n.direction, n.state, n.phase, n.waits,
       n.requirers, n.rules, n.reason, n.wake_at, n.started_at, n.ended_at, n.traversal, n.claim,
       n.resource_id, n.replacement_id, n.definition, n.passed, n.operation_key, n.patched,
       n.restarts, s.project, s.name as stack_name, s.path, t.state as traversal_state,
       array(select b.name from node b
              where b.stack_id = n.stack_id and b.traversal = n.traversal
                and n.id = any (b.requirers) and b.state <> 'done' order by b.name) as waiting_for,
       r.type as row_type, r.action, r.status, r.physical_id, r.reference, r.properties, r.shown,
       r.secret, r.attributes, r.metadata, r.digest, r.broken, r.protected, r.deletion_policy,
       r.replaced_by,
       (select jsonb_object_agg(x.name, jsonb_build_array(x.reference, x.attributes, x.secret))
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
#: Rows of the name; without the one that a replacement stands in the place of, if that is there.
READ_MORE = """
select r.rules,
       array(select q.name from resource q
              where q.stack_id = r.stack_id and r.id = any (q.requires) and q.replaced_by is null
              order by q.name) as required_by
  from resource r where r.stack_id = $1 and r.name = $2 and r.replaced_by is null
"""
READ_HOOKS = """
select * from hook_details where stack_id = $1 and resource_name = $2
 order by opened_at desc, id desc limit $3
"""
#: Breakpoints of the stack and of its parents. path: of the breakpoint's stack.
READ_BREAKPOINTS = """
with recursive around (id, parent_id, path) as (
    select id, parent_id, path from stack where id = $1
    union all
    select p.id, p.parent_id, p.path from around a join stack p on p.id = a.parent_id
)
select b.id, b.rule, b.created_by, ltrim(a.path || '/' || b.pattern, '/') as pattern
  from around a join breakpoint b on b.stack_id = a.id
 where b.pattern <> ''
 order by b.created_at, b.id
"""
_HOOK = itemgetter(*(one.name for one in fields(HookRecord)))
_NODE = ("id", "resource_name", "type", "operation", "direction", "state", "phase", "waits",
         "requirers", "rules", "reason", "wake_at", "started_at", "ended_at")  # fmt: skip
_WORK = ("project", "stack_name", "resource_id", "replacement_id", "type", "operation", "direction",
         "phase", "definition", "rules", "passed", "operation_key", "row_type", "action", "status",
         "physical_id", "reference", "properties", "shown", "secret", "attributes", "metadata",
         "digest", "broken", "protected", "deletion_policy", "replaced_by", "inputs", "now",
         "patched", "path", "traversal_state", "restarts")  # fmt: skip


@dataclass(frozen=True, slots=True)
class InspectedNode:
    """work: as for a worker, without the inputs of the operation. waiting_for: names."""

    node: NodeRecord
    work: Work
    waiting_for: Sequence[str]


@dataclass(frozen=True, slots=True)
class Live:
    """A breakpoint on a running stack. pattern: path from the root stack."""

    id: UUID
    rule: Json
    created_by: str
    pattern: str


@dataclass(frozen=True, slots=True)
class More:
    """rules: hook rules that stay with the resource."""

    rules: Json
    required_by: Sequence[str]


async def read_inspected_nodes(conn: Connection, stack_id: UUID, name: str) -> list[InspectedNode]:
    return [_inspected(stack_id, row) for row in await conn.fetch(READ_NODES, stack_id, name)]


async def read_more(conn: Connection, stack_id: UUID, name: str) -> More:
    row = await conn.fetchrow(READ_MORE, stack_id, name)
    return More(**row) if row else More(None, ())


async def read_latest_hooks(
    conn: Connection, stack_id: UUID, name: str, limit: int
) -> list[HookRecord]:
    """Newest first."""
    rows = await conn.fetch(READ_HOOKS, stack_id, name, limit)
    return [HookRecord(*_HOOK(row)) for row in rows]


async def read_live(conn: Connection, stack_id: UUID) -> list[Live]:
    return [Live(**row) for row in await conn.fetch(READ_BREAKPOINTS, stack_id)]


def _inspected(stack_id: UUID, row: Any) -> InspectedNode:
    work = readable_work(
        Claim(stack_id, row["traversal"], row["id"], row["claim"]),
        name=row["resource_name"],
        started=row["started_at"] is not None,
        progress=None, attempts=0, dependents=None, data=None,
        **{name: row[name] for name in _WORK},
    )  # fmt: skip
    node = NodeRecord(stack_id=stack_id, **{name: row[name] for name in _NODE})
    return InspectedNode(node, work, row["waiting_for"])
