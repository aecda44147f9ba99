"""Processes of `headgate` and `openstack` that fork from one that has already loaded the program,
which saves most of their start-up time.

For each program, one process without threads loads it and then only forks. Each forked process has
its own environment, working directory and files, and is waited for and killed by its PID. Run as a
module, this file is the forking process; it reads requests from its standard input.
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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: The longest time, in seconds, to fork a process or to run a command.
PATIENCE = 60.0
#: The longest time, in seconds, until a program is loaded on a busy machine.
LOADING = 180.0
#: The maximum size of a request: the arguments and the environment.
MAX_REQUEST = 200_000


def is_running(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


class ForkedProcess:
    """A process, with the interface of `subprocess.Popen`. returncode: None while it runs."""

    def __init__(self, status_socket: socket.socket) -> None:
        """status_socket: receives the PID and, at the end, the exit code, each as one message."""
        self._status_socket = status_socket
        self._reading = threading.Lock()
        self.returncode: int | None = None
        try:
            self.pid = self._receive(LOADING)
        except BaseException:
            status_socket.close()
            raise

    def __del__(self) -> None:
        self._status_socket.close()

    def _receive(self, seconds: float) -> int:
        self._status_socket.settimeout(seconds)
        message = self._status_socket.recv(64)
        assert message, "the process that forks has ended"
        return int(message)

    def poll(self) -> int | None:
        """The exit code, or None while the process runs. Safe while another thread waits."""
        if self._reading.acquire(blocking=False):
            try:
                if self.returncode is None and select.select([self._status_socket], [], [], 0)[0]:
                    self._read_exit_code(PATIENCE)
            finally:
                self._reading.release()
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Return the exit code. Raises TimeoutError."""
        with self._reading:
            if self.returncode is None:
                self._read_exit_code(timeout)
        assert self.returncode is not None
        return self.returncode

    def _read_exit_code(self, seconds: float) -> None:
        self.returncode = self._receive(seconds)
        self._status_socket.close()

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def start_forked(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    files: Sequence[int],
    *,
    program: str = "headgate",
) -> ForkedProcess:
    """Start `headgate ARGUMENTS`, or another one of `PROGRAMS`. files: its standard input, output
    and error."""
    request = json.dumps([list(arguments), dict(environment), os.getcwd()]).encode()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        socket.send_fds(_forking_process(program), [request], [*files, theirs.fileno()])
    return ForkedProcess(ours)


def run(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    typed: str = "",
    program: str = "headgate",
    patience: float = PATIENCE,
) -> subprocess.CompletedProcess[str]:
    """Run `headgate ARGUMENTS` to its end, at most `patience` seconds, and return its output.

    typed: its standard input. program: another one of `PROGRAMS`.
    """
    with (
        os.fdopen(os.memfd_create("in"), "w+") as given,
        os.fdopen(os.memfd_create("out"), "r") as out,
        os.fdopen(os.memfd_create("err"), "r") as err,
    ):
        given.write(typed)
        given.seek(0)
        standard = [one.fileno() for one in (given, out, err)]
        process = start_forked(arguments, environment, standard, program=program)
        try:
            code = process.wait(patience)
        finally:
            if process.poll() is None:
                process.kill()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(list(arguments), code, out.read(), err.read())


@functools.cache
def _forking_process(program: str) -> socket.socket:
    """The socket to the process that forks for this program, and ends when the socket is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", __name__, program]
    with theirs:
        process = subprocess.Popen(
            command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, cwd=ROOT
        )

    def end() -> None:
        ours.close()
        process.wait(PATIENCE)

    atexit.register(end)
    return ours


def _serve_forks() -> None:
    """Returns in each forked process; ends the forking process when the socket is closed."""
    requests = socket.socket(fileno=os.dup(0))
    wakeup_read, wakeup_write = socket.socketpair()
    wakeup_write.setblocking(False)
    signal.set_wakeup_fd(wakeup_write.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    status_sockets: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([requests, wakeup_read], [], [])
        if wakeup_read in ready:
            wakeup_read.recv(4096)
            _send_exit_codes(status_sockets)
        if requests not in ready:
            continue
        message, files, _, _ = socket.recv_fds(requests, MAX_REQUEST, 4)
        if not message:
            sys.exit(0)
        if pid := os.fork():
            status_sockets[pid] = socket.socket(fileno=files.pop())
            send_number(status_sockets[pid], pid)
            for one in files:
                os.close(one)
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for other in (requests, wakeup_read, wakeup_write, *status_sockets.values()):
            other.close()
        arguments, environment, folder = json.loads(message)
        _run_as(arguments, environment, folder, files)
        return


def _send_exit_codes(status_sockets: dict[int, socket.socket]) -> None:
    while status_sockets:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with status_sockets.pop(pid) as one:
            send_number(one, os.waitstatus_to_exitcode(status))


def send_number(one: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # the process that sent the request has ended
        one.send(str(number).encode())


def _run_as(
    arguments: list[str], environment: dict[str, str], folder: str, files: list[int]
) -> None:
    *standard, status_file = files
    os.close(status_file)
    for place, one in enumerate(standard):
        os.dup2(one, place)
        os.close(one)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments
    # This module reads the environment when it is loaded.
    if (fault_points := sys.modules.get("engine.store.fault_points")) is not None:
        importlib.reload(fault_points)


def load_headgate() -> Callable[[], object]:
    import hub.program.server_processes  # noqa: F401  what `serve` loads when it is called
    from hub.cli.main import run

    return run


def load_openstack() -> Callable[[], object]:
    import openstack.connection  # noqa: F401  what most commands load when they are called
    from openstackclient.shell import OpenStackShell, main

    # Loads the plug-ins. The standard output is not used.
    with contextlib.suppress(SystemExit):
        OpenStackShell().run(["stack", "list", "--help"])
    return lambda: sys.exit(main(sys.argv[1:]))


PROGRAMS: Mapping[str, Callable[[], Callable[[], object]]] = {
    "headgate": load_headgate,
    "openstack": load_openstack,
}


def main(program: str) -> None:
    run_program = PROGRAMS[program]()
    gc.collect()
    gc.freeze()  # the garbage collector would copy the shared memory
    sys.argv = [program]
    _serve_forks()
    run_program()


if __name__ == "__main__":
    main(sys.argv[1])
