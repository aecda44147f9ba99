"""Starts and stops the supervisor of a test bed."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.openstack.testbed.processes import LOG_EXCERPT, PATIENCE, TestBedError

#: Seconds until a stopped test bed must have ended.
STOP_PATIENCE = 120.0


@contextmanager
def temporary_testbed() -> Iterator[Path]:
    """The directory of a new test bed, which ends with this process at the latest."""
    with tempfile.TemporaryDirectory(prefix="headgate-openstack-") as name:
        process = start(Path(name), parent=os.getpid())
        try:
            yield Path(name)
        finally:
            process.terminate()
            process.wait(STOP_PATIENCE)


def start(
    directory: Path,
    *,
    optional: Iterable[str] = (),
    computes: int = 2,
    parent: int | None = None,
    only: str | None = None,
) -> subprocess.Popen[bytes]:
    """Start a supervisor and wait until its cloud is ready. Raises TestBedError.

    parent: the process that the test bed ends with; by default, it stays until it is stopped.
    only: the service that runs with Keystone and what it needs.
    """
    command = [
        sys.executable, "-m", "tests.openstack.testbed", "supervise", str(directory),
        "--computes", str(computes), *(f"--{service}" for service in optional),
        *(["--parent", str(parent)] if parent is not None else []),
        *(["--only", only] if only is not None else []),
    ]  # fmt: skip
    directory.mkdir(parents=True, exist_ok=True)
    ready, output = directory / "ready", directory / "supervisor.log"
    ready.unlink(missing_ok=True)
    with output.open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    deadline = time.monotonic() + 2 * PATIENCE
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            process.terminate()
            raise TestBedError(f"the test bed did not start:\n{output.read_text()[-LOG_EXCERPT:]}")
        time.sleep(0.1)
    return process


def start_optional(directory: Path, service: str) -> None:
    """Start an optional service of a running test bed, unless it runs. Raises TestBedError."""
    folder = directory / "optional"
    if (folder / f"{service}.started").exists():
        return
    pid = supervisor_id(directory)
    if pid is None:
        raise TestBedError(f"no test bed runs in {directory}")
    folder.mkdir(exist_ok=True)
    (folder / f"{service}.wanted").touch()
    os.kill(pid, signal.SIGUSR1)
    deadline = time.monotonic() + PATIENCE
    while not (folder / f"{service}.started").exists():
        if supervisor_id(directory) is None or time.monotonic() > deadline:
            log = (directory / "supervisor.log").read_text()
            raise TestBedError(f"{service} did not start:\n{log[-LOG_EXCERPT:]}")
        time.sleep(0.1)


def stop(directory: Path) -> None:
    """Stop the test bed of a directory, if one runs. Raises TestBedError."""
    pid = supervisor_id(directory)
    if pid is None:
        return
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_PATIENCE
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > deadline:
            raise TestBedError(f"the test bed of process {pid} has not ended")
        time.sleep(0.1)


def supervisor_id(directory: Path) -> int | None:
    """The process ID of the directory's supervisor, if it runs and the cloud is ready."""
    ready = directory / "ready"
    if not ready.exists():
        return None
    pid = int(ready.read_text())
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    return pid if b"tests.openstack.testbed" in command else None
