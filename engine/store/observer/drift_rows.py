"""Drift of stacks: reads and reports it, and marks resources for repair."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

import orjson

from engine.hooks.drift_digests import digests_differ_in_sql
from engine.plan.drift import DriftMarks, last_look
from engine.principal import Principal
from engine.store.connection import Connection
from engine.store.observer.external_resources import IS_EXTERNAL, external_names
from engine.store.observer.found_drift import FoundDrift, split_found
from engine.store.observer.observations import (
    DRIFT_DIGEST,
    IS_DRIFT,
    LAST_KNOWN,
    OPERATED_SINCE,
    REPORTED_DIGEST,
    STACK_OBSERVED_AT,
    LastKnownDrift,
    split_last_known,
)
from engine.words import Json, ObservedState, ResourceAction

#: Of a stack and its nested stacks. Observations of an earlier state of a resource are left out.
READ_DRIFT = f"""
with recursive tree (id, project, name, path) as (
    select id, project, name, '' from stack where id = $1
    union all
    select c.id, c.project, c.name, c.path from tree t
     cross join lateral (select id, project, name, path from stack
                          where parent_id = t.id and deleted_at is null offset 0) c
)
select t.id as stack_id, t.name as stack_name, t.path, c.id as resource_id, c.name, c.type,
       c.physical_id, b.state, b.differences, b.reason, b.since, b.observed_at,
       b.reported ->> 'unrepaired' as unrepaired, b.found_by, b.endpoint, {LAST_KNOWN},
       {STACK_OBSERVED_AT} as stack_observed_at, {OPERATED_SINCE} as operated_since,
       case when b.state = 'unknown'
            then (select max(until) from failed_request
                   where project = t.project and type = c.type and endpoint = b.endpoint
                     and request in (b.request, t.id::text) and until > clock_timestamp())
            end as paused_until
  from tree t
  left join lateral (select * from observation_schedule where stack_id = t.id offset 0) q on true
 cross join lateral (select * from observation
                      where stack_id = t.id and resolved_at is null offset 0) b
 cross join lateral (select * from resource q
                      where q.stack_id = t.id and q.id = b.resource_id
                        and q.updated_at = b.recorded_at and q.replaced_by is null offset 0) c
 order by t.path, c.name
"""  # noqa: S608 - of constants
#: The place of the condition in `_drifted`.
_CONDITION = "/* condition */"
#: $2, $3: observed states, and the action that a resource in this state gets. $4: names of
#: resources of the stack, which may own nested stacks; $5: resources with drift; null: all.
#: `_CONDITION`: of an observation `b`. `owner`: the resources that own the stacks of drifted ones.
#: Resources that the stack does not own (external_id, data) are left out.
_drifted = f"""
with recursive tree (id, parent_id, parent_resource) as (
    select id, null::uuid, null::uuid from stack where id = $1
    union all
    select c.id, c.parent_id, c.parent_resource from tree t
     cross join lateral (select id, parent_id, parent_resource from stack
                          where parent_id = t.id and deleted_at is null offset 0) c
     where t.parent_id is not null or $4::text[] is null
        or exists (select from resource p
                    where p.stack_id = t.id and p.id = c.parent_resource and p.name = any ($4))
), differing as materialized (
    select r.stack_id, r.id, r.name, r.type, m.action, b.state, b.reason, b.since,
           {DRIFT_DIGEST} as drift_digest, b.differences, {LAST_KNOWN}
      from tree t
     cross join lateral (select * from observation
                          where stack_id = t.id and resolved_at is null offset 0) b
      join unnest($2::text[], $3::text[]) m (state, action) on m.state = b.state
     cross join lateral (select * from resource q
                          where q.stack_id = b.stack_id and q.id = b.resource_id
                            and q.updated_at = b.recorded_at and q.replaced_by is null offset 0) r
     where (t.parent_id is not null or $4::text[] is null or r.name = any ($4))
       and ($5::uuid[] is null or r.id = any ($5))
       {_CONDITION}
), {external_names("select stack_id from differing")}, drifted as (
    select * from differing r where not {IS_EXTERNAL}
), owner (stack_id, id) as (
    select parent_id, parent_resource from tree
     where id in (select stack_id from drifted) and parent_id is not null
    union
    select t.parent_id, t.parent_resource
      from owner o join tree t on t.id = o.stack_id and t.parent_id is not null
)"""  # noqa: S608 - of constants
#: `owner` loses its digest, so that the update continues into the nested stacks.
_mark_drifted = f"""{_drifted}, marked as (
    update resource r
       set action = d.action, status = 'FAILED', tainted = true,
           reason = concat_ws(': ', 'drift: ' || d.state, nullif(d.reason, '')),
           updated_at = d.marked_at, marked_at = d.marked_at
      from (select *, clock_timestamp() as marked_at from drifted offset 0) d
     where r.stack_id = d.stack_id and r.id = d.id
       and r.stack_id = any (array(select stack_id from drifted))
    returning r.stack_id
), reset as (
    update resource r set digest = '' from owner o
     where r.stack_id = o.stack_id and r.id = o.id
       and r.stack_id = any (array(select stack_id from owner))
)
select count(*) from marked
"""  # noqa: S608 - of constants


def mark_statement(condition: str) -> str:
    """MARK_DRIFTED for those resources only whose observation `b` has a condition."""
    return _mark_drifted.replace(_CONDITION, f"and {condition}")


MARK_DRIFTED = _mark_drifted.replace(_CONDITION, "")
#: What MARK_DRIFTED writes. Locks nothing.
READ_MARKS = f"""{_drifted.replace(_CONDITION, "")}
select stack_id, id, name, action, state, drift_digest, differences from drifted
union all
select stack_id, id, null, null, null, null, null from owner
"""  # noqa: S608 - of constants
#: Resources of unknown state. $2, $3: this state, and any text.
READ_UNOBSERVED = f"""{_drifted.replace(_CONDITION, "")}
select s.path, d.name, d.type, d.reason, d.since, d.last_known ->> 'state' as known
  from drifted d
 cross join lateral (select path from stack where id = d.stack_id offset 0) s
 order by s.path, d.name
