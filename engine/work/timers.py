"""Loops for the deadlines of hooks, and for their reminders and escalations. Each sleeps until the
next one is due. The time limit of a traversal counts working time, and is not a timer here:
engine/store/routines/1_working_time.sql."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from engine.bounded_wait import wait_at_most
from engine.hooks.deadline import has_expired
from engine.hooks.reminders import must_escalate, next_time
from engine.loop_guard import Fault, Supervisor
from engine.node.node import Expired
from engine.principal import internal
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.hooks.deadlines import (
    due_hooks,
    due_reminders,
    fail_hook,
    next_deadline,
    next_reminder,
    record_reminders,
    stop_reminders,
)
from engine.store.hooks.locked_hooks import LockedHook, lock_hooks, record_events
from engine.words import AnswerChannel, HookState, Json, OnTimeout
from engine.work.hook_decisions import DECIDED_BY_ENGINE, Verdict, apply, hook_event
from engine.work.worker_metrics import WorkerMetrics, report_step

#: The principal that is recorded for decisions of deadlines.
BY_DEADLINE = internal(DECIDED_BY_ENGINE)
#: Hooks per transaction. Larger batches were not faster and lock stacks for longer.
BATCH = 400

#: (stack ID, hook ID).
HookKey = tuple[UUID, UUID]


class Timers:
    def __init__(
        self,
        database: Database,
        *,
        poll: timedelta,
        default_timeout: timedelta,
        new_id: Callable[[], UUID],
        metrics: WorkerMetrics | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._poll = poll.total_seconds()
        self._default_timeout = default_timeout
        self._new_id = new_id
        self._metrics = metrics or WorkerMetrics()
        supervisor = supervisor or Supervisor()
        self._deadlines = supervisor.guard("deadlines", max_pause=self._poll)
        self._reminders = supervisor.guard("reminders", max_pause=self._poll)
        self._wakes = (asyncio.Event(), asyncio.Event())

    def wake(self) -> None:
        """Read the next due times again: a hook opened, or its deadline changed."""
        for one in self._wakes:
            one.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set and `wake` is called."""

        async def expire() -> None:
            await self._turn(self._wakes[0], self.expire_due, next_deadline)

        async def remind() -> None:
            await self._turn(self._wakes[1], self.remind_due, next_reminder)

        async with asyncio.TaskGroup() as group:
            group.create_task(self._deadlines.run(expire, stop))
            group.create_task(self._reminders.run(remind, stop))

    async def _turn(
        self,
        wake: asyncio.Event,
        work: Callable[[], Awaitable[int]],
        next_due: Callable[[Connection], Awaitable[float | None]],
    ) -> None:
        wake.clear()
        if await work() == BATCH:
            return
        async with self._database.connection() as conn:
            due = await next_due(conn)
        await wait_at_most(wake, self._poll if due is None else min(self._poll, max(due, 0.01)))

    async def expire_due(self) -> int:
        """Expire hooks whose deadline has passed, at most BATCH; return how many were due.

        An internal error fails only the hook that raised it, and its node.
        """
        async with self._database.transaction(replan=True, by_index=True) as conn:
            keys = await due_hooks(conn, BATCH)
        await self._deadlines.split(keys, self._expire, self._fail, _log_fields)
        return len(keys)

    async def _expire(self, keys: Sequence[HookKey]) -> None:
        async with self._database.transaction("expire", replan=True, by_index=True) as conn:
            hooks = [
                one
                for one in await lock_hooks(conn, keys)
                if one.state is HookState.WAITING and has_expired(one.clock, one.now)
            ]
            verdicts = [
                Verdict(one, Expired(OnTimeout(one.on_timeout)), BY_DEADLINE, AnswerChannel.RULE)
                for one in hooks
            ]
            steps = await apply(
                conn, verdicts, new_id=self._new_id, default_timeout=self._default_timeout
            )
        self._metrics.record_expired_hooks(len(verdicts))
        for step in steps:
            report_step(step, self._metrics)

    async def _fail(self, key: HookKey, fault: Fault) -> None:
        async with self._database.transaction("expire") as conn:
            await fail_hook(conn, *key, str(fault), BY_DEADLINE)

    async def remind_due(self) -> int:
        """Send due reminders and escalations; return how many were due.

        A hook that raised an internal error gets no more reminders; its deadline stays.
        """
        async with self._database.transaction(replan=True, by_index=True) as conn:
            keys = await due_reminders(conn, BATCH)
        await self._reminders.split(keys, self._remind, self._stop_reminders, _log_fields)
        return len(keys)

    async def _remind(self, keys: Sequence[HookKey]) -> None:
        async with self._database.transaction("expire", replan=True, by_index=True) as conn:
            hooks = [
                one
                for one in await lock_hooks(conn, keys)
                if one.state is HookState.WAITING
                and one.wake_at is not None
                and one.wake_at <= one.now
            ]
            due = [reminder(one) for one in hooks]
            await record_reminders(conn, [one.row for one in due])
            events = [hook_event(one, new.kind, new.reason, new.data)
                      for one, new in zip(hooks, due, strict=True)]  # fmt: skip
            await record_events(conn, events)

    async def _stop_reminders(self, key: HookKey, _: Fault) -> None:
        async with self._database.transaction() as conn:
            await stop_reminders(conn, *key)


def _log_fields(key: HookKey) -> dict[str, str]:
    return {"stack_id": str(key[0]), "hook": str(key[1])}


@dataclass(frozen=True, slots=True)
class Reminder:
    """kind, reason, data: of the event. row: the changes of the hook's row."""

    kind: str
    reason: str
    row: Json
    data: dict[str, Json] = field(default_factory=dict)


def reminder(hook: LockedHook) -> Reminder:
    """Return the reminder or escalation that is due."""
    rule = hook.rule
    subject = f"Hook {hook.point} of {hook.resource_name or 'the stack'}"
    opened_at, now = hook.clock.opened_at, hook.now
    escalates = must_escalate(rule, opened_at, now, escalated=hook.escalated)
    escalated = hook.escalated or escalates
    row = {
        "stack_id": hook.stack_id,
        "id": hook.id,
        "wake_at": next_time(rule, opened_at, now, escalated=escalated),
        "reminded": not escalates,
        "escalated": escalates,
    }
    if escalates and rule.escalate is not None:
        to = list(rule.escalate.to)
        approvers = ", ".join(to) or "another approver"
        reason = f"{subject} has no answer yet; {approvers} may answer it now"
        return Reminder("headgate.hook.escalated", reason, row, {"to": to})
    reason = f"{subject} is still waiting for an answer"
    return Reminder("headgate.hook.reminder", reason, row, {"reminder": hook.reminders + 1})
