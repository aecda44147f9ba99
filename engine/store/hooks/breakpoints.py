"""Breakpoints on running stacks: they stay until they are removed or the stack is deleted."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from engine.store.connection import Connection
from engine.words import Json

READ = """
select id, pattern, rule, created_by, created_at from breakpoint
 where stack_id = $1 order by created_at, id
"""
#: Breakpoints of the stack, after those of its ancestors that can reach into nested stacks. path:
#: from the ancestor to the stack.
READ_LIVE = """
with recursive owner as (
    select id, parent_id, path as owner_path, path from stack where id = $1
    union all
    select p.id, p.parent_id, p.path, o.path from owner o join stack p on p.id = o.parent_id
)
select b.id, b.pattern, b.rule,
       case o.owner_path when '' then o.path
            else substr(o.path, length(o.owner_path) + 2) end as path
  from owner o
 cross join lateral (select * from breakpoint where stack_id = o.id offset 0) b
 where o.id = $1 or b.pattern like '%/%'
 order by length(o.owner_path), b.created_at, b.id
"""
INSERT = """
insert into breakpoint (stack_id, id, pattern, rule, created_by)
select $1, b.id, b.pattern, b.rule, $3
  from jsonb_to_recordset($2) as b (id uuid, pattern text, rule jsonb)
"""
#: Those of the root stack first. path: of the breakpoint's stack.
READ_OF_TREE = """
select b.id, b.pattern, b.rule, s.path
  from stack o
  join stack s on s.id = o.id or s.root_id = o.id
  join breakpoint b on b.stack_id = s.id
 where o.id = (select coalesce(root_id, id) from stack where id = $1)
 order by length(s.path), b.created_at, b.id
"""
READ_RESOURCE_PATHS = """
with recursive nested as (
    select id, length(path) as prefix, '' as path from stack where id = $1
    union all
    select c.id, i.prefix, substr(c.path, case i.prefix when 0 then 1 else i.prefix + 2 end)
      from nested i
     cross join lateral (
           select * from stack where parent_id = i.id and deleted_at is null offset 0) c
)
select distinct ltrim(i.path || '/' || r.name, '/') as path, r.type
  from nested i
 cross join lateral (select name, type from resource where stack_id = i.id offset 0) r
 order by 1
"""
DELETE = "delete from breakpoint where stack_id = $1 and id = any ($2::uuid[]) returning id"
#: template_rules: the rules of template and environment, which stay with the resource or the stack.
NODES = """
select n.stack_id, n.traversal, n.id, n.name, n.type, n.operation, n.direction, n.state, n.phase,
       n.rules, n.breakpoints_hit,
       n.started_at is not null as started,
       is_ended(n.state) as ended,
       case when r.id is null then s.rules else r.rules end as template_rules
  from unnest($1::uuid[], $2::integer[]) k (stack_id, traversal)
  join node n on n.stack_id = k.stack_id and n.traversal = k.traversal
  join stack s on s.id = n.stack_id
  left join resource r on r.stack_id = n.stack_id and r.id = n.resource_id
 where not (n.operation = 'finish' and n.direction = 'cleanup') -- a barrier has no hooks
 order by s.path, n.id
"""
#: given_back: of nodes that a worker has claimed. Their claim ends, and they are due.
SET_RULES = """
with changed as (
    update node n
       set rules = s.rules, state = s.state, phase = s.phase,
           claim = n.claim + s.given_back::integer,
           worker = case when not s.given_back then n.worker end,
           wake_at = case when s.given_back then clock_timestamp() else n.wake_at end
      from jsonb_to_recordset($1) as s (stack_id uuid, traversal integer, id integer, rules jsonb,
           state text, phase text, given_back boolean)
     where n.stack_id = s.stack_id and n.traversal = s.traversal and n.id = s.id
    returning n.stack_id, n.traversal, s.given_back
), due as (
    update traversal t set wake_at = clock_timestamp()
      from (select distinct stack_id, traversal from changed where given_back) g
     where t.stack_id = g.stack_id and t.number = g.traversal
    returning t.number
)
select pg_notify('headgate_work', '') from due limit 1
"""
ADD_FOR_NESTED_STACKS = """
update traversal t set nested_breakpoints = t.nested_breakpoints || s.nested_breakpoints
  from jsonb_to_recordset($1) as s (stack_id uuid, traversal integer, nested_breakpoints jsonb)
 where t.stack_id = s.stack_id and t.number = s.traversal
   and t.stack_id = any (array(select (x ->> 'stack_id')::uuid from jsonb_array_elements($1) x))
   and t.number = any (array(select (x ->> 'traversal')::integer from jsonb_array_elements($1) x))
