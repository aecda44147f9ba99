"""A loop that claims work when it is due and does it in tasks, fairly between projects.

It is for observations and completions. `claim_due` (engine/store/routines/4_claim_due.sql) decides
which worker executes which node.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

from engine.bounded_wait import wait_at_most
from engine.loop_guard import Guard

#: What one claim returns.
Claimed = TypeVar("Claimed")

#: Longest time between two polls of the schedule.
POLL = timedelta(seconds=10)
#: Seconds: the shortest sleep, for work that is due but claimed by another process.
_MIN_SLEEP = 0.01


@dataclass(frozen=True, slots=True)
class DueWork(Generic[Claimed]):
    """claim: claims work of a project not among those given; None: none is due. until_next: the
    time until work of such a project is due; None: none is planned. run: does claimed work, and
    releases it if it is cancelled. project_of: of claimed work. at_once, of_project: claims under
    way at the same time, of all projects and of one."""

    claim: Callable[[Sequence[str]], Awaitable[Claimed | None]]
    until_next: Callable[[Sequence[str]], Awaitable[timedelta | None]]
    run: Callable[[Claimed], Coroutine[Any, Any, None]]
    project_of: Callable[[Claimed], str]
    at_once: int
    of_project: int


class ClaimLoop(Generic[Claimed]):
    def __init__(self, guard: Guard, work: DueWork[Claimed]) -> None:
        self._guard = guard
        self._work = work
        self._wake = asyncio.Event()
        self._running: dict[asyncio.Task[None], str] = {}

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
            await self._work.run(claimed)
            done.append(claimed)
        return done

    async def _turn(self, group: asyncio.TaskGroup) -> None:
        self._wake.clear()
        while self._has_room() and (claimed := await self._work.claim(self._busy_projects())):
            task = group.create_task(self._work.run(claimed))
            self._running[task] = self._work.project_of(claimed)
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
        return len(self._running) < self._work.at_once

    def _busy_projects(self) -> list[str]:
        """The projects that have as many claims under way as they may."""
        counts = Counter(self._running.values())
        return [project for project, count in counts.items() if count >= self._work.of_project]
