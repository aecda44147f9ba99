from collections.abc import AsyncIterator

import pytest_asyncio

from tests.unit.hub.api.orchestration_support import Client, StubEngine, client_of


@pytest_asyncio.fixture
async def client() -> AsyncIterator[Client]:
    async with client_of(StubEngine()) as opened:
        yield opened
