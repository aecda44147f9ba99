"""Observed states of resources, and the recorded states that they are compared with.

Only a resource that differs from its recorded state has a row, so an observation in which nothing
has changed writes nothing but the schedule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

from engine.hooks.drift_digests import compare_keys_in_sql, digests_differ_in_sql
from engine.store.connection import Connection
from engine.store.encryption.encrypted_rows import decrypt_row
from engine.store.encryption.secret_values import DecryptionFailed
from engine.words import FoundBy, Json, ObservedState

#: Whether resources in the state of a row `c` of `resource` are observed: not those that are
#: suspended, deleted or not adopted.
_IS_OBSERVED = """
            c.physical_id is not null and c.replaced_by is null
            and c.action not in ('INIT', 'DELETE', 'SUSPEND')
            and (c.status = 'COMPLETE'
                 or c.status = 'FAILED' and c.action in ('CREATE', 'UPDATE', 'CHECK', 'SNAPSHOT'))
"""
#: The operations under way of a resource `c`, which is not observed meanwhile.
_OPERATIONS = """node n
                             where n.stack_id = c.stack_id and n.resource_id = c.id
                               and n.traversal = (select traversal from stack where id = c.stack_id)
                               and n.started_at is not null and is_operating(n.state, n.phase)"""
#: When the operation under way of a resource `c` has begun; null: there is none.
OPERATED_SINCE = f"(select min(n.started_at) from {_OPERATIONS})"  # noqa: S608 - of constants
#: Whether an observation `b` that differs says, or has said before it became unknown, that the
#: resource differs. Another time in `known_until`: a process of the previous release has written
#: the row since.
IS_DRIFT = "(b.state <> 'unknown' or b.known_state is not null and b.known_until = b.since)"
#: The digest of the differences of an observation `b`; null: a process of an earlier release has
#: written the row since.
DRIFT_DIGEST = "(case when b.digested_at = b.observed_at then b.drift_digest end)"
#: Whether a resource `c` can be observed now.
IS_UNDISTURBED = f"""{_IS_OBSERVED}
            and not exists (select from {_OPERATIONS})"""
#: Of an observation `b` that is unknown: the drift that was known before; null: there was none.
LAST_KNOWN = f"""
       case when b.state = 'unknown' and {IS_DRIFT}
            then jsonb_build_object('state', b.known_state, 'differences', b.known_differences,
                                    'reason', b.known_reason) end as last_known,
       case when b.state = 'unknown' and {IS_DRIFT} then b.known_since end as known_since"""
#: The start of the last observation `q` of a stack that has ended and asked a provider; null: there
#: was none.
STACK_OBSERVED_AT = """
       case when q.observed_at is not null
            then nullif(least(q.observed_at, q.polled_at), '-infinity') end"""
#: $1, $2: stacks, and the ID after which the page starts in each; or stacks and the IDs of certain
#: resources. $3: its length. $4: bytes of large properties and attributes after which it ends.
#: Sorted by stack and ID, so that only the last stack can have more. Resources with an operation
#: under way are left out, and those that are suspended, deleted or not adopted. applied: see
#: `engine.plan.drift.is_applied`. found: more than the rows of the page if there are more.
_read_page = f"""
with page as materialized (
    select r.stack_id, r.id, r.bytes
      from unnest($1::uuid[], $2::uuid[]) w (stack_id, id)
     cross join lateral (
         select c.stack_id, c.id, c.bytes from resource c
          where c.stack_id = w.stack_id and c.id {{compared}} w.id
            and {IS_UNDISTURBED}
          order by c.id limit $3 + 1 offset 0) r
     order by r.stack_id, r.id limit $3 + 1
), fitting as (
    select stack_id, id, row_number() over following as nth, count(*) over () as found,
           sum(bytes) over (following rows unbounded preceding) - bytes as bytes_before
      from page window following as (order by stack_id, id)
)
select r.stack_id, r.id, r.name, r.type, r.physical_id, r.properties, r.data, r.attributes,
       r.updated_at, r.masked_properties is not null as has_secrets, r.secret_attributes,
       clock_timestamp() as now,
       is_applied(r.action, r.status, r.marked_at) as applied, f.found
  from fitting f
 cross join lateral (select * from resource
                      where stack_id = f.stack_id and id = f.id offset 0) r
 where f.bytes_before < $4 and f.nth <= $3 order by r.stack_id, r.id
