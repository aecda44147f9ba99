"""Deadlines and reminders of hooks, by the rules of `engine.hooks.deadline`.

Channels report here whether they delivered the notifications of hooks. A caller that writes has
locked the hooks' stacks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any
from uuid import UUID

from engine.errors import HeadgateError
from engine.hooks.deadline import HookClock, NotificationReport, apply_reports
from engine.hooks.hash_chain import Entry
from engine.node.machine import decide
from engine.node.node import Answered, InvalidInput, Node, NotifyType, WriteFailed
from engine.principal import Principal
from engine.store.audit.audit_log import record as record_entries
from engine.store.connection import Connection
from engine.store.stacks.stack_locks import lock_stacks
from engine.words import (
    AnswerChannel,
    Decision,
    HookState,
    Json,
    OnTimeout,
    Operation,
    Phase,
    State,
)

#: The same time for all hooks, whose stacks are locked before the statement begins.
READ_CLOCKS = """
select h.stack_id, h.id, h.state, h.opened_at, h.timeout, h.deadline, h.notified_at,
       h.undeliverable_at,
       statement_timestamp() as now
  from unnest($1::uuid[], $2::uuid[]) k (stack_id, id)
  join hook h on h.stack_id = k.stack_id and h.id = k.id
"""
WRITE_CLOCKS = """
update hook h
   set deadline = c.deadline, notified_at = c.notified_at, undeliverable_at = c.undeliverable_at
  from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[])
       c (stack_id, id, deadline, notified_at, undeliverable_at)
 where h.stack_id = c.stack_id and h.id = c.id
"""
RECORD_UNDELIVERABLE = """
select record_events(array_agg(
           row (h.stack_id, 'headgate.hook.undeliverable', nullif(h.resource_name, ''),
                h.notification ->> 'type', h.notification ->> 'physical_id', 'INIT', 'COMPLETE',
                'Hook ' || h.point || ' of ' || coalesce(nullif(h.resource_name, ''), 'the stack')
                    || ' is waiting, and its notification could not be delivered',
                jsonb_build_object('hook_id', h.id, 'point', h.point, 'mode', h.mode))::event_draft
           order by h.stack_id, h.id))
  from unnest($1::uuid[], $2::uuid[]) k (stack_id, id)
  join hook h on h.stack_id = k.stack_id and h.id = k.id
having count(*) > 0
"""
WAKE_TIMERS = "select pg_notify('headgate_hook', '')"
DUE_REMINDERS = """
select stack_id, id from hook
 where state = 'waiting' and wake_at <= statement_timestamp() order by wake_at limit $1
"""
RECORD_REMINDERS = """
update hook h
   set wake_at = r.wake_at, reminders = h.reminders + r.reminded::integer,
       escalated_at = case when r.escalated then clock_timestamp() else h.escalated_at end
  from jsonb_to_recordset($1) as r (stack_id uuid, id uuid, wake_at timestamptz, reminded boolean,
       escalated boolean)
 where h.stack_id = r.stack_id and h.id = r.id and h.id = any ($2::uuid[]) -- as in DECIDE_HOOKS
   and case h.state when 'waiting' then true end
"""
#: Not clock_timestamp(): it changes while a statement runs, so no index can be used for it.
DUE_HOOKS = """
select stack_id, id from hook
 where state = 'waiting' and hook_has_expired(deadline, statement_timestamp())
 order by deadline limit $1
"""
#: Projects take turns. An index is used to step from one project with waiting hooks to the next.
DUE_HOOKS_IN_TURN = """
with recursive project (name, deadline) as (
    (select h.project, h.deadline from hook h where h.state = 'waiting'
      order by h.project, h.deadline limit 1)
    union all
    select n.* from project p
     cross join lateral (
           select h.project, h.deadline from hook h
            where h.state = 'waiting' and h.project > p.name
            order by h.project, h.deadline limit 1) n
)
select d.stack_id, d.id
  from project p
 cross join lateral (
       select n.*, row_number() over (order by n.deadline, n.id) as turn
         from (select h.stack_id, h.id, h.deadline from hook h
                -- A range, so that only the index `hook_due_by_project` has this order.
                where h.state = 'waiting' and h.project >= p.name and h.project <= p.name
                  and hook_has_expired(h.deadline, statement_timestamp())
                order by h.project, h.deadline limit $1) n) d
 where hook_has_expired(p.deadline, statement_timestamp())
 order by d.turn, d.deadline limit $1
"""
NEXT_DEADLINE = """
select extract(epoch from min(deadline) - clock_timestamp())::double precision as seconds
  from hook where state = 'waiting'
"""
NEXT_REMINDER = """
select extract(epoch from min(wake_at) - clock_timestamp())::double precision as seconds
  from hook where state = 'waiting' and wake_at is not null
