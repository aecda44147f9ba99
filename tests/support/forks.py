"""Processes of Headgate that begin with the program loaded, which is most of what a short one does.

One process loads the program and then forks; it does nothing else, and has no threads. What it
forks is a process like any: with an environment, a folder and files of its own, killed and waited
for by its number. Run as a module it is the one that forks, asked through its standard input.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Seconds until a process must be there once it was asked for.
PATIENCE = 60.0
#: Of a request: the words and the whole environment.
MOST = 200_000


class Forked:
    """A process, as `subprocess.Popen` would tell of it. returncode: None while it runs."""

    def __init__(self, said: socket.socket) -> None:
        """said: its number and, when it has ended, its exit code, each of them in a message."""
        self._said = said
        self._reading = threading.Lock()
        self.returncode: int | None = None
        try:
            self.pid = self._told(PATIENCE)
        except BaseException:
            said.close()
            raise

    def __del__(self) -> None:
        self._said.close()

    def _told(self, seconds: float) -> int:
        self._said.settimeout(seconds)
        said = self._said.recv(64)
        assert said, "the process that forks has ended"
        return int(said)

    def poll(self) -> int | None:
        """The exit code; None while the process runs. Any thread may ask while another waits."""
        if self._reading.acquire(blocking=False):
            try:
                if self.returncode is None and select.select([self._said], [], [], 0)[0]:
                    self._read_exit_code(PATIENCE)
            finally:
                self._reading.release()
        return self.returncode

    def wait(self, timeout: float) -> int:
        """The exit code. Raises TimeoutError."""
        with self._reading:
            if self.returncode is None:
                self._read_exit_code(timeout)
        assert self.returncode is not None
        return self.returncode

    def _read_exit_code(self, seconds: float) -> None:
        self.returncode = self._told(seconds)
        self._said.close()

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def forked(words: Sequence[str], environment: Mapping[str, str], files: Sequence[int]) -> Forked:
    """Begin `headgate WORDS`. files: its standard input, output and errors."""
    asked = json.dumps([list(words), dict(environment), os.getcwd()]).encode()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        socket.send_fds(_forking(), [asked], [*files, theirs.fileno()])
    return Forked(ours)


def run(words: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `headgate WORDS` to its end, which comes within `PATIENCE`; with what it wrote."""
    with (
        open(os.devnull) as nothing,
        os.fdopen(os.memfd_create("out"), "r") as out,
        os.fdopen(os.memfd_create("err"), "r") as err,
    ):
        made = forked(words, environment, [one.fileno() for one in (nothing, out, err)])
        try:
            code = made.wait(PATIENCE)
        finally:
            if made.poll() is None:
                made.kill()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(list(words), code, out.read(), err.read())


@functools.cache
def _forking() -> socket.socket:
    """The way to the process that forks. It ends when this one has: nobody else holds the way."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", __name__]
    with theirs:
        process = subprocess.Popen(
            command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, cwd=ROOT
        )

    def end() -> None:
        ours.close()
        process.wait(PATIENCE)

    atexit.register(end)
    return ours


def _fork_as_asked() -> None:
    """Returns in each new process, and when nobody asks any more."""
    asking = socket.socket(fileno=os.dup(0))
    woken, waking = socket.socketpair()
    waking.setblocking(False)
    signal.set_wakeup_fd(waking.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    telling: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([asking, woken], [], [])
        if woken in ready:
            woken.recv(4096)
            _tell_of_the_dead(telling)
        if asking not in ready:
            continue
        said, files, _, _ = socket.recv_fds(asking, MOST, 4)
        if not said:
            sys.exit(0)
        if pid := os.fork():
            telling[pid] = socket.socket(fileno=files.pop())
            _tell(telling[pid], pid)
            for one in files:
                os.close(one)
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for other in (asking, woken, waking, *telling.values()):
            other.close()
        words, environment, folder = json.loads(said)
        _become(words, environment, folder, files)
        return


def _tell_of_the_dead(telling: dict[int, socket.socket]) -> None:
    while telling:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with telling.pop(pid) as one:
            _tell(one, os.waitstatus_to_exitcode(status))


def _tell(one: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # who asked for it has gone
        one.send(str(number).encode())


def _become(words: list[str], environment: dict[str, str], folder: str, files: list[int]) -> None:
    *standard, told = files
    os.close(told)
    for place, one in enumerate(standard):
        os.dup2(one, place)
        os.close(one)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["headgate", *words]
    # It looks at the environment when it is loaded.
    importlib.reload(sys.modules["engine.store.fault_points"])


def main() -> None:
    import hub.program.app  # noqa: F401  what `serve` loads when it is called
    from hub.cli.main import run as headgate

    gc.collect()
    gc.freeze()  # nobody looks through what all share, which would copy it
    _fork_as_asked()
    headgate()


if __name__ == "__main__":
    main()
