"""The server in this process with its own database, whose connections a test can cut."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count

import pytest
import pytest_asyncio

from tests.support.postgres import TestServer
from tests.support.program import Program, program
from tests.support.receiver import Receiver, running_receiver, until
from tests.support.scripted_type import SharedThing, Thing, World

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


_projects = count(1)
IN_OWN_PROJECT = {"in_own_project", "things_in_own_project"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A shared program and the tests that use it have the event loop of the session."""
    for item in items:
        if not IN_OWN_PROJECT.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_program(postgres: TestServer) -> AsyncIterator[Program]:
    async with postgres.new_database() as url, program(url) as run:
        yield run


@pytest.fixture
def in_own_project(shared_program: Program) -> Program:
    """A program that the tests of a module share, with a project for each test: for tests that only
    send requests."""
    return _own_project(shared_program)


def _own_project(shared: Program) -> Program:
    opened = Program(shared.session, shared.url, f"p{next(_projects)}")
    opened.engine, opened.database = shared.engine, shared.database
    return opened


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_things(
    postgres: TestServer,
) -> AsyncIterator[tuple[Program, dict[str, World]]]:
    worlds: dict[str, World] = {}
    async with (
        postgres.new_database() as url,
        program(url, QUICK, types=[SharedThing(worlds)]) as run,
    ):
        yield run, worlds


@pytest.fixture
def things_in_own_project(shared_things: tuple[Program, dict[str, World]], world: World) -> Program:
    """As `in_own_project`, with the resource type of `run`."""
    shared, worlds = shared_things
    opened = _own_project(shared)
    worlds[opened.project] = world
    return opened


@pytest.fixture
def database_outage(postgres: TestServer, database_url: str) -> DatabaseOutage:
    """While entered, the database refuses connections; existing ones are terminated."""
    name = database_url.partition("///")[2].partition("?")[0]

    @asynccontextmanager
    async def outage() -> AsyncIterator[None]:
        async with postgres.administer() as conn:
            await conn.execute(f"alter database {name} with allow_connections false")
            await conn.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", name
            )
            no_connections = "select count(*) = 0 from pg_stat_activity where datname = $1"
            await until(lambda: conn.fetchval(no_connections, name))
            try:
                yield
            finally:
                await conn.execute(f"alter database {name} with allow_connections true")

    return outage


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with running_receiver() as one:
        yield one


@pytest.fixture
async def other_receiver() -> AsyncIterator[Receiver]:
    async with running_receiver() as one:
        yield one
