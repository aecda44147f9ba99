"""Databases of tests with several cells."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from tests.support.cells import running_node
from tests.support.postgres import TestServer
from tests.support.replication import PostgresNode


@pytest.fixture
async def urls(postgres: TestServer) -> AsyncIterator[list[str]]:
    """The URLs of three databases."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(postgres.new_database()) for _ in range(3)]


@pytest.fixture
async def node() -> AsyncIterator[PostgresNode]:
    """The cell "b" on a server of its own, which tests stop."""
    async with running_node("b") as node:
        yield node
