"""What projects use, by day in UTC.

No work writes here except observations, which no row delays: the rest is computed from changes and
hooks, for a whole day at once. A finished day is rolled up into one row for each project.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from engine.principal import Principal
from engine.store.connection import Connection

#: Key of the advisory lock for rolling up.
LOCK_KEY = 0x6865616467757361
#: Adds to the counts of a day that is not rolled up. $2: the slot. $6: {endpoint: requests}. A row
#: has the endpoints with the most requests.
ADD_OBSERVED = """
insert into observer_usage as u (project, day, slot, observations, provider_requests, drift_found,
                                 endpoints)
values ($1, (clock_timestamp() at time zone 'UTC')::date, $2, $3, $4, $5, $6)
on conflict (project, day, slot) do update
   set observations = u.observations + excluded.observations,
       provider_requests = u.provider_requests + excluded.provider_requests,
       drift_found = u.drift_found + excluded.drift_found,
       endpoints = case when excluded.endpoints = '{}' then u.endpoints else (
           select jsonb_object_agg(m.endpoint, m.requests)
             from (select e.endpoint, sum(e.requests::bigint) as requests
                     from (select * from jsonb_each_text(u.endpoints)
                           union all
                           select * from jsonb_each_text(excluded.endpoints))
                          e (endpoint, requests)
                    group by e.endpoint order by requests desc, e.endpoint limit 100) m) end
"""
#: Quotas, in the form of engine/store/projects/quotas.py. Observations of today: a project has few
#: rows.
OBSERVATIONS = """
select least(coalesce(sum(observations), 0), $2::integer)::bigint from observer_usage
 where project = $1 and day = (clock_timestamp() at time zone 'UTC')::date
"""
#: Updates that the observer has started within a day.
REPAIRS = """
select count(*)
  from (select stack_id from traversal
         where project = $1 and requested_by_id = 'headgate:observer' and parent_traversal is null
           and started_at > now() - interval '1 day' limit $2) t
"""
UNTIL_TOMORROW = """
select ((clock_timestamp() at time zone 'UTC')::date + 1)::timestamp at time zone 'UTC'
       - clock_timestamp()
"""
#: The number of resources of each project at this hour, unless it was counted.
SAMPLE = """
with hour as materialized (
    select date_trunc('hour', clock_timestamp(), 'UTC') as at
)
insert into resource_sample (project, at, resources)
select s.project, h.at, count(*)
  from hour h
  join stack s on s.deleted_at is null
  join resource r on r.stack_id = s.id and r.physical_id is not null
 where not exists (select from resource_sample o where o.at = h.at)
 group by s.project, h.at
on conflict (project, at) do nothing
"""
#: The day up to which usage is rolled up, and the last day that has ended so long ago that its
#: transactions have, too. $1: that time.
DAYS = """
select day as rolled_up, ((clock_timestamp() - $1::interval) at time zone 'UTC')::date - 1 as ended
  from usage_roll_up
"""
#: Of the days from $2 up to $3. $1: the project; null: all. $4: who requests repairs. Operations
#: and repairs count on the day on which their change ended, hooks on the day on which they did.
_computed = """
with change as materialized (
    select project, (ended_at at time zone 'UTC')::date as day, stack_id, number,
           requested_by_id = $4 and parent_traversal is null as repair
      from traversal
     where ended_at >= $2::date::timestamp at time zone 'UTC'
       and ended_at < ($3::date + 1)::timestamp at time zone 'UTC'
       and ($1::text is null or project = $1)
), part (project, day, observations, provider_requests, drift_found, repairs, operations, hooks,
         hook_seconds, resource_hours) as (
    select project, day, observations, provider_requests, drift_found, 0, 0, 0, 0, 0
      from observer_usage
     where day between $2 and $3 and ($1::text is null or project = $1)
    union all
    select c.project, c.day, 0, 0, 0, c.repair::integer, n.operations, 0, 0, 0
      from change c
     cross join lateral (
         select (select count(*) from node
                  where stack_id = c.stack_id and traversal = c.number
                    and state in ('done', 'failed') and operation not in ('begin', 'finish'))
              + (select count(*) from archived_graph g
                  cross join lateral unnest(g.states, g.operations) o (state, operation)
                  where g.stack_id = c.stack_id and g.traversal = c.number
                    and o.state in ('done', 'failed') and o.operation not in ('begin', 'finish'))
                as operations) n
    union all
    select project, (decided_at at time zone 'UTC')::date, 0, 0, 0, 0, 0, 1,
           extract(epoch from decided_at - opened_at)::bigint, 0
      from hook
     where state <> 'waiting' and mode <> 'notify'
       and decided_at >= $2::date::timestamp at time zone 'UTC'
       and decided_at < ($3::date + 1)::timestamp at time zone 'UTC'
       and ($1::text is null or project = $1)
    union all
    select project, (at at time zone 'UTC')::date, 0, 0, 0, 0, 0, 0, 0, resources
      from resource_sample
     where at >= $2::date::timestamp at time zone 'UTC'
       and at < ($3::date + 1)::timestamp at time zone 'UTC'
       and ($1::text is null or project = $1)
), used as (
    select project, day, sum(observations)::bigint as observations,
           sum(provider_requests)::bigint as provider_requests,
           sum(drift_found)::bigint as drift_found, sum(repairs)::bigint as repairs,
           sum(operations)::bigint as operations, sum(hooks)::bigint as hooks,
           sum(hook_seconds)::bigint as hook_seconds, sum(resource_hours)::bigint as resource_hours
      from part group by project, day
)
{then}"""
_select = "select * from used order by day, project"
#: Also deletes what it was computed from, and records an event for each day of a project.
_roll_up = """, stored as (
    insert into project_usage select * from used on conflict (project, day) do nothing
    returning *
), fed as (
    insert into usage_feed as f (project, number) select project, count(*) from stored
     group by project order by project
    on conflict (project) do update set number = f.number + excluded.number
    returning f.project, f.id, f.number
), numbered as (
    select f.id, f.project, s.day, to_jsonb(s) as data,
           f.number - count(*) over w + row_number() over (w order by s.day) as number
      from stored s join fed f on f.project = s.project
    window w as (partition by s.project)
), observed as (
    delete from observer_usage where day <= $3
), sampled as (
    delete from resource_sample where at < ($3::date + 1)::timestamp at time zone 'UTC'
), marked as (
    update usage_roll_up set day = $3
)
select count(*), record_numbered_events(
           array_agg(id), array_agg(project), array_agg(number),
           array_agg('headgate.usage.recorded'::text), array_agg(''::text), array_agg(data))
  from numbered
