"""Observed states of resources, and the schedule of observations.

Only a resource that differs from its recorded state has a row, so an observation in which nothing
has changed writes nothing but the schedule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from engine.store.connection import Connection
from engine.store.encrypted_rows import decrypt_row
from engine.words import Json, ObservedState, ResourceAction

CHANNEL = "headgate_observe"

#: Of a stack and its nested stacks. A request during an observation makes it due again after it.
REQUEST = """
with recursive tree (id, project) as (
    select id, project from stack where id = $1 and deleted_at is null
    union all
    select c.id, c.project from tree t
     cross join lateral (select id, project from stack
                          where parent_id = t.id and deleted_at is null offset 0) c
), requested as (
    insert into observation_schedule as q (stack_id, project, next_at)
    select id, project, clock_timestamp() from tree order by id
    on conflict (stack_id) do update
       set requested_at = clock_timestamp(),
           next_at = case when q.claimed_at is null then clock_timestamp() else q.next_at end
    returning q.stack_id
)
select pg_notify('headgate_observe', '') from requested limit 1
"""
#: $1: how many. $2: the lease. $3: projects to leave out.
CLAIM = """
with due as materialized (
    select stack_id from observation_schedule
     where next_at <= clock_timestamp() and project <> all ($3)
     order by next_at limit $1 for update skip locked
), claimed as (
    update observation_schedule q
       set claim = q.claim + 1, claimed_at = clock_timestamp(), next_at = clock_timestamp() + $2
      from due d where q.stack_id = d.stack_id
    returning q.stack_id, q.claim, q.claimed_at, q.project
)
select c.stack_id, c.claim, c.claimed_at, c.project, s.name
  from claimed c left join stack s on s.id = c.stack_id and s.deleted_at is null
"""
RENEW = """
update observation_schedule set next_at = clock_timestamp() + $3
 where stack_id = $1 and claim = $2 returning stack_id
"""
#: $1: projects to leave out.
NEXT_DUE = """
select min(next_at) - clock_timestamp() from observation_schedule where project <> all ($1)
"""
#: $2: the ID after which the page starts. $3: its length. $4: bytes of large properties and
#: attributes after which it ends. Resources with an operation that runs or failed are left out,
#: because their recorded state is not certain.
READ_PAGE = """
with page as materialized (
    select r.id, r.name, r.type, r.physical_id, r.properties, r.data, r.attributes, r.updated_at,
           r.masked_properties is not null as has_secrets, r.bytes
      from resource r
     where r.stack_id = $1 and r.id > $2 and r.physical_id is not null and r.replaced_by is null
       and r.status = 'COMPLETE' and r.action not in ('INIT', 'DELETE', 'SUSPEND')
       and not exists (select from node n
                        where n.stack_id = r.stack_id and n.resource_id = r.id
                          and n.traversal = (select traversal from stack where id = $1)
                          and n.state in ('running', 'parked', 'ready')
                          and n.phase in ('execute', 'confirm'))
     order by r.id limit $3
), fitting as (
    select id, sum(bytes) over (order by id rows unbounded preceding) - bytes as bytes_before
      from page
)
select p.id, p.name, p.type, p.physical_id, p.properties, p.data, p.attributes, p.updated_at,
       p.has_secrets, clock_timestamp() as now
  from fitting f join page p on p.id = f.id
 where f.bytes_before < $4 order by p.id
"""
#: $2: observed resources: [{id, recorded_at, state, differences, reason}]; state null: as recorded.
#: A row is written only if the state differs from the one before, and only if the resource is the
#: same as when it was read.
WRITE = """
with observed as materialized (
    select o.* from jsonb_to_recordset($2) o (id uuid, recorded_at timestamptz, state text,
                                              differences jsonb, reason text)
      join resource r on r.stack_id = $1 and r.id = o.id and r.updated_at = o.recorded_at
), ended as (
    delete from observation b using observed o
     where b.stack_id = $1 and b.resource_id = o.id and o.state is null
), written as (
    insert into observation as b (stack_id, resource_id, state, differences, reason, recorded_at,
                                  since, observed_at)
    select $1, o.id, o.state, o.differences, o.reason, o.recorded_at, clock_timestamp(),
           clock_timestamp()
      from observed o where o.state is not null
    on conflict (stack_id, resource_id) do update
       set state = excluded.state, differences = excluded.differences, reason = excluded.reason,
           recorded_at = excluded.recorded_at, observed_at = excluded.observed_at,
           since = case when b.state = excluded.state and b.recorded_at = excluded.recorded_at
                        then b.since else excluded.since end
     where (b.state, b.differences, b.reason, b.recorded_at)
           is distinct from (excluded.state, excluded.differences, excluded.reason,
                             excluded.recorded_at)
)
select from stack where id = $1 and deleted_at is null
"""
#: Ends an observation unless another process has claimed it since. $3: observable resources.
#: $4: not observable. Also deletes the observations of resources that are gone.
FINISH = """
with finished as (
    update observation_schedule
       set next_at = case when requested_at > claimed_at then clock_timestamp() end,
           observed_at = claimed_at, claimed_at = null, observable = $3, not_observable = $4
     where stack_id = $1 and claim = $2
    returning stack_id
)
delete from observation b using finished f
 where b.stack_id = f.stack_id
   and not exists (select from resource r where r.stack_id = b.stack_id and r.id = b.resource_id)
