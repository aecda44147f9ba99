"""The supervisor of processes: failed forks, replacements that end at once, and SIGHUP at the start
of a process. A fault test runs whole servers: tests/fault/test_server_processes.py.

Each scenario runs in a process of its own, because the supervisor handles its signals and children.
"""

import errno
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from engine.back_off import BackOff
from engine.errors import Unavailable
from hub.program import process_supervisor
from hub.program.process_supervisor import ChildProcess, ProcessSupervisor, RunChild
from hub.settings.settings import reload_settings

#: Seconds until a scenario that does not end is killed.
PATIENCE = 20.0
Entry = dict[str, Any]


class Journal:
    """A log in a file, which all processes write. It has the methods of a logger."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, event: str, **more: Any) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps({"event": event, **more}) + "\n")

    info = warning = error = write

    def entries(self, event: str) -> list[Entry]:
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        return [one for one in map(json.loads, lines) if one["event"] == event]

    def wait_for(self, *events: str) -> Entry:
        """The first entry of one of these events; `run_alone` bounds the wait."""
        while not (found := [one for event in events for one in self.entries(event)]):
            time.sleep(0.01)
        return found[0]


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    journal = Journal(tmp_path / "journal")
    monkeypatch.setattr(process_supervisor, "log", journal)
    return journal


def run_alone(scenario: Callable[[], int]) -> int:
    """Run a scenario in a process; return its result, which is below 256."""
    pid = os.fork()
    if pid == 0:
        code = 255
        with suppress(BaseException):
            code = scenario()
        os._exit(code)
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise AssertionError("the scenario did not end")


def child(journal: Journal, name: str, then: Callable[[], object] = lambda: None) -> RunChild:
    """A process that writes its start, gets ready, calls `then`, and ends when it must stop."""

    def run(control: socket.socket, replaces: bool = False) -> int:
        journal.write("started", name=name, replaces=replaces)
        control.send(b"ready")
        then()
        control.recv(1)
        return 0

    return run


def fail_forks(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> None:
    """os.fork fails at the calls with these numbers, from 1."""
    fork, calls = os.fork, iter(range(1, 1000))

    def fork_or_fail() -> int:
        if next(calls) in numbers:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return fork()

    monkeypatch.setattr(os, "fork", fork_or_fail)


def stop_supervisor() -> None:
    os.kill(os.getppid(), signal.SIGTERM)


def supervise(
    children: dict[int, RunChild],
    reloaded: dict[int, RunChild] | Exception | None = None,
    supervisor: ProcessSupervisor | None = None,
) -> Callable[[], int]:
    """A scenario: starts children, which replaces them by others, or fails to, if they send SIGHUP,
    until one sends SIGTERM."""

    def reload() -> dict[int, RunChild]:
        if isinstance(reloaded, Exception):
            raise reloaded
        return reloaded or children

    def scenario() -> int:
        running = supervisor or ProcessSupervisor(drain=1.0)
        with running.handle_signals():
            if not running.start([ChildProcess(*one) for one in children.items()]):
                return running.code
            if reloaded is not None:
                os.kill(os.getpid(), signal.SIGHUP)
            running.supervise(reload)
        return 0

    return scenario


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(process_supervisor, "RESTART", BackOff(0.01, 0.1))
    yield


@pytest.mark.usefixtures("short_pauses")
def test_a_process_that_cannot_be_forked_is_started_later(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = tmp_path / "ended"

    def end_once() -> None:
        if ended.exists():
            stop_supervisor()
        else:
            ended.touch()
            os._exit(3)

    def scenario() -> int:
        fail_forks(monkeypatch, 2, 3)
        return supervise({1: child(journal, "a", end_once)})()

    assert run_alone(scenario) == 0
    failed = journal.entries("process.not_started")
    assert [(one["process"], one["reason"]) for one in failed] == [
        (1, os.strerror(errno.EAGAIN))
    ] * 2
    assert [one["again_in"] for one in failed] == [0.02, 0.04]
    assert len(journal.entries("process.restarted")) == 1


def test_a_failed_fork_at_the_start_ends_the_server(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scenario() -> int:
        fail_forks(monkeypatch, 2)
        return supervise({1: child(journal, "a"), 2: child(journal, "b")})()

    assert run_alone(scenario) == 1
    assert [one["process"] for one in journal.entries("process.not_started")] == [2]


def test_a_replacement_that_cannot_be_forked_keeps_the_former_process(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log names the processes with the new settings, and those with the former ones."""

    def scenario() -> int:
        fail_forks(monkeypatch, 5)
        numbers = (1, 2, 3)
        former = {number: child(journal, "former") for number in numbers}
        new = {number: child(journal, "new") for number in numbers}
        monkeypatch.setattr(journal, "error", log_and_stop)
        return supervise(former, new)()

    def log_and_stop(event: str, **more: Any) -> None:
        journal.write(event, **more)
        if event == "process.kept":
            os.kill(os.getpid(), signal.SIGTERM)

    assert run_alone(scenario) == 0
    (kept,) = journal.entries("process.kept")
    assert kept["process"] == 2
    assert (kept["new_settings"], kept["former_settings"]) == ([1], [2, 3])
    assert [one["process"] for one in journal.entries("process.replaced")] == [1]
    assert [one["name"] for one in journal.entries("started")] == ["former"] * 3 + ["new"]


