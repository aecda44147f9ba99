"""Lists of stacks, by page."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any
from uuid import UUID

from engine.store.connection import Connection
from engine.store.records import StackRecord
from engine.words import Json

#: The usual order has an index: a page takes as long wherever it is.
NEWEST = """
select s.* from current_stack s
 where s.project = $1 and (s.created_at, s.id) < ($2, $3) and stack_matches(s, $4)
 order by s.created_at desc, s.id desc limit $5
"""
OLDEST = """
select s.* from current_stack s
 where s.project = $1 and (s.created_at, s.id) > ($2, $3) and stack_matches(s, $4)
 order by s.created_at, s.id limit $5
"""
#: A few names, found one by one.
NAMED = """
select s.* from current_stack s
 where s.project = $1 and s.deleted_at is null and s.name = any ($2) and stack_matches(s, $3)
 order by s.created_at desc, s.id desc limit $4
"""
MARKED = "select created_at, id from stack where project = $1 and id = $2"
#: Any order, of one project or all: reads every stack.
SORTED = """
with sorted as (
    select s.*, array(
               select case u.key when 'stack_name' then s.name
                                 when 'stack_status' then s.action || '_' || s.status
                                 when 'updated_time'
                                 then coalesce(to_char(s.updated_at, 'YYYYMMDDHH24MISSUS'), '')
                                 else to_char(s.created_at, 'YYYYMMDDHH24MISSUS') end
                 from unnest($3::text[]) with ordinality u (key, nth) order by u.nth) as keys,
           stack_matches(s, $2) as wanted
      from current_stack s
     where $1::text is null or s.project = $1
)
select s.* from sorted s left join sorted m on m.id = $5
 where s.wanted
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
#: Before and after every stack.
_FIRST = (datetime.min.replace(tzinfo=UTC), UUID(int=0))
_LAST = (datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))


@dataclass(frozen=True, slots=True)
class StackFilter:
    """None: not asked for. marker: the last stack of the page before, whatever became of it since.

    tags: has all of them; tags_any: has one of them; not_tags: has not all of them; not_tags_any:
    has none of them. parents: is inside of one of them, which show_nested need not be asked for.
    Everything else: is one of them.
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
    limit: int | None = None
    counted: bool = False

    def wishes(self) -> dict[str, Json]:
        """For ``stack_matches``: those that are."""
        said = {name: getattr(self, name) for name in _WISHES}
        shown = {name: True for name in _SHOWN if getattr(self, name)}
        return {name: value for name, value in said.items() if value is not None} | shown


_WISHES = ("names", "ids", "statuses", "actions", "tags", "tags_any", "not_tags", "not_tags_any",
           "owners", "projects", "disable_rollback", "timeout_mins", "reasons",
           "parents")  # fmt: skip
_SHOWN = ("show_deleted", "show_nested")


@dataclass(frozen=True, slots=True)
class StackPage:
    """total: how many match, on all pages together; None: they were not counted."""

    stacks: Sequence[StackRecord]
    total: int | None


_FIELDS = itemgetter(*(one.name for one in fields(StackRecord)))


async def list_stacks(conn: Connection, project: str | None, wanted: StackFilter) -> StackPage:
    """project: None: of every project."""
    wishes = wanted.wishes()
    total = await conn.fetchval(TOTAL, project, wishes) if wanted.counted else None
    if project is not None and tuple(wanted.sort_keys) == BY_AGE:
        rows = await _by_age(conn, project, wanted, wishes)
    else:
        rows = await conn.fetch(
            SORTED, project, wishes, wanted.sort_keys, wanted.descending, wanted.marker,
            wanted.limit,
        )  # fmt: skip
    return StackPage([StackRecord(*_FIELDS(row)) for row in rows], total)


async def _by_age(
    conn: Connection, project: str, wanted: StackFilter, wishes: Json
) -> Sequence[Any]:
    if wanted.names and wanted.descending and not (wanted.marker or wanted.show_deleted):
        return await conn.fetch(NAMED, project, wanted.names, wishes, wanted.limit)
    begin = _LAST if wanted.descending else _FIRST
    if wanted.marker is not None:
        marked = await conn.fetchrow(MARKED, project, wanted.marker)
        if marked is None:
            return []
        begin = tuple(marked)
    statement = NEWEST if wanted.descending else OLDEST
    return await conn.fetch(statement, project, *begin, wishes, wanted.limit)