"""  # noqa: S608 - of constants
#: Whether an observation `b` has drift that no event has reported.
_IS_UNREPORTED = f"""(b.reported is null
                     or (b.reported ->> 'state', b.reported -> 'differences')
                        is distinct from (b.state, b.differences)
                     or {digests_differ_in_sql(REPORTED_DIGEST, DRIFT_DIGEST)})"""


def _is_reported(lasting: str) -> str:
    """Whether an observation `b` has drift that an event has reported, and that has lasted for a
    time."""
    return f"""(b.reported is not null and not {_IS_UNREPORTED}
       and b.since <= clock_timestamp() - {lasting}::interval)"""


#: For the repair of a policy. $6: how long drift must last.
MARK_REPORTED = mark_statement(_is_reported("$6"))
#: Stacks with drift or its end to report. $1, $2: stacks, and how long drift must last.
UNREPORTED = f"""
select w.stack_id
  from unnest($1::uuid[], $2::interval[]) w (stack_id, tolerate)
 where exists (
     select from observation b
      where b.stack_id = w.stack_id
        and (b.resolved_at is not null
             or b.state <> 'unknown' and b.since <= clock_timestamp() - w.tolerate
                and {_IS_UNREPORTED}))
"""  # noqa: S608 - of constants
#: $2: how long drift must last. $3: the state of resources whose drift has ended. The caller has
#: locked the stack.
REPORT = f"""
with due as materialized (
    select b.resource_id, b.state, b.differences, {DRIFT_DIGEST} as digest, b.reason, b.since,
           r.name, r.type, r.physical_id, r.action, r.status
      from observation b
     cross join lateral (
           select * from resource
            where stack_id = b.stack_id and id = b.resource_id and updated_at = b.recorded_at
              and replaced_by is null offset 0) r
     where b.stack_id = $1 and b.resolved_at is null and b.state <> 'unknown'
       and b.since <= clock_timestamp() - $2::interval and {_IS_UNREPORTED}
), marked as (
    update observation b
       set reported = jsonb_build_object('name', d.name, 'type', d.type,
                                         'physical_id', d.physical_id, 'state', d.state,
                                         'differences', d.differences, 'digest', d.digest)
      from due d
     where b.stack_id = $1 and b.resource_id = d.resource_id
       and b.resource_id = any (array(select resource_id from due))
), ended as (
    delete from observation b where stack_id = $1 and resolved_at is not null
    returning reported,
              case when b.state <> 'unknown' or {IS_DRIFT} is not true then since
                   else known_since end as since
), draft as (
    select 'detected' as moment, name, type, physical_id, action, status,
           concat_ws(': ', 'drift: ' || state, nullif(reason, '')) as reason,
           jsonb_build_object('state', state, 'differences', differences, 'since', since) as drift
      from due
    union all
    select 'resolved', e.reported ->> 'name', e.reported ->> 'type',
           coalesce(r.physical_id, e.reported ->> 'physical_id'), coalesce(r.action, 'DELETE'),
           coalesce(r.status, 'COMPLETE'), 'drift: resolved',
           jsonb_build_object('state', $3::text, 'differences', '[]'::jsonb, 'since', e.since)
      from ended e
      left join lateral (select physical_id, action, status from resource
                          where stack_id = $1 and name = e.reported ->> 'name'
                            and replaced_by is null limit 1) r on true
)
select record_events(array_agg(
           row ($1::uuid, 'headgate.resource.drift.' || moment, name, type, physical_id, action,
                status, reason, jsonb_build_object('operation', 'drift', 'drift', drift)
           )::event_draft order by moment desc, name))
  from draft having count(*) > 0
