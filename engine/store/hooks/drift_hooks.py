"""Hooks about drift: the drift that a hook asked about last, and the answers.

A caller that writes has locked the stacks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from engine.hooks.drift_digests import digests_differ_in_sql
from engine.hooks.drift_hooks import AskedDrift, Drift
from engine.principal import Principal
from engine.store.connection import Connection
from engine.store.observer.drift_rows import mark_statement
from engine.store.observer.external_resources import IS_EXTERNAL, external_names
from engine.store.observer.found_drift import FoundDrift, split_found
from engine.store.observer.observations import DRIFT_DIGEST
from engine.words import Decision, HookState, Json, ObservedState, ResourceAction

#: Whether an observation `b` of a state that differs says what a drift hook `d` asks about.
IS_ASKED = f"""((b.state, b.differences) = (d.state, d.differences)
        and not {digests_differ_in_sql(DRIFT_DIGEST, "d.drift_digest")})"""
#: Whether an answer to a drift hook `d` has approved the repair of what an observation `b` says.
IS_APPROVED = f"""(d.decision = 'continue' and d.recorded_at = b.recorded_at
                      and {IS_ASKED})"""
#: As MARK_REPORTED, for the repair that answers have approved. $6: their hooks.
MARK_APPROVED = mark_statement(
    f"""exists (select from drift_hook d
                    where d.stack_id = b.stack_id and d.resource_id = b.resource_id
                      and d.hook_id = any ($6::uuid[]) and {IS_APPROVED} offset 0)"""
)
#: The resources of stacks with drift that lasts, or about which a hook was opened. $1, $2, $3:
#: stacks, how long drift must last, and whether a policy holds it; others have no such drift.
#: current: the observation is of the recorded state. lasting: null: no observation differs.
READ = f"""
with wanted as (
    select * from unnest($1::uuid[], $2::interval[], $3::boolean[]) w (stack_id, tolerate, hold)
), one as (
    select w.stack_id, w.tolerate, b.resource_id
      from wanted w
     cross join lateral (select resource_id from observation
                          where stack_id = w.stack_id and resolved_at is null offset 0) b
     where w.hold
    union
    select w.stack_id, w.tolerate, d.resource_id
      from wanted w
     cross join lateral (select resource_id from drift_hook
                          where stack_id = w.stack_id offset 0) d
)
select o.stack_id, o.resource_id, r.name, r.type, r.physical_id, r.action, r.status,
       b.state, b.differences, {DRIFT_DIGEST} as drift_digest, b.reason, b.since, b.recorded_at,
       r.updated_at = b.recorded_at as current,
       b.since <= clock_timestamp() - o.tolerate as lasting,
       d.hook_id, d.state as asked_state, d.differences as asked_differences,
       d.drift_digest as asked_digest, d.recorded_at as asked_recorded_at, d.decision,
       d.ignored_until, h.state as hook_state, clock_timestamp() as now
  from one o
  left join lateral (select * from observation
                      where stack_id = o.stack_id and resource_id = o.resource_id
                        and resolved_at is null offset 0) b on true
  left join lateral (select * from resource
                      where stack_id = o.stack_id and id = o.resource_id
                        and replaced_by is null offset 0) r on true
  left join lateral (select * from drift_hook
                      where stack_id = o.stack_id
                        and resource_id = o.resource_id offset 0) d on true
  left join lateral (select state from hook
                      where stack_id = o.stack_id and id = d.hook_id offset 0) h on true
 order by o.stack_id, r.name, o.resource_id
"""  # noqa: S608 - of constants
READ_VERSION = "select version from stack where id = $1"
#: The names of the resources that depend on others directly. $2: their IDs.
READ_DEPENDENTS = """
select k.id, array(select q.name
                     from (select stack_id, name, replaced_by from resource
                            where requires @> array[k.id] and requires <> '{}' offset 0) q
                    where q.stack_id = $1 and q.replaced_by is null
                    order by q.name) as dependents
  from unnest($2::uuid[]) k (id)
