"""Lists of stacks, a page at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.store.database import Connection
from engine.store.records import StackRecord

LIST_STACKS = """
with sorted as (
    select s.*, array(
               select case u.key when 'stack_name' then s.name
                                 when 'stack_status' then s.action || '_' || s.status
                                 when 'updated_time'
                                 then coalesce(to_char(s.updated_at, 'YYYYMMDDHH24MISSUS'), '')
                                 else to_char(s.created_at, 'YYYYMMDDHH24MISSUS') end
                 from unnest($8::text[]) with ordinality u (key, nth) order by u.nth) as keys
      from stack_now s
     where $1::text is null or s.project = $1
), wanted as (
    select * from sorted
     where ($2 or deleted_at is null)
       and ($3::text[] is null or name = any ($3)) and ($4::uuid[] is null or id = any ($4))
       and ($5::text[] is null or status = any ($5) or action || '_' || status = any ($5))
       and ($6::text[] is null or action = any ($6)) and ($7::text[] is null or tags @> $7)
       and ($12::text[] is null or tags && $12) and ($13::text[] is null or not tags @> $13)
       and ($14::text[] is null or not tags && $14) and ($15::text[] is null or owner = any ($15))
       and ($16::text[] is null or project = any ($16))
       and ($17::boolean[] is null or disable_rollback = any ($17))
       and ($18::integer[] is null or timeout_mins = any ($18))
       and ($19::text[] is null or reason = any ($19))
), page as (
    select w.*, row_number() over (
               order by case when not $9 then w.keys end, case when $9 then w.keys end desc,
                        case when not $9 then w.id end, case when $9 then w.id end desc) as place
      from wanted w
      left join sorted m on m.id = $10
     where $10::uuid is null
        or case when $9 then (w.keys, w.id) < (m.keys, m.id)
                else (w.keys, w.id) > (m.keys, m.id) end
     order by place limit $11
)
select t.total, p.* from (select count(*) as total from wanted) t left join page p on true
 order by p.place
"""


@dataclass(frozen=True, slots=True)
class StackFilter:
    """None: not asked for. marker: the last stack of the page before, whatever became of it since.

    tags: has all of them; tags_any: has one of them; not_tags: has not all of them; not_tags_any:
    has none of them. Everything else: is one of them.
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
    show_deleted: bool = False
    sort_keys: Sequence[str] = ("creation_time",)
    descending: bool = True
    marker: UUID | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class StackPage:
    """total: how many match, on all pages together."""

    stacks: Sequence[StackRecord]
    total: int


async def list_stacks(conn: Connection, project: str | None, wanted: StackFilter) -> StackPage:
    """project: None: of every project."""
    rows = await conn.fetch(
        LIST_STACKS, project, wanted.show_deleted, wanted.names, wanted.ids, wanted.statuses,
        wanted.actions, wanted.tags, wanted.sort_keys, wanted.descending, wanted.marker,
        wanted.limit, wanted.tags_any, wanted.not_tags, wanted.not_tags_any, wanted.owners,
        wanted.projects, wanted.disable_rollback, wanted.timeout_mins, wanted.reasons,
    )  # fmt: skip
    beside = ("total", "keys", "place")
    found = [
        StackRecord(**{name: value for name, value in row.items() if name not in beside})
        for row in rows
        if row["id"] is not None
    ]
    return StackPage(found, rows[0]["total"])
