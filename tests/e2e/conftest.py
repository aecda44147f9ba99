"""A server as a process, for real clients."""

from collections.abc import Iterator

import pytest

from tests.e2e.server_process import running_process
from tests.support.program import ServerProcess

# Rewrite assertions of the shared modules as those of tests.
pytest.register_assert_rewrite("tests.e2e.client_calls")


@pytest.fixture(scope="session")
def server() -> Iterator[ServerProcess]:
    with running_process(unforked=True) as process:
        yield process
