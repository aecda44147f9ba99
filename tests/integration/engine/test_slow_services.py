"""Services that do not answer for a long time: those of a few projects keep the observers of a
process from no other project."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from engine.work.observer.batch_observer import PAGE
from engine.work.observer.completion_observer import REQUESTS, CompletionObserver
from engine.work.observer.observer import (
    BATCHES,
    BATCHES_OF_PROJECT,
    RESERVED_BATCHES,
    URGENT_BATCHES,
    WAITING_BATCHES,
    Observer,
)
from engine.work.observer.provider_endpoints import ProviderEndpoints, RequestRates
from tests.support.completions import (
    building,
    pause_completion_observers,
    run_completion_observers,
    until_waiting,
)
from tests.support.http_things import HTTP_SETTINGS, Things, serve_things, thing
from tests.support.paused_observers import paused_observer, run_observers
from tests.support.program import Json, Program, eventually

LIST = {"items": "$.things", "id": "$.id"}


class SlowThings(Things):
    """A service whose lists with the query `slow` wait for `answers`."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = asyncio.Event()
        self.answers.set()
        self._held: list[web.Request] = []
        self.before_read: Callable[[str], Awaitable[None]] | None = None

    @property
    def waiting(self) -> int:
        """How many lists wait and have a client that still waits for them."""
        return sum(one.transport is not None for one in self._held)

    async def read(self, request: web.Request) -> web.Response:
        if self.before_read is not None:
            await self.before_read(request.match_info["id"])
        return await super().read(request)

    async def list(self, request: web.Request) -> web.Response:
        if (seconds := request.query.get("drip")) and not self.answers.is_set():
            self.requests["drip"] += 1
            await asyncio.sleep(float(seconds))
            number = int(request.query.get("n", 0)) + 1
            following = f"/things?drip={seconds}&n={number}"
            return web.json_response({"things": [], "next": following})
        if "slow" in request.query:
            self._held.append(request)
            try:
                await self.answers.wait()
            finally:
                self._held.remove(request)
        return await super().list(request)

    async def until_waiting(self, count: int) -> None:
        async def reached() -> bool:
            return self.waiting == count

        await eventually(reached)


@pytest_asyncio.fixture(loop_scope="session")
async def things() -> AsyncIterator[SlowThings]:
    service = SlowThings()
    async with serve_things(service):
        yield service
        service.answers.set()


@pytest.fixture(scope="module")
def things_settings(paused_observers: None) -> Iterator[Mapping[str, Any]]:
    with pause_completion_observers():
        yield HTTP_SETTINGS


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    """A program whose observers do not run, so that tests run their own."""
    return things_in_own_project


def slow_projects(run: Program, at_once: int) -> list[Program]:
    """As many projects as can have all of so many places at once."""
    count = at_once // BATCHES_OF_PROJECT
    return [Program(run.session, run.url, f"{run.project}-slow{one}") for one in range(count)]


def slow_list(name: str) -> Json:
    return {"url": f"/things?slow={name}", **LIST}


def observer_of(run: Program, patience: float = 0.0) -> Observer:
    endpoints = ProviderEndpoints(run.database, RequestRates(0.0), lambda: 0.0)
    return Observer(run.database, paused_observer(run)[0], endpoints=endpoints, patience=patience)


async def create_good(run: Program, things: SlowThings) -> Callable[[], Awaitable[bool]]:
    """A stack that differs, and whether an observation has found it."""
    await run.create("good", {"g": thing(things, listed=False)})
    assert await run.until_ended("good") == "CREATE_COMPLETE"
    changed = (await run.resources("good"))["g"]["physical_resource_id"]
    things.objects[changed]["size"] = 9

    async def is_found() -> bool:
        found = (await run.stack_request("GET", "good", "/drift"))["resources"]
        return [one["state"] for one in found] == ["changed"]

    return is_found


@asynccontextmanager
async def running(
    loop: Callable[[asyncio.Event], Awaitable[None]], wake: Callable[[], None]
) -> AsyncIterator[None]:
    stop = asyncio.Event()
    task = asyncio.ensure_future(loop(stop))
    try:
        yield
    finally:
        stop.set()
        wake()
        await task


@pytest.mark.parametrize("page", [PAGE, 1], ids=["by the type", "page by page"])
async def test_hanging_services_keep_no_other_project_from_its_observation(
    run: Program, things: SlowThings, page: int
) -> None:
    slow = slow_projects(run, BATCHES)
    for one in slow:
        for name in "st":
            slow_thing = thing(things, list=slow_list(name))
            await one.create(name, {"a": slow_thing, "b": slow_thing})
            assert await one.until_ended(name) == "CREATE_COMPLETE"
    await run.create("good", {"g": thing(things, listed=False)})
    assert await run.until_ended("good") == "CREATE_COMPLETE"
    changed = (await run.resources("good"))["g"]["physical_resource_id"]
    things.objects[changed]["size"] = 9
    things.answers.clear()
    for one in slow:
        for name in "st":
            await one.act(name, "observe")
    endpoints = ProviderEndpoints(run.database, RequestRates(0.0), lambda: 0.0)
    registry = paused_observer(run)[0]
    observer = Observer(run.database, registry, endpoints=endpoints, patience=0.0, page=page)

    async def is_found() -> bool:
        found = (await run.stack_request("GET", "good", "/drift"))["resources"]
        return [one["state"] for one in found] == ["changed"]

    with run_observers():
        async with running(observer.run, observer.wake):
            await things.until_waiting(BATCHES)
            await run.act("good", "observe")
            observer.wake()
            await eventually(is_found)
            assert things.waiting == BATCHES
            things.answers.set()
            await things.until_waiting(0)


