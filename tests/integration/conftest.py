"""Headgate in this process, on a database of its own, which may go away and come back."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from tests.support.postgres import TestServer
from tests.support.program import Program, program
from tests.support.receiver import Receiver, receiving, until

Away = Callable[[], AbstractAsyncContextManager[None]]


@pytest.fixture
async def running(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url) as made:
        yield made


@pytest.fixture
def away(postgres: TestServer, database_url: str) -> Away:
    """The database lets nobody in while entered, and throws out whoever is there."""
    name = database_url.partition("///")[2].partition("?")[0]

    @asynccontextmanager
    async def gone() -> AsyncIterator[None]:
        async with postgres.administer() as conn:
            await conn.execute(f"alter database {name} with allow_connections false")
            await conn.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", name
            )
            inside = "select count(*) = 0 from pg_stat_activity where datname = $1"
            await until(lambda: conn.fetchval(inside, name))
            try:
                yield
            finally:
                await conn.execute(f"alter database {name} with allow_connections true")

    return gone


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as one:
        yield one


@pytest.fixture
async def other_receiver() -> AsyncIterator[Receiver]:
    async with receiving() as one:
        yield one
