"""Breakpoints on a live stack: kept until somebody removes them, or the stack is gone."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from engine.store.database import Connection
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
DELETE = "delete from breakpoint where stack_id = $1 and id = any ($2::uuid[]) returning id"
#: Nodes with where they are; `started`: the operation has begun; `lasting`: what template and
#: environment said, as it stays with the resource or the stack.
NODES = """
select n.id, n.name, n.type, n.operation, n.direction, n.state, n.phase, n.rules, n.passed,
       n.started_at is not null as started,
       n.state in ('done', 'failed', 'stopped', 'dropped') as ended,
       case when r.id is null then s.rules else r.rules end as lasting
  from node n
  join stack s on s.id = n.stack_id
  left join resource r on r.stack_id = n.stack_id and r.id = n.resource_id
 where n.stack_id = $1 and n.traversal = $2
 order by n.id
"""
SET_RULES = """
update node n set rules = s.rules, phase = s.phase
  from jsonb_to_recordset($3) as s (id integer, rules jsonb, phase text)
 where n.stack_id = $1 and n.traversal = $2 and n.id = s.id
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
    """A breakpoint of a stack around. path: from that one to the stack in question."""

    id: UUID
    pattern: str
    rule: Json
    path: str


@dataclass(frozen=True, slots=True)
class Reached:
    """A node, and how far it has come."""

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


async def reached(conn: Connection, stack_id: UUID, traversal: int) -> list[Reached]:
    return [Reached(**row) for row in await conn.fetch(NODES, stack_id, traversal)]


async def set_rules(conn: Connection, stack_id: UUID, traversal: int, said: Sequence[Json]) -> None:
    """said: [{id, rules, phase}] of nodes."""
    if said:
        await conn.execute(SET_RULES, stack_id, traversal, said)
