"""A server as a process of its own, for real clients."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import ServerProcess

# What a walk finds wrong is shown as a test shows it.
pytest.register_assert_rewrite("tests.e2e.walks")


@pytest.fixture(scope="session")
def server() -> Iterator[ServerProcess]:
    with tempfile.TemporaryDirectory(prefix="headgate-e2e-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # as root, the database runs as another account
        made = ServerProcess(folder, anew=True)
        made.start()
        yield made
        assert made.stop() == 0, made.log.read_text()[-3000:]
