"""Which claims are under way at the same time: work that waits for a service makes room."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

from engine.loop_guard import Supervisor
from engine.work.claim_loop import PATIENCE, ROOM_PAUSE, BusyProjects, ClaimLoop, ClaimSlot, DueWork


class Projects:
    """Work of projects whose service answers when `answers` is set. waits: whether the work says
    that it waits for it."""

    def __init__(
        self, names: str, *, waits: bool, patience: float = 0.0, reserved: int = 0, urgent: int = 0
    ) -> None:
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
                project_of=str.lower,
                at_once=2,
                of_project=1,
                waiting=2,
                reserved=reserved,
                urgent=urgent,
                patience=patience,
            ),
        )

    async def claim(self, limits: BusyProjects) -> str | None:
        for name in self.due:
            urgent = name.isupper()
            if name.lower() not in (limits.projects if urgent else limits.busy):
                self.due.remove(name)
                return name
        return None

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


async def test_the_last_places_are_not_for_projects_whose_services_were_slow() -> None:
    projects = Projects("abcdef", waits=True, reserved=1)
    stop = asyncio.Event()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(projects.loop.run(stop))
        for name in "abcd":
            await projects.started[name].wait()
        await turns()
        assert projects.under_way == [*"abcd"]
        projects.due.appendleft("a")
        projects.answers["a"].set()
        await projects.started["e"].wait()
        await turns()
        assert (projects.under_way, [*projects.due]) == ([*"bcde"], ["a", "f"])
        # Of the other places, one is free as soon as two have answered.
        projects.answers["b"].set()
        projects.answers["c"].set()
        await projects.started["f"].wait()
        stop.set()
        projects.loop.wake()


async def test_waiting_work_makes_room_for_requested_work_of_its_project() -> None:
    projects = Projects("aA", waits=True, urgent=1)
    projects.due.extend("a")
    assert await run_until(projects, ("aA", "a")) == ["Aa"]
    assert projects.due == deque("a")


async def test_requested_work_does_not_precede_work_that_does_not_wait() -> None:
    projects = Projects("aA", waits=False, urgent=1)
    assert await run_until(projects, ("a", "a")) == ["a"]


async def test_reported_work_is_no_project_s_only_work() -> None:
    limits = list[Sequence[str]]()
    due = deque(["reported", "policy", "reported", ""])

    async def claim(found: BusyProjects) -> str | None:
        limits.append(found.reports_last)
        return due.popleft() or None

    async def run(name: str, slot: ClaimSlot) -> None:
        pass

    async def until_next(busy: Sequence[str]) -> timedelta | None:
        return None

    work = DueWork(
        claim, until_next, run, lambda _: "p", 1, 1, 0, is_reported=lambda one: one == "reported"
    )
    await ClaimLoop(Supervisor().guard("test"), work).run_due()
    assert limits == [[], ["p"], [], ["p"]]


async def test_work_that_waits_often_makes_room_when_it_has_waited_long_in_all() -> None:
    slot = ClaimSlot(patience=0.03)
    for _ in range(2):
        with slot.waiting():
            await asyncio.sleep(0.02)
    with slot.waiting():
        await turns()
        assert slot.is_waiting


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


async def test_work_that_makes_room_for_each_request_makes_few_claims() -> None:
    """Else it would claim, and find nothing due, hundreds of times a second."""
    claims, requests = 0, 500

    async def claim(limits: BusyProjects) -> str | None:
        nonlocal claims
        claims += 1
        return "a" if claims == 1 else None

    async def until_next(busy: Sequence[str]) -> timedelta | None:
        return None

    ended = asyncio.Event()

    async def run(name: str, slot: ClaimSlot) -> None:
        for _ in range(requests):
            with slot.waiting():
                await turns()
        ended.set()

    work = DueWork(claim, until_next, run, str, at_once=2, of_project=1, waiting=2, patience=0.0)
    loop: ClaimLoop[str] = ClaimLoop(Supervisor().guard("test"), work)
    stop, begin = asyncio.Event(), asyncio.get_running_loop().time()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(loop.run(stop))
        await ended.wait()
        stop.set()
        loop.wake()
    seconds = asyncio.get_running_loop().time() - begin
    assert claims <= 5 + seconds / ROOM_PAUSE