"""
EXPIRE_HOOK = """
update hook
   set state = 'expired', decision = 'reject', reason = $3, decided_by = $4, decided_by_id = $5,
       channel = 'rule', decided_at = clock_timestamp()
 where stack_id = $1 and id = $2 and case state when 'waiting' then true end -- as in DECIDE_HOOKS
returning digest, decided_at
"""
#: What the node machine needs to know of the node that waits at a hook. No document is read.
FAILING_NODE = """
select n.operation, n.state, n.phase, n.breakpoints_hit
  from hook h
  join node n on n.stack_id = h.stack_id and n.traversal = h.traversal and n.id = h.node
   and n.state = 'parked' and n.phase <> 'execute'
   and n.breakpoints_hit[cardinality(n.breakpoints_hit)] = h.point
 where h.stack_id = $1 and h.id = $2 and h.rule ->> 'dry' is distinct from 'true'
"""
#: Writes a decision of the node machine (`_decide_rejection`). Stored values are copied within
#: PostgreSQL, so it also works if a value that cannot be read caused the internal error.
FAIL_NODE = """
with step as (
    select jsonb_build_object(
               'stack_id', n.stack_id, 'traversal', n.traversal, 'node', n.id, 'claim', n.claim,
               'state', d.state, 'phase', d.phase, 'operation', n.operation,
               'breakpoints_hit', n.breakpoints_hit, 'confirmation', d.confirmation,
               'progress', n.progress, 'attempts', n.attempts, 'reason', $3::text,
               'resource', case when d.tainted is not null then
                   to_jsonb(r) || jsonb_build_object(
                   'write', 'update', 'status', 'FAILED', 'reason', $3::text,
                   'action', current_action_of(n.operation),
                   'tainted', r.tainted or d.tainted) end,
               'events', jsonb_build_array(
                   jsonb_build_object(
                       'type', 'headgate.hook.expired', 'action', coalesce(r.action, 'INIT'),
                       'status', coalesce(r.status, 'COMPLETE'), 'reason', $3::text,
                       'resource_name', nullif(n.name, ''), 'resource_type', r.type,
                       'physical_id', r.physical_id,
                       'data', jsonb_build_object(
                           'hook_id', h.id, 'point', h.point, 'mode', h.mode,
                           'decision', 'reject', 'decided_by', $4::text, 'reason', $3::text)))
                   || case when r.id is null or d.tainted is null then '[]'::jsonb
                           else jsonb_build_array(
                   jsonb_build_object(
                       'type', 'headgate.resource.' || n.operation || '.failed',
                       'action', action_of(n.operation), 'status', 'FAILED', 'reason', $3::text,
                       'resource_name', n.name, 'resource_type', r.type,
                       'physical_id', r.physical_id,
                       'data', jsonb_build_object('operation', n.operation))) end) as step
      from hook h
      join node n on n.stack_id = h.stack_id and n.traversal = h.traversal and n.id = h.node
     cross join jsonb_to_record($5) as d (state text, phase text, tainted boolean,
                                          confirmation jsonb)
      left join resource r on r.stack_id = n.stack_id and n.operation not in ('begin', 'finish')
       and r.id = resource_at_hook(n.phase, n.operation, n.resource_id, n.replacement_id)
     where h.stack_id = $1 and h.id = $2
)
select count(*) from step s
 cross join lateral advance('', interval '0', 0, jsonb_build_array(s.step), '', 0, true)
"""
STOP_REMINDERS = """
update hook set wake_at = null
 where stack_id = $1 and id = $2 and case state when 'waiting' then true end -- as in DECIDE_HOOKS
"""

#: The columns of a hook that are fields of its clock.
CLOCK_COLUMNS = tuple(field.name for field in fields(HookClock))

#: (stack, hook).
HookKey = tuple[UUID, UUID]


async def report_notifications(
    conn: Connection,
    reports: Mapping[HookKey, Sequence[NotificationReport]],
    *,
    record: bool = True,
) -> None:
    """Move the deadlines of hooks after reports about their notifications.

    A hook becomes undeliverable when its last notification fails; then an event is recorded.
    record: False: no event, for a hook whose event caused an internal error.
    """
    if not reports:
        return
    rows = await conn.fetch(READ_CLOCKS, *_columns(list(reports)))
    moved: dict[HookKey, HookClock] = {}
    undeliverable: list[HookKey] = []
    earlier = False
    for row in rows:
        key, clock = (row["stack_id"], row["id"]), clock_of(row)
        waiting = row["state"] == HookState.WAITING
        after = apply_reports(clock, reports[key], row["now"], waiting=waiting)
        if after != clock:
            moved[key] = after
            earlier = earlier or after.deadline < clock.deadline
            if after.undeliverable_at is not None and clock.undeliverable_at is None:
                undeliverable.append(key)
    await write_clocks(conn, moved)
    if undeliverable and record:
        await conn.execute(RECORD_UNDELIVERABLE, *_columns(undeliverable))
    if earlier:
        await conn.execute(WAKE_TIMERS)


async def write_clocks(conn: Connection, clocks: Mapping[HookKey, HookClock]) -> None:
    if clocks:
        await conn.execute(
            WRITE_CLOCKS,
            *_columns(list(clocks)),
            [one.deadline for one in clocks.values()],
            [one.notified_at for one in clocks.values()],
            [one.undeliverable_at for one in clocks.values()],
        )


def clock_of(row: Any, prefix: str = "") -> HookClock:
    """The clock of a hook's row. prefix: of the column names."""
    return HookClock(**{name: row[prefix + name] for name in CLOCK_COLUMNS})


