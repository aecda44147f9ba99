"""The unit tests start no process."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest


@pytest.mark.parametrize(
    "start",
    [
        lambda: subprocess.run([sys.executable, "--version"]),
        lambda: os.posix_spawn(sys.executable, [sys.executable, "--version"], {}),
    ],
)
def test_a_unit_test_that_starts_a_process_fails(start: Callable[[], object]) -> None:
    with pytest.raises(pytest.fail.Exception, match="starts a process"):
        start()
