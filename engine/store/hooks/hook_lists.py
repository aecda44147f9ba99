"""Reads hooks without a lock: lists, and single hooks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Final
from uuid import UUID

from engine.store.connection import Connection
from engine.store.records import HookRecord
from engine.words import HookState

#: One page of the hooks in one state. The index of the project or of the stack has the order.
HOOK_PAGE = """cross join lateral (
    select h.stack_id, h.id, h.opened_at from hook h
     where %s and h.state = w.state
       and ($4::text is null or h.point like $4)
       and ($7::interval is null or h.opened_at <= clock_timestamp() - $7)
       and ($8::text[] is null
            or h.assigned = any ($8)
            or (h.rule -> 'answer_by' is null or h.rule -> 'answer_by' ?| $8
                or h.escalated_at is not null and h.rule #> '{escalate,to}' ?| $8)
               and not (coalesce(h.rule ->> 'exclude', '') = 'requester'
                        and (coalesce(nullif(h.requested_by_id, ''), 'name:' || h.requested_by)
                                 = any ($9)
                             or coalesce(h.rule -> 'excluded' ?| $9, false)))
               and not exists (
                   select from hook_details a
                    where a.stack_id = h.stack_id and a.id = h.id and a.approved_keys && $9))
       and ($10::boolean is null or coalesce((h.rule ->> 'dry')::boolean, false) = $10)
       and ($11::text is null or h.path ~ $11)
       and (h.opened_at, h.id) > (
           %s, coalesce($5::uuid, '00000000-0000-0000-0000-000000000000'))
       and %s
     order by h.opened_at, h.id limit $6) x
"""
#: The time of the last hook of the previous page, of the project.
AFTER_MARKER = """case when $5::uuid is null then '-infinity'
                else (select opened_at from hook where id = $5 and project = $1) end"""
OF_PAGE = """from page p
 cross join lateral (select * from hook_details k
                      where k.stack_id = p.stack_id and k.id = p.id offset 0) h
 order by p.opened_at, p.id
"""
READ_HOOKS = f"""
with page as (
    select x.* from unnest($2::text[]) w (state)
    {HOOK_PAGE % ("h.project = $1", AFTER_MARKER, "$3::uuid is null")}
     order by x.opened_at, x.id limit $6
)
select h.*
  {OF_PAGE}"""  # noqa: S608 - of constants
#: Of all projects: a page of each, found by the index, and the first hooks of these pages. $1: the
#: time of the last hook of the previous page.
READ_HOOKS_OF_ALL = f"""
with recursive project (name) as (
    (select project from hook order by project limit 1)
    union all
    select (select h.project from hook h where h.project > p.name order by h.project limit 1)
      from project p where p.name is not null
), page as (
    select x.* from project p cross join unnest($2::text[]) w (state)
    {HOOK_PAGE % ("h.project = p.name", "$1::timestamptz", "$3::uuid is null")}
     order by x.opened_at, x.id limit $6
)
select h.*
  {OF_PAGE}"""  # noqa: S608 - of constants
FIND_POSITION = "select opened_at, id from hook where id = $1"
#: "coalesce": the index of the project has the order, too, but all hooks of the project.
READ_STACK_HOOKS = f"""
with recursive tree as (
    select $3::uuid as id
    union all
    select s.id from tree t
     cross join lateral (select c.id from stack c where c.parent_id = t.id offset 0) s
), page as (
    select x.* from tree t cross join unnest($2::text[]) w (state)
    {HOOK_PAGE % ("coalesce(h.project, '') = $1", AFTER_MARKER, "h.stack_id = t.id")}
     order by x.opened_at, x.id limit $6
)
select h.*
  {OF_PAGE}"""  # noqa: S608 - of constants
READ_HOOK = """
select * from hook_details where id = $1 and ($2::text is null or project = $2)
"""
READ_LATEST = """
select * from hook_details where stack_id = $1 and resource_name = $2
 order by opened_at desc, id desc limit $3
"""
READ_HOOKS_BY_ID = """
select h.* from unnest($1::uuid[]) k (id)
 cross join lateral (select * from hook_details d where d.id = k.id offset 0) h
"""
#: The fields of a record in a row of `hook_details`, which has more columns.
_FIELDS = itemgetter(*(one.name for one in fields(HookRecord)))


#: In the order of lists, also among the hooks of other databases: time of the opening, and ID.
HookPosition = tuple[datetime, UUID]
#: Less than the position of every hook.
_FIRST: HookPosition = (datetime.min.replace(tzinfo=UTC), UUID(int=0))


@dataclass(frozen=True, slots=True)
class HookFilter:
    """None: does not filter. stack_id: the stack and its nested stacks. point: a glob. path: a
    glob for each level, as `_path_regex`: ``web/*``. older: minimum time since the hook opened.
    mine: principals such as ``user:ada`` and ``role:dba`` that may answer the hook and have not
    approved it; me: the keys of the same principal. marker: the last hook of the previous page;
    after: its position instead, in lists of all projects."""

    state: str | None = None
    stack_id: UUID | None = None
    point: str | None = None
    path: str | None = None
    older: timedelta | None = None
    mine: Sequence[str] | None = None
    me: Sequence[str] = ()
    dry: bool | None = None
    marker: UUID | None = None
    after: HookPosition | None = None
    limit: int = 100


async def read_hooks(conn: Connection, project: str, filters: HookFilter) -> list[HookRecord]:
    statement = READ_HOOKS if filters.stack_id is None else READ_STACK_HOOKS
    return await _read_page(conn, statement, project, filters.marker, filters)


async def read_hooks_of_all(conn: Connection, filters: HookFilter) -> list[HookRecord]:
    """Hooks of all projects, after the position `after`. The filter names no stack and no
    marker."""
    opened_at, hook_id = filters.after or _FIRST
    return await _read_page(conn, READ_HOOKS_OF_ALL, opened_at, hook_id, filters)


async def find_hook_position(conn: Connection, hook_id: UUID) -> HookPosition | None:
    """The position of a hook of any project; None: there is none with this ID."""
    row = await conn.fetchrow(FIND_POSITION, hook_id)
    return (row["opened_at"], row["id"]) if row else None


async def _read_page(
    conn: Connection,
    statement: str,
    where: str | datetime,
    after: UUID | None,
    filters: HookFilter,
) -> list[HookRecord]:
    """where: the project, or the time of the last hook of the previous page. after: this hook."""
    states = [filters.state] if filters.state else [one.value for one in HookState]
    rows = await conn.fetch(
        statement, where, states, filters.stack_id, _like(filters.point), after,
        filters.limit, filters.older, filters.mine, filters.me, filters.dry,
        _path_regex(filters.path),
    )  # fmt: skip
    return [HookRecord(*_FIELDS(row)) for row in rows]


async def read_hook(conn: Connection, hook_id: UUID, project: str | None) -> HookRecord | None:
    row = await conn.fetchrow(READ_HOOK, hook_id, project)
    return HookRecord(*_FIELDS(row)) if row else None


async def read_hooks_by_id(conn: Connection, hook_ids: Sequence[UUID]) -> dict[UUID, HookRecord]:
    rows = await conn.fetch(READ_HOOKS_BY_ID, hook_ids)
    return {row["id"]: HookRecord(*_FIELDS(row)) for row in rows}


async def read_latest_hooks(
    conn: Connection, stack_id: UUID, name: str, limit: int
) -> list[HookRecord]:
    """The newest hooks of a resource, newest first."""
    rows = await conn.fetch(READ_LATEST, stack_id, name, limit)
    return [HookRecord(*_FIELDS(row)) for row in rows]


def _like(glob: str | None) -> str | None:
    """A glob with stars as a LIKE pattern."""
    if glob is None:
        return None
    plain = glob.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return plain.replace("*", "%")


def _path_regex(glob: str | None) -> str | None:
    """A glob for paths as a regular expression: ``*`` and ``?`` stay within one level.

    A level also means the resources with `for_each` whose name without quotes and brackets, or
    without the key, it matches: ``web-a`` and ``web`` mean ``web["a"]``.
    """
    if glob is None:
        return None
    levels = ("".join(map(_part_regex, level)) + END_OF_LEVEL for level in glob.split("/"))
    return f"^{'/'.join(levels)}$"


def _part_regex(character: str) -> str:
    return PARTS.get(character) or re.escape(character)


#: Regular expressions for characters of a glob.
PARTS: Mapping[str, str] = {"*": "[^/]*", "?": "[^/]", "-": r'(?:-|\[")'}
#: The key of a resource with `for_each` as a whole, or its end if the glob has the key.
END_OF_LEVEL: Final = r'(?:\["[^/"]*"\]|"\])?'