def _columns(keys: Sequence[HookKey]) -> tuple[list[UUID], list[UUID]]:
    return [stack_id for stack_id, _ in keys], [hook_id for _, hook_id in keys]


async def due_reminders(conn: Connection, limit: int) -> list[HookKey]:
    """Hooks whose next reminder or escalation is due."""
    return _keys(await conn.fetch(DUE_REMINDERS, limit))


async def record_reminders(conn: Connection, reminders: Sequence[Json]) -> None:
    """reminders: [{stack_id, id, wake_at, reminded, escalated}]."""
    await conn.execute(RECORD_REMINDERS, reminders, [one["id"] for one in reminders])


async def due_hooks(conn: Connection, limit: int) -> list[HookKey]:
    """Waiting hooks whose deadline has passed. If there are more than `limit`, projects take
    turns."""
    rows = await conn.fetch(DUE_HOOKS, limit)
    if len(rows) == limit:
        rows = await conn.fetch(DUE_HOOKS_IN_TURN, limit)
    return _keys(rows)


async def next_deadline(conn: Connection) -> float | None:
    """Seconds until the next deadline, negative if it has passed; None: no hook waits."""
    seconds: float | None = await conn.fetchval(NEXT_DEADLINE)
    return seconds


async def next_reminder(conn: Connection) -> float | None:
    """Seconds until the next reminder, negative if it is overdue; None: no reminder is planned."""
    seconds: float | None = await conn.fetchval(NEXT_REMINDER)
    return seconds


async def fail_hook(
    conn: Connection, stack_id: UUID, hook_id: UUID, reason: str, by: Principal
) -> None:
    """Expire a hook that caused an internal error as rejected: its node fails, or its operation is
    called again with the rejection. Locks the stack; in the caller's transaction."""
    await lock_stacks(conn, [stack_id])
    row = await conn.fetchrow(EXPIRE_HOOK, stack_id, hook_id, reason, by.name, by.id)
    if row is None:
        return
    node = await conn.fetchrow(FAILING_NODE, stack_id, hook_id)
    if node is not None:
        decided = _decide_rejection(node, Answered(Decision.REJECT, by.name, reason))
        await conn.execute(FAIL_NODE, stack_id, hook_id, reason, by.name, decided)
    entry = Entry(
        stack_id=stack_id,
        hook_id=hook_id,
        kind=f"expired-{OnTimeout.REJECT}",
        by=by.name,
        principal=by.id,
        channel=AnswerChannel.RULE,
        at=row["decided_at"],
        reason=reason,
        digest=row["digest"],
    )
    await record_entries(conn, [entry])


def _decide_rejection(node: Any, rejection: Answered) -> Json:
    """What the node machine decides for a node whose hook is rejected. tainted: null if its
    resource does not change."""
    step = decide(
        Node(
            Operation(node["operation"]),
            State(node["state"]),
            Phase(node["phase"]),
            breakpoints_hit=tuple(node["breakpoints_hit"]),
        ),
        rejection,
    )
    if isinstance(step, InvalidInput):
        raise HeadgateError(step.reason)
    failed = (one.tainted for one in step.effects if isinstance(one, WriteFailed))
    confirmed = (one.as_json() for one in step.effects if isinstance(one, NotifyType))
    return {
        "state": step.node.state,
        "phase": step.node.phase,
        "tainted": next(failed, None),
        "confirmation": next(confirmed, None),
    }


async def stop_reminders(conn: Connection, stack_id: UUID, hook_id: UUID) -> None:
    """Send no more reminders of a hook. Its deadline stays."""
    await conn.execute(STOP_REMINDERS, stack_id, hook_id)


def _keys(rows: Sequence[Any]) -> list[HookKey]:
    return [(row["stack_id"], row["id"]) for row in rows]
