"""Fixtures for every test: a PostgreSQL, a fresh database in it, a directory it can live in."""

import gc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
import structlog

from engine.store.database import Database, open_database
from tests.support.keys import A_SEALER
from tests.support.keystone import Keystone, running_keystone
from tests.support.memory import prefer_memory
from tests.support.postgres import TestServer, lay_cluster, open_directory, running_server
from tests.support.rabbit import Rabbit, running_rabbit

prefer_memory()

# Short tracebacks: a loop that fails again and again is to show what fails, not to fill the screen.
structlog.configure(
    processors=[
        structlog.processors.add_log_level,
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)


def pytest_collection_finish() -> None:
    """The collector need not look through thousands of tests again and again."""
    gc.collect()
    gc.freeze()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def postgres() -> AsyncIterator[TestServer]:
    """A PostgreSQL server for the whole run, with a migrated database to copy."""
    async with running_server() as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def rabbit() -> AsyncIterator[Rabbit]:
    """A RabbitMQ for the whole run; tests take exchanges and queues of their own."""
    async with running_rabbit() as broker:
        yield broker


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def keystone() -> AsyncIterator[Keystone]:
    """A Keystone for the whole run; tests make projects and users of their own."""
    async with running_keystone() as one:
        yield one


@pytest_asyncio.fixture
async def database_url(postgres: TestServer) -> AsyncIterator[str]:
    """The URL of a database with the whole schema and nothing in it."""
    async with postgres.new_database() as url:
        yield url


@pytest_asyncio.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """An open database with the whole schema and nothing in it."""
    opened = await open_database(database_url, sealer=A_SEALER)
    try:
        yield opened
    finally:
        await opened.close()


@pytest.fixture
def data_directory() -> Iterator[Path]:
    """A directory for data that an embedded server may use, also when root runs the tests."""
    with open_directory() as directory:
        yield directory / "data"


@pytest.fixture
def laid_directory(data_directory: Path) -> Path:
    """The same, with a cluster in it that was made before."""
    lay_cluster(data_directory)
    return data_directory
