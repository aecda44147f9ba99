"""Endpoints of providers: the budgets of requests to them, and those that have failed.

All processes share them. Nothing is written about an endpoint that has no budget and works.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from engine.request_budget import BudgetState, Turn
from engine.store.connection import Connection
from engine.words import Json

#: Also deletes budgets that have not been used for a day.
ADD_BUDGETS = """
with unused as materialized (
    select endpoint from provider_budget where used_at < clock_timestamp() - interval '1 day'
     for update skip locked
), deleted as (
    delete from provider_budget b using unused u
     where b.endpoint = u.endpoint and b.endpoint <> all ($1)
)
insert into provider_budget (endpoint, state, used_at)
select endpoint, '{}', clock_timestamp() from unnest($1::text[]) e (endpoint) order by endpoint
on conflict (endpoint) do nothing
"""
LOCK_BUDGETS = """
with locked as materialized (
    select endpoint, state from provider_budget where endpoint = any ($1)
     order by endpoint for update
)
select endpoint, state, extract(epoch from clock_timestamp())::double precision as now from locked
"""
#: $1: [{endpoint, state}].
STORE_BUDGETS = """
update provider_budget b set state = d.state, used_at = clock_timestamp()
  from jsonb_to_recordset($1) d (endpoint text, state jsonb) where b.endpoint = d.endpoint
"""
#: $1 to $3: projects, types and endpoints. $4: for how long ended pauses count.
READ_FAILURES = """
select f.project, f.type, f.endpoint, f.failures, f.reason, f.public_reason, f.throttled,
       f.until - clock_timestamp() as remaining, f.until
  from unnest($1::text[], $2::text[], $3::text[]) e (project, type, endpoint)
 cross join lateral (select * from provider_failure
                      where project = e.project and type = e.type and endpoint = e.endpoint
                        and until > clock_timestamp() - $4::interval offset 0) f
"""
#: $1: [{project, type, endpoint, failures, seconds, reason, public_reason, throttled}]. Of
#: processes that fail at the same time, the first one counts, but a pause that the provider has
#: requested precedes others and shorter ones. Also deletes pauses that ended $2
#: ago, and of those that the projects had before all but the $3 that end last.
STORE_FAILURES = """
with old as materialized (
    select project, type, endpoint from provider_failure
     where until < clock_timestamp() - $2::interval order by until limit 1000
       for update skip locked
), forgotten as (
    delete from provider_failure f using old o
     where f.project = o.project and f.type = o.type and f.endpoint = o.endpoint
       and not exists (select from jsonb_to_recordset($1) d (project text, type text, endpoint text)
                        where d.project = o.project and d.type = o.type
                          and d.endpoint = o.endpoint)
), further as materialized (
    select f.project, f.type, f.endpoint
      from (select distinct project from jsonb_to_recordset($1) d (project text)) p
     cross join lateral (select project, type, endpoint from provider_failure
                          where project = p.project order by until desc offset $3) o
      join provider_failure f
        on f.project = o.project and f.type = o.type and f.endpoint = o.endpoint
       for update of f skip locked
), replaced as (
    delete from provider_failure f using further o
     where f.project = o.project and f.type = o.type and f.endpoint = o.endpoint
       and not exists (select from jsonb_to_recordset($1) d (project text, type text, endpoint text)
                        where d.project = o.project and d.type = o.type
                          and d.endpoint = o.endpoint)
)
insert into provider_failure as f (project, type, endpoint, failures, until, since, reason,
                                   public_reason, throttled)
select project, type, endpoint, failures, clock_timestamp() + make_interval(secs => seconds),
       clock_timestamp(), reason, public_reason, throttled
  from jsonb_to_recordset($1) d (project text, type text, endpoint text, failures integer,
                                 seconds double precision, reason text, public_reason text,
                                 throttled boolean)
 order by project, type, endpoint
on conflict (project, type, endpoint) do update
   set failures = excluded.failures, until = excluded.until, reason = excluded.reason,
       public_reason = excluded.public_reason, throttled = excluded.throttled,
       since = case when excluded.failures = 1 then excluded.since else f.since end
 where excluded.throttled and excluded.until > f.until
    or not (f.throttled and f.until > clock_timestamp())
       and (f.failures < excluded.failures or f.until < clock_timestamp())
"""
#: $1 to $4: projects, types and endpoints, and the ends of their pauses as they were read. A pause
#: that began later stays.
DELETE_FAILURES = """
delete from provider_failure f using unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[])
       e (project, type, endpoint, until)
 where f.project = e.project and f.type = e.type and f.endpoint = e.endpoint
   and f.until = e.until
"""
COUNT_PAUSED = """
select (select count(*) from provider_failure
         where until > clock_timestamp())::integer as endpoints,
       (select coalesce(sum(cardinality(deferred)), 0)
          from observation_schedule where deferred is not null)::integer as resources