"""
#: $2: the new hooks: [{id, resource_id, resource_name, point, mode, state, on_timeout, rule,
#: notification, digest, wake_after, found, differences, drift_digest, recorded_at}]. $3: the time
#: until their deadline. $4, $5: the principal that opens them.
OPEN = """
with opened as (
    select h.*, clock_timestamp() as now
      from jsonb_to_recordset($2) as h (
           id uuid, resource_id uuid, resource_name text, point text, mode text, state text,
           on_timeout text, rule jsonb, notification jsonb, digest text,
           wake_after double precision, found text, differences jsonb, drift_digest text,
           recorded_at timestamptz)
), recorded as (
    insert into drift_hook (stack_id, resource_id, hook_id, state, differences, drift_digest,
                            recorded_at)
    select $1, resource_id, id, found, differences, drift_digest, recorded_at from opened
    on conflict (stack_id, resource_id) do update
       set hook_id = excluded.hook_id, state = excluded.state, differences = excluded.differences,
           drift_digest = excluded.drift_digest, recorded_at = excluded.recorded_at,
           decision = null, ignored_until = null,
           decided_by = '', decided_by_id = ''
), inserted as (
    insert into hook (stack_id, id, project, traversal, node, resource_name, path, point, mode,
                      state, on_timeout, timeout, notification, digest, opened_at, deadline, rule,
                      requested_by, requested_by_id, wake_at)
    select s.id, o.id, s.project, s.traversal, -1, o.resource_name,
           concat_ws('/', nullif(s.path, ''), o.resource_name), o.point, o.mode, o.state,
           o.on_timeout, $3::interval, o.notification, o.digest, o.now,
           first_deadline($3::interval, o.now), o.rule, $4, $5,
           o.now + make_interval(secs => o.wake_after)
      from opened o join stack s on s.id = $1
    returning 1
)
select pg_notify('headgate_hook', '') from inserted limit 1
"""
#: $2: resources; null: all of the stack. $3: who closes the hooks. $4: why.
CLOSE = """
with ended as (
    delete from drift_hook where stack_id = $1 and ($2::uuid[] is null or resource_id = any ($2))
    returning hook_id
), closed as (
    update hook h set state = 'superseded', decided_at = clock_timestamp(), decided_by = $3
      from ended e
     where h.stack_id = $1 and h.id = e.hook_id
       and case h.state when 'waiting' then true end
    returning h.id, h.resource_name, h.point, h.mode, h.notification
)
select record_events(array_agg(
           row ($1::uuid, 'headgate.hook.superseded', c.resource_name, c.notification ->> 'type',
                c.notification ->> 'physical_id', c.notification ->> 'action',
                c.notification ->> 'status', 'Hook ' || c.point || ' was closed: ' || $4,
                jsonb_build_object('hook_id', c.id, 'point', c.point, 'mode', c.mode)
               )::event_draft order by c.resource_name))
  from closed c having count(*) > 0
"""
#: $1: a stack. $2, $3: hooks, and the digests of their drift.
RECORD_DIGESTS = """
update drift_hook d set drift_digest = k.digest
  from unnest($2::uuid[], $3::text[]) k (hook_id, digest)
 where d.stack_id = $1 and d.hook_id = k.hook_id
"""
#: $1: [{stack_id, hook_id, decision, ignored_for: seconds, decided_by, decided_by_id}].
RECORD_ANSWERS = """
update drift_hook d
   set decision = a.decision, decided_by = a.decided_by, decided_by_id = a.decided_by_id,
       ignored_until = clock_timestamp() + make_interval(secs => a.ignored_for)
  from jsonb_to_recordset($1) as a (stack_id uuid, hook_id uuid, decision text,
       ignored_for double precision, decided_by text, decided_by_id text)
 where d.stack_id = a.stack_id and d.hook_id = a.hook_id
   and d.stack_id = any (array(select (x ->> 'stack_id')::uuid from jsonb_array_elements($1) x))
