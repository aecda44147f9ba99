"""Waiting hooks with `watch`, and the observations of what they show."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from engine.principal import Principal
from engine.store.connection import Connection
from engine.store.observer.observations import DRIFT_DIGEST
from engine.words import Json

#: Marks the hooks that are due, and returns their number and their resources, by stack.
#: $1: how often. $2: how many hooks.
MARK_DUE = """
with due as materialized (
    select stack_id, id, traversal, node from hook
     where state = 'waiting' and rule ->> 'watch' = 'true'
       and coalesce(watched_at, opened_at) <= clock_timestamp() - $1::interval
     order by coalesce(watched_at, opened_at) limit $2 for update skip locked
), marked as (
    update hook h set watched_at = clock_timestamp()
      from due d where h.stack_id = d.stack_id and h.id = d.id
)
select d.stack_id, count(distinct d.id) as hooks,
       array_agg(distinct r.id) filter (where r.id is not null) as resources
  from due d
  left join node n on n.stack_id = d.stack_id and n.traversal = d.traversal and n.id = d.node
  left join resource r on r.stack_id = n.stack_id
                      and r.id = resource_at_hook(n.phase, n.operation, n.resource_id,
                                              n.replacement_id)
                      and r.physical_id is not null and r.replaced_by is null
 group by d.stack_id
"""
#: $1: stacks. state: null: the resource is as recorded.
READ_WATCHED = f"""
select h.stack_id, h.id, r.id as resource_id, h.notification,
       case when b.watched_hook = h.id then b.watched_digest end as drift_digest, b.state,
       b.differences, {DRIFT_DIGEST} as found_digest, b.reason, b.since
  from unnest($1::uuid[]) s (id)
 cross join lateral (select * from hook
                      where stack_id = s.id and state = 'waiting'
                        and rule ->> 'watch' = 'true' offset 0) h
  join node n on n.stack_id = h.stack_id and n.traversal = h.traversal and n.id = h.node
  join resource r on r.stack_id = n.stack_id and r.replaced_by is null
                 and r.id = resource_at_hook(n.phase, n.operation, n.resource_id, n.replacement_id)
  left join observation b on b.stack_id = r.stack_id and b.resource_id = r.id
                         and b.recorded_at = r.updated_at and b.resolved_at is null
 order by h.stack_id, h.id
"""  # noqa: S608 - of constants
#: $1: [{stack_id, id, resource_id, previous, notification, digest, drift_digest, reason,
#: wake_after}]. $2, $3: who closes the previous hooks. The caller has locked the stacks.
REPLACE = """
with new as (
    select * from jsonb_to_recordset($1) as d (
           stack_id uuid, id uuid, resource_id uuid, previous uuid, notification jsonb,
           digest text, drift_digest text, reason text, wake_after double precision)
), closed as (
    update hook h
       set state = 'superseded', decided_at = clock_timestamp(), reason = n.reason,
           decided_by = $2, decided_by_id = $3
      from new n
     where h.stack_id = n.stack_id and h.id = n.previous
       and h.id = any (array(select previous from new))
       and case h.state when 'waiting' then true end
    returning h.*
), opened as (
    insert into hook (stack_id, id, project, traversal, node, resource_name, path, point, mode,
                      state, on_timeout, timeout, notification, digest, opened_at, deadline, rule,
                      requested_by, requested_by_id, wake_at, watched_at)
    select c.stack_id, n.id, c.project, c.traversal, c.node, c.resource_name, c.path, c.point,
           c.mode, 'waiting', c.on_timeout, c.timeout, n.notification, n.digest,
           clock_timestamp(), first_deadline(c.timeout, clock_timestamp()), c.rule,
           c.requested_by, c.requested_by_id,
           clock_timestamp() + make_interval(secs => n.wake_after), clock_timestamp()
      from closed c join new n on n.stack_id = c.stack_id and n.previous = c.id
    returning 1
), recorded as (
    update observation b set watched_hook = n.id, watched_digest = n.drift_digest
      from new n where b.stack_id = n.stack_id and b.resource_id = n.resource_id
)
select pg_notify('headgate_hook', '') from opened limit 1
"""
#: $1: [{stack_id, resource_id, id: of the hook, drift_digest}].
RECORD_DIGESTS = """
update observation b set watched_hook = d.id, watched_digest = d.drift_digest
  from jsonb_to_recordset($1) as d (stack_id uuid, resource_id uuid, id uuid, drift_digest text)
 where b.stack_id = d.stack_id and b.resource_id = d.resource_id
   and b.stack_id = any (array(select (x ->> 'stack_id')::uuid from jsonb_array_elements($1) x))
   and b.resource_id = any (array(select (x ->> 'resource_id')::uuid
                                    from jsonb_array_elements($1) x))
"""


@dataclass(frozen=True, slots=True)
class WatchedHook:
    """drift_digest: of the drift that it shows; None: it shows none, or it is not known. state: of
    the last observation of its resource; None: as recorded. found_digest: of its differences."""

    stack_id: UUID
    id: UUID
    resource_id: UUID
    notification: Json = field(repr=False)
    drift_digest: str | None
    state: str | None
    differences: Json
    found_digest: str | None
    reason: str | None
    since: datetime | None


@dataclass(frozen=True, slots=True)
class HookReplacement:
    """drift_digest: of the drift that it shows; None: it shows none. wake_after: until the first
    reminder; None: it has none."""

    stack_id: UUID
    id: UUID
    resource_id: UUID
    previous: UUID
    notification: Json = field(repr=False)
    digest: str
    drift_digest: str | None
    reason: str
    wake_after: timedelta | None


async def mark_due(
    conn: Connection, every: timedelta, limit: int
) -> tuple[int, list[tuple[UUID, list[UUID]]]]:
    """How many hooks have not been observed for `every`, and their stacks and resources; they count
    as observed from now on."""
    rows = await conn.fetch(MARK_DUE, every, limit)
    due = [(row["stack_id"], row["resources"]) for row in rows if row["resources"]]
    return sum(row["hooks"] for row in rows), due


async def read_watched(conn: Connection, stack_ids: Sequence[UUID]) -> list[WatchedHook]:
    """The waiting hooks of stacks that watch their resource, with its last observation. They are
    read after each observation, whatever caused it: time, a report or a request."""
    return [WatchedHook(**dict(row)) for row in await conn.fetch(READ_WATCHED, stack_ids)]


async def replace_hooks(
    conn: Connection, replacements: Sequence[HookReplacement], by: Principal
) -> None:
    """Close waiting hooks and open others in their place. The caller has locked the stacks."""
    rows: list[dict[str, Any]] = [
        {
            "stack_id": str(one.stack_id),
            "id": str(one.id),
            "resource_id": str(one.resource_id),
            "previous": str(one.previous),
            "notification": one.notification,
            "digest": one.digest,
            "drift_digest": one.drift_digest,
            "reason": one.reason,
            "wake_after": None if one.wake_after is None else one.wake_after.total_seconds(),
        }
        for one in replacements
    ]
    await conn.execute(REPLACE, rows, by.name, by.id)


async def record_watched_digests(
    conn: Connection, digests: Sequence[tuple[WatchedHook, str]]
) -> None:
    """Record the digests of the drift that waiting hooks show. The caller has locked the stacks."""
    rows = [
        {
            "stack_id": str(one.stack_id),
            "resource_id": str(one.resource_id),
            "id": str(one.id),
            "drift_digest": digest,
        }
        for one, digest in digests
    ]
    await conn.execute(RECORD_DIGESTS, rows)
