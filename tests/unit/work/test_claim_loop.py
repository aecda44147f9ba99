"""Which claims are under way at the same time: work that waits for a service makes room."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

from engine.loop_guard import Supervisor
from engine.work.claim_loop import PATIENCE, ClaimLoop, ClaimSlot, DueWork


class Projects:
    """Work of projects whose service answers when `answers` is set. waits: whether the work says
    that it waits for it."""

    def __init__(self, names: str, *, waits: bool, patience: float = 0.0) -> None:
        self.due = deque(names)
        self.under_way: list[str] = []
        self.waits = waits
        self.answers = {name: asyncio.Event() for name in names}
        self.started = {name: asyncio.Event() for name in names}
        self.loop: ClaimLoop[str] = ClaimLoop(
            Supervisor().guard("test"),
            DueWork(
                claim=self.claim,
                until_next=self.until_next,
                run=self.run,
                project_of=lambda name: name,
                at_once=2,
                of_project=1,
                waiting=2,
                patience=patience,
            ),
        )

    async def claim(self, busy: Sequence[str]) -> str | None:
        return self.due.popleft() if self.due else None

    async def until_next(self, busy: Sequence[str]) -> timedelta | None:
        return None

    async def run(self, name: str, slot: ClaimSlot) -> None:
        self.under_way.append(name)
        self.started[name].set()
        if self.waits:
            with slot.waiting():
                await self.answers[name].wait()
        else:
            await self.answers[name].wait()
        self.under_way.remove(name)


async def turns() -> None:
    """Let the loop do what it can do without an answer."""
    for _ in range(50):
        await asyncio.sleep(0)


async def run_until(projects: Projects, *steps: tuple[str, str]) -> list[str]:
    """Start the loop, and for each step (names that must be under way, a name whose service then
    answers) check what is under way."""
    stop = asyncio.Event()
    found: list[str] = []
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(projects.loop.run(stop))
        for expected, answered in steps:
            for name in expected:
                await projects.started[name].wait()
            await turns()
            found.append("".join(sorted(projects.under_way)))
            projects.answers[answered].set()
        stop.set()
        projects.loop.wake()
    return found


async def test_work_that_waits_for_a_service_makes_room_for_so_many_others() -> None:
    projects = Projects("abcdef", waits=True)
    found = await run_until(projects, ("abcd", "b"), ("acde", "a"), ("cdef", "c"))
    assert found == ["abcd", "acde", "cdef"]


async def test_work_that_does_not_wait_for_a_service_keeps_its_place() -> None:
    projects = Projects("abcd", waits=False)
    assert await run_until(projects, ("ab", "a"), ("bc", "b")) == ["ab", "bc"]


async def test_work_makes_no_room_before_it_has_waited_long() -> None:
    projects = Projects("abcd", waits=True, patience=PATIENCE)
    assert await run_until(projects, ("ab", "a"), ("bc", "b")) == ["ab", "bc"]


async def test_work_takes_its_place_again_when_the_service_has_answered() -> None:
    slot = ClaimSlot(patience=0)
    with slot.waiting():
        await turns()
        assert slot.is_waiting
    assert not slot.is_waiting
    await turns()
    assert not slot.is_waiting


async def test_work_waits_for_each_part_and_not_while_it_handles_one() -> None:
    slot, seen = ClaimSlot(patience=0), list[bool]()

    async def parts() -> AsyncIterator[int]:
        for number in range(3):
            await turns()
            seen.append(slot.is_waiting)
            yield number

    handled: list[tuple[int, bool]] = []
    async for part in slot.waiting_for(parts()):
        await turns()
        handled.append((part, slot.is_waiting))
    assert handled == [(0, False), (1, False), (2, False)]
    assert seen == [True] * 3
    assert not slot.is_waiting