"""
#: Drift whose repair was approved, by root stack. $1: root stacks. $2: observed states. $3, $4, $5:
#: stacks and IDs of the resources in which an observation has found drift now, and when that began:
#: after the answer. name: of a resource of the root stack, which may own the nested stack of the
#: resource.
READ_APPROVED = f"""
with found as materialized (
    select * from unnest($3::uuid[], $4::uuid[], $5::timestamptz[]) f (stack_id, resource_id, at)
), approved as materialized (
    select t.root_id, coalesce(t.top, r.name) as top, r.stack_id, r.name, d.resource_id, d.hook_id,
           d.decided_by, d.decided_by_id,
           coalesce(b.reported ? 'unrepaired', false) as is_unrepaired
      from stacks_of_roots($1) t
      join found f on f.stack_id = t.id
     cross join lateral (select * from drift_hook
                          where stack_id = f.stack_id and resource_id = f.resource_id
                            and decision = 'continue' offset 0) d
     cross join lateral (select * from observation
                          where stack_id = f.stack_id and resource_id = f.resource_id
                            and resolved_at is null and state = any ($2) offset 0) b
     cross join lateral (select stack_id, name from resource
                          where stack_id = t.id and id = d.resource_id
                            and updated_at = b.recorded_at and replaced_by is null offset 0) r
     where {IS_APPROVED}
       and f.at >= coalesce((select decided_at from hook
                              where stack_id = d.stack_id and id = d.hook_id), '-infinity')
), {external_names("select stack_id from approved")}
select root_id, top as name, resource_id, hook_id, decided_by, decided_by_id,
       is_external as external
  from (select r.*, {IS_EXTERNAL} as is_external from approved r) r
 where not (is_external and is_unrepaired)
 order by root_id, top, resource_id
"""  # noqa: S608 - of constants


@dataclass(frozen=True, slots=True)
class DriftHookRow:
    """A resource with drift, or with a hook about its drift. name: None: the resource is gone; then
    type, physical_id, action and status are None, too. reason, since: of the observation; None: it
    is as recorded. hook_id: None: no hook was opened. now: the database's time."""

    stack_id: UUID
    resource_id: UUID
    name: str | None
    type: str | None
    physical_id: str | None
    action: str | None
    status: str | None
    reason: str | None
    since: datetime | None
    found: Drift
    asked: AskedDrift | None
    hook_id: UUID | None
    now: datetime


@dataclass(slots=True)
class ApprovedRepair:
    """Drift of a root stack and its nested stacks whose repair was approved. names: of resources of
    the root stack, which may own nested stacks. resources: with drift, in all the stacks. hooks:
    with the answers. by: the principal who approved the first one. external: resources with drift
    that a stack does not own, if it is not recorded yet that they are not repaired."""

    by: Principal
    names: list[str] = field(default_factory=list)
    resources: list[UUID] = field(default_factory=list)
    hooks: list[UUID] = field(default_factory=list)
    external: list[UUID] = field(default_factory=list)


async def read_drift_hooks(
    conn: Connection, held: Mapping[UUID, timedelta | None]
) -> dict[UUID, list[DriftHookRow]]:
    """By stack. held: how long drift must last; None: no policy holds the drift of the stack."""
    rows = await conn.fetch(
        READ,
        [*held],
        [one or timedelta(0) for one in held.values()],
        [one is not None for one in held.values()],
    )
    found: dict[UUID, list[DriftHookRow]] = {}
    for row in rows:
        found.setdefault(row["stack_id"], []).append(_drift_hook_row(row))
    return found


def _drift_hook_row(row: Any) -> DriftHookRow:
    asked = None
    if row["hook_id"] is not None:
        asked = AskedDrift(
            Drift(
                ObservedState(row["asked_state"]),
                row["asked_differences"],
                row["asked_recorded_at"],
                row["asked_digest"],
            ),
            row["hook_state"] == HookState.WAITING,
            Decision(row["decision"]) if row["decision"] else None,
            row["ignored_until"],
        )
    same = ("stack_id", "resource_id", "name", "type", "physical_id", "action", "status",
            "reason", "since", "hook_id", "now")  # fmt: skip
    return DriftHookRow(**{name: row[name] for name in same}, found=_read_drift(row), asked=asked)


