"""Finds and lists stacks."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any
from uuid import UUID

from engine.errors import Finding, Invalid
from engine.store.connection import Connection
from engine.store.records import StackRecord
from engine.words import Json

STACK_EXISTS = "select exists (select from stack where id = $1)"
FIND_STACK = """
select * from current_stack_and_region
 where project = $1 and (id = $2 or name = $3 and deleted_at is null)
 order by id = $2 desc limit 1
"""
#: A page in an order that an index has (routines/3_stack_page.sql).
PAGE = "select * from stack_page($1, $2, $3, $4, $5, $6, $7, $8)"
# Of all projects, found by an index: the first stack of each, and a page of those projects whose
# first stacks come first. The stacks of the page are of these projects.
_PROJECTS = """recursive project (name) as (
    (select project from stack order by project limit 1)
    union all
    select (select s.project from stack s where s.project > p.name order by s.project limit 1)
      from project p where p.name is not null
)"""
_NEWEST = """current_stack s
        where s.project = p.name and (s.created_at, s.id) < ($1, $2) and stack_matches(s, $3)
        order by s.created_at desc, s.id desc"""
_OLDEST = """current_stack s
        where s.project = p.name and (s.created_at, s.id) > ($1, $2) and stack_matches(s, $3)
        order by s.created_at, s.id"""
NEWEST_OF_ALL = f"""
with {_PROJECTS}, first as materialized (
    select p.name from project p
     cross join lateral (select s.* from {_NEWEST} limit 1) s
     order by s.created_at desc, s.id desc limit $4
)
select s.* from first p
 cross join lateral (select s.* from {_NEWEST} limit $4) s
 order by s.created_at desc, s.id desc limit $4
"""  # noqa: S608 - of constants
OLDEST_OF_ALL = f"""
with {_PROJECTS}, first as materialized (
    select p.name from project p
     cross join lateral (select s.* from {_OLDEST} limit 1) s
     order by s.created_at, s.id limit $4
)
select s.* from first p
 cross join lateral (select s.* from {_OLDEST} limit $4) s
 order by s.created_at, s.id limit $4
"""  # noqa: S608 - of constants
READ_NAME = "select name from stack where project = $1 and id = $2"
#: In any project.
FIND_POSITION = "select created_at, id from stack where id = $1"
READ_POSITION = """
select created_at, id from stack where ($1::text is null or project = $1) and id = $2
"""
#: Stacks that `SORTED` reads, up to a limit.
COUNT_SORTED = """
select count(*) from (select from stack where project = $1 order by created_at, id limit $2) s
"""
COUNT_SORTED_OF_ALL = "select count(*) from (select from stack order by id limit $1) s"
#: More stacks than this are not sorted.
MAX_SORTED_STACKS = 10_000
#: Any order, in one project or in all. It reads every stack.
SORTED = """
with sorted as (
    select s.*, array(
               select case u.key when 'stack_name' then s.name
                                 when 'stack_status' then s.action || '_' || s.status
                                 when 'updated_time'
                                 then coalesce(to_char(s.updated_at, 'YYYYMMDDHH24MISSUS'), '')
                                 else to_char(s.created_at, 'YYYYMMDDHH24MISSUS') end
                 from unnest($3::text[]) with ordinality u (key, nth) order by u.nth) as keys,
           stack_matches(s, $2) as matches
      from current_stack s
     where $1::text is null or s.project = $1
)
select s.* from sorted s left join sorted m on m.id = $5
 where s.matches
   and ($5::uuid is null or case when $4 then (s.keys, s.id) < (m.keys, m.id)
                                 else (s.keys, s.id) > (m.keys, m.id) end)
 order by case when not $4 then s.keys end, case when $4 then s.keys end desc,
          case when not $4 then s.id end, case when $4 then s.id end desc
 limit $6
"""
TOTAL = """
select count(*) from current_stack s
 where ($1::text is null or s.project = $1) and stack_matches(s, $2)
"""
BY_AGE = ("creation_time",)
NAME = ("stack_name",)
#: Less and greater than the position of every stack.
_FIRST = (datetime.min.replace(tzinfo=UTC), UUID(int=0))
_LAST = (datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))


#: In the order by age, also among the stacks of other databases: time of the creation, and ID.
StackPosition = tuple[datetime, UUID]


@dataclass(frozen=True, slots=True)
class StackFilter:
    """None: does not filter. A field with values selects stacks that have one of the values.

    tags: all of them; tags_any: at least one; not_tags: not all; not_tags_any: none. parents:
    nested stacks of these, also without show_nested. marker: the last stack of the previous page,
    also if it was deleted; after: its position instead, for the order by age.
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
    projects: Sequence[str] | None = None
    disable_rollback: Sequence[bool] | None = None
    timeout_mins: Sequence[int] | None = None
    reasons: Sequence[str] | None = None
    parents: Sequence[UUID] | None = None
    show_deleted: bool = False
    show_nested: bool = False
    sort_keys: Sequence[str] = ("creation_time",)
    descending: bool = True
    marker: UUID | None = None
    after: StackPosition | None = None
    limit: int | None = None
    counted: bool = False

    def as_document(self) -> dict[str, Json]:
        """The filter for the function `stack_matches`."""
        values = {name: getattr(self, name) for name in _VALUES}
        flags = {name: True for name in _FLAGS if getattr(self, name)}
        return {name: value for name, value in values.items() if value is not None} | flags