"""  # noqa: S608 - of constants
#: Reported drift that `converge` repairs. $1, $2: root stacks, and how long drift must last. $3:
#: observed states. $4, $5: stacks and IDs of the resources in which an observation has found drift
#: now. name: of a resource of the root stack, which may own the nested stack of the resource.
#: external: the stack does not own the resource, and no event says that it is not repaired.
REPAIRABLE = f"""
with found as materialized (
    select distinct * from unnest($4::uuid[], $5::uuid[]) f (stack_id, resource_id)
), differing as materialized (
    select t.root_id, t.top, r.stack_id, r.id, r.name, b.reported
      from (select t.*, w.lasting from stacks_of_roots($1) t
              join unnest($1::uuid[], $2::interval[]) w (root_id, lasting)
                on w.root_id = t.root_id) t
      join found f on f.stack_id = t.id
     cross join lateral (select * from observation b
                          where b.stack_id = f.stack_id and b.resource_id = f.resource_id
                            and b.resolved_at is null and b.state = any ($3)
                            and {_is_reported("t.lasting")} offset 0) b
     cross join lateral (select stack_id, id, name from resource r
                          where r.stack_id = t.id and r.id = b.resource_id
                            and r.updated_at = b.recorded_at and r.replaced_by is null offset 0) r
), {external_names("select stack_id from differing")}
select root_id, coalesce(top, name) as name, id as resource_id, is_external as external,
       clock_timestamp() as now
  from (select r.*, {IS_EXTERNAL} as is_external from differing r) r
 where not (is_external and reported ? 'unrepaired')
 order by root_id, name, id
"""  # noqa: S608 - of constants
#: Updates that the observer started within a day. $2: its principal.
COUNT_REPAIRS = """
select count(*) from traversal
 where stack_id = $1 and requested_by_id = $2 and action = 'UPDATE'
   and started_at > clock_timestamp() - interval '1 day'
"""
#: The update repairs drift, for a policy or an answer to a hook.
MARK_REPAIR = "update traversal set repairs_drift = true where stack_id = $1 and number = $2"
IS_REPAIR = """
select coalesce(repairs_drift, false) from traversal where stack_id = $1 and number = $2
"""
#: Of a stack and its nested stacks.
READ_TREE = """
select id from stack where (id = $1 or root_id = $1) and deleted_at is null
"""
#: $1: stacks, which the caller has locked. $2: why their reported drift is not repaired. Drift with
#: this reason is left out. $3: that of resources that the stacks do not own, or of the others. $4:
#: only of these resources; null: of all.
RECORD_UNREPAIRED = f"""
with {external_names("select unnest($1::uuid[])")}, marked as (
    update observation b set reported = b.reported || jsonb_build_object('unrepaired', $2::text)
      from resource r
     where b.stack_id = any ($1) and b.reported is not null and b.resolved_at is null
       and b.state <> 'unknown' and b.reported ->> 'unrepaired' is distinct from $2
       and ($4::uuid[] is null or b.resource_id = any ($4))
       and r.stack_id = b.stack_id and r.id = b.resource_id and r.updated_at = b.recorded_at
       and r.stack_id = any ($1) and {IS_EXTERNAL} = $3
    returning b.stack_id, b.state, b.differences, b.since, r.name, r.type, r.physical_id, r.action,
              r.status
)
select record_events(array_agg(
           row (stack_id, 'headgate.resource.drift.unrepaired', name, type, physical_id, action,
                status, 'drift: not repaired: ' || $2,
                jsonb_build_object('operation', 'drift', 'drift', jsonb_build_object(
                    'state', state, 'differences', differences, 'since', since))
           )::event_draft order by stack_id, name))
  from marked having count(*) > 0