def _read_drift(row: Any) -> Drift:
    if row["name"] is None or row["state"] is None:
        return Drift(ObservedState.PRESENT)
    if not (row["current"] and row["lasting"]):
        return Drift(ObservedState.UNKNOWN)
    return Drift(
        ObservedState(row["state"]), row["differences"], row["recorded_at"], row["drift_digest"]
    )


async def read_version(conn: Connection, stack_id: UUID) -> int | None:
    """The wanted template version of a stack; None: there is no such stack."""
    version: int | None = await conn.fetchval(READ_VERSION, stack_id)
    return version


async def read_dependents(
    conn: Connection, stack_id: UUID, resource_ids: Sequence[UUID]
) -> dict[UUID, list[str]]:
    """The names of the resources that depend on others directly."""
    rows = await conn.fetch(READ_DEPENDENTS, stack_id, list(resource_ids))
    return {row["id"]: row["dependents"] for row in rows}


async def open_drift_hooks(
    conn: Connection, stack_id: UUID, hooks: Sequence[Json], lasting: timedelta, by: Principal
) -> None:
    """hooks: as $2 of OPEN. lasting: until their deadline."""
    await conn.execute(OPEN, stack_id, list(hooks), lasting, by.name, by.id)


async def close_drift_hooks(
    conn: Connection, stack_id: UUID, resource_ids: Sequence[UUID] | None, by: Principal, why: str
) -> None:
    """Close the waiting hooks about the drift of resources, and forget their drift. resource_ids:
    None: all of the stack. why: ends the sentence of their events."""
    await conn.execute(CLOSE, stack_id, resource_ids, by.name, why)


async def record_digests(conn: Connection, stack_id: UUID, digests: Mapping[UUID, str]) -> None:
    """Record the digests of the drift about which hooks of a stack were opened. digests: by
    hook."""
    await conn.execute(RECORD_DIGESTS, stack_id, [*digests], [*digests.values()])


async def record_drift_answers(conn: Connection, answers: Sequence[Json]) -> None:
    """answers: as $1 of RECORD_ANSWERS."""
    await conn.execute(RECORD_ANSWERS, list(answers))


async def mark_approved(
    conn: Connection,
    stack_id: UUID,
    repaired_as: Mapping[ObservedState, ResourceAction],
    resources: Sequence[UUID],
    hooks: Sequence[UUID],
) -> int:
    """As `mark_reported`, those whose drift is as it was when an answer to one of these hooks has
    approved its repair."""
    states, actions = list(repaired_as), list(repaired_as.values())
    marked: int = await conn.fetchval(
        MARK_APPROVED, stack_id, states, actions, None, resources, hooks
    )
    return marked


async def read_approved_repairs(
    conn: Connection,
    root_ids: Sequence[UUID],
    states: Sequence[ObservedState],
    found: Sequence[FoundDrift],
) -> dict[UUID, ApprovedRepair]:
    """The repairs that answers have approved, of drift in these states that is as it was then, by
    root stack. found: by observations that have ended now; those that began before an answer do not
    count."""
    approved: dict[UUID, ApprovedRepair] = {}
    rows = await conn.fetch(READ_APPROVED, list(root_ids), list(states), *split_found(found))
    for row in rows:
        by = Principal(row["decided_by_id"], row["decided_by"])
        one = approved.setdefault(row["root_id"], ApprovedRepair(by))
        if row["external"]:
            one.external.append(row["resource_id"])
            continue
        one.resources.append(row["resource_id"])
        one.hooks.append(row["hook_id"])
        if row["name"] not in one.names:
            one.names.append(row["name"])
    return approved
