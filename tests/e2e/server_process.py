"""A server as a process of its own."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.program import ServerProcess


@contextmanager
def running_process(*, settings: str = "", unforked: bool = False) -> Iterator[ServerProcess]:
    """A server with new data, which ends without an error. settings, unforked: of
    `ServerProcess`."""
    with tempfile.TemporaryDirectory(prefix="headgate-e2e-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # as root, the database runs as another account
        process = ServerProcess(folder, settings=settings, unforked=unforked)
        process.start()
        yield process
        assert process.stop() == 0, process.log.read_text()[-3000:]
