"""A program with a type whose operations do what a test says."""

from collections.abc import AsyncIterator

import pytest

from tests.support.program import Program, program
from tests.support.things import Thing, World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def run(database_url: str, world: World) -> AsyncIterator[Program]:
    quick = {"engine.first_retry": "1s", "engine.poll": "1s"}
    async with program(database_url, quick, types=[Thing(world)]) as made:
        yield made
