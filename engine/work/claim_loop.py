"""A loop that claims work when it is due and does it in tasks, fairly between projects. Work that
waits long for a service makes room for other work, so that the slow services of a few projects do
not keep a process from all others.

It is for observations and completions. `claim_due` (engine/store/routines/4_claim_due.sql) decides
which worker executes which node.
"""

import asyncio
from collections import Counter
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

from engine.bounded_wait import wait_at_most
from engine.loop_guard import Guard

#: What one claim returns.
Claimed = TypeVar("Claimed")
#: What a service sends in parts.
Part = TypeVar("Part")

#: Longest time between two polls of the schedule.
POLL = timedelta(seconds=10)
#: Seconds: the shortest sleep, for work that is due but claimed by another process.
_MIN_SLEEP = 0.01
#: Seconds that work may wait for a service before it makes room for other work.
PATIENCE = 5.0


class ClaimSlot:
    """A place among the claims that are under way at the same time. changed: is called when the
    claim makes room for others. patience: seconds; see `PATIENCE`."""

    def __init__(
        self, changed: Callable[[], None] = lambda: None, patience: float = PATIENCE
    ) -> None:
        self._changed = changed
        self._patience = patience
        self.is_waiting = False

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Make room for other claims if this block, which only waits for a service, takes long."""
        timer = asyncio.get_running_loop().call_later(self._patience, self._make_room)
        try:
            yield
        finally:
            timer.cancel()
            self.is_waiting = False

    async def waiting_for(self, parts: AsyncIterable[Part]) -> AsyncIterator[Part]:
        """The parts; `waiting` for each of them."""
        iterator = aiter(parts)
        while True:
            with self.waiting():
                try:
                    part = await anext(iterator)
                except StopAsyncIteration:
                    return
            yield part

    def _make_room(self) -> None:
        self.is_waiting = True
        self._changed()


@dataclass(frozen=True, slots=True)
class DueWork(Generic[Claimed]):
    """claim: claims work of a project not among those given; None: none is due. until_next: the
    time until work of such a project is due; None: none is planned. run: does claimed work in a
    slot, and releases it if it is cancelled. project_of: of claimed work. at_once, of_project:
    claims under way at the same time, of all projects and of one. waiting: further ones of all
    projects, as long as so many wait for a service. patience: see `ClaimSlot`."""

    claim: Callable[[Sequence[str]], Awaitable[Claimed | None]]
    until_next: Callable[[Sequence[str]], Awaitable[timedelta | None]]
    run: Callable[[Claimed, ClaimSlot], Coroutine[Any, Any, None]]
    project_of: Callable[[Claimed], str]
    at_once: int
    of_project: int
    waiting: int
    patience: float = PATIENCE


@dataclass(frozen=True, slots=True)
class RunningClaim:
    project: str
    slot: ClaimSlot


class ClaimLoop(Generic[Claimed]):
    def __init__(self, guard: Guard, work: DueWork[Claimed]) -> None:
        self._guard = guard
        self._work = work
        self._wake = asyncio.Event()
        self._running: dict[asyncio.Task[None], RunningClaim] = {}

    def wake(self) -> None:
        """Look at the schedule now."""
        self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set and `wake` is called; then cancel what is under way."""
        async with asyncio.TaskGroup() as group:
            try:
                await self._guard.run(lambda: self._turn(group), stop)
            finally:
                for task in self._running:
                    task.cancel()

    async def run_due(self) -> list[Claimed]:
        """Do the work that is due, one claim after another; return the claims."""
        done = []
        while (claimed := await self._work.claim(self._busy_projects())) is not None:
            await self._work.run(claimed, ClaimSlot())
            done.append(claimed)
        return done

    async def _turn(self, group: asyncio.TaskGroup) -> None:
        self._wake.clear()
        while self._has_room() and (claimed := await self._work.claim(self._busy_projects())):
            slot = ClaimSlot(self._wake.set, self._work.patience)
            task = group.create_task(self._work.run(claimed, slot))
            self._running[task] = RunningClaim(self._work.project_of(claimed), slot)
            task.add_done_callback(self._end)
        poll, due = POLL.total_seconds(), None
        if self._has_room():
            due = await self._work.until_next(self._busy_projects())
        seconds = poll if due is None else min(poll, max(due.total_seconds(), _MIN_SLEEP))
        await wait_at_most(self._wake, seconds)

    def _end(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        self._wake.set()

    def _has_room(self) -> bool:
        waiting = sum(one.slot.is_waiting for one in self._running.values())
        return len(self._running) - min(waiting, self._work.waiting) < self._work.at_once

    def _busy_projects(self) -> list[str]:
        """The projects that have as many claims under way as they may."""
        counts = Counter(one.project for one in self._running.values())
        return [project for project, count in counts.items() if count >= self._work.of_project]
