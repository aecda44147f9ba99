"""Loops for deadlines and for reminders of hooks. Each sleeps until the next one is due."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from uuid import UUID

from engine.hooks.deadline import has_expired
from engine.loops import Fault, Supervisor, wait_at_most
from engine.node.inputs import Expired
from engine.principal import internal
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.hooks import (
    due_hooks,
    due_reminders,
    lock_hooks,
    next_deadline,
    next_reminder,
    record_events,
    reminded,
)
from engine.store.internal_errors import fail_hook, silence_hook
from engine.words import Door, HookState, OnTimeout
from engine.work.hook_decisions import NOBODY, Verdict, apply, hook_event
from engine.work.measures import Measures
from engine.work.reminders import reminder
from engine.work.worker_metrics import report_step

#: The principal that is recorded for decisions of deadlines.
BY_DEADLINE = internal(NOBODY)
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
        measures: Measures | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._poll = poll.total_seconds()
        self._default_timeout = default_timeout
        self._new_id = new_id
        self._measures = measures or Measures()
        supervisor = supervisor or Supervisor()
        self._deadlines = supervisor.guard("deadlines", longest=self._poll)
        self._reminders = supervisor.guard("reminders", longest=self._poll)
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
            held = [
                one
                for one in await lock_hooks(conn, keys)
                if one.asked.state is HookState.WAITING and has_expired(one.asked.clock, one.now)
            ]
            verdicts = [
                Verdict(one, Expired(OnTimeout(one.on_timeout)), BY_DEADLINE, Door.RULE)
                for one in held
            ]
            steps = await apply(
                conn, verdicts, new_id=self._new_id, default_timeout=self._default_timeout
            )
        self._measures.hooks_expired(len(verdicts))
        for step in steps:
            report_step(step, self._measures)

    async def _fail(self, key: HookKey, fault: Fault) -> None:
        async with self._database.transaction("expire") as conn:
            await fail_hook(conn, *key, str(fault), BY_DEADLINE)

    async def remind_due(self) -> int:
        """Send due reminders and escalations; return how many were due.

        A hook that raised an internal error gets no more reminders; its deadline stays.
        """
        async with self._database.transaction(replan=True, by_index=True) as conn:
            keys = await due_reminders(conn, BATCH)
        await self._reminders.split(keys, self._remind, self._silence, _log_fields)
        return len(keys)

    async def _remind(self, keys: Sequence[HookKey]) -> None:
        async with self._database.transaction("expire", replan=True, by_index=True) as conn:
            held = [
                one
                for one in await lock_hooks(conn, keys)
                if one.asked.state is HookState.WAITING
                and one.wake_at is not None
                and one.wake_at <= one.now
            ]
            due = [reminder(one) for one in held]
            await reminded(conn, [one.row for one in due])
            events = [hook_event(one, new.kind, new.reason, new.data)
                      for one, new in zip(held, due, strict=True)]  # fmt: skip
            await record_events(conn, events)

    async def _silence(self, key: HookKey, _: Fault) -> None:
        async with self._database.transaction() as conn:
            await silence_hook(conn, *key)


def _log_fields(key: HookKey) -> dict[str, str]:
    return {"stack_id": str(key[0]), "hook": str(key[1])}
