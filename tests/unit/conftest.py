"""Unit tests start no process: they need no program, server or database."""

import multiprocessing.process
import os
import subprocess
from collections.abc import Iterator
from typing import NoReturn

import pytest

from tests.support import hypothesis_profile as hypothesis_profile

#: What starts a process; asyncio's own event loop uses subprocess.Popen.
STARTERS = (
    (subprocess.Popen, "__init__"),
    (multiprocessing.process.BaseProcess, "start"),
    (os, "fork"),
    (os, "posix_spawn"),
    (os, "system"),
)


def refuse_to_start(*_: object, **__: object) -> NoReturn:
    pytest.fail("a unit test starts a process; move it to tests/integration")


@pytest.fixture(scope="package", autouse=True)
def _no_processes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in STARTERS:
            patch.setattr(owner, name, refuse_to_start)
        yield