"""


@dataclass(frozen=True, slots=True)
class BreakpointRecord:
    """pattern: a glob on resource names; "": the stack. rule: encoded (engine/hooks/rule.py)."""

    id: UUID
    pattern: str
    rule: Json
    created_by: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TreeBreakpoint:
    """A breakpoint of another stack of the tree. path: see the functions that return it."""

    id: UUID
    pattern: str
    rule: Json
    path: str


@dataclass(frozen=True, slots=True)
class BreakpointNode:
    """A node with its progress. started: its operation has started. template_rules: the rules of
    template and environment."""

    stack_id: UUID
    traversal: int
    id: int
    name: str
    type: str
    operation: str
    direction: str
    state: str
    phase: str
    rules: Json
    breakpoints_hit: list[str]
    started: bool
    ended: bool
    template_rules: Json


async def read_breakpoints(conn: Connection, stack_id: UUID) -> list[BreakpointRecord]:
    """In the order of their creation."""
    return [BreakpointRecord(**row) for row in await conn.fetch(READ, stack_id)]


async def read_live(conn: Connection, stack_id: UUID) -> list[TreeBreakpoint]:
    """Breakpoints of the stack and those of its ancestors that can reach into it, the weakest
    first. path: from the ancestor to the stack."""
    return [TreeBreakpoint(**row) for row in await conn.fetch(READ_LIVE, stack_id)]


async def insert_breakpoints(
    conn: Connection, stack_id: UUID, rows: Sequence[Json], by: str
) -> None:
    """rows: [{id, pattern, rule}]."""
    await conn.execute(INSERT, stack_id, rows, by)


async def delete_breakpoints(conn: Connection, stack_id: UUID, ids: Sequence[UUID]) -> list[UUID]:
    """Returns the IDs that existed."""
    return [row["id"] for row in await conn.fetch(DELETE, stack_id, ids)]


async def read_breakpoints_of_tree(conn: Connection, stack_id: UUID) -> list[TreeBreakpoint]:
    """Breakpoints of all stacks of a stack's tree, the weakest first. path: of the breakpoint's
    stack, from the root stack."""
    return [TreeBreakpoint(**row) for row in await conn.fetch(READ_OF_TREE, stack_id)]


async def read_resource_paths(conn: Connection, stack_id: UUID) -> list[tuple[str, str]]:
    """(path, type) of the resources of a stack and its nested stacks, in the order of the paths."""
    return [(row["path"], row["type"]) for row in await conn.fetch(READ_RESOURCE_PATHS, stack_id)]


async def read_breakpoint_nodes(
    conn: Connection, traversals: Sequence[tuple[UUID, int]]
) -> list[BreakpointNode]:
    """The nodes of traversals (stack, number)."""
    rows = await conn.fetch(NODES, *map(list, zip(*traversals, strict=True)))
    return [BreakpointNode(**row) for row in rows]


async def set_node_rules(conn: Connection, rows: Sequence[Json]) -> None:
    """rows: [{stack_id, traversal, id, rules, state, phase, given_back}] of nodes. given_back: the
    claim of its worker ends. The caller has locked the stacks."""
    if rows:
        await conn.execute(SET_RULES, rows)


async def add_for_nested_stacks(conn: Connection, rows: Sequence[Json]) -> None:
    """Add breakpoints for nested stacks that the traversals will start. rows: [{stack_id,
    traversal, nested_breakpoints}]; see `NestedContext`."""
    if rows:
        await conn.execute(ADD_FOR_NESTED_STACKS, rows)
