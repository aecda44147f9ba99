"""Costly requests wait their turn: fair to projects and users, and bounded."""

import asyncio
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import Unavailable
from engine.service.traversals.fair_queue import FairQueue
from engine.service.traversals.thread_pool import CLIENT, Client, ThreadPool
from hub.api.costly_requests import CostlyRequests
from hub.auth.throttle import TooMany


@dataclass(frozen=True, slots=True)
class Job:
    project: str
    user: str
    number: int


def all_taken(queue: FairQueue[Job]) -> list[Job]:
    """The order in which jobs run when one ends at a time."""
    order = []
    while (job := queue.take()) is not None:
        order.append(job)
        queue.done(job)
    return order


def test_projects_take_turns_and_users_within_them() -> None:
    queue: FairQueue[Job] = FairQueue(1, 1, 1)
    for number in range(3):
        queue.add(Job("alpha", "ann", number))
    queue.add(Job("alpha", "bob", 0))
    queue.add(Job("beta", "cyd", 0))
    assert [(job.project, job.user) for job in all_taken(queue)] == [
        ("alpha", "ann"), ("beta", "cyd"), ("alpha", "bob"), ("alpha", "ann"), ("alpha", "ann"),
    ]  # fmt: skip


def test_a_place_stays_free_for_another_project() -> None:
    queue: FairQueue[Job] = FairQueue(3, 2, 1)
    for number in range(5):
        for user in ("ann", "bob", "cyd"):
            queue.add(Job("alpha", user, number))
    first, second = queue.take(), queue.take()
    assert first and second and (first.user, second.user) == ("ann", "bob")
    assert queue.take() is None
    queue.add(Job("beta", "dan", 0))
    assert queue.take() == Job("beta", "dan", 0)
    queue.done(second)
    third = queue.take()
    assert third and third.user == "cyd"  # ann has one running


NAMES = st.sampled_from("abc")


@given(st.lists(st.tuples(NAMES, NAMES)), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_every_job_runs_once_and_within_the_bounds(
    jobs: list[tuple[str, str]], places: int, per_project: int, per_user: int
) -> None:
    queue: FairQueue[Job] = FairQueue(places, per_project, per_user)
    wanted = [Job(project, user, number) for number, (project, user) in enumerate(jobs)]
    for job in wanted:
        queue.add(job)
    running: list[Job] = []
    ended: list[Job] = []
    while len(queue) or running:
        while (taken := queue.take()) is not None:
            running.append(taken)
        assert 0 < len(running) <= places
        assert all([j.project for j in running].count(j.project) <= per_project for j in running)
        assert all(
            [(j.project, j.user) for j in running].count((j.project, j.user)) <= per_user
            for j in running
        )
        ended.append(running.pop(0))
        queue.done(ended[-1])
    assert sorted(ended, key=lambda job: job.number) == wanted


async def test_a_user_has_only_so_many_waiting() -> None:
    requests = CostlyRequests(10, waiting_per_user=3)
    go, results = asyncio.Event(), []

    async def one(user: str) -> None:
        try:
            async with requests.turn("alpha", Client(user)):
                await go.wait()
                results.append(user)
        except TooMany as refused:
            results.append(f"{user}: {refused.wait}")

    async with asyncio.TaskGroup() as tasks:
        for _ in range(6):  # two at work, three waiting
            tasks.create_task(one("ann"))
        tasks.create_task(one("bob"))
        while "ann: 5" not in results:
            await asyncio.sleep(0)
        go.set()
    assert sorted(results) == ["ann"] * 5 + ["ann: 5", "bob"]


async def test_what_was_cancelled_frees_its_place_in_the_queue() -> None:
    requests = CostlyRequests(2, waiting_per_user=1)

    async def forever() -> None:
        async with requests.turn("alpha", Client("ann")):
            await asyncio.Event().wait()

    for _ in range(3):
        tasks = [asyncio.create_task(forever()) for _ in range(2)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    async with asyncio.timeout(5), requests.turn("alpha", Client("ann")):
        pass


async def test_a_turn_of_a_client_that_has_gone_goes_to_the_next() -> None:
    requests = CostlyRequests(2, waiting_per_user=5)
    with pytest.raises(Unavailable):
        async with requests.turn("alpha", Client("ann", gone=lambda: True)):
            pytest.fail("nobody waits for this")
    async with asyncio.timeout(5), requests.turn("alpha", Client("bob")):
        pass


async def test_threads_do_no_work_that_nobody_waits_for() -> None:
    aside, go, done = ThreadPool(), asyncio.Event(), []
    loop = asyncio.get_running_loop()
    gone = False

    def held() -> None:
        asyncio.run_coroutine_threadsafe(go.wait(), loop).result()

    CLIENT.set(Client("ann"))
    running = asyncio.create_task(aside(held, "alpha"))
    cancelled = asyncio.create_task(aside(lambda: done.append("cancelled"), "alpha"))
    CLIENT.set(Client("ann", gone=lambda: gone))
    left = asyncio.create_task(aside(lambda: done.append("left"), "alpha"))
    await asyncio.sleep(0)
    CLIENT.set(Client("bob"))
    assert await aside(lambda: "at once", "alpha") == "at once"
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    gone = True
    go.set()
    await running
    with pytest.raises(Unavailable):
        await left
    assert done == []
