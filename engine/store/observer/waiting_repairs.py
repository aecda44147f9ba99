"""Drift that an observation has found, and whose repair waits.

An observation records what it has found in the transaction that ends it, until its report, hook or
repair has followed: if the process ends before, the resources are observed again after a while.

One repair is started for all stacks of a tree that are observed at about the same time. So what a
batch has found waits until the other stacks that are due have been observed, but not for long. And
while a change of the root stack is under way, no repair starts: then the resources are observed
again when it has ended.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta
from uuid import UUID

from engine.store.connection import Connection
from engine.store.observer.found_drift import FoundDrift, split_found

#: $1: root stacks. $2: how long ago the observation may have begun. What was found before the last
#: change of the root stack began is left out: its policy may be another one since.
READ = """
select q.repair_root as root_id, q.stack_id, q.repair_resources as resources,
       q.repair_found_at as at
  from observation_schedule q
 cross join lateral (select changed_at from stack where id = q.repair_root offset 0) s
 where q.repair_root = any ($1) and q.repair_found_at > statement_timestamp() - $2::interval
   and q.repair_found_at > s.changed_at
"""
#: The root stacks of $1 with stacks in the tree that are being observed or due, also those that had
#: no budget and have it within $3. $2: only due by reports or requests, and only those whose
#: observation has not begun long ago: what was found by reports does not wait for slow services.
#: Without the root stacks for which drift has waited for $4, which was observed again meanwhile:
#: stacks of a tree can be due or observed at every moment.
READ_OBSERVED = """
select distinct t.root_id
  from stacks_of_roots(array(
       select r.id from unnest($1::uuid[]) r (id)
        where not exists (select from observation_schedule
                           where repair_root = r.id and repair_found_at is not null
                             and repair_waits_at < statement_timestamp() - $4::interval))) t
 cross join lateral (
       select from observation_schedule
        where stack_id = t.id
          and (claimed_at > case when $2::boolean then statement_timestamp() - interval '1 minute'
                                 else '-infinity' end
               or next_at <= case when $2::boolean then timestamptz '1970-01-02'
                                  when deferred is null then statement_timestamp()
                                  else statement_timestamp() + $3::interval end) offset 0) q
"""
#: $1, $2, $3, $4: root stacks, stacks, IDs of resources, and the start of the observation that has
#: found their drift; null: they must be observed again. What is found anew is as new as this
#: observation.
KEEP = """
with found as (
    select f.root_id, f.stack_id, array_agg(f.resource_id) as ids, min(f.at) as at
      from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[])
           f (root_id, stack_id, resource_id, at)
     group by f.root_id, f.stack_id
), locked as materialized (
    select stack_id from observation_schedule
     where stack_id = any (array(select stack_id from found)) order by stack_id
       for no key update
)
update observation_schedule q
   set repair_root = f.root_id,
       repair_resources = array(select unnest(q.repair_resources) union select unnest(f.ids)),
       repair_found_at = case when f.at is not null
                                   and (q.repair_root is null or q.repair_found_at is not null)
                              then case when q.repair_resources <@ f.ids then f.at
                                        else least(q.repair_found_at, f.at) end end,
       repair_waits_at = coalesce(q.repair_waits_at, clock_timestamp())
  from locked k join found f on f.stack_id = k.stack_id
 where q.stack_id = k.stack_id
"""
#: $1, $2, $3: stacks, IDs of resources, and the start of the observation that has found their
#: drift. What a later observation has found stays.
DROP = """
with done as (
    select d.stack_id, array_agg(d.resource_id) as ids, max(d.at) as at
      from unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) d (stack_id, resource_id, at)
     group by d.stack_id
), rest as materialized (
    select q.stack_id, array(select unnest(q.repair_resources) except select unnest(d.ids)) as ids
      from done d join observation_schedule q on q.stack_id = d.stack_id
     where q.stack_id = any ($1) and q.repair_root is not null
       and (q.repair_found_at is null or q.repair_found_at <= d.at)
     order by q.stack_id for no key update of q
)
update observation_schedule q
   set repair_root = case when r.ids <> '{}' then q.repair_root end,
       repair_resources = case when r.ids <> '{}' then r.ids end,
       repair_found_at = case when r.ids <> '{}' then q.repair_found_at end,
       repair_waits_at = case when r.ids <> '{}' then q.repair_waits_at end
  from rest r where q.stack_id = r.stack_id
"""
#: What must be observed again and can be repaired then, and what has waited for $1. It waits no
#: more. $2: how many stacks. What has waited for other stacks keeps the time since when: if the
#: observation, which begins then, finds it again, it has waited since.
TAKE_DUE = """
with due as materialized (
    select q.stack_id, q.repair_resources as resources
      from observation_schedule q
     cross join lateral (
           select traversal from stack
            where id = q.repair_root and deleted_at is null offset 0) s
     cross join lateral (
           select from traversal
            where stack_id = q.repair_root and number = s.traversal
              and state not in ('running', 'ending') offset 0) t
     where q.repair_root is not null
       and (q.repair_found_at is null
            or greatest(q.repair_waits_at, q.repair_found_at)
               < statement_timestamp() - $1::interval)
       and not exists (select from converge_request
                        where stack_id = q.repair_root and state in ('running', 'observing'))
     order by q.repair_root limit $2
       for no key update of q skip locked
)
update observation_schedule q
   set repair_root = null, repair_resources = null, repair_found_at = null,
       repair_waits_at = case when q.repair_found_at is not null then q.repair_waits_at end
  from due d where q.stack_id = d.stack_id
returning d.stack_id, d.resources
"""


async def read(conn: Connection, root_ids: Collection[UUID], newest: timedelta) -> list[FoundDrift]:
    """What waits in the trees of root stacks and need not be observed again. newest: how long ago
    its observation may have begun."""
    return [FoundDrift(**row) for row in await conn.fetch(READ, [*root_ids], newest)]


async def read_observed(
    conn: Connection,
    root_ids: Collection[UUID],
    *,
    reported: bool,
    soon: timedelta,
    longest: timedelta,
) -> set[UUID]:
    """The root stacks with stacks in the tree that are being observed or due, without those for
    which drift has waited for the longest time. reported: by reports or requests only, and not for
    long. soon: also those that get a budget within this time."""
    rows = await conn.fetch(READ_OBSERVED, [*root_ids], reported, soon, longest)
    return {row["root_id"] for row in rows}


async def keep(conn: Connection, found: Sequence[FoundDrift], *, again: bool) -> None:
    """Let the repair of drift wait. again: the resources must be observed again before."""
    stacks, ids, times = split_found(found)
    roots = [one.root_id for one in found for _ in one.resources]
    await conn.execute(KEEP, roots, stacks, ids, [None if again else one for one in times])


async def drop(conn: Connection, found: Sequence[FoundDrift]) -> None:
    """These resources wait no more, unless a later observation has found their drift again."""
    await conn.execute(DROP, *split_found(found))


async def take_due(
    conn: Connection, longest: timedelta, limit: int
) -> list[tuple[UUID, Sequence[UUID]]]:
    """Stacks and resources that must be observed again now, and that have waited for the longest
    time. They wait no more."""
    rows = await conn.fetch(TAKE_DUE, longest, limit)
    return [(row["stack_id"], row["resources"]) for row in rows]
