"""Figures for health checks and metrics. Partial indexes make the queries of waiting work cheap."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.store.connection import Connection
from engine.words import ObservedState

#: Seconds. Metrics read waiting work often.
TIMEOUT = 5.0

WAITING_WORK = """
select (select count(*) from hook where state = 'waiting') as hooks_waiting,
       (select extract(epoch from clock_timestamp() - min(opened_at))::double precision
          from hook where state = 'waiting') as oldest_hook,
       (select count(*) from hook
         where state = 'waiting' and hook_has_expired(deadline, clock_timestamp() - $1::interval))
           as hooks_overdue,
       (select count(*) from traversal t
         where t.wake_at < clock_timestamp() - $1::interval and exists (
               select from node n
                where n.stack_id = t.stack_id and n.traversal = t.number and n.state = 'ready'
                  and n.wake_at < clock_timestamp() - $1::interval)) as unclaimed,
       (select count(*) from traversal t
         where t.wake_at < clock_timestamp() - $1::interval and exists (
               select from node n
                where n.stack_id = t.stack_id and n.traversal = t.number and n.state = 'running'
                  and n.wake_at < clock_timestamp() - $1::interval)) as expired_leases,
       (select count(*) from traversal
         where state = 'ending' and wake_at < clock_timestamp() - $1::interval) as unended
"""
#: Resources with an observation that differs from their current record, by state; state null: all
#: observed resources.
OBSERVED_STATES = """
select b.state, count(*) as count
  from observation b
 cross join lateral (select from resource
                      where stack_id = b.stack_id and id = b.resource_id
                        and updated_at = b.recorded_at and replaced_by is null offset 0) r
 where b.resolved_at is null
 group by b.state
union all
select null, coalesce(sum(q.observable), 0)::bigint
  from observation_schedule q join stack s on s.id = q.stack_id and s.deleted_at is null
"""
SERVER_STATUS = """
select current_setting('server_version') as version,
       current_setting('server_version_num')::integer as number, clock_timestamp() as now,
       pg_is_in_recovery() as standby
"""
COUNT_ROWS = """
select (select count(*) from stack where deleted_at is null) as stacks,
       (select count(*) from stack where deleted_at is not null) as deleted_stacks,
       (select count(*) from resource) as resources,
       (select count(*) from traversal where state in ('running', 'ending')) as under_way,
       (select count(*) from hook where state = 'waiting') as hooks_waiting,
       (select count(*) from decision) as decisions, (select count(*) from event) as events,
       (select count(*) from subscription) as subscriptions,
       (select count(*) from delivery where state = 'pending') as deliveries_pending
"""
NEWEST_EVENT_AGE = """
select extract(epoch from clock_timestamp() - max(created_at))::double precision from outbox
"""
PING = "select 1"
NOW = "select clock_timestamp()"


@dataclass(frozen=True, slots=True)
class WaitingWork:
    """oldest_hook: seconds since the oldest waiting hook opened; None: no hook waits.

    Numbers of traversals with stuck work: unclaimed: ready nodes that no worker claims;
    expired_leases: nodes whose worker has died and that no other worker claims; unended: all nodes
    have ended, but no worker ends the traversal.
    """

    hooks_waiting: int
    oldest_hook: float | None
    hooks_overdue: int
    unclaimed: int
    expired_leases: int
    unended: int


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """number: PostgreSQL's version number, such as 150012. standby: the server is read-only."""

    version: str
    number: int
    now: datetime
    standby: bool


async def read_waiting_work(conn: Connection, patience: timedelta) -> WaitingWork:
    """patience: how long due work may wait before it counts as stuck."""
    row = await conn.fetchrow(WAITING_WORK, patience, timeout=TIMEOUT)
    return WaitingWork(**row)  # type: ignore[arg-type]


async def count_observed_states(conn: Connection) -> dict[ObservedState, int]:
    """The number of resources in each state that they were observed in last."""
    rows = await conn.fetch(OBSERVED_STATES, timeout=TIMEOUT)
    counts = {row["state"]: int(row["count"]) for row in rows}
    differing = {state: counts.get(state, 0) for state in ObservedState}
    present = max(counts[None] - sum(differing.values()), 0)
    return {**differing, ObservedState.PRESENT: present}


async def read_server_status(conn: Connection) -> ServerStatus:
    row = await conn.fetchrow(SERVER_STATUS, timeout=TIMEOUT)
    return ServerStatus(**row)  # type: ignore[arg-type]


async def count_rows(conn: Connection) -> dict[str, int]:
    row = await conn.fetchrow(COUNT_ROWS)
    return dict(row or {})


async def newest_event_age(conn: Connection) -> float | None:
    """Seconds since the newest commit with events; None: there are no events."""
    age: float | None = await conn.fetchval(NEWEST_EVENT_AGE)
    return age


async def ping(conn: Connection) -> bool:
    return bool(await conn.fetchval(PING))


async def read_now(conn: Connection) -> datetime:
    """The time of the database, which all processes use."""
    now: datetime = await conn.fetchval(NOW)
    return now