"""
#: Of a stack and its nested stacks: what is not observed until when, and why: its endpoint has
#: failed, its request, or most requests of its stack. type, endpoint: empty if it was left out: the
#: budget of requests is used up, or `release` has a reason. What is observed now, or due, does not
#: wait.
READ_PAUSED = """
with recursive tree (id, project) as (
    select id, project from stack where id = $1
    union all
    select c.id, c.project from tree t
     cross join lateral (select id, project from stack
                          where parent_id = t.id and deleted_at is null offset 0) c
), unknown as materialized (
    select t.project, t.id as stack_id, r.type, b.endpoint, b.request,
           r.masked_properties is not null as has_secrets
      from tree t
     cross join lateral (select * from observation
                          where stack_id = t.id and state = 'unknown' and resolved_at is null
                         offset 0) b
     cross join lateral (select type, masked_properties from resource
                          where stack_id = t.id and id = b.resource_id
                            and updated_at = b.recorded_at and replaced_by is null offset 0) r
)
select f.type, f.endpoint, count(*)::integer as resources, f.until, f.reason, f.throttled,
       false as of_requests
  from unknown u
 cross join lateral (
       select type, endpoint, until, throttled,
              case when u.has_secrets then public_reason else reason end as reason
         from provider_failure
        where project = u.project and type = u.type and endpoint = u.endpoint
          and until > clock_timestamp() offset 0) f
 group by f.type, f.endpoint, f.until, f.reason, f.throttled
union all
(select type, endpoint, count(*)::integer, max(until), reason, false, true
   from unknown u
  cross join lateral (
        select until, case when public_reason = '' and not u.has_secrets then reason
                           else public_reason end as reason
          from failed_request
         where project = u.project and type = u.type and endpoint = u.endpoint
           and request in (u.request, u.stack_id::text) and until > clock_timestamp()
         order by until desc limit 1) f
  where not exists (select from provider_failure e
                     where e.project = u.project and e.type = u.type and e.endpoint = u.endpoint
                       and e.until > clock_timestamp())
  group by type, endpoint, reason order by count(*) desc, reason limit 100)
union all
select '', '', sum(cardinality(q.deferred))::integer, max(q.next_at), q.deferred_reason, false,
       false
  from tree t
 cross join lateral (select * from observation_schedule where stack_id = t.id offset 0) q
 where q.deferred is not null and q.claimed_at is null and q.next_at > clock_timestamp()
 group by q.deferred_reason
 order by 4, 1, 2
"""
#: Of a budget: its rate, and the requests that it has not refilled yet, of all projects.
_BUDGET = """(state ->> 'rate')::double precision as per_minute,
       case when state ? 'rate'
            then greatest(0, ceil(((state ->> 'paid')::double precision
                                   - extract(epoch from clock_timestamp()))
                                  * (state ->> 'rate')::double precision / 60))::integer
            end as used"""
#: The endpoints to which the observers send no more requests of a project now.
READ_PAUSED_ENDPOINTS = f"""
select endpoint, null as type, {_BUDGET},
       to_timestamp((state -> 'turns' -> $1::text ->> 0)::double precision) as until,
       '' as reason, false as throttled
  from provider_budget
 where state -> 'turns' ? $1 and state ? 'rate'
   and to_timestamp((state -> 'turns' -> $1::text ->> 0)::double precision) > clock_timestamp()
union all
select endpoint, type, null, null, until, public_reason, throttled from provider_failure
 where project = $1 and until > clock_timestamp()
 order by 1, 2 nulls first limit 1000
"""  # noqa: S608 - of constants
#: The endpoints to which the observers have sent requests of a project today, and their budgets.
READ_REQUESTED_ENDPOINTS = f"""
select endpoint, r.requests, {_BUDGET}
  from (select e.endpoint, sum(e.requests::bigint)::bigint as requests
          from observer_usage u
         cross join lateral jsonb_each_text(u.endpoints) e (endpoint, requests)
         where u.project = $1 and u.day = (clock_timestamp() at time zone 'UTC')::date
         group by e.endpoint) r
  left join provider_budget b using (endpoint)
 order by r.requests desc, endpoint limit 100
