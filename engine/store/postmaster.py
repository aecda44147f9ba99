"""Starts, finds and ends the process of an embedded server. No SQL here."""

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

from engine.store.binaries import Account

#: Seconds.
STOP_TIMEOUT = 20.0
QUIT_TIMEOUT = 5.0
POLL = 0.005

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Postmaster:
    """What a server wrote down about itself in the cluster's ``postmaster.pid``."""

    pid: int
    socket: Path
    ready: bool

    @classmethod
    def read(cls, cluster: Path) -> "Postmaster | None":
        """Return None where no server is or was, or where it has not come far yet."""
        try:
            lines = (cluster / "postmaster.pid").read_text().splitlines()
            pid, port, directory = int(lines[0]), int(lines[3]), Path(lines[4])
        except (OSError, ValueError, IndexError):
            return None
        ready = len(lines) > 7 and lines[7].strip() == "ready"
        return cls(pid, directory / f".s.PGSQL.{port}", ready)

    def runs(self, cluster: Path) -> bool:
        """Say whether the process is a server of this cluster, not one that got its number."""
        try:
            os.kill(self.pid, 0)
        except OSError:
            return False
        if sys.platform == "linux":
            try:
                return os.path.samefile(f"/proc/{self.pid}/cwd", cluster)
            except OSError:
                return False
        return self._answers()

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(1)
            try:
                client.connect(str(self.socket))
            except OSError:
                return False
        return True


async def end_leftover(left: Postmaster, cluster: Path) -> bool:
    """Stop a server that is not a child process; False if it does not end in time."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(left.pid, signal.SIGINT)
    try:
        async with asyncio.timeout(STOP_TIMEOUT):
            while left.runs(cluster):  # noqa: ASYNC110  not a child: there is no event
                await asyncio.sleep(POLL)
    except TimeoutError:
        return False
    return True


def spawn(
    command: Sequence[str], account: Account | None, output: BinaryIO
) -> subprocess.Popen[bytes]:
    """Start a child process, as another account if one is given. It ends with this process.

    It gets a session of its own, so that Ctrl-C at a terminal reaches only us.
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
        preexec_fn=_ended_with_parent(),
    )


def _ended_with_parent() -> Callable[[], None] | None:
    """Return what makes the kernel send SIGINT to a new child when we die, where it can do that.

    It runs in the child, after the change of account, which would undo it. The signal follows the
    thread that made the child, so only the main thread may ask for it.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return None
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
        if os.getppid() != parent:  # it died before the call
            os._exit(1)

    return ask


async def exited(child: subprocess.Popen[bytes], patience: float) -> bool:
    """Wait for a child's end; False when it still runs after so many seconds."""
    try:
        async with asyncio.timeout(patience):
            while child.poll() is None:  # noqa: ASYNC110  event loops differ here
                await asyncio.sleep(POLL)
    except TimeoutError:
        return False
    return True


async def end(child: subprocess.Popen[bytes]) -> None:
    """End a server: in order, then at once, then by force; reap it also when cancelled."""
    try:
        for number, patience in ((signal.SIGINT, STOP_TIMEOUT), (signal.SIGQUIT, QUIT_TIMEOUT)):
            if child.poll() is not None:
                return
            child.send_signal(number)
            if await exited(child, patience):
                return
    finally:
        if child.poll() is None:
            child.kill()
            child.wait(QUIT_TIMEOUT)
