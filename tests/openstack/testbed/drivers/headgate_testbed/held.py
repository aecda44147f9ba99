"""Operations that wait until a test lets them continue."""

import time
from pathlib import Path

#: Seconds until an operation continues although the file does not exist.
LIMIT = 300.0


def wait_for_file(name: str) -> None:
    """Wait until the file exists. An empty name: do not wait."""
    deadline = time.monotonic() + LIMIT
    while name and not Path(name).exists() and time.monotonic() < deadline:
        time.sleep(0.1)
