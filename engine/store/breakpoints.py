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
#: Of the stacks around one, those that reach into stacks inside, the outermost first. path: from
#: there to the stack.
READ_AROUND = """
with recursive around as (
    select p.id, p.parent_id, p.path as above, s.path
      from stack s join stack p on p.id = s.parent_id
     where s.id = $1
    union all
    select p.id, p.parent_id, p.path, a.path from around a join stack p on p.id = a.parent_id
)
select b.id, b.pattern, b.rule,
       case a.above when '' then a.path else substr(a.path, length(a.above) + 2) end as path
  from around a join breakpoint b on b.stack_id = a.id
 where b.pattern like '%/%'
 order by length(a.above), b.created_at, b.id
"""
INSERT = """
insert into breakpoint (stack_id, id, pattern, rule, created_by)
select $1, b.id, b.pattern, b.rule, $3
  from jsonb_to_recordset($2) as b (id uuid, pattern text, rule jsonb)
"""
#: Of all stacks of a tree, those of the root stack first. path: of the breakpoint's stack.
READ_IN_TREE = """
select b.id, b.pattern, b.rule, s.path
  from stack o
  join stack s on s.id = o.id or s.root_id = o.id
  join breakpoint b on b.stack_id = s.id
 where o.id = (select coalesce(root_id, id) from stack where id = $1)
 order by length(s.path), b.created_at, b.id
"""
#: What there is in a stack and in those inside. path: of the resource, from the stack.
READ_INSIDE = """
with recursive inside as (
    select id, length(path) as above, '' as path from stack where id = $1
    union all
    select c.id, i.above, substr(c.path, case i.above when 0 then 1 else i.above + 2 end)
      from inside i join stack c on c.parent_id = i.id and c.deleted_at is null
)
select distinct ltrim(i.path || '/' || r.name, '/') as path, r.type
  from inside i join resource r on r.stack_id = i.id
 order by 1
"""
DELETE = "delete from breakpoint where stack_id = $1 and id = any ($2::uuid[]) returning id"
#: Nodes with where they are; `started`: the operation has begun; `lasting`: what template and
#: environment said, as it stays with the resource or the stack.
NODES = """
select n.stack_id, n.traversal, n.id, n.name, n.type, n.operation, n.direction, n.state, n.phase,
       n.rules, n.passed,
       n.started_at is not null as started,
       n.state in ('done', 'failed', 'stopped', 'dropped') as ended,
       case when r.id is null then s.rules else r.rules end as lasting
  from unnest($1::uuid[], $2::integer[]) k (stack_id, traversal)
  join node n on n.stack_id = k.stack_id and n.traversal = k.traversal
  join stack s on s.id = n.stack_id
  left join resource r on r.stack_id = n.stack_id and r.id = n.resource_id
 order by s.path, n.id
"""
SET_RULES = """
update node n set rules = s.rules, phase = s.phase
  from jsonb_to_recordset($1) as s (stack_id uuid, traversal integer, id integer, rules jsonb,
       phase text)
 where n.stack_id = s.stack_id and n.traversal = s.traversal and n.id = s.id
"""
#: For stacks that the traversals have yet to begin.
ASK_INSIDE = """
update traversal t set asked = t.asked || s.asked
  from jsonb_to_recordset($1) as s (stack_id uuid, traversal integer, asked jsonb)
 where t.stack_id = s.stack_id and t.number = s.traversal
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
class AroundRecord:
    """A breakpoint of a stack around, with a path; see who reads it."""

    id: UUID
    pattern: str
    rule: Json
    path: str


@dataclass(frozen=True, slots=True)
class Reached:
    """A node, and how far it has come."""

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
    passed: list[str]
    started: bool
    ended: bool
    lasting: Json


async def read_breakpoints(conn: Connection, stack_id: UUID) -> list[BreakpointRecord]:
    """In the order in which they were set."""
    return [BreakpointRecord(**row) for row in await conn.fetch(READ, stack_id)]


async def read_breakpoints_around(conn: Connection, stack_id: UUID) -> list[AroundRecord]:
    """Those that may reach into a stack, the weakest first."""
    return [AroundRecord(**row) for row in await conn.fetch(READ_AROUND, stack_id)]


async def insert_breakpoints(
    conn: Connection, stack_id: UUID, said: Sequence[Json], by: str
) -> None:
    """said: [{id, pattern, rule}]."""
    await conn.execute(INSERT, stack_id, said, by)


async def delete_breakpoints(conn: Connection, stack_id: UUID, ids: Sequence[UUID]) -> list[UUID]:
    """Those that were there."""
    return [row["id"] for row in await conn.fetch(DELETE, stack_id, ids)]


async def read_breakpoints_of_tree(conn: Connection, stack_id: UUID) -> list[AroundRecord]:
    """Of all stacks of the tree that a stack is of, the weakest first. path: of the stack that one
    is set on, from the outermost."""
    return [AroundRecord(**row) for row in await conn.fetch(READ_IN_TREE, stack_id)]


async def read_inside(conn: Connection, stack_id: UUID) -> list[tuple[str, str]]:
    """(path, type) of a stack's resources and of those of stacks inside; each after the one whose
    stack it is in."""
    return [(row["path"], row["type"]) for row in await conn.fetch(READ_INSIDE, stack_id)]


async def reached(conn: Connection, traversals: Sequence[tuple[UUID, int]]) -> list[Reached]:
    """The nodes of traversals, (stack, number)."""
    rows = await conn.fetch(NODES, *map(list, zip(*traversals, strict=True)))
    return [Reached(**row) for row in rows]


async def set_rules(conn: Connection, said: Sequence[Json]) -> None:
    """said: [{stack_id, traversal, id, rules, phase}] of nodes."""
    if said:
        await conn.execute(SET_RULES, said)


async def ask_inside(conn: Connection, said: Sequence[Json]) -> None:
    """said: [{stack_id, traversal, asked}]; asked: see `traversal_start.Below`."""
    if said:
        await conn.execute(ASK_INSIDE, said)
