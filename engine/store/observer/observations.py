"""Observed states of resources, and the recorded states that they are compared with.

Only a resource that differs from its recorded state has a row, so an observation in which nothing
has changed writes nothing but the schedule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from engine.store.connection import Connection
from engine.store.encryption.encrypted_rows import decrypt_row
from engine.store.encryption.secret_values import DecryptionFailed
from engine.words import FoundBy, Json, ObservedState

#: $1, $2: stacks, and the ID after which the page starts in each; of reported changes, stacks and
#: IDs. $3: its length. $4: bytes of large properties and attributes after which it ends. Sorted by
#: stack and ID, so that only the last stack can have more. Resources with an operation under way
#: are left out, and those that are suspended, deleted or not adopted. applied: see
#: `engine.plan.drift.is_applied`.
_read_page = """
with page as materialized (
    select r.stack_id, r.id, r.bytes
      from unnest($1::uuid[], $2::uuid[]) w (stack_id, id)
     cross join lateral (
         select c.stack_id, c.id, c.bytes from resource c
          where c.stack_id = w.stack_id and c.id {compared} w.id
            and c.physical_id is not null and c.replaced_by is null
            and c.action not in ('INIT', 'DELETE', 'SUSPEND')
            and (c.status = 'COMPLETE'
                 or c.status = 'FAILED' and c.action in ('CREATE', 'UPDATE', 'CHECK', 'SNAPSHOT'))
            and not exists (select from node n
                             where n.stack_id = c.stack_id and n.resource_id = c.id
                               and n.traversal = (select traversal from stack where id = w.stack_id)
                               and n.started_at is not null and is_operating(n.state, n.phase))
          order by c.id limit $3 offset 0) r
     order by r.stack_id, r.id limit $3
), fitting as (
    select stack_id, id,
           sum(bytes) over (order by stack_id, id rows unbounded preceding) - bytes as bytes_before
      from page
)
select r.stack_id, r.id, r.name, r.type, r.physical_id, r.properties, r.data, r.attributes,
       r.updated_at, r.masked_properties is not null as has_secrets, clock_timestamp() as now,
       is_applied(r.action, r.status, r.marked_at) as applied
  from fitting f
 cross join lateral (select * from resource
                      where stack_id = f.stack_id and id = f.id offset 0) r
 where f.bytes_before < $4 order by r.stack_id, r.id
"""
READ_PAGE = _read_page.format(compared=">")
READ_REPORTED = _read_page.format(compared="=")
#: $1: observed resources: [{stack_id, id, recorded_at, state, differences, reason, endpoint}];
#: state null: as recorded. A row is written only if the state differs from the one before, and only
#: if the resource is the same as when it was read. Returns how many have become different. The
#: schedule of a stack records when drift was last found or ended.
WRITE = """
with observed as materialized (
    select o.* from jsonb_to_recordset($1) o (stack_id uuid, id uuid, recorded_at timestamptz,
                                              state text, differences jsonb, reason text,
                                              endpoint text, found_by text)
      join resource r on r.stack_id = o.stack_id and r.id = o.id and r.updated_at = o.recorded_at
      join stack s on s.id = o.stack_id and s.deleted_at is null
), ended as (
    delete from observation b using observed o
     where b.stack_id = o.stack_id and b.resource_id = o.id and o.state is null
       and b.reported is null
    returning b.stack_id, b.state
), resolved as (
    update observation b set resolved_at = clock_timestamp() from observed o
     where b.stack_id = o.stack_id and b.resource_id = o.id and o.state is null
       and b.reported is not null and b.resolved_at is null
    returning b.stack_id, b.state
), found as materialized (
    select o.stack_id from observed o
     where o.state <> 'unknown'
       and not exists (select from observation b
                        where b.stack_id = o.stack_id and b.resource_id = o.id
                          and b.state <> 'unknown' and b.recorded_at = o.recorded_at
                          and b.resolved_at is null)
), written as (
    insert into observation as b (stack_id, resource_id, state, differences, reason, endpoint,
                                  found_by, recorded_at, since, observed_at)
    select o.stack_id, o.id, o.state, o.differences, o.reason, o.endpoint, o.found_by,
           o.recorded_at, clock_timestamp(), clock_timestamp()
      from observed o where o.state is not null order by o.stack_id, o.id
    on conflict (stack_id, resource_id) do update
       set state = excluded.state, differences = excluded.differences, reason = excluded.reason,
           endpoint = excluded.endpoint, found_by = excluded.found_by,
           recorded_at = excluded.recorded_at,
           observed_at = excluded.observed_at, resolved_at = null,
           since = case when b.state = excluded.state and b.recorded_at = excluded.recorded_at
                         and b.resolved_at is null
                        then b.since else excluded.since end
     where (b.state, b.differences, b.reason, b.recorded_at)
           is distinct from (excluded.state, excluded.differences, excluded.reason,
                             excluded.recorded_at)
        or b.resolved_at is not null
), drifted as (
    update observation_schedule set drifted_at = clock_timestamp()
     where stack_id in (select stack_id from found
                        union select stack_id from ended where state <> 'unknown'
                        union select stack_id from resolved where state <> 'unknown')
)
select count(*) from found
"""
READ_STATES = """
select stack_id, resource_id, state from observation
 where stack_id = any ($1) and resolved_at is null
