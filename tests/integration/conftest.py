"""Headgate in this process, on a database of its own."""

from collections.abc import AsyncIterator

import pytest

from tests.support.program import Program, program


@pytest.fixture
async def running(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url) as made:
        yield made