"""  # noqa: S608 - of constants
READ_PAGE = _read_page.format(compared=">")
READ_SOME = _read_page.format(compared="=")


def _continued_value(same: str, returned: str, new: str) -> str:
    """A value of an observation that belongs to its start. same: of the row, if it has the same
    state; returned: if it has become unknown in between."""
    return f"""case
               when b.recorded_at <> excluded.recorded_at or b.resolved_at is not null then {new}
               when b.state = excluded.state then {same}
               when b.state = 'unknown' and b.known_until = b.since
                    and b.known_state = excluded.state then {returned}
               else {new} end"""


def _known_value(before: str, kept: str) -> str:
    """A value of the last known drift. before: of the row, if it is known; kept: if it is not."""
    return f"""case
               when excluded.state = 'unknown' and b.recorded_at = excluded.recorded_at
                    and b.resolved_at is null
               then case when b.state = 'unknown' then {kept} else {before} end end"""


_CHANGED = digests_differ_in_sql(DRIFT_DIGEST, "excluded.drift_digest")
_KNOWN_CHANGED = digests_differ_in_sql("b.known_digest", "excluded.drift_digest")
#: The digest of reported drift of an observation `b`.
REPORTED_DIGEST = "(b.reported ->> 'digest')"
_REPORTED_COMPARABLE = compare_keys_in_sql(REPORTED_DIGEST, "excluded.drift_digest")
#: $1: observed resources: [{stack_id, id, recorded_at, state, differences, digest, reason,
#: endpoint, request, found_by, polled}]; state null: as recorded. A row is written only if the
#: state differs from the one before, or after a report of a change, and only if the resource is the
#: same as when it was read. An unknown state keeps the drift that was known before it, which lasts
#: from its first observation on if it is there again later. Reported drift gets the digest that an
#: earlier release has not recorded, or that was made with the key of another installation. found:
#: how many have become different. changed: the resources that were not the same. The schedule of a
#: stack records when drift was last found or ended.
WRITE = f"""
with given as materialized (
    select o.*, clock_timestamp() as now
      from jsonb_to_recordset($1) o (stack_id uuid, id uuid, recorded_at timestamptz, state text,
                                     differences jsonb, digest text, reason text, endpoint text,
                                     request text,
                                     found_by text, polled boolean)
), observed as materialized (
    select o.*,
           case when o.polled then o.now
                else coalesce(
                    (select case when b.state = 'unknown' then b.observed_at
                                 else greatest(b.observed_at, {STACK_OBSERVED_AT}) end
                       from observation b
                       left join observation_schedule q on q.stack_id = b.stack_id
                      where b.stack_id = o.stack_id and b.resource_id = o.id
                        and b.recorded_at = o.recorded_at and b.resolved_at is null),
                    greatest(r.updated_at, (select {STACK_OBSERVED_AT} from observation_schedule q
                                             where q.stack_id = o.stack_id)))
           end as polled_at
      from given o
     cross join lateral (
           select updated_at from resource
            where stack_id = o.stack_id and id = o.id and updated_at = o.recorded_at offset 0) r
     cross join lateral (
           select from stack where id = o.stack_id and deleted_at is null offset 0) s
), ended as (
    delete from observation b using observed o
     where b.stack_id = o.stack_id and b.resource_id = o.id and o.state is null
       and b.reported is null
    returning b.stack_id, {IS_DRIFT} as is_drift
), resolved as (
    update observation b set resolved_at = clock_timestamp() from observed o
     where b.stack_id = o.stack_id and b.resource_id = o.id and o.state is null
       and b.reported is not null and b.resolved_at is null
    returning b.stack_id, {IS_DRIFT} as is_drift
), found as materialized (
    select o.stack_id from observed o
     where o.state <> 'unknown'
       and not exists (select from observation b
                        where b.stack_id = o.stack_id and b.resource_id = o.id
                          and {IS_DRIFT} and b.recorded_at = o.recorded_at
                          and b.resolved_at is null)
), written as (
    insert into observation as b (stack_id, resource_id, state, differences, drift_digest, reason,
                                  endpoint, request, found_by, recorded_at, since, observed_at,
                                  digested_at)
    select o.stack_id, o.id, o.state, o.differences, o.digest, o.reason, o.endpoint, o.request,
           o.found_by, o.recorded_at, o.now, o.polled_at, o.polled_at
      from observed o where o.state is not null order by o.stack_id, o.id
    on conflict (stack_id, resource_id) do update
       set state = excluded.state, differences = excluded.differences, reason = excluded.reason,
           endpoint = excluded.endpoint, request = excluded.request,
           recorded_at = excluded.recorded_at,
           observed_at = excluded.observed_at, resolved_at = null,
           drift_digest = excluded.drift_digest, digested_at = excluded.digested_at,
           reported = case
               when excluded.drift_digest is not null and not {_REPORTED_COMPARABLE}
                    and (b.reported ->> 'state', b.reported -> 'differences')
                        = (excluded.state, excluded.differences)
               then b.reported || jsonb_build_object(
                        'digest', case when {_CHANGED} then {DRIFT_DIGEST}
                                       else excluded.drift_digest end)
               else b.reported end,
           found_by = case
               when b.recorded_at <> excluded.recorded_at or b.resolved_at is not null
               then excluded.found_by
               when (b.state, b.differences, b.reason)
                    = (excluded.state, excluded.differences, excluded.reason)
                    and not {_CHANGED} then b.found_by
               when b.state = 'unknown' and b.known_until = b.since
                    and (b.known_state, b.known_differences)
                        = (excluded.state, excluded.differences)
                    and not {_KNOWN_CHANGED} then b.known_found_by
               else excluded.found_by end,
           since = {_continued_value("b.since", "b.known_since", "excluded.since")},
           known_state = {_known_value("b.state", "b.known_state")},
           known_differences = {_known_value("b.differences", "b.known_differences")},
           known_digest = {_known_value(DRIFT_DIGEST, "b.known_digest")},
           known_reason = {_known_value("b.reason", "b.known_reason")},
           known_found_by = {_known_value("b.found_by", "b.known_found_by")},
           known_since = {_known_value("b.since", "b.known_since")},
           known_until = {_known_value("excluded.since", "b.known_until")}
     where (b.state, b.differences, b.reason, b.recorded_at, {DRIFT_DIGEST})
           is distinct from (excluded.state, excluded.differences, excluded.reason,
                             excluded.recorded_at, excluded.drift_digest)
        or b.resolved_at is not null or excluded.found_by = 'report'
), drifted as (
    update observation_schedule set drifted_at = clock_timestamp()
     where stack_id in (select stack_id from found
                        union select stack_id from ended where is_drift
                        union select stack_id from resolved where is_drift)
)
select (select count(*) from found) as found,
       (select coalesce(jsonb_agg(jsonb_build_array(o.stack_id, o.id)), '[]')
          from given o
         cross join lateral (
               select from resource
                where stack_id = o.stack_id and id = o.id and replaced_by is null
                  and updated_at <> o.recorded_at offset 0) r) as changed
