"""The server in this process with its own database, whose connections a test can cut."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from engine.types.contract import ResourceType
from hub.auth import secrets
from tests.support.paused_observers import pause_observers
from tests.support.postgres import TestServer
from tests.support.program import Program, program
from tests.support.receiver import Receiver, running_receiver, until
from tests.support.scripted_type import SharedThing, Thing, World
from tests.support.shared_program import SharedProgram, running_shared

QUICK = {"engine.first_retry": "1s", "engine.poll": "1s"}

DatabaseOutage = Callable[[], AbstractAsyncContextManager[None]]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def run(database_url: str, world: World) -> AsyncIterator[Program]:
    """A program with a resource type whose outcomes tests script."""
    async with program(database_url, QUICK, types=[Thing(world)]) as run:
        yield run


@pytest.fixture
async def running(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url) as run:
        yield run


SHARED = {"shared_program", "shared_things"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A shared program and the tests that use it have the event loop of the session."""
    for item in items:
        if not SHARED.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="module")
def shared_settings() -> Mapping[str, Any]:
    """Settings of `shared_program`, for modules to override."""
    return {}


@pytest.fixture(scope="module")
def shared_types() -> Sequence[ResourceType]:
    """Further resource types of `shared_program`, for modules to override."""
    return ()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_program(
    postgres: TestServer,
    shared_settings: Mapping[str, Any],
    shared_types: Sequence[ResourceType],
) -> AsyncIterator[SharedProgram]:
    async with running_shared(postgres, shared_settings, types=shared_types) as shared:
        yield shared


@pytest_asyncio.fixture(loop_scope="session")
async def in_own_project(shared_program: SharedProgram) -> AsyncIterator[Program]:
    """A program that the tests of a module share. Each test has a project of its own, and tables
    that are as empty as in a new database."""
    async with shared_program.in_own_project() as run:
        yield run


@pytest.fixture(scope="module")
def worlds() -> dict[str, World]:
    """The world of each project of `shared_things`."""
    return {}


@pytest.fixture(scope="module")
def things_settings() -> Mapping[str, Any]:
    """Settings of `shared_things`, for modules to override."""
    return QUICK


@pytest.fixture(scope="module")
def shared_type(worlds: dict[str, World]) -> SharedThing:
    """The resource type of `shared_things`, for modules to override."""
    return SharedThing(worlds)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_things(
    postgres: TestServer, things_settings: Mapping[str, Any], shared_type: SharedThing
) -> AsyncIterator[SharedProgram]:
    async with running_shared(postgres, things_settings, types=[shared_type]) as shared:
        yield shared


@pytest_asyncio.fixture(loop_scope="session")
async def things_in_own_project(
    shared_things: SharedProgram, worlds: dict[str, World], world: World
) -> AsyncIterator[Program]:
    """As `in_own_project`, with the resource type of `run`."""
    async with shared_things.in_own_project() as run:
        worlds[run.project] = world
        yield run


@pytest.fixture(scope="module")
def paused_observers() -> Iterator[None]:
    """Pauses the observers of all programs that the tests of the module use."""
    with pause_observers():
        yield


@pytest.fixture
def database_outage(postgres: TestServer, database_url: str) -> DatabaseOutage:
    """While entered, the database refuses connections; existing ones are terminated."""
    name = database_url.partition("///")[2].partition("?")[0]

    @asynccontextmanager
    async def outage() -> AsyncIterator[None]:
        async with postgres.administer() as conn:
            await conn.execute(f"alter database {name} with allow_connections false")
            terminate = "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1"

            async def has_no_connections() -> bool:
                """Repeated, because a connection may have begun just before."""
                return await conn.fetch(terminate, name) == []

            await until(has_no_connections)
            try:
                yield
            finally:
                await conn.execute(f"alter database {name} with allow_connections true")

    return outage


@pytest.fixture
def cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes of passwords that cost a thirtieth, which is still slow enough to overlap."""
    monkeypatch.setattr(secrets, "_COST", 2**12)
    monkeypatch.setattr(secrets, "NO_PASSWORD", secrets.NO_PASSWORD.replace(str(2**17), str(2**12)))


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with running_receiver() as one:
        yield one


@pytest.fixture
async def other_receiver() -> AsyncIterator[Receiver]:
    async with running_receiver() as one:
        yield one
