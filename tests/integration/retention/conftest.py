"""A program whose records are old at once, with a resource type that tests script."""

from collections.abc import AsyncIterator

import pytest

from tests.support.program import Program, program
from tests.support.scripted_type import Thing, World


@pytest.fixture
async def run(database_url: str, world: World) -> AsyncIterator[Program]:
    settings = {
        "engine.first_retry": "1s",
        "engine.poll": "1s",
        "engine.labels": ["region=eu"],
        "engine.unlabelled": True,
        "engine.label_rules": [{"label": "region=eu", "resources": ["b"]}],
        "channels.webhook.attempts": 2,
    }
    async with program(database_url, settings, types=[Thing(world)]) as run:
        yield run
