"""The queue of costly requests is fair to projects and users, and bounded."""

import asyncio
from dataclasses import dataclass

import pytest

from engine.errors import Unavailable
from engine.fair_queue import FairQueue
from engine.service.traversals.thread_pool import CLIENT, RequestClient, ThreadPool
from hub.api.costly_requests import CostlyRequests
from hub.auth.throttle import TooManyRequests


@dataclass(frozen=True, slots=True)
class Job:
    group: str
    member: str
    number: int


def run_order(queue: FairQueue[Job]) -> list[Job]:
    """The jobs in the order in which they run, one at a time."""
    order = []
    while (job := queue.take()) is not None:
        order.append(job)
        queue.release(job)
    return order


def test_projects_take_turns_and_users_within_them() -> None:
    queue: FairQueue[Job] = FairQueue(1, 1, 1)
    for number in range(3):
        queue.add(Job("alpha", "ann", number))
    queue.add(Job("alpha", "bob", 0))
    queue.add(Job("beta", "cyd", 0))
    assert [(job.group, job.member) for job in run_order(queue)] == [
        ("alpha", "ann"), ("beta", "cyd"), ("alpha", "bob"), ("alpha", "ann"), ("alpha", "ann"),
    ]  # fmt: skip


def test_one_slot_is_reserved_for_another_project() -> None:
    queue: FairQueue[Job] = FairQueue(3, 2, 1)
    for number in range(5):
        for user in ("ann", "bob", "cyd"):
            queue.add(Job("alpha", user, number))
    first, second = queue.take(), queue.take()
    assert first and second and (first.member, second.member) == ("ann", "bob")
    assert queue.take() is None
    queue.add(Job("beta", "dan", 0))
    assert queue.take() == Job("beta", "dan", 0)
    queue.release(second)
    third = queue.take()
    assert third and third.member == "cyd"  # ann has one running


async def test_waiting_requests_of_a_user_are_limited() -> None:
    requests = CostlyRequests(10, waiting_per_user=3)
    go, results = asyncio.Event(), []

    async def one(user: str) -> None:
        try:
            async with requests.turn("alpha", RequestClient(user)):
                await go.wait()
                results.append(user)
        except TooManyRequests as refused:
            results.append(f"{user}: {refused.wait}")

    async with asyncio.TaskGroup() as tasks:
        for _ in range(6):  # two running, three waiting
            tasks.create_task(one("ann"))
        tasks.create_task(one("bob"))
        while "ann: 5" not in results:
            await asyncio.sleep(0)
        go.set()
    assert sorted(results) == ["ann"] * 5 + ["ann: 5", "bob"]


async def test_a_cancelled_request_leaves_the_queue() -> None:
    requests = CostlyRequests(2, waiting_per_user=1)

    async def never_end() -> None:
        async with requests.turn("alpha", RequestClient("ann")):
            await asyncio.Event().wait()

    for _ in range(3):
        tasks = [asyncio.create_task(never_end()) for _ in range(2)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    async with asyncio.timeout(5), requests.turn("alpha", RequestClient("ann")):
        pass


async def test_a_disconnected_client_is_skipped() -> None:
    requests = CostlyRequests(2, waiting_per_user=5)
    with pytest.raises(Unavailable):
        async with requests.turn("alpha", RequestClient("ann", is_disconnected=lambda: True)):
            pytest.fail("nobody waits for this")
    async with asyncio.timeout(5), requests.turn("alpha", RequestClient("bob")):
        pass


async def test_threads_skip_work_of_disconnected_clients() -> None:
    pool, go, done = ThreadPool(), asyncio.Event(), []
    loop = asyncio.get_running_loop()
    gone = False

    def waiting_thread() -> None:
        asyncio.run_coroutine_threadsafe(go.wait(), loop).result()

    CLIENT.set(RequestClient("ann"))
    running = asyncio.create_task(pool(waiting_thread, "alpha"))
    cancelled = asyncio.create_task(pool(lambda: done.append("cancelled"), "alpha"))
    CLIENT.set(RequestClient("ann", is_disconnected=lambda: gone))
    left = asyncio.create_task(pool(lambda: done.append("left"), "alpha"))
    await asyncio.sleep(0)
    CLIENT.set(RequestClient("bob"))
    assert await pool(lambda: "at once", "alpha") == "at once"
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    gone = True
    go.set()
    await running
    with pytest.raises(Unavailable):
        await left
    assert done == []
