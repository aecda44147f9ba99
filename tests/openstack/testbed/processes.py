"""The processes of a test bed, which all end with their supervisor."""

import asyncio
import contextlib
import ctypes
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.openstack.testbed.layout import DRIVERS, ENVIRONMENT, Layout

PYTHON = str(ENVIRONMENT / "bin/python")
#: Seconds until a service must be ready or a command must have ended.
PATIENCE = 400.0
#: Precedes a command that the kernel kills when the supervisor ends.
KILLED_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LOG_EXCERPT = 3000


class TestBedError(Exception):
    """A program is missing, or a service did not start."""

    __test__ = False  # not a class of tests


def adopt_orphans() -> None:
    """Make this process the parent of all descendants whose own parent ends."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(parent: int) -> None:
    """Send SIGTERM to this process when its parent ends. parent: its process ID."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        raise TestBedError(f"the process {parent}, which asked for the test bed, has ended")


class Processes:
    """Starts and ends the processes of one test bed."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._running: dict[str, asyncio.subprocess.Process] = {}
        self.environment = {
            "PATH": f"{ENVIRONMENT / 'bin'}:{os.environ['PATH']}",
            "HOME": str(layout.folder("home")),
            "TMPDIR": str(layout.folder("tmp")),
            "PYTHONPATH": f"{DRIVERS}:{layout.directory / 'entry_points'}",
            "PYTHONSAFEPATH": "1",  # the directory of the test bed has folders named as packages
            "PYTHONWARNINGS": "ignore",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
        }

    async def start(
        self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        """Start a process that the kernel kills when the supervisor ends."""
        with self._layout.log(name).open("ab") as log:
            self._running[name] = await asyncio.create_subprocess_exec(
                *KILLED_WITH_PARENT, *command,
                stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env=self.environment | dict(environment or {}),
            )  # fmt: skip
        pid = self._running[name].pid
        (self._layout.folder("pids") / name).write_text(f"{pid}\n")

    async def run(
        self, name: str, *command: str, environment: Mapping[str, str] | None = None
    ) -> str:
        """Run a command to its end; return its output. Raises TestBedError if it fails."""
        process = await asyncio.create_subprocess_exec(
            *KILLED_WITH_PARENT, *command,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT, env=self.environment | dict(environment or {}),
        )  # fmt: skip
        try:
            async with asyncio.timeout(PATIENCE):
                output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        text = output.decode(errors="replace")
        with self._layout.log(name).open("a") as log:
            log.write(text)
        if process.returncode != 0:
            raise TestBedError(f"{' '.join(command)} failed:\n{text[-LOG_EXCERPT:]}")
        return text

    async def until(self, name: str, is_ready: Callable[[], bool]) -> None:
        """Wait for a condition. Raises TestBedError if the named process ends before."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not await asyncio.to_thread(is_ready):
                    self.check(name)
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise TestBedError(f"{name} is not ready:\n{self.excerpt(name)}") from None

    def check(self, name: str) -> None:
        process = self._running.get(name)
        if process is not None and process.returncode is not None:
            raise TestBedError(f"{name} has ended:\n{self.excerpt(name)}")

    def excerpt(self, name: str) -> str:
        log = self._layout.log(name)
        text = log.read_text(errors="replace") if log.exists() else ""
        return f"{text[-LOG_EXCERPT:]}\n(the whole log: {log})"

    async def stop(self, name: str, number: int) -> None:
        """Send a signal to the process and its group, and wait for its end."""
        process = self._running.pop(name, None)
        if process is not None and process.returncode is None:
            os.killpg(process.pid, number)
            await process.wait()

    def kill_all(self) -> None:
        """Kill all descendants, also those that others started for them."""
        while children := child_ids():
            for pid in children:
                # The event loop may be the one that reads the exit status.
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)


def child_ids() -> list[int]:
    """The process IDs of this process's children."""
    lists = Path("/proc/self/task").glob("*/children")
    return [int(pid) for one in lists for pid in one.read_text().split()]


def web_command(
    port: int, module: str, processes: int, requests: Path, arguments: Sequence[str] = ()
) -> list[str]:
    """The uWSGI that serves a module's `application`.

    requests: the log of requests: method, path and user agent. arguments: those the application
    sees.
    """
    return [
        str(ENVIRONMENT / "bin/uwsgi"),
        "--http-socket", f"127.0.0.1:{port}",
        "--module", f"{module}:application",
        "--processes", str(processes),
        "--master", "--no-orphans", "--die-on-term", "--need-app", "--enable-threads",
        # Each process opens its own connections to the database and the broker.
        "--lazy-apps",
        # Clients would otherwise reuse a connection that has been closed.
        "--add-header", "Connection: close",
        "--buffer-size", "65535", "--listen", "100",
        "--http-chunked-input", "--so-keepalive",
        "--req-logger", f"file:{requests}", "--log-format", "%(method) %(uri) %(uagent)",
        *(["--pyargv", " ".join(arguments)] if arguments else []),
    ]  # fmt: skip


def rings_command(layout: Layout) -> list[str]:
    """Writes the rings of Swift: each kind of its servers has one device."""
    ports = [str(layout.ports[f"swift-{kind}"]) for kind in ("account", "container", "object")]
    return [PYTHON, "-m", "headgate_testbed.object_rings", str(layout.folder("swift")), *ports]


def console_command(name: str, *arguments: str) -> list[str]:
    """A command of the environment with the drivers of the test bed."""
    return [PYTHON, "-m", "headgate_testbed.console_command", name, *arguments]