"""  # noqa: S608 - of constants
#: The project, the resource type, and the endpoint.
Endpoint = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class StoredFailure:
    """See `engine.work.observer.endpoint_back_off.KnownFailure`."""

    failures: int
    until: datetime
    remaining: timedelta
    reason: str
    public_reason: str
    throttled: bool

    @classmethod
    def from_row(cls, row: asyncpg.Record, *, throttled: bool) -> "StoredFailure":
        return cls(
            row["failures"], row["until"], row["remaining"], row["reason"],
            row["public_reason"], throttled,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class NewFailure:
    """Of an endpoint or a request. pause: until policies observe it again."""

    failures: int
    pause: timedelta
    reason: str
    public_reason: str
    throttled: bool

    def as_row(self) -> dict[str, Json]:
        """Without the key of what has failed."""
        return {
            "failures": self.failures,
            "seconds": self.pause.total_seconds(),
            "reason": self.reason,
            "public_reason": self.public_reason,
        }


@dataclass(frozen=True, slots=True)
class PausedObservation:
    """Resources of a stack that are not observed until a time. type, endpoint: that has failed;
    empty: they were left out, or the quota of observations is used up (of_quota). throttled: the
    endpoint has requested fewer requests. of_requests: single requests, or those of one stack, have
    failed, and not the endpoint; until: the last of their pauses ends."""

    type: str
    endpoint: str
    resources: int
    until: datetime
    reason: str
    throttled: bool = False
    of_quota: bool = False
    of_requests: bool = False

    @property
    def has_failed(self) -> bool:
        """Whether it is an endpoint that has failed, or a request to it."""
        return bool(self.type)


@dataclass(frozen=True, slots=True)
class PausedEndpoint:
    """An endpoint to which the observers send no more requests of a project until a time.
    per_minute, used: of its budget, which is used up; None: it failed, or requested fewer requests
    (throttled), for resources of the type."""

    endpoint: str
    type: str | None
    per_minute: float | None
    used: int | None
    until: datetime
    reason: str
    throttled: bool


@dataclass(frozen=True, slots=True)
class RequestedEndpoint:
    """requests: of a project, today. per_minute, used: of its budget; None: it has none."""

    endpoint: str
    requests: int
    per_minute: float | None
    used: int | None


@dataclass(frozen=True, slots=True)
class PausedCounts:
    """Endpoints that have failed, and resources whose observation waits for a budget."""

    endpoints: int
    resources: int


async def lock_budgets(
    conn: Connection, endpoints: Sequence[str]
) -> tuple[dict[str, BudgetState], float]:
    """The states of budgets, locked until the end of the transaction, and the time of the
    database in seconds. endpoints: different ones."""
    rows = await conn.fetch(LOCK_BUDGETS, endpoints)
    if len(rows) < len(endpoints):
        await conn.execute(ADD_BUDGETS, endpoints)
        rows = await conn.fetch(LOCK_BUDGETS, endpoints)
    states = {row["endpoint"]: _budget_state(row["state"]) for row in rows}
    return states, max((row["now"] for row in rows), default=0.0)


async def store_budgets(
    conn: Connection, states: Mapping[str, BudgetState], rates: Mapping[str, float]
) -> None:
    """rates: requests per minute, by endpoint."""
    rows = [
        {"endpoint": key, "state": _budget_row(state, rates[key])} for key, state in states.items()
    ]
    await conn.execute(STORE_BUDGETS, rows)


def _budget_state(row: Mapping[str, Json]) -> BudgetState:
    turns = {key: Turn(at, count) for key, (at, count) in row.get("turns", {}).items()}
    return BudgetState(row.get("paid", 0.0), turns, row.get("debts", {}))


def _budget_row(state: BudgetState, rate: float) -> Json:
    turns = {key: [turn.at, turn.count] for key, turn in state.turns.items()}
    return {"paid": state.paid, "turns": turns, "debts": {**state.debts}, "rate": rate}


async def read_failures(
    conn: Connection, endpoints: Sequence[Endpoint], remembered: timedelta
) -> dict[Endpoint, StoredFailure]:
    """The endpoints that have failed. remembered: for how long after its pause a failure counts."""
    rows = await conn.fetch(READ_FAILURES, *_columns(endpoints), remembered)
    return {
        (row["project"], row["type"], row["endpoint"]): StoredFailure.from_row(
            row, throttled=row["throttled"]
        )
        for row in rows
    }


async def store_failures(
    conn: Connection, failures: Mapping[Endpoint, NewFailure], remembered: timedelta, limit: int
) -> None:
    """remembered: for how long after its pause a failure counts. limit: of failures of a project,
    which new ones can exceed."""
    rows = [
        {
            "project": key[0],
            "type": key[1],
            "endpoint": key[2],
            "throttled": one.throttled,
            **one.as_row(),
        }
        for key, one in failures.items()
    ]
    await conn.execute(STORE_FAILURES, rows, remembered, limit)


async def delete_failures(conn: Connection, endpoints: Mapping[Endpoint, datetime]) -> None:
    """endpoints: with the ends of their pauses as they were read."""
    await conn.execute(DELETE_FAILURES, *_columns([*endpoints]), [*endpoints.values()])


def _columns(endpoints: Sequence[Endpoint]) -> tuple[list[str], list[str], list[str]]:
    return (
        [one[0] for one in endpoints],
        [one[1] for one in endpoints],
        [one[2] for one in endpoints],
    )


async def read_paused(conn: Connection, stack_id: UUID) -> list[PausedObservation]:
    """Of a stack and its nested stacks."""
    return [PausedObservation(**row) for row in await conn.fetch(READ_PAUSED, stack_id)]


async def read_paused_endpoints(conn: Connection, project: str) -> list[PausedEndpoint]:
    rows = await conn.fetch(READ_PAUSED_ENDPOINTS, project)
    return [PausedEndpoint(**row) for row in rows]


async def read_requested_endpoints(conn: Connection, project: str) -> list[RequestedEndpoint]:
    rows = await conn.fetch(READ_REQUESTED_ENDPOINTS, project)
    return [RequestedEndpoint(**row) for row in rows]


async def count_paused(conn: Connection) -> PausedCounts:
    row = await conn.fetchrow(COUNT_PAUSED)
    return PausedCounts(**row) if row else PausedCounts(0, 0)