_VALUES = ("names", "ids", "statuses", "actions", "tags", "tags_any", "not_tags", "not_tags_any",
           "owners", "projects", "disable_rollback", "timeout_mins", "reasons",
           "parents")  # fmt: skip
_FLAGS = ("show_deleted", "show_nested")


@dataclass(frozen=True, slots=True)
class StackPage:
    """total: number of stacks on all pages; None: not counted."""

    stacks: Sequence[StackRecord]
    total: int | None


#: Of the view current_stack, which processes of the previous release read, too.
_FIELDS = itemgetter(*(one.name for one in fields(StackRecord) if one.name != "region"))


async def list_stacks(conn: Connection, project: str | None, filters: StackFilter) -> StackPage:
    """project: None: all projects."""
    document = filters.as_document()
    total = await conn.fetchval(TOTAL, project, document) if filters.counted else None
    if tuple(filters.sort_keys) == BY_AGE:
        rows = await _by_age(conn, project, filters, document)
    elif project is not None and tuple(filters.sort_keys) == NAME and not filters.show_deleted:
        rows = await _by_name(conn, project, filters, document)
    else:
        rows = await _list_sorted(conn, project, filters, document)
    return StackPage([StackRecord(*_FIELDS(row)) for row in rows], total)


async def find_position(conn: Connection, stack_id: UUID) -> StackPosition | None:
    """The position of a stack, also of a deleted one; None: there is none with this ID."""
    row = await conn.fetchrow(FIND_POSITION, stack_id)
    return (row["created_at"], row["id"]) if row else None


async def _list_sorted(
    conn: Connection, project: str | None, filters: StackFilter, document: Json
) -> Sequence[Any]:
    """Raises Invalid if there are too many stacks for an order without an index."""
    of_all = project is None
    count = (COUNT_SORTED_OF_ALL,) if of_all else (COUNT_SORTED, project)
    if await conn.fetchval(*count, MAX_SORTED_STACKS + 1) > MAX_SORTED_STACKS:
        indexed = BY_AGE if of_all or filters.show_deleted else (*BY_AGE, *NAME)
        keys = ", ".join(filters.sort_keys)
        reason = f"more than {MAX_SORTED_STACKS:,} stacks cannot be sorted by {keys}"
        raise Invalid([Finding("sort_keys", reason, f"Sort by {' or '.join(indexed)}.", "Invalid")])
    return await conn.fetch(
        SORTED, project, document, filters.sort_keys, filters.descending, filters.marker,
        filters.limit,
    )  # fmt: skip


async def _by_age(
    conn: Connection, project: str | None, filters: StackFilter, document: Json
) -> Sequence[Any]:
    begin = _LAST if filters.descending else _FIRST
    if filters.after is not None:
        begin = filters.after
    elif filters.marker is not None:
        position = await conn.fetchrow(READ_POSITION, project, filters.marker)
        if position is None:
            return []
        begin = tuple(position)
    if project is None:
        statement = NEWEST_OF_ALL if filters.descending else OLDEST_OF_ALL
        return await conn.fetch(statement, *begin, document, filters.limit)
    order, names = "newest" if filters.descending else "oldest", None
    if filters.names and not filters.show_deleted:
        order, names = f"named, {order}", filters.names
    return await conn.fetch(PAGE, order, project, *begin, names, None, document, filters.limit)


async def _by_name(
    conn: Connection, project: str, filters: StackFilter, document: Json
) -> Sequence[Any]:
    after = None if filters.descending else ""
    if filters.marker is not None:
        after = await conn.fetchval(READ_NAME, project, filters.marker)
        if after is None:
            return []
    order = "name descending" if filters.descending else "name"
    return await conn.fetch(PAGE, order, project, None, None, None, after, document, filters.limit)


async def stack_exists(conn: Connection, stack_id: UUID) -> bool:
    """Whether there is such a stack, also a deleted one."""
    found: bool = await conn.fetchval(STACK_EXISTS, stack_id)
    return found


async def find_stack(
    conn: Connection, project: str, stack_id: UUID | None, name: str
) -> StackRecord | None:
    """By ID, also a deleted stack; otherwise by name."""
    row = await conn.fetchrow(FIND_STACK, project, stack_id, name)
    return replace(StackRecord(*_FIELDS(row)), region=row["region"]) if row else None