"""  # noqa: S608 - of constants
READ_STATES = """
select stack_id, resource_id, state from observation
 where stack_id = any ($1) and resolved_at is null
"""
#: Of one resource: its last observation, if that differs, and that of its stack. is_observed:
#: whether the status of the resource allows it.
READ_RESOURCE = f"""
select b.state, b.differences, b.reason, b.since, b.observed_at, b.found_by,
       {LAST_KNOWN}, {STACK_OBSERVED_AT} as stack_observed_at,
       {OPERATED_SINCE} as operated_since, {_IS_OBSERVED} as is_observed
  from resource c
  left join observation_schedule q on q.stack_id = c.stack_id
  left join observation b on b.stack_id = c.stack_id and b.resource_id = c.id
        and b.recorded_at = c.updated_at and b.resolved_at is null
 where c.stack_id = $1 and c.id = $2
"""  # noqa: S608 - of constants
ENCRYPTED = ("properties", "data", "attributes")
NOTHING: Mapping[str, Json] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RecordedResource:
    """The recorded state of a resource, decrypted. secret_attributes: names, as in the table
    `resource`, besides those that the type declares. now: the database's time. applied: False: its
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
    secret_attributes: Sequence[str] | None = None

    def without_content(self) -> "RecordedResource":
        """What identifies the resource, without what it is compared by."""
        return replace(self, properties=None, data=NOTHING, attributes=NOTHING)


@dataclass(frozen=True, slots=True)
class ResourcePage:
    """resources: those that could be decrypted. failed: the error of other stacks. last: the stack
    and the ID of the last resource if there are more after it, else None."""

    resources: Sequence[RecordedResource]
    failed: Mapping[UUID, DecryptionFailed]
    last: tuple[UUID, UUID] | None


