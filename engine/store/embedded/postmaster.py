"""Starts, finds and stops the process of an embedded server."""

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from engine.store.embedded.binaries import Account

#: Seconds.
STOP_TIMEOUT = 20.0
QUIT_TIMEOUT = 5.0
POLL_INTERVAL = 0.005

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Postmaster:
    """The contents of ``postmaster.pid``, which a running server writes to its cluster."""

    pid: int
    socket: Path
    ready: bool

    @classmethod
    def read(cls, cluster: Path) -> "Postmaster | None":
        """Return None if the file does not exist or is incomplete."""
        try:
            lines = (cluster / "postmaster.pid").read_text().splitlines()
            pid, port, directory = int(lines[0]), int(lines[3]), Path(lines[4])
        except (OSError, ValueError, IndexError):
            return None
        ready = len(lines) > 7 and lines[7].strip() == "ready"
        return cls(pid, directory / f".s.PGSQL.{port}", ready)

    def is_running(self, cluster: Path) -> bool:
        """Whether the process is a server of this cluster; the system may have reused its ID."""
        try:
            os.kill(self.pid, 0)
        except OSError:
            return False
        if sys.platform == "linux":
            try:
                return os.path.samefile(f"/proc/{self.pid}/cwd", cluster)
            except OSError:
                return False
        return self._accepts_connections()

    def _accepts_connections(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(1)
            try:
                client.connect(str(self.socket))
            except OSError:
                return False
        return True


async def stop_leftover(leftover: Postmaster, cluster: Path) -> bool:
    """Stop a server that is not a child process; False: it does not end in time."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(leftover.pid, signal.SIGINT)
    try:
        async with asyncio.timeout(STOP_TIMEOUT):
            while leftover.is_running(cluster):  # noqa: ASYNC110  not a child: there is no event
                await asyncio.sleep(POLL_INTERVAL)
    except TimeoutError:
        return False
    return True


def spawn(
    command: Sequence[str], account: Account | None, output: BinaryIO
) -> subprocess.Popen[bytes]:
    """Start a child process, as `account` if that is not None. It ends with this process.

    It has a session of its own, so that Ctrl-C at a terminal interrupts only this process.
    """
    environment = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
    if "LD_LIBRARY_PATH" in os.environ:
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    groups = os.getgrouplist(account.name, account.gid) if account else None
    return subprocess.Popen(  # noqa: S603  known programs, no shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd="/",
        env=environment,
        start_new_session=True,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=groups,
        preexec_fn=_death_signal_setter(),
    )


def _death_signal_setter() -> Callable[[], None] | None:
    """A function that makes the kernel send SIGINT to the calling child when its parent dies.

    Call it in the child after the change of account, which would reset it. None: the system has no
    such signal, or this is not the main thread: the signal is sent when the parent's thread ends.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return None
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def set_death_signal() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
        if os.getppid() != parent:  # the parent died before the call
            os._exit(1)

    return set_death_signal


async def wait_for_exit(child: subprocess.Popen[bytes], timeout: float) -> bool:  # noqa: ASYNC109
    """Wait for a child's end; False: it still runs after `timeout` seconds."""
    try:
        async with asyncio.timeout(timeout):
            while child.poll() is None:  # noqa: ASYNC110  event loops differ here
                await asyncio.sleep(POLL_INTERVAL)
    except TimeoutError:
        return False
    return True


async def end(child: subprocess.Popen[bytes]) -> None:
    """Stop a server: with a fast shutdown, then an immediate one, then SIGKILL. The process is
    reaped also if the caller is cancelled."""
    try:
        for number, timeout in ((signal.SIGINT, STOP_TIMEOUT), (signal.SIGQUIT, QUIT_TIMEOUT)):
            if child.poll() is not None:
                return
            child.send_signal(number)
            if await wait_for_exit(child, timeout):
                return
    finally:
        if child.poll() is None:
            child.kill()
            child.wait(QUIT_TIMEOUT)