"""  # noqa: S608 - of constants


@dataclass(frozen=True, slots=True)
class DriftedResource:
    """A resource whose observed state differs from the recorded one. path: of its stack.
    unrepaired: why its policy does not repair it; None: no attempt failed. last_known: of state
    unknown: the drift that was known before; None: there was none. observed_at: see `last_look`.
    endpoint: that was asked, if the state is unknown. operating: an operation on it is under way,
    so that it is not observed. paused_until: its request, or most of its stack, failed; see
    `engine.store.observer.failed_requests`."""

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
    unrepaired: str | None
    found_by: str | None
    endpoint: str = ""
    last_known: LastKnownDrift | None = None
    operating: bool = False
    paused_until: datetime | None = None


@dataclass(slots=True)
class RepairableStack:
    """A root stack with drift to repair. now: the database's time. names: of its resources, which
    may own the nested stack of a resource with drift. resources: with drift, in all the stacks.
    external: those that a stack does not own, if no event says yet that they are not repaired."""

    root_id: UUID
    now: datetime
    names: list[str] = field(default_factory=list)
    resources: list[UUID] = field(default_factory=list)
    external: list[UUID] = field(default_factory=list)


async def mark_drifted(
    conn: Connection,
    stack_id: UUID,
    repaired_as: Mapping[ObservedState, ResourceAction],
    names: Sequence[str] | None = None,
) -> int:
    """Mark the drifted resources of a stack and its nested stacks as failed, so that the next
    update repairs them; return their number. The caller has locked these stacks.

    repaired_as: the action that a resource gets, by observed state. names: only these resources of
    the stack and those in their nested stacks; None: all.
    """
    states, actions = list(repaired_as), list(repaired_as.values())
    marked: int = await conn.fetchval(MARK_DRIFTED, stack_id, states, actions, names, None)
    return marked


async def mark_reported(
    conn: Connection,
    stack_id: UUID,
    repaired_as: Mapping[ObservedState, ResourceAction],
    resources: Sequence[UUID],
    tolerate: timedelta,
) -> int:
    """As `mark_drifted`, those of these resources whose drift has been reported as it is now.
    tolerate: how long drift must last."""
    states, actions = list(repaired_as), list(repaired_as.values())
    marked: int = await conn.fetchval(
        MARK_REPORTED, stack_id, states, actions, None, resources, tolerate
    )
    return marked


async def read_marks(
    conn: Connection,
    stack_id: UUID,
    repaired_as: Mapping[ObservedState, ResourceAction],
    names: Sequence[str] | None = None,
) -> DriftMarks:
    """What `mark_drifted` would write, for a preview. The stacks need no lock."""
    states, actions = list(repaired_as), list(repaired_as.values())
    rows = await conn.fetch(READ_MARKS, stack_id, states, actions, names, None)
    drifted = [(row, ResourceAction(row["action"])) for row in rows if row["action"]]
    return DriftMarks(
        {row["id"]: action for row, action in drifted},
        {(row["stack_id"], row["name"]): action for row, action in drifted},
        frozenset(row["id"] for row in rows if not row["action"]),
        {row["id"]: _drift_text(row) for row, _ in drifted},
    )


def _drift_text(row: Any) -> str:
    """A text that is another one if the drift of a resource is. The digest is missing if nothing
    differs, or if a process of an earlier release has written the row."""
    digest = row["drift_digest"]
    if digest is None and row["differences"]:
        digest = sha256(orjson.dumps(row["differences"], option=orjson.OPT_SORT_KEYS)).hexdigest()
    return f"{row['state']} {digest or ''}"


@dataclass(frozen=True, slots=True)
class UnobservedResource:
    """A resource whose state is unknown, so that a converge cannot repair it. path: of its stack.
    known: the state that was known before, if that was drift."""

    path: str
    name: str
    type: str
    reason: str
    since: datetime
    known: str | None


async def read_unobserved(
    conn: Connection, stack_id: UUID, names: Sequence[str] | None = None
) -> list[UnobservedResource]:
    """The resources of a stack and its nested stacks whose state is unknown, without those that
    the stacks do not own. names: as for `mark_drifted`."""
    rows = await conn.fetch(READ_UNOBSERVED, stack_id, [ObservedState.UNKNOWN], [""], names, None)
    return [UnobservedResource(**row) for row in rows]


async def read_drift(conn: Connection, stack_id: UUID) -> list[DriftedResource]:
    return [_drifted_resource(row) for row in await conn.fetch(READ_DRIFT, stack_id)]


def _drifted_resource(row: Any) -> DriftedResource:
    columns, known = split_last_known(row)
    operated_since = columns.pop("operated_since")
    columns["observed_at"] = last_look(
        ObservedState(columns["state"]), columns["observed_at"],
        columns.pop("stack_observed_at"), operated_since,
    )  # fmt: skip
    operating = operated_since is not None
    return DriftedResource(**columns, last_known=known, operating=operating)


async def read_unreported(conn: Connection, tolerated: Mapping[UUID, timedelta]) -> list[UUID]:
    """The stacks with drift or its end to report. tolerated: how long drift must last, by stack."""
    rows = await conn.fetch(UNREPORTED, [*tolerated], [*tolerated.values()])
    return [row["stack_id"] for row in rows]


async def report(conn: Connection, stack_id: UUID, tolerate: timedelta) -> None:
    """Record events of new, changed and resolved drift. The caller has locked the stack."""
    await conn.execute(REPORT, stack_id, tolerate, ObservedState.PRESENT)


async def read_repairable(
    conn: Connection,
    tolerated: Mapping[UUID, timedelta],
    states: Sequence[ObservedState],
    found: Sequence[FoundDrift],
) -> list[RepairableStack]:
    """Root stacks with reported drift in these states, also of their nested stacks. tolerated: how
    long drift must last, by root stack. found: by observations that have ended now."""
    stacks, ids, _ = split_found(found)
    rows = await conn.fetch(REPAIRABLE, [*tolerated], [*tolerated.values()], states, stacks, ids)
    repairable: dict[UUID, RepairableStack] = {}
    for row in rows:
        one = repairable.setdefault(row["root_id"], RepairableStack(row["root_id"], row["now"]))
        if row["external"]:
            one.external.append(row["resource_id"])
            continue
        one.resources.append(row["resource_id"])
        if row["name"] not in one.names:
            one.names.append(row["name"])
    return list(repairable.values())


async def count_repairs(conn: Connection, stack_id: UUID, by: Principal) -> int:
    """The updates that a part of the engine has started within a day."""
    count: int = await conn.fetchval(COUNT_REPAIRS, stack_id, by.id)
    return count


async def mark_repair(conn: Connection, stack_id: UUID, traversal: int) -> None:
    """Record that an update repairs drift, for a policy or an answer to a hook."""
    await conn.execute(MARK_REPAIR, stack_id, traversal)


async def is_repair(conn: Connection, stack_id: UUID, traversal: int) -> bool:
    """Whether `mark_repair` has recorded it."""
    return bool(await conn.fetchval(IS_REPAIR, stack_id, traversal))


async def read_tree(conn: Connection, root_id: UUID) -> list[UUID]:
    """A root stack and its nested stacks."""
    return [row["id"] for row in await conn.fetch(READ_TREE, root_id)]


async def record_unrepaired(
    conn: Connection,
    stack_ids: Sequence[UUID],
    reason: str,
    resources: Sequence[UUID] | None = None,
    *,
    external: bool = False,
) -> None:
    """Record once for each reason that reported drift is not repaired. resources: only of these;
    None: of all. external: of resources that the stacks do not own; else of the others. The caller
    has locked the stacks."""
    await conn.execute(RECORD_UNREPAIRED, stack_ids, reason, external, resources)
