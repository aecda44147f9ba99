"""Fixtures of all tests: servers of the run, a new database, directories for embedded servers.

Fixtures import what they start, so that a test of the pure core loads none of it.
"""

import gc
import signal
import sys
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.support.parameter_ids import parameter_id
from tests.support.temporary_files import prefer_memory

if TYPE_CHECKING:
    from engine.store.database import Database
    from tests.support.keystone import Keystone
    from tests.support.postgres import TestServer
    from tests.support.rabbit import Rabbit

prefer_memory()

# A shell ignores SIGINT for background jobs. Programs that tests start and interrupt would, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def shorten_tracebacks() -> None:
    """Log short tracebacks: a loop that fails repeatedly must not fill the output."""
    import structlog

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
        ]
    )


def pytest_make_parametrize_id(val: object) -> str | None:
    """Show arguments in the names of tests, equal in every worker of pytest-xdist."""
    return parameter_id(val)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Suspend garbage collection while tests are collected: almost no garbage arises."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection, and collect less often: tests create
    much, and keep little."""
    if "structlog" in sys.modules:
        shorten_tracebacks()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove the plugin of Hypothesis if no test has used it: it imports Hypothesis to report. The
    controller of pytest-xdist reports for its workers."""
    plugins = session.config.pluginmanager
    if "hypothesis" not in sys.modules and not plugins.has_plugin("dsession"):
        plugins.unregister(name="hypothesispytest")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def postgres() -> "AsyncIterator[TestServer]":
    """A PostgreSQL server for the whole run, with a migrated database to copy."""
    from tests.support.postgres import running_server

    async with running_server() as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def oldest_postgres() -> "AsyncIterator[TestServer]":
    """A server of the oldest supported version of PostgreSQL, with a migrated database to copy."""
    from tests.support.postgres import OLDEST_BINARIES, running_server

    async with running_server(OLDEST_BINARIES) as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def rabbit() -> "AsyncIterator[Rabbit]":
    """A RabbitMQ for the whole run; tests use their own exchanges and queues."""
    from tests.support.rabbit import running_rabbit

    async with running_rabbit() as broker:
        yield broker


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def keystone() -> "AsyncIterator[Keystone]":
    """A Keystone for the whole run; tests create their own projects and users."""
    from tests.support.keystone import running_keystone

    async with running_keystone() as server:
        yield server


@pytest_asyncio.fixture
async def database_url(postgres: "TestServer") -> AsyncIterator[str]:
    """The URL of an empty, migrated database."""
    async with postgres.new_database() as url:
        yield url


@pytest_asyncio.fixture
async def database(database_url: str) -> "AsyncIterator[Database]":
    """An open, empty, migrated database."""
    from engine.store.database import open_database
    from tests.support.keys import KEYRING

    opened = await open_database(database_url, keyring=KEYRING)
    try:
        yield opened
    finally:
        await opened.close()


@pytest.fixture
def data_directory() -> Iterator[Path]:
    """A directory that an embedded server can use even if root runs the tests."""
    from tests.support.postgres import open_directory

    with open_directory() as directory:
        yield directory / "data"


@pytest.fixture
def initialized_directory(data_directory: Path) -> Path:
    """A data directory that contains an initialized cluster."""
    from tests.support.postgres import copy_cluster

    copy_cluster(data_directory)
    return data_directory
