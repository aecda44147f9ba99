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
from engine.work.observer.observer import BATCHES, BATCHES_OF_PROJECT, Observer
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

    @property
    def waiting(self) -> int:
        """How many lists wait and have a client that still waits for them."""
        return sum(one.transport is not None for one in self._held)

    async def list(self, request: web.Request) -> web.Response:
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
