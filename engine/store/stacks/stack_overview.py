"""The root stacks of a project, each with a summary of its stack tree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from engine.store.connection import Connection
from engine.words import STATUS_OF, Status, TraversalState

#: An index finds the page; then the nested stacks of all its stacks are read. Nodes are those of
#: the change: of the traversals that the root stack's traversal started, on all levels.
READ = """
with recursive page as materialized (
    select s.id, s.name, s.tags, s.owner, s.created_at, s.changed_at, t.number, t.action, t.state,
           t.reason, t.requested_by, t.started_at, t.ended_at
      from stack s join traversal t on t.stack_id = s.id and t.number = s.traversal
     where s.project = $1 and s.parent_id is null and s.deleted_at is null
       and ($2::text is null or strpos(lower(s.name), $2) > 0 or strpos(s.id::text, $2) > 0)
       and ($3::text[] is null or s.tags @> $3) and not s.tags && $4
       and ($5::text[] is null or t.state = any ($5) or t.action || ' ' || t.state = any ($5))
       and (not $6 or exists (select from hook h where h.stack_id = s.id and h.state = 'waiting')
            or exists (select from stack x join hook h on h.stack_id = x.id and h.state = 'waiting'
                        where x.root_id = s.id))
       and ($7::uuid[] is null or s.id = any ($7))
       and ($8::timestamptz is null or (s.changed_at, s.id) < ($8, $9))
     order by s.changed_at desc, s.id desc limit $10
), tree as (
    select id as root, id from page
    union all
    select s.root_id, s.id from page p join stack s on s.root_id = p.id and s.deleted_at is null
), change as (
    select id as root, id, number from page
    union all
    select w.root, c.id, c.traversal
      from change w
      join stack c on c.parent_id = w.id and c.deleted_at is null
      join traversal t on t.stack_id = c.id and t.number = c.traversal
       and t.parent_traversal = w.number
), counted as (
    select w.root, n.state, count(*) as count
      from change w join node n on n.stack_id = w.id and n.traversal = w.number group by 1, 2
), nodes as (
    select root, jsonb_object_agg(state, count) as nodes from counted group by 1
), waiting as (
    select t.root, count(*) as count
      from tree t join hook h on h.stack_id = t.id and h.state = 'waiting' group by 1
), dry as (
    select w.root, count(*) as count
      from change w join hook h on h.stack_id = w.id and h.traversal = w.number
       and h.rule ->> 'dry' = 'true' group by 1
), resources as (
    select t.root, count(*) as count
      from tree t join resource r on r.stack_id = t.id and r.replaced_by is null group by 1
)
select p.*, coalesce(nodes.nodes, '{}') as nodes, coalesce(waiting.count, 0) as hooks_waiting,
       coalesce(dry.count, 0) as hooks_dry, coalesce(resources.count, 0) as resources
  from page p
  left join nodes on nodes.root = p.id
  left join waiting on waiting.root = p.id
  left join dry on dry.root = p.id
  left join resources on resources.root = p.id
 order by p.changed_at desc, p.id desc
"""
COUNT = """
with waiting as materialized (
    select distinct coalesce(s.root_id, s.id) as id
      from hook h join stack s on s.id = h.stack_id
     where h.project = $1 and h.state = 'waiting'
)
select t.state, count(*) as count, count(w.id) as waiting
  from stack s
  join traversal t on t.stack_id = s.id and t.number = s.traversal
  left join waiting w on w.id = s.id
 where s.project = $1 and s.parent_id is null and s.deleted_at is null
   and ($2::text is null or strpos(lower(s.name), $2) > 0 or strpos(s.id::text, $2) > 0)
   and ($3::text[] is null or s.tags @> $3) and not s.tags && $4
 group by t.state
"""
#: Status of a stack -> the states of its traversal.
STATES: Mapping[str, Sequence[str]] = MappingProxyType({
    status.value: tuple(state for state, other in STATUS_OF.items() if other is status)
    for status in Status
})  # fmt: skip


class PagePosition(NamedTuple):
    """The stack after which a page starts."""

    changed_at: datetime
    id: UUID


@dataclass(frozen=True, slots=True)
class OverviewFilter:
    """None: does not filter. search: a part of the name or ID. tags: all of them; hidden: none of
    them. statuses: (action or None, status). waiting: with waiting hooks. after: the end of the
    previous page. counted: also count the stacks by status."""

    search: str | None = None
    tags: Sequence[str] | None = None
    hidden: Sequence[str] = ()
    statuses: Sequence[tuple[str | None, str]] | None = None
    waiting: bool = False
    ids: Sequence[UUID] | None = None
    after: PagePosition | None = None
    limit: int = 50
    counted: bool = False

    @property
    def states(self) -> list[str] | None:
        """States of traversals, alone or after an action: ``UPDATE running``."""
        if self.statuses is None:
            return None
        return [
            f"{action} {state}" if action else state
            for action, status in self.statuses
            for state in STATES[status]
        ]


@dataclass(frozen=True, slots=True)
class OverviewStack:
    """A root stack with its current traversal. nodes: state -> number of nodes of the change in the
    tree. hooks_dry: number of dry-run hooks of the change. resources: number in the tree."""

    id: UUID
    name: str
    tags: list[str]
    owner: str
    created_at: datetime
    changed_at: datetime
    number: int
    action: str
    state: str
    reason: str
    requested_by: str
    started_at: datetime
    ended_at: datetime | None
    nodes: Mapping[str, int]
    hooks_waiting: int
    hooks_dry: int
    resources: int

    @property
    def status(self) -> str:
        return STATUS_OF[TraversalState(self.state)].value

    @property
    def position(self) -> PagePosition:
        return PagePosition(self.changed_at, self.id)


@dataclass(frozen=True, slots=True)
class StatusCounts:
    """statuses: status -> stacks. waiting: number of stacks with waiting hooks."""

    statuses: Mapping[str, int]
    waiting: int


@dataclass(frozen=True, slots=True)
class Overview:
    """more: there are stacks after the page. counts: None if not requested."""

    stacks: Sequence[OverviewStack] = field(default_factory=list)
    more: bool = False
    counts: StatusCounts | None = None


async def read_overview(conn: Connection, project: str, filters: OverviewFilter) -> Overview:
    """Newest change first. Counts apply search and tags only. Call it in a transaction with
    `replan`: the best index depends on the filter."""
    search = filters.search.lower() if filters.search else None
    common = (project, search, filters.tags, list(filters.hidden))
    rows = await conn.fetch(
        READ, *common, filters.states, filters.waiting, filters.ids,
        *(filters.after or (None, None)), filters.limit + 1,
    )  # fmt: skip
    counts = None
    if filters.counted:
        counts = _counts(await conn.fetch(COUNT, *common))
    lines = [OverviewStack(**row) for row in rows]
    return Overview(lines[: filters.limit], len(lines) > filters.limit, counts)


def _counts(rows: Sequence[Any]) -> StatusCounts:
    statuses = dict.fromkeys(STATES, 0)
    waiting = 0
    for row in rows:
        statuses[STATUS_OF[TraversalState(row["state"])].value] += row["count"]
        waiting += row["waiting"]
    return StatusCounts(statuses, waiting)