@dataclass(frozen=True, slots=True)
class ObservedResource:
    """recorded_at: `RecordedResource.updated_at`. state: None: as recorded. differences:
    [{path, desired, observed}], without secrets. endpoint, request: that were asked, if the state
    is not known. found_by: what caused the observation. polled: False: its provider was not asked,
    because it gets no requests for a while. drift_digest: see `engine.hooks.drift_digests`; None:
    there are no differences, or the observer has no key."""

    stack_id: UUID
    id: UUID
    recorded_at: datetime
    state: str | None
    differences: Sequence[Mapping[str, Json]] = ()
    reason: str = ""
    endpoint: str = ""
    request: str = ""
    found_by: FoundBy | None = None
    polled: bool = True
    drift_digest: str | None = None


@dataclass(frozen=True, slots=True)
class LastKnownDrift:
    """What was observed of a resource before its state became unknown. since: when `state` was
    first observed."""

    state: str
    differences: Sequence[Mapping[str, Json]]
    reason: str
    since: datetime


@dataclass(frozen=True, slots=True)
class LastObservation:
    """state: None: as recorded, or not observed since the last operation. observed_at: see
    `last_look`; of the row. stack_observed_at: the last observation of the whole stack; None: there
    was none. operated_since: start of the operation under way; None: there is none. is_observed:
    the status of the resource allows it. last_known: of an unknown state."""

    state: str | None
    differences: Sequence[Mapping[str, Json]] | None
    reason: str | None
    since: datetime | None
    observed_at: datetime | None
    found_by: str | None
    stack_observed_at: datetime | None
    operated_since: datetime | None = None
    is_observed: bool = True
    last_known: LastKnownDrift | None = None


@dataclass(frozen=True, slots=True)
class WrittenObservations:
    """found: how many resources have become different. changed: stack and ID of the resources that
    have changed since they were read, so that nothing was written about them."""

    found: int
    changed: Sequence[tuple[UUID, UUID]]


def split_last_known(row: Any) -> tuple[dict[str, Any], LastKnownDrift | None]:
    """The columns of a row besides `LAST_KNOWN`, and what these say."""
    columns = dict(row)
    known, since = columns.pop("last_known"), columns.pop("known_since")
    return columns, LastKnownDrift(**known, since=since) if known else None


async def read_last(conn: Connection, stack_id: UUID, resource_id: UUID) -> LastObservation:
    (row,) = await conn.fetch(READ_RESOURCE, stack_id, resource_id)
    columns, known = split_last_known(row)
    return LastObservation(**columns, last_known=known)


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


async def read_some(
    conn: Connection,
    resources: Sequence[tuple[UUID, UUID]],
    project: str,
    limit: int,
    max_bytes: int,
) -> ResourcePage:
    """The next of these resources of a project. resources: their stacks and IDs, sorted."""
    stacks, ids = [stack for stack, _ in resources], [one for _, one in resources]
    rows = await conn.fetch(READ_SOME, stacks, ids, limit, max_bytes)
    return _decrypt_page(rows, project)


def _decrypt_page(rows: Sequence[Json], project: str) -> ResourcePage:
    found: list[RecordedResource] = []
    failed: dict[UUID, DecryptionFailed] = {}
    for row in rows:
        stack_id = row["stack_id"]
        try:
            shown = decrypt_row(row, project, stack_id, "resource", ENCRYPTED)
            del shown["found"]
        except DecryptionFailed as error:
            failed[stack_id] = error
        else:
            found.append(RecordedResource(**shown))
    more = bool(rows) and rows[0]["found"] > len(rows)
    last = (rows[-1]["stack_id"], rows[-1]["id"]) if more else None
    return ResourcePage([one for one in found if one.stack_id not in failed], failed, last)


async def write(conn: Connection, observed: Sequence[ObservedResource]) -> WrittenObservations:
    rows = [
        {
            "stack_id": str(one.stack_id),
            "id": str(one.id),
            "recorded_at": one.recorded_at.isoformat(),
            "state": one.state,
            "differences": one.differences,
            "digest": one.drift_digest,
            "reason": one.reason,
            "endpoint": one.endpoint,
            "request": one.request,
            "found_by": one.found_by,
            "polled": one.polled,
        }
        for one in observed
    ]
    (written,) = await conn.fetch(WRITE, rows)
    changed = [(UUID(stack_id), UUID(one)) for stack_id, one in written["changed"]]
    return WrittenObservations(written["found"], changed)
