"""An OpenID provider that the tests of a module share."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.support.oidc_provider import OidcProvider, running_oidc_provider
from tests.support.ports import free_port


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_provider() -> AsyncIterator[OidcProvider]:
    """For tests that do not change it."""
    async with running_oidc_provider(f"http://127.0.0.1:{free_port()}") as started:
        yield started