class SlowSupervisor(ProcessSupervisor):
    """When it looks, a replacement has sent its message, and has ended."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(drain=1.0)
        self._journal = journal
        self._started = 0

    def _start(self, child: ChildProcess) -> None:
        super()._start(child)
        self._started += 1
        if self._started == 2:
            pid = self._journal.wait_for("leaves")["pid"]
            self._selector.select(0)  # epoll returns its message first, then
            self._journal.write("may leave")
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def test_a_replacement_that_ends_as_soon_as_it_is_ready_keeps_the_former_process(
    journal: Journal,
) -> None:
    def stop_later() -> None:
        journal.wait_for("process.kept", "process.replaced")
        stop_supervisor()

    def leave() -> None:
        journal.write("leaves", pid=os.getpid())
        journal.wait_for("may leave")
        os._exit(3)

    def scenario() -> int:
        former, new = child(journal, "former", stop_later), child(journal, "new", leave)
        return supervise({1: former}, {1: new}, SlowSupervisor(journal))()

    assert run_alone(scenario) == 0
    assert [one["process"] for one in journal.entries("process.kept")] == [1]
    assert journal.entries("process.replaced") == []


@pytest.mark.usefixtures("short_pauses")
def test_a_restarted_process_replaces_none(journal: Journal, tmp_path: Path) -> None:
    """It answers /healthz while it waits for the database, because no other one serves for it."""
    ended = tmp_path / "ended"

    def end_once() -> None:
        if ended.exists():
            stop_supervisor()
        else:
            ended.touch()
            journal.wait_for("process.replaced")
            os._exit(3)

    def scenario() -> int:
        return supervise({1: child(journal, "former")}, {1: child(journal, "new", end_once)})()

    assert run_alone(scenario) == 0
    started = [(one["name"], one["replaces"]) for one in journal.entries("started")]
    assert started == [("former", False), ("new", True), ("new", False)]


def test_sighup_does_not_end_a_process_that_has_no_handler_yet(journal: Journal) -> None:
    def hang_up() -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        stop_supervisor()

    assert run_alone(supervise({1: child(journal, "a", hang_up)})) == 0
    assert journal.entries("process.ended") == []


@pytest.mark.parametrize("error", [Unavailable("the cause"), ValueError("the cause")], ids=type)
def test_processes_stay_if_new_settings_cannot_be_read(journal: Journal, error: Exception) -> None:
    def stop_after_reload() -> None:
        journal.wait_for("settings.not_reloaded")
        stop_supervisor()

    assert run_alone(supervise({1: child(journal, "a", stop_after_reload)}, error)) == 0
    (entry,) = journal.entries("settings.not_reloaded")
    assert "the cause" in entry["reason"]
    assert len(journal.entries("started")) == 1


def test_a_former_process_that_hangs_is_killed_when_its_time_is_over(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not a whole margin later."""
    margin, drain = 0.5, 0.2
    monkeypatch.setattr(process_supervisor, "STOP_MARGIN", margin)
    step = ProcessSupervisor._step

    def recorded_step(self: ProcessSupervisor, longest: float | None = None) -> None:
        journal.write("step", longest=longest)
        step(self, longest)

    monkeypatch.setattr(ProcessSupervisor, "_step", recorded_step)

    def hang() -> None:
        while True:
            signal.pause()

    def stop_after_kill() -> None:
        journal.wait_for("process.killed")
        stop_supervisor()

    def scenario() -> int:
        former, new = child(journal, "former", hang), child(journal, "new", stop_after_kill)
        return supervise({1: former}, {1: new}, ProcessSupervisor(drain=drain))()

    assert run_alone(scenario) == 0
    waits = [one["longest"] for one in journal.entries("step") if one["longest"] is not None]
    assert any(one < margin for one in waits)


def test_a_fifo_in_place_of_the_settings_file_does_not_block_the_supervisor(
    journal: Journal, tmp_path: Path
) -> None:
    """Nothing writes to it."""
    config = tmp_path / "headgate.toml"
    os.mkfifo(config)

    def stop_after_reload() -> None:
        journal.wait_for("settings.not_reloaded")
        stop_supervisor()

    def reload() -> dict[int, RunChild]:
        reload_settings(config, {})
        raise AssertionError("a FIFO was read")

    def scenario() -> int:
        running = ProcessSupervisor(drain=1.0)
        with running.handle_signals():
            assert running.start([ChildProcess(1, child(journal, "first", stop_after_reload))])
            os.kill(os.getpid(), signal.SIGHUP)
            running.supervise(reload)
        return 0

    assert run_alone(scenario) == 0
    (entry,) = journal.entries("settings.not_reloaded")
    assert str(config) in entry["reason"] and "not a regular file" in entry["reason"]
