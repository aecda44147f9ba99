"""The processes of one `headgate serve`: starts them, restarts those that end, replaces them on
SIGHUP, stops all in order.

The supervisor has no event loop and no threads, because it forks. Each child process has a control
socket. A child sends a message when it is ready, and stops in order when its end of the socket is
closed: the supervisor closes it to stop the child, and the system if the supervisor is killed.

The embedded database has a process of its own, which is stopped last.
"""

import gc
import os
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

import structlog
from structlog.typing import FilteringBoundLogger

from engine.back_off import BackOff
from engine.errors import HeadgateError

log: FilteringBoundLogger = structlog.get_logger()

#: Pauses before restarts, in seconds.
RESTART = BackOff(0.5, 30.0)
#: Seconds after which a process that ran so long is restarted without further back-off.
STABLE = 60.0
#: Seconds, in addition to the drain, until a process that does not stop is killed.
STOP_MARGIN = 30.0
#: Maximum bytes of a message of a child.
MAX_MESSAGE = 4096

#: Seconds until a process with new settings must be ready.
READY_TIMEOUT = 60.0
#: Runs a child process with its control socket; returns the exit code. The second argument: whether
#: it replaces another process, which serves until this one is ready.
RunChild = Callable[[socket.socket, bool], int]
#: Reads the settings again; returns the functions of processes, by number. Raises HeadgateError.
Reload = Callable[[], Mapping[int, RunChild]]


@dataclass(slots=True)
class ChildProcess:
    """A process that is restarted when it ends. number: from 1; 0: that of the database.

    message: the one that it sent when it was ready; None: it has not been ready since its start.
    due: when to start it again; None: it runs, or is not to be started. restarts: whether it is
    started again when it ends: not before it has replaced another one, nor after it was replaced.
    """

    number: int
    run: RunChild
    pid: int = 0
    control: socket.socket | None = None
    message: str | None = None
    failures: int = 0
    started: float = 0.0
    due: float | None = None
    restarts: bool = True


