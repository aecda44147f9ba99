"""Queries for stacks, template versions, traversals, graphs and hooks."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from engine.store.connection import Connection
from engine.store.encryption import Scope, Sealed, reveal
from engine.store.records import (
    HookRecord,
    NodeRecord,
    PlannedRecord,
    StackRecord,
    TemplateRecord,
    TraversalRecord,
    VersionRecord,
)
from engine.store.secret_rows import readable_columns, reveal_row, show_row
from engine.words import Json

STACK_EXISTS = "select exists (select from stack where id = $1)"
FIND_STACK = """
select * from current_stack
 where project = $1 and (id = $2 or name = $3 and deleted_at is null)
 order by id = $2 desc limit 1
"""
READ_TEMPLATE = """
select s.project, t.version, t.template, t.environment, t.files, t.parameters, t.hidden,
       t.created_at, t.source
  from template t join stack s on s.id = t.stack_id
 where t.stack_id = $1 and t.version = $2
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
       extract(epoch from working_time(worked, working_since, clock_timestamp()))::double precision
           as worked
  from traversal where stack_id = $1 order by number desc limit $2
"""
READ_SHOWN = """
select t.shown, t.outputs,
       coalesce(t.template ->> 'heat_template_version', t.template ->> 'AWSTemplateFormatVersion',
                t.template ->> 'HeatTemplateFormatVersion', '') as written_in,
       s.project
  from template t join stack s on s.id = t.stack_id
 where t.stack_id = $1 and t.version = $2
"""
READ_PLANNED = """
select r.id, r.name, r.type, r.action, r.status, r.physical_id, r.reference, r.properties, r.shown,
       r.secret, r.attributes, r.data, r.metadata, r.broken, r.protected, r.deletion_policy,
       r.replaced_by, s.project
  from resource r join stack s on s.id = r.stack_id
 where r.stack_id = $1 and (r.id = any ($2::uuid[]) or r.name = any ($3) and r.replaced_by is null)
"""
READ_VALUES = """
select r.name, r.reference, r.attributes, r.secret, s.project
  from resource r join stack s on s.id = r.stack_id
 where r.stack_id = $1 and r.replaced_by is null and ($2::text[] is null or r.name = any ($2))
"""
READ_TRAVERSALS_OF = """
select t.stack_id, t.number, t.action, t.state, t.reason, t.digest, t.version, t.stale,
       t.requested_by, t.started_at, t.ended_at,
       extract(epoch from working_time(t.worked, t.working_since, clock_timestamp())
               )::double precision as worked
  from unnest($1::uuid[], $2::integer[]) k (stack_id, number)
  join traversal t on t.stack_id = k.stack_id and t.number = k.number
"""
READ_NODES = """
select n.stack_id, n.id, n.name as resource_name, n.type, n.operation, n.direction, n.state,
       n.phase, n.waits, n.requirers, n.rules, n.reason, n.wake_at, n.started_at, n.ended_at,
       case when n.awaits is not null then
           (select q.name from resource q where q.stack_id = n.stack_id and q.id = n.awaits)
            end as awaits,
       (select c.id from stack c
         where c.parent_id = n.stack_id and c.deleted_at is null
           and c.parent_resource in (n.resource_id, n.replacement_id)
         order by c.created_at desc limit 1) as inside
  from unnest($1::uuid[], $2::integer[]) k (stack_id, traversal)
  join node n on n.stack_id = k.stack_id and n.traversal = k.traversal
 order by n.stack_id, n.id