async def test_hanging_services_of_any_project_keep_not_all_places(
    run: Program, things: SlowThings
) -> None:
    """A project whose services hang gets the reserved places once, and not for all of its stacks."""
    slow = slow_projects(run, BATCHES + WAITING_BATCHES)
    for one in slow:
        for name in "st":
            await one.create(name, {"a": thing(things, list=slow_list(name))})
            assert await one.until_ended(name) == "CREATE_COMPLETE"
    good = await create_good(run, things)
    things.answers.clear()
    for one in slow:
        for name in "st":
            await one.act(name, "observe")
    observer = observer_of(run)
    with run_observers():
        async with running(observer.run, observer.wake):
            places = BATCHES + WAITING_BATCHES

            async def hang() -> bool:
                return things.waiting >= places - RESERVED_BATCHES

            await eventually(hang)
            await run.act("good", "observe")
            observer.wake()
            await eventually(good)
            assert places - RESERVED_BATCHES <= things.waiting < places
            things.answers.set()
            await things.until_waiting(0)


async def test_hanging_services_keep_their_project_from_no_requested_observation(
    run: Program, things: SlowThings
) -> None:
    for name in "stuv":
        await run.create(name, {"a": thing(things, list=slow_list(name))})
        assert await run.until_ended(name) == "CREATE_COMPLETE"
    good = await create_good(run, things)
    things.answers.clear()
    for name in "stuv"[: BATCHES_OF_PROJECT + URGENT_BATCHES - 1]:
        await run.act(name, "observe")
    observer = observer_of(run)
    with run_observers():
        async with running(observer.run, observer.wake):
            await things.until_waiting(BATCHES_OF_PROJECT + URGENT_BATCHES - 1)
            await run.act("good", "observe")
            observer.wake()
            await eventually(good)
            things.answers.set()
            await things.until_waiting(0)


async def test_services_that_answer_page_by_page_keep_no_other_project_from_its_observation(
    run: Program, things: SlowThings
) -> None:
    """Each page is answered within the patience."""
    patience = 0.3
    slow = slow_projects(run, BATCHES)
    for one in slow:
        for name in "st":
            dripping = {"url": f"/things?drip={patience / 2}", "next": "$.next", **LIST}
            await one.create(name, {"a": thing(things, list=dripping)})
            assert await one.until_ended(name) == "CREATE_COMPLETE"
    good = await create_good(run, things)
    things.answers.clear()
    for one in slow:
        for name in "st":
            await one.act(name, "observe")
    observer = observer_of(run, patience)

    async def all_drip() -> bool:
        return things.requests["drip"] >= 2 * BATCHES

    with run_observers():
        async with running(observer.run, observer.wake):
            await eventually(all_drip)
            await run.act("good", "observe")
            observer.wake()
            await eventually(good)
            assert not things.answers.is_set()
            things.answers.set()


async def test_reports_keep_no_stack_of_their_project_from_its_observation(
    run: Program, things: SlowThings
) -> None:
    """An object that is reported again whenever it is read, and a stack that a policy observes."""
    await run.create("often", {"a": thing(things, listed=False)})
    assert await run.until_ended("often") == "CREATE_COMPLETE"
    every = {"convergence": {"observe": {"every": "10m"}}}
    await run.create("s", {"a": thing(things, listed=False)}, environment=every)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    often, other = [
        (await run.resources(name))["a"]["physical_resource_id"] for name in ("often", "s")
    ]
    due = (
        "update observation_schedule set next_at = now(), early_at = null where next_at is not null"
    )
    await run.database.pool.execute(due)
    reads = list[str]()

    async def report() -> None:
        body = {"observations": [{"physical_resource_id": often}]}
        assert (await run.call("POST", "/observations", body))[0] == 202

    async def read(object_id: str) -> None:
        reads.append(object_id)
        if object_id == often and len(reads) < 6:
            await report()

    things.before_read = read
    await report()
    await observer_of(run).observe_due()
    assert reads == [often, other, *[often] * (len(reads) - 2)] and len(reads) == 6


async def test_hanging_services_keep_no_other_project_from_its_completions(
    run: Program, things: SlowThings
) -> None:
    things.answers.clear()
    slow = slow_projects(run, REQUESTS)
    for one in slow:
        for name in "st":
            await one.create(name, {"a": building(things, list=slow_list(name))})
    await until_waiting(run, REQUESTS)
    endpoints = ProviderEndpoints(run.database, RequestRates(0.0), lambda: 0.0)
    registry = paused_observer(run)[0]
    observer = CompletionObserver(run.database, registry, endpoints=endpoints, patience=0.0)
    with run_completion_observers():
        async with running(observer.run, observer.wake):
            await things.until_waiting(REQUESTS)
            await run.create("good", {"g": building(things, state="ready")})
            await until_waiting(run, REQUESTS + 1)
            observer.wake()
            assert await run.until_ended("good") == "CREATE_COMPLETE"
            assert things.waiting == REQUESTS
            things.answers.set()
            await things.until_waiting(0)
