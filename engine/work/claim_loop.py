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
from functools import partial
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
#: Seconds that work may wait for services, in all, before it makes room for other work whenever it
#: waits.
PATIENCE = 5.0
#: Seconds for which a project is slow after work of it has made room.
SLOW = 600.0
#: Seconds between two looks at the schedule because work has made room: it does so for each of its
#: requests, of which there may be hundreds a second.
ROOM_PAUSE = 0.25
#: Projects that are remembered at most: as slow, or for the kind of their last work.
REMEMBERED = 1_000


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
        """Make room for other claims if this block, which only waits for services, takes long, or
        such blocks of the claim have taken long."""
        loop = asyncio.get_running_loop()
        begin = loop.time()
        timer = loop.call_later(max(self._patience, 0.0), self._make_room)
        try:
            yield
        finally:
            timer.cancel()
            self._patience -= loop.time() - begin
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
class BusyProjects:
    """What may not be claimed now. projects: nothing of these. urgent_only: only what users have
    requested. reports_last: other work of these precedes what was reported."""

    projects: Sequence[str] = ()
    urgent_only: Sequence[str] = ()
    reports_last: Sequence[str] = ()

    @property
    def busy(self) -> list[str]:
        """The projects of which only requested work may be claimed, or none."""
        return [*self.projects, *self.urgent_only]


@dataclass(frozen=True, slots=True)
class DueWork(Generic[Claimed]):
    """claim: claims work within limits; None: none is due. until_next: the time until work of a
    project not among those given is due; None: none is planned. run: does claimed work in a slot,
    and releases it if it is cancelled. project_of: of claimed work. at_once, of_project: claims
    under way at the same time, of all projects and of one. waiting: further ones of all projects,
    as long as so many wait for a service. reserved: the last places, which are for projects without
    other claims, of which none has made room in the last minutes; see `SLOW`. urgent: further
    claims of a project that users have requested, as long as so many of it wait. is_reported:
    whether claimed work was reported: other work of the project that is due precedes more of it.
    patience: see `ClaimSlot`."""

    claim: Callable[[BusyProjects], Awaitable[Claimed | None]]
    until_next: Callable[[Sequence[str]], Awaitable[timedelta | None]]
    run: Callable[[Claimed, ClaimSlot], Coroutine[Any, Any, None]]
    project_of: Callable[[Claimed], str]
    at_once: int
    of_project: int
    waiting: int
    reserved: int = 0
    urgent: int = 0
    is_reported: Callable[[Claimed], bool] = lambda _: False
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
        #: Until when projects are slow.
        self._slow: dict[str, float] = {}
        #: The projects whose last work was reported.
        self._reported: dict[str, None] = {}
        #: When room that was made may be used next.
        self._room_at = 0.0
        self._room_timer: asyncio.TimerHandle | None = None

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
        while (claimed := await self._claim()) is not None:
            await self._work.run(claimed, ClaimSlot())
            done.append(claimed)
        return done

    async def _turn(self, group: asyncio.TaskGroup) -> None:
        self._wake.clear()
        while self._has_room() and (claimed := await self._claim()):
            project = self._work.project_of(claimed)
            slot = ClaimSlot(partial(self._make_room, project), self._work.patience)
            task = group.create_task(self._work.run(claimed, slot))
            self._running[task] = RunningClaim(project, slot)
            task.add_done_callback(self._end)
        poll, due = POLL.total_seconds(), None
        if self._has_room():
            due = await self._work.until_next(self._limits().busy)
        seconds = poll if due is None else min(poll, max(due.total_seconds(), _MIN_SLEEP))
        await wait_at_most(self._wake, seconds)

    def _end(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        self._wake.set()

    def _make_room(self, project: str) -> None:
        loop = asyncio.get_running_loop()
        self._slow.pop(project, None)
        self._slow[project] = loop.time() + SLOW
        _forget_first(self._slow)
        if self._room_timer is None:
            self._room_timer = loop.call_at(max(self._room_at, loop.time()), self._use_room)

    def _use_room(self) -> None:
        self._room_timer = None
        self._room_at = asyncio.get_running_loop().time() + ROOM_PAUSE
        self._wake.set()

    async def _claim(self) -> Claimed | None:
        """Work of a project whose last work was reported is other work, if any is due."""
        claimed = await self._work.claim(self._limits())
        if claimed is not None:
            project = self._work.project_of(claimed)
            self._reported.pop(project, None)
            if self._work.is_reported(claimed):
                self._reported[project] = None
                _forget_first(self._reported)
        return claimed

    def _room(self) -> int:
        waiting = sum(one.slot.is_waiting for one in self._running.values())
        return self._work.at_once - (len(self._running) - min(waiting, self._work.waiting))

    def _has_room(self) -> bool:
        return self._room() > 0

    def _limits(self) -> BusyProjects:
        """A project has so many claims under way, or, as long as some of them wait, further ones
        that users have requested. The last places are for projects that have none, and are not
        slow."""
        counts = Counter(one.project for one in self._running.values())
        waiting = Counter(one.project for one in self._running.values() if one.slot.is_waiting)
        full, urgent_only = set[str](), list[str]()
        for project, count in counts.items():
            if count - min(waiting[project], self._work.urgent) >= self._work.of_project:
                full.add(project)
            elif count >= self._work.of_project:
                urgent_only.append(project)
        now = asyncio.get_running_loop().time()
        self._slow = {project: until for project, until in self._slow.items() if until > now}
        if self._room() <= self._work.reserved:
            full |= {*self._slow, *counts}
        urgent_only = [one for one in urgent_only if one not in full]
        return BusyProjects(sorted(full), urgent_only, [*self._reported])


def _forget_first(projects: dict[str, Any]) -> None:
    if len(projects) > REMEMBERED:
        del projects[next(iter(projects))]
