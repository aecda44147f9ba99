"""A server as a process, for real clients."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import ServerProcess

# Rewrite assertions of the shared modules as those of tests.
pytest.register_assert_rewrite("tests.e2e.client_calls")


@pytest.fixture(scope="session")
def server() -> Iterator[ServerProcess]:
    with tempfile.TemporaryDirectory(prefix="headgate-e2e-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # as root, the database runs as another account
        process = ServerProcess(folder, unforked=True)
        process.start()
        yield process
        assert process.stop() == 0, process.log.read_text()[-3000:]