"""
#: After an error. $3: until the next attempt.
POSTPONE = """
update observation_schedule set next_at = clock_timestamp() + $3, claimed_at = null
 where stack_id = $1 and claim = $2
"""
FORGET = "delete from observation_schedule where stack_id = $1 and claim = $2"
#: Of a stack and its nested stacks. due: an observation was requested and has not ended.
READ_SCHEDULE = """
with recursive tree (id) as (
    select id from stack where id = $1
    union all
    select c.id from tree t
     cross join lateral (select id from stack
                          where parent_id = t.id and deleted_at is null offset 0) c
)
select case when count(q.observed_at) = count(*) then min(q.observed_at) end as observed_at,
       coalesce(bool_or(q.next_at is not null), false) as due,
       coalesce(sum(q.observable), 0)::integer as observable,
       coalesce(sum(q.not_observable), 0)::integer as not_observable
  from tree t left join observation_schedule q on q.stack_id = t.id
"""
#: Of a stack and its nested stacks. Observations of an earlier state of a resource are left out.
READ_DRIFT = """
with recursive tree (id, name, path) as (
    select id, name, '' from stack where id = $1
    union all
    select c.id, c.name, c.path from tree t
     cross join lateral (select id, name, path from stack
                          where parent_id = t.id and deleted_at is null offset 0) c
)
select t.id as stack_id, t.name as stack_name, t.path, r.id as resource_id, r.name, r.type,
       r.physical_id, b.state, b.differences, b.reason, b.since, b.observed_at
  from tree t
 cross join lateral (select * from observation where stack_id = t.id offset 0) b
 cross join lateral (select * from resource q
                      where q.stack_id = t.id and q.id = b.resource_id
                        and q.updated_at = b.recorded_at and q.replaced_by is null offset 0) r
 order by t.path, r.name
"""
#: $2, $3: observed states, and the action that a resource in this state gets. The resources that
#: own the stacks of changed ones lose their digest, so that the update continues into these stacks.
MARK_DRIFTED = """
with recursive tree (id, parent_id, parent_resource) as (
    select id, null::uuid, null::uuid from stack where id = $1
    union all
    select c.id, c.parent_id, c.parent_resource from tree t
     cross join lateral (select id, parent_id, parent_resource from stack
                          where parent_id = t.id and deleted_at is null offset 0) c
), marked as (
    update resource r
       set action = m.action, status = 'FAILED', tainted = true,
           reason = concat_ws(': ', 'drift: ' || b.state, nullif(b.reason, '')),
           updated_at = clock_timestamp()
      from tree t
     cross join lateral (select * from observation where stack_id = t.id offset 0) b
      join unnest($2::text[], $3::text[]) m (state, action) on m.state = b.state
     where r.stack_id = b.stack_id and r.id = b.resource_id and r.updated_at = b.recorded_at
       and r.replaced_by is null
    returning r.stack_id
), owner (stack_id, id) as (
    select parent_id, parent_resource from tree
     where id in (select stack_id from marked) and parent_id is not null
    union
    select t.parent_id, t.parent_resource
      from owner o join tree t on t.id = o.stack_id and t.parent_id is not null
), reset as (
    update resource r set digest = '' from owner o where r.stack_id = o.stack_id and r.id = o.id
)
select count(*) from marked
"""

#: Before every ID.
FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class ClaimedStack:
    """A stack to observe. name: None: it was deleted."""

    stack_id: UUID
    claim: int
    claimed_at: datetime
    project: str
    name: str | None


@dataclass(frozen=True, slots=True)
class RecordedResource:
    """The recorded state of a resource, decrypted. now: the database's time."""

    id: UUID
    name: str
    type: str
    physical_id: str
    properties: Mapping[str, Json] | None
    data: Mapping[str, Json]
    attributes: Mapping[str, Json]
    updated_at: datetime
    has_secrets: bool
    now: datetime