"""
COMPUTE = _computed.format(then=_select)
ROLL_UP = _computed.format(then=_roll_up)
#: What all projects have used today, of what no process counts. $1: who requests repairs.
TODAY = """
with today as materialized (
    select date_trunc('day', clock_timestamp(), 'UTC') as at
)
select (select count(*) from traversal
         where ended_at >= t.at and requested_by_id = $1 and parent_traversal is null) as repairs,
       (select coalesce(sum(extract(epoch from decided_at - opened_at)::bigint), 0)::bigint
          from hook
         where state <> 'waiting' and mode <> 'notify' and decided_at >= t.at) as hook_seconds,
       (select coalesce(sum(resources), 0)::bigint from resource_sample where at >= t.at)
           as resource_hours
  from today t
"""
#: Seconds. Metrics read it often.
TIMEOUT = 5.0
READ = "select * from project_usage where project = $1 and day between $2 and $3 order by day"


@dataclass(frozen=True, slots=True)
class DayUsage:
    """What a project used on a day."""

    project: str
    day: date
    observations: int
    provider_requests: int
    drift_found: int
    repairs: int
    operations: int
    hooks: int
    hook_seconds: int
    resource_hours: int


@dataclass(frozen=True, slots=True)
class UsageToday:
    """What all projects have used since midnight in UTC."""

    repairs: int
    hook_seconds: int
    resource_hours: int


@dataclass(frozen=True, slots=True)
class RollUpDays:
    """rolled_up: up to this day. ended: the last day that can be."""

    rolled_up: date
    ended: date


async def read_days(conn: Connection, settling: timedelta) -> RollUpDays:
    """settling: how long transactions of a day may take after its end."""
    row = await conn.fetchrow(DAYS, settling)
    if row is None:
        raise LookupError("the table usage_roll_up is empty")
    return RollUpDays(**row)


async def add_observed(
    conn: Connection,
    project: str,
    slot: int,
    *,
    observations: int,
    requests: Mapping[str, int],
    drift: int,
) -> None:
    """requests: by endpoint; "": to none that has a budget."""
    named = {key: count for key, count in requests.items() if key and count}
    total = sum(requests.values())
    await conn.execute(ADD_OBSERVED, project, slot, observations, total, drift, named)


async def until_tomorrow(conn: Connection) -> timedelta:
    """The time until the next day."""
    left: timedelta = await conn.fetchval(UNTIL_TOMORROW)
    return left


async def sample_resources(conn: Connection) -> None:
    """Count the resources of all projects, once in an hour."""
    await conn.execute(SAMPLE)


async def roll_up(conn: Connection, first: date, last: date, repairs_by: Principal) -> int:
    """Store the usage of all projects on these days; return the number of rows. The caller holds
    the lock."""
    count: int = await conn.fetchval(ROLL_UP, None, first, last, repairs_by.id)
    return count


async def read(conn: Connection, project: str, first: date, last: date) -> Sequence[DayUsage]:
    """The rolled-up usage of a project on these days; days without any are left out."""
    return [DayUsage(**row) for row in await conn.fetch(READ, project, first, last)]


async def read_today(conn: Connection, repairs_by: Principal) -> UsageToday:
    row = await conn.fetchrow(TODAY, repairs_by.id, timeout=TIMEOUT)
    return UsageToday(**row)  # type: ignore[arg-type]


async def compute(
    conn: Connection, project: str, first: date, last: date, repairs_by: Principal
) -> Sequence[DayUsage]:
    """As `read`, of days that are not rolled up."""
    rows = await conn.fetch(COMPUTE, project, first, last, repairs_by.id)
    return [DayUsage(**row) for row in rows]
