"""Deadlines of hooks: one loop for all of them, asleep until the next one is due."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Unavailable
from engine.node.inputs import Expired
from engine.store.database import Database
from engine.store.hooks import (
    due_hooks,
    due_reminders,
    lock_hooks,
    next_deadline,
    record_events,
    reminded,
)
from engine.words import Door, HookState, OnTimeout
from engine.work.answering import NOBODY, Verdict, apply, hook_event
from engine.work.measures import Measures
from engine.work.reminding import reminder
from engine.work.told import tell_step

log: FilteringBoundLogger = structlog.get_logger()

#: How many hooks expire in one transaction.
BATCH = 200


class Timers:
    def __init__(
        self,
        database: Database,
        *,
        poll: timedelta,
        default_timeout: timedelta,
        new_id: Callable[[], UUID],
        measures: Measures | None = None,
    ) -> None:
        self._database = database
        self._poll = poll.total_seconds()
        self._default_timeout = default_timeout
        self._new_id = new_id
        self._measures = measures or Measures()
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Look again: a hook opened, or its deadline moved."""
        self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            self._wake.clear()
            try:
                if await self.expire_due() == BATCH or await self.remind_due() == BATCH:
                    continue
                async with self._database.connection() as conn:
                    due = await next_deadline(conn)
            except Unavailable as error:
                log.warning("timers.unavailable", reason=str(error))
                due = self._poll
            seconds = self._poll if due is None else min(self._poll, max(due, 0.01))
            try:
                async with asyncio.timeout(seconds):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def expire_due(self) -> int:
        """Expire the hooks whose deadline has come, at most BATCH; return how many were due."""
        async with self._database.transaction("expire", replan=True) as conn:
            keys = await due_hooks(conn, BATCH)
            if not keys:
                return 0
            held = [
                one
                for one in await lock_hooks(conn, keys)
                if one.asked.state is HookState.WAITING and one.asked.deadline <= one.now
            ]
            verdicts = [
                Verdict(one, Expired(OnTimeout(one.on_timeout)), NOBODY, Door.RULE) for one in held
            ]
            steps = await apply(
                conn, verdicts, new_id=self._new_id, default_timeout=self._default_timeout
            )
        self._measures.hooks_expired(len(verdicts))
        for step in steps:
            tell_step(step, self._measures)
        return len(keys)

    async def remind_due(self) -> int:
        """Remind of what waits, ask others where a rule says so; return how many were due."""
        async with self._database.transaction("expire", replan=True) as conn:
            keys = await due_reminders(conn, BATCH)
            if not keys:
                return 0
            held = [
                one
                for one in await lock_hooks(conn, keys)
                if one.asked.state is HookState.WAITING
                and one.wake_at is not None
                and one.wake_at <= one.now
            ]
            said = [reminder(one) for one in held]
            await reminded(conn, [one.written for one in said])
            events = [hook_event(one, told.kind, told.sentence, told.told)
                      for one, told in zip(held, said, strict=True)]  # fmt: skip
            await record_events(conn, events)
        return len(keys)