"""
READ_HOOKS = """
with recursive family as (
    select $3::uuid as id where $3 is not null
    union all
    select s.id from family f join stack s on s.parent_id = f.id
)
select h.id, h.project, h.stack_id, h.stack_name, h.root_stack_id, h.root_stack_name,
       h.traversal, h.node, h.resource_name, h.path, h.point, h.mode, h.state, h.opened_at,
       h.deadline, h.on_timeout, h.digest, h.decision, h.reason, h.decided_by, h.door,
       h.decided_at, h.notice, h.rule, h.requested_by, h.requested_by_id, h.assigned,
       h.escalated_at, h.reminders, h.approved_by
  from hook_details h
 where h.project = $1 and ($2::text is null or h.state = $2)
   and ($3::uuid is null or h.stack_id in (select id from family))
   and ($4::text is null or h.point like $4)
   and ($7::interval is null or h.opened_at <= clock_timestamp() - $7)
   and ($8::text[] is null
        or h.assigned = any ($8)
        or (h.rule -> 'answer_by' is null or h.rule -> 'answer_by' ?| $8
            or h.escalated_at is not null and h.rule #> '{escalate,to}' ?| $8)
           and not (h.rule ->> 'exclude' = 'requester'
                    and coalesce(nullif(h.requested_by_id, ''), 'name:' || h.requested_by)
                        = any ($9))
           and not ($9 && h.approved_keys))
   and ($10::boolean is null or coalesce((h.rule ->> 'dry')::boolean, false) = $10)
   and ($11::text is null or h.path ~ $11)
   and ($5::uuid is null
        or (h.opened_at, h.id) > (select opened_at, id from hook where id = $5 and project = $1))
 order by h.opened_at, h.id limit $6
"""
READ_HOOK = """
select h.id, h.project, h.stack_id, h.stack_name, h.root_stack_id, h.root_stack_name,
       h.traversal, h.node, h.resource_name, h.path, h.point, h.mode, h.state, h.opened_at,
       h.deadline, h.on_timeout, h.digest, h.decision, h.reason, h.decided_by, h.door,
       h.decided_at, h.notice, h.rule, h.requested_by, h.requested_by_id, h.assigned,
       h.escalated_at, h.reminders, h.approved_by
  from hook_details h
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
class HookFilter:
    """None: not asked for. older: open for longer than this. mine: what these, such as ``user:ada``
    and ``role:dba``, may answer and have not answered; me: the keys of their principal. point: a
    glob. stack_id: of it, and of stacks inside. path: a glob for each level: ``web/*``."""

    state: str | None = None
    stack_id: UUID | None = None
    point: str | None = None
    path: str | None = None
    older: timedelta | None = None
    mine: Sequence[str] | None = None
    me: Sequence[str] = ()
    dry: bool | None = None
    marker: UUID | None = None
    limit: int = 100


def _there(row: Any) -> Any:
    """A row that another row refers to; without it the database is broken."""
    if row is None:
        raise LookupError("a stack's version or traversal is missing from the database")
    return row


async def read_template(conn: Connection, stack_id: UUID, version: int) -> TemplateRecord:
    """Raises Sealed."""
    return _template(stack_id, _there(await conn.fetchrow(READ_TEMPLATE, stack_id, version)))


async def show_template(conn: Connection, stack_id: UUID, version: int) -> TemplateRecord:
    """As `read_template`, with the reason in place of each column that cannot be decrypted."""
    row = _there(await conn.fetchrow(READ_TEMPLATE, stack_id, version))
    return _template(stack_id, show_row(row, row["project"], stack_id, "template"))


def _template(stack_id: UUID, row: Any) -> TemplateRecord:
    revealed = reveal_row(row, row["project"], stack_id, "template")
    del revealed["project"]
    return TemplateRecord(**revealed)


async def read_versions(conn: Connection, stack_id: UUID) -> list[VersionRecord]:
    """Newest first."""
    return [VersionRecord(**row) for row in await conn.fetch(READ_VERSIONS, stack_id)]


async def read_traversals(conn: Connection, stack_id: UUID, limit: int) -> list[TraversalRecord]:
    """Newest first."""
    return [TraversalRecord(**row) for row in await conn.fetch(READ_TRAVERSALS, stack_id, limit)]


async def find_version(conn: Connection, stack_id: UUID, version: int) -> TemplateRecord | None:
    """Raises Sealed."""
    row = await conn.fetchrow(READ_TEMPLATE, stack_id, version)
    return _template(stack_id, row) if row else None


@dataclass(frozen=True, slots=True)
class Shown:
    """What people see of a version. outputs: as stored. written_in: the version of the language.
    undecryptable: why there are no outputs, or ""."""

    parameters: Json
    outputs: Json
    written_in: str
    undecryptable: str = ""


async def read_shown(conn: Connection, stack_id: UUID, version: int) -> Shown:
    row = _there(await conn.fetchrow(READ_SHOWN, stack_id, version))
    try:
        outputs = reveal(row["outputs"], Scope(row["project"], stack_id, "template.outputs"))
    except Sealed as error:
        return Shown(row["shown"], [], row["written_in"], str(error))
    return Shown(row["shown"], outputs, row["written_in"])


async def read_planned(
    conn: Connection, stack_id: UUID, ids: Sequence[UUID], names: Sequence[str]
) -> list[PlannedRecord]:
    """The rows that a plan is about, and those that its resources read. Raises Sealed."""
    rows = await conn.fetch(READ_PLANNED, stack_id, list(ids), list(names))
    return [_planned(stack_id, row) for row in rows]


def _planned(stack_id: UUID, row: Any) -> PlannedRecord:
    revealed = reveal_row(row, row["project"], stack_id, "resource")
    del revealed["project"]
    return PlannedRecord(**revealed)


@dataclass(frozen=True, slots=True)
class Values:
    """of: name -> [reference, attributes, secret] of the resources that stand for their names.
    undecryptable: those that cannot be decrypted, and why, by name."""

    of: dict[str, list[Json]]
    undecryptable: dict[str, str]


async def read_values(conn: Connection, stack_id: UUID, names: Sequence[str] | None) -> Values:
    values = Values({}, {})
    for row in await conn.fetch(READ_VALUES, stack_id, None if names is None else list(names)):
        readable, why = readable_columns(row, row["project"], stack_id, "resource")
        if why:
            values.undecryptable[row["name"]] = why
        else:
            values.of[row["name"]] = [
                readable[name] for name in ("reference", "attributes", "secret")
            ]
    return values


async def read_traversals_of(
    conn: Connection, traversals: Sequence[tuple[UUID, int]]
) -> dict[UUID, TraversalRecord]:
    """By stack; traversals: (stack, number)."""
    rows = await conn.fetch(READ_TRAVERSALS_OF, *map(list, zip(*traversals, strict=True)))
    return {row["stack_id"]: TraversalRecord(*tuple(row)[1:]) for row in rows}


async def read_nodes(conn: Connection, traversals: Sequence[tuple[UUID, int]]) -> list[NodeRecord]:
    """The nodes of traversals, (stack, number), those of a stack together."""
    rows = await conn.fetch(READ_NODES, *map(list, zip(*traversals, strict=True)))
    return [NodeRecord(**row) for row in rows]


def _like(glob: str | None) -> str | None:
    """A glob with stars as a LIKE pattern."""
    if glob is None:
        return None
    plain = glob.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return plain.replace("*", "%")


def _path_regex(glob: str | None) -> str | None:
    """A glob for paths as a regular expression: ``*`` and ``?`` stay within one level."""
    if glob is None:
        return None
    said = {"*": "[^/]*", "?": "[^/]"}
    return "".join(("^", *(said.get(one, re.escape(one)) for one in glob), "$"))


async def read_hooks(
    conn: Connection,
    project: str,
    wanted: HookFilter,
) -> list[HookRecord]:
    rows = await conn.fetch(
        READ_HOOKS, project, wanted.state, wanted.stack_id, _like(wanted.point), wanted.marker,
        wanted.limit, wanted.older, wanted.mine, wanted.me, wanted.dry, _path_regex(wanted.path),
    )  # fmt: skip
    return [HookRecord(**row) for row in rows]


async def read_hook(conn: Connection, hook_id: UUID, project: str | None) -> HookRecord | None:
    row = await conn.fetchrow(READ_HOOK, hook_id, project)
    return HookRecord(**row) if row else None


READ_TRAVERSAL_SPAN = """
select action, state, traceparent, ended_at is not null as over,
       extract(epoch from clock_timestamp() - started_at)::double precision as seconds
  from traversal where stack_id = $1 and number = $2
"""


@dataclass(frozen=True, slots=True)
class TraversalSpan:
    """A traversal for tracing. seconds: since its start."""

    action: str
    state: str
    traceparent: str | None
    over: bool
    seconds: float


async def read_traversal_span(
    conn: Connection, stack_id: UUID, number: int
) -> TraversalSpan | None:
    row = await conn.fetchrow(READ_TRAVERSAL_SPAN, stack_id, number)
    return TraversalSpan(**row) if row else None