"""
#: Of one resource: its last observation, if that differs, and that of its stack.
READ_RESOURCE = """
select b.state, b.differences, b.reason, b.since, b.observed_at, b.found_by,
       q.observed_at as stack_observed_at
  from resource r
  left join observation_schedule q on q.stack_id = r.stack_id
  left join observation b on b.stack_id = r.stack_id and b.resource_id = r.id
        and b.recorded_at = r.updated_at and b.resolved_at is null
 where r.stack_id = $1 and r.id = $2
"""
ENCRYPTED = ("properties", "data", "attributes")


@dataclass(frozen=True, slots=True)
class RecordedResource:
    """The recorded state of a resource, decrypted. now: the database's time. applied: False: its
    create or its last update failed."""

    stack_id: UUID
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
    applied: bool = True


@dataclass(frozen=True, slots=True)
class ResourcePage:
    """resources: those that could be decrypted. failed: the error of other stacks. last: the stack
    and the ID of the last resource; None: the page is empty, so the stacks have no more."""

    resources: Sequence[RecordedResource]
    failed: Mapping[UUID, DecryptionFailed]
    last: tuple[UUID, UUID] | None


@dataclass(frozen=True, slots=True)
class ObservedResource:
    """recorded_at: `RecordedResource.updated_at`. state: None: as recorded. differences:
    [{path, desired, observed}], without secrets. endpoint: that was asked, if the state is not
    known. found_by: what caused the observation."""

    stack_id: UUID
    id: UUID
    recorded_at: datetime
    state: str | None
    differences: Sequence[Mapping[str, Json]] = ()
    reason: str = ""
    endpoint: str = ""
    found_by: FoundBy | None = None


@dataclass(frozen=True, slots=True)
class LastObservation:
    """state: None: as recorded, or not observed since the last operation. stack_observed_at: the
    last observation of the whole stack; None: there was none."""

    state: str | None
    differences: Sequence[Mapping[str, Json]] | None
    reason: str | None
    since: datetime | None
    observed_at: datetime | None
    found_by: str | None
    stack_observed_at: datetime | None


async def read_last(conn: Connection, stack_id: UUID, resource_id: UUID) -> LastObservation:
    (row,) = await conn.fetch(READ_RESOURCE, stack_id, resource_id)
    return LastObservation(**row)


async def read_states(
    conn: Connection, stack_ids: Sequence[UUID]
) -> dict[tuple[UUID, UUID], ObservedState]:
    """The states of resources that differ, by stack and ID."""
    rows = await conn.fetch(READ_STATES, stack_ids)
    return {(row["stack_id"], row["resource_id"]): ObservedState(row["state"]) for row in rows}


async def read_page(
    conn: Connection, after: Mapping[UUID, UUID], project: str, limit: int, max_bytes: int
) -> ResourcePage:
    """The next resources of stacks of a project, by stack and ID. after: the last ID of each."""
    rows = await conn.fetch(READ_PAGE, [*after], [*after.values()], limit, max_bytes)
    return _decrypt_page(rows, project)


async def read_reported(
    conn: Connection,
    resources: Sequence[tuple[UUID, UUID]],
    project: str,
    limit: int,
    max_bytes: int,
) -> ResourcePage:
    """The first of these resources of a project. resources: their stacks and IDs."""
    stacks, ids = [stack for stack, _ in resources], [one for _, one in resources]
    rows = await conn.fetch(READ_REPORTED, stacks, ids, limit, max_bytes)
    return _decrypt_page(rows, project)


def _decrypt_page(rows: Sequence[Json], project: str) -> ResourcePage:
    found: list[RecordedResource] = []
    failed: dict[UUID, DecryptionFailed] = {}
    for row in rows:
        stack_id = row["stack_id"]
        try:
            shown = decrypt_row(row, project, stack_id, "resource", ENCRYPTED)
        except DecryptionFailed as error:
            failed[stack_id] = error
        else:
            found.append(RecordedResource(**shown))
    last = (rows[-1]["stack_id"], rows[-1]["id"]) if rows else None
    return ResourcePage([one for one in found if one.stack_id not in failed], failed, last)


async def write(conn: Connection, observed: Sequence[ObservedResource]) -> int:
    """Return how many resources have become different."""
    rows = [
        {
            "stack_id": str(one.stack_id),
            "id": str(one.id),
            "recorded_at": one.recorded_at.isoformat(),
            "state": one.state,
            "differences": one.differences,
            "reason": one.reason,
            "endpoint": one.endpoint,
            "found_by": one.found_by,
        }
        for one in observed
    ]
    found: int = await conn.fetchval(WRITE, rows)
    return found