@dataclass(frozen=True, slots=True)
class ObservedResource:
    """recorded_at: `RecordedResource.updated_at`. state: None: as recorded. differences:
    [{path, desired, observed}], without secrets."""

    id: UUID
    recorded_at: datetime
    state: str | None
    differences: Sequence[Mapping[str, Json]] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ObservationStatus:
    """Of a stack and its nested stacks. observed_at: start of the oldest of their last
    observations; None: one was never observed. due: a requested observation has not ended.
    observable, not_observable: number of resources."""

    observed_at: datetime | None
    due: bool
    observable: int
    not_observable: int


@dataclass(frozen=True, slots=True)
class DriftedResource:
    """A resource whose observed state differs from the recorded one. path: of its stack."""

    stack_id: UUID
    stack_name: str
    path: str
    resource_id: UUID
    name: str
    type: str
    physical_id: str
    state: str
    differences: Sequence[Mapping[str, Json]]
    reason: str
    since: datetime
    observed_at: datetime


async def request(conn: Connection, stack_id: UUID) -> None:
    """Make the observation of a stack and its nested stacks due."""
    await conn.execute(REQUEST, stack_id)


async def claim(
    conn: Connection, limit: int, lease: timedelta, except_projects: Sequence[str] = ()
) -> list[ClaimedStack]:
    rows = await conn.fetch(CLAIM, limit, lease, except_projects)
    return [ClaimedStack(**row) for row in rows]


async def renew(conn: Connection, claimed: ClaimedStack, lease: timedelta) -> bool:
    """Return whether the claim still holds."""
    row = await conn.fetchrow(RENEW, claimed.stack_id, claimed.claim, lease)
    return row is not None


async def until_next(conn: Connection, except_projects: Sequence[str] = ()) -> timedelta | None:
    """The time until the next observation is due; None: none is."""
    due: timedelta | None = await conn.fetchval(NEXT_DUE, except_projects)
    return due


async def read_page(
    conn: Connection, claimed: ClaimedStack, after: UUID, limit: int, max_bytes: int
) -> list[RecordedResource]:
    """The next resources by ID; empty: there are none. Raises DecryptionFailed."""
    rows = await conn.fetch(READ_PAGE, claimed.stack_id, after, limit, max_bytes)
    columns = ("properties", "data", "attributes")
    return [
        RecordedResource(**decrypt_row(row, claimed.project, claimed.stack_id, "resource", columns))
        for row in rows
    ]


async def write(conn: Connection, stack_id: UUID, observed: Sequence[ObservedResource]) -> None:
    rows = [
        {
            "id": one.id,
            "recorded_at": one.recorded_at.isoformat(),
            "state": one.state,
            "differences": one.differences,
            "reason": one.reason,
        }
        for one in observed
    ]
    await conn.execute(WRITE, stack_id, rows)


async def finish(
    conn: Connection, claimed: ClaimedStack, observable: int, not_observable: int
) -> None:
    await conn.execute(FINISH, claimed.stack_id, claimed.claim, observable, not_observable)


async def postpone(conn: Connection, claimed: ClaimedStack, by: timedelta) -> None:
    await conn.execute(POSTPONE, claimed.stack_id, claimed.claim, by)


async def forget(conn: Connection, claimed: ClaimedStack) -> None:
    """End the observation of a deleted stack."""
    await conn.execute(FORGET, claimed.stack_id, claimed.claim)


async def read_status(conn: Connection, stack_id: UUID) -> ObservationStatus:
    row = await conn.fetchrow(READ_SCHEDULE, stack_id)
    return ObservationStatus(**row) if row else ObservationStatus(None, False, 0, 0)


async def mark_drifted(
    conn: Connection, stack_id: UUID, repaired_as: Mapping[ObservedState, ResourceAction]
) -> int:
    """Mark the drifted resources of a stack and its nested stacks as failed, so that the next
    update repairs them; return their number. The caller has locked these stacks.

    repaired_as: the action that a resource gets, by observed state.
    """
    states, actions = list(repaired_as), list(repaired_as.values())
    marked: int = await conn.fetchval(MARK_DRIFTED, stack_id, states, actions)
    return marked


async def read_drift(conn: Connection, stack_id: UUID) -> list[DriftedResource]:
    return [DriftedResource(**row) for row in await conn.fetch(READ_DRIFT, stack_id)]