class ProcessSupervisor:
    """Call it in the main thread, before any other thread exists. drain: seconds that a process may
    take to stop."""

    def __init__(self, drain: float) -> None:
        self.drain = drain
        self._children: list[ChildProcess] = []
        self._selector = selectors.DefaultSelector()
        self._signals, self._wakeup = socket.socketpair()
        self._signals.setblocking(False)
        self._wakeup.setblocking(False)
        self._selector.register(self._signals, selectors.EVENT_READ)
        self._restarts = False
        self._reloads = False
        self._stopping = False
        #: The exit code of a process that ended before all were ready.
        self.code = 0

    @contextmanager
    def handle_signals(self) -> Iterator[None]:
        """A context manager: receives signals, and stops all children at the end. Later signals are
        ignored, because this process ends."""
        handled = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
        for number in handled:
            signal.signal(number, _ignore)
        signal.set_wakeup_fd(self._wakeup.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            self._stop_all()
            signal.set_wakeup_fd(-1)
            self._selector.close()
            self._signals.close()
            self._wakeup.close()

    def start(self, children: Sequence[ChildProcess]) -> bool:
        """Start children, and wait until each is ready. False: one has ended, or the supervisor
        must stop."""
        self._children += children
        for child in children:
            self._start(child)
        while not all(child.message is not None for child in children):
            if self._stopping or self.code:
                return False
            self._step()
        return True

    def supervise(self, reload: Reload) -> None:
        """Restart children that end, and replace them on SIGHUP, until SIGTERM or SIGINT."""
        self._restarts = True
        while not self._stopping:
            if self._reloads:
                self._reloads = False
                self._replace_all(reload)
            else:
                self._step()

    def _replace_all(self, reload: Reload) -> None:
        """Replace all children by others with new settings, one at a time. If the settings are
        invalid, or the new child does not get ready, the former ones stay."""
        try:
            runs = reload()
        except HeadgateError as error:
            log.error("settings.not_reloaded", reason=str(error))
            return
        except Exception as error:  # the processes that work do not end because of new settings
            log.error("settings.not_reloaded", reason=f"{type(error).__name__}: {error}")
            return
        former = [one for one in self._children if one.number]
        for done, child in enumerate(former):
            if (failure := self._replace(child, runs[child.number])) is not None:
                log.error(
                    "process.kept",
                    process=child.number,
                    reason=failure,
                    new_settings=[one.number for one in former[:done]],
                    former_settings=[one.number for one in former[done:]],
                    remedy="See the errors above, correct the settings, and send SIGHUP again",
                )
                return
            if self._stopping:
                return
        log.info("settings.reloaded", processes=len(runs))

    def _replace(self, child: ChildProcess, run: RunChild) -> str | None:
        """Start another process, and stop the child as soon as the other one is ready. Return why
        the other one is not ready; None: it is, or the supervisor must stop."""
        new = ChildProcess(child.number, run, restarts=False)
        self._children.append(new)
        self._start(new)
        ends = new.started + READY_TIMEOUT
        while new.pid and new.message is None and time.monotonic() < ends and not self._stopping:
            self._step(max(0.0, ends - time.monotonic()))
        if self._stopping:
            return None
        if new.message is None or not new.pid:  # it can have ended right after it was ready
            late = f" within {READY_TIMEOUT:.0f} s" if new.pid else ""
            self._retire(new)
            return f"the process with the new settings has not become ready{late}"
        new.restarts = True
        log.info("process.replaced", process=child.number, pid=new.pid, former=child.pid)
        self._retire(child)
        return None

    def _retire(self, child: ChildProcess) -> None:
        """Stop a child for good, unless all are stopped meanwhile."""
        child.restarts, child.due = False, None
        self._close(child)
        ends = time.monotonic() + self.drain + STOP_MARGIN
        while child.pid and not self._stopping:
            if time.monotonic() > ends:
                self._kill(child)
                ends = float("inf")
            self._step(min(STOP_MARGIN, max(ends - time.monotonic(), 0.0)))
            self._reap()
        if not child.pid:
            self._children.remove(child)

    def _start(self, child: ChildProcess) -> None:
        """Start a child. If the system has no process, memory or file for it, try again later."""
        child.started, child.due, child.message = time.monotonic(), None, None
        with ExitStack() as opened:
            try:
                ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                opened.callback(theirs.close)
                opened.callback(ours.close)
                pid = os.fork()
            except OSError as error:
                pause = self._plan_restart(child, code=1)
                reason = error.strerror or str(error)
                log.error(
                    "process.not_started", process=child.number, reason=reason, again_in=pause
                )
                return
            if pid == 0:
                ours.close()
                self._run_child(child, theirs)
            opened.pop_all()
        theirs.close()
        child.pid, child.control = pid, ours
        self._selector.register(ours, selectors.EVENT_READ, child)

    def _run_child(self, child: ChildProcess, control: socket.socket) -> None:
        """Run a child in this process, and end it."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            # Ctrl-C at a terminal goes to all processes; the supervisor stops them in order. A
            # child that receives SIGHUP has not read its certificate yet, or has its own handler.
            for number in (signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            self._selector.close()
            for other in self._children:
                if other.control is not None:
                    other.control.close()
            self._signals.close()
            self._wakeup.close()
            gc.unfreeze()
            code = child.run(control, not child.restarts)
        except BaseException:  # nothing above it may run in this process
            traceback.print_exc()
        finally:
            with suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _step(self, longest: float | None = None) -> None:
        """Wait for an event, a restart that is due, or at most `longest` seconds; process it."""
        now = time.monotonic()
        due = [child.due - now for child in self._children if child.due is not None]
        if longest is not None:
            due.append(longest)
        for key, _ in self._selector.select(max(0.0, min(due)) if due else None):
            if key.data is None:
                self._read_signals()
            else:
                self._read_message(key.data)
        for child in self._children:
            if child.due is not None and child.due <= time.monotonic() and not self._stopping:
                self._start(child)

    def _read_signals(self) -> None:
        with suppress(BlockingIOError):
            for number in self._signals.recv(4096):
                if number in (signal.SIGTERM, signal.SIGINT):
                    self._stopping = True
                elif number == signal.SIGHUP:
                    self._signal_all(signal.SIGHUP)  # they read their certificate again
                    self._reloads = True
        self._reap()

    def _read_message(self, child: ChildProcess) -> None:
        if child.control is None:
            return
        try:
            received = child.control.recv(MAX_MESSAGE)
        except OSError:
            received = b""
        if received:
            child.message = received.decode()
            if self._restarts and child.restarts:
                log.warning("process.restarted", process=child.number, pid=child.pid)
        else:
            self._selector.unregister(child.control)  # the process ends; SIGCHLD follows

    def _reap(self) -> None:
        """Read the exit codes of children that have ended, and plan their restarts."""
        for child in self._children:
            if child.pid:
                pid, status = os.waitpid(child.pid, os.WNOHANG)
                if pid:
                    self._handle_exit(child, os.waitstatus_to_exitcode(status))

    def _handle_exit(self, child: ChildProcess, code: int) -> None:
        ran = time.monotonic() - child.started
        self._close(child)
        pid, child.pid = child.pid, 0
        if ran > STABLE:
            child.failures = 0
        if (pause := self._plan_restart(child, code)) is not None:
            log.error("process.ended", process=child.number, pid=pid, code=code, again_in=pause)

    def _plan_restart(self, child: ChildProcess, code: int) -> float | None:
        """The seconds until a child that has ended or could not be started is started again. None:
        it is not. Before all children have been ready, the server ends instead.

        code: the exit code of the server then, if it is above 0; else 1."""
        if self._stopping or not child.restarts:
            return None
        child.failures += 1
        if not self._restarts:
            self.code = self.code or (code if code > 0 else 1)
            return None
        pause = RESTART.ceiling(child.failures)
        child.due = time.monotonic() + pause
        return pause

    def _close(self, child: ChildProcess) -> None:
        if child.control is not None:
            with suppress(KeyError, ValueError):
                self._selector.unregister(child.control)
            child.control.close()
            child.control = None

    def _signal_all(self, number: signal.Signals) -> None:
        for child in self._children:
            if child.pid and child.number and child.restarts:
                with suppress(ProcessLookupError):
                    os.kill(child.pid, number)

    def _stop_all(self) -> None:
        self._stopping = True
        servers = [child for child in self._children if child.number]
        for group in (servers, [child for child in self._children if not child.number]):
            for child in group:
                child.due = None
                self._close(child)
            self._wait_for(group)

    def _wait_for(self, children: Sequence[ChildProcess]) -> None:
        """Wait until children have ended, and kill those that take too long."""
        ends = time.monotonic() + self.drain + STOP_MARGIN
        while any(child.pid for child in children):
            left = ends - time.monotonic()
            if left <= 0:
                for child in children:
                    if child.pid:
                        self._kill(child)
                ends = float("inf")
            self._step(min(max(left, 0.0), STOP_MARGIN))
            self._reap()

    @staticmethod
    def _kill(child: ChildProcess) -> None:
        log.error("process.killed", process=child.number, pid=child.pid)
        os.kill(child.pid, signal.SIGKILL)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """The wake-up file descriptor receives the signal."""


def share_loaded_modules() -> None:
    """Exclude the objects of loaded modules from garbage collection, which would copy the memory
    that children share with this process."""
    gc.collect()
    gc.freeze()
