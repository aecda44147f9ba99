"""Running a command: limits of time and output, the end of its process group, and daemons."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from engine.types.command.process import CommandResult, run
from tests.support.forks import is_running

Running = Coroutine[Any, Any, None]
PATIENCE = 20.0


def in_loop(factory: Callable[[], asyncio.AbstractEventLoop], main: Running) -> None:
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main)


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run_in_loop(request: pytest.FixtureRequest) -> Callable[[Running], None]:
    """Both event loops that the program supports."""
    return lambda main: in_loop(request.param, main)


async def sh(code: str, *, seconds: float = PATIENCE, max_output: int = 1000) -> CommandResult:
    return await run(
        ["/bin/sh", "-c", code],
        program="/bin/sh",
        cwd=None,
        environment={"PATH": os.environ["PATH"]},
        seconds=seconds,
        max_output=max_output,
    )


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


async def number_in(file: Path) -> int:
    await until(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())


def test_each_output_stream_is_limited(run_in_loop: Callable[[Running], None]) -> None:
    async def main() -> None:
        ended = await sh("head -c 3000000 /dev/zero; head -c 50 /dev/zero >&2", max_output=100)
        assert ended == CommandResult(0, b"\0" * 100, b"\0" * 50)

    run_in_loop(main())


def test_the_start_of_standard_output_and_the_end_of_standard_error_are_kept(
    run_in_loop: Callable[[Running], None],
) -> None:
    """JSON starts at the beginning of the output; the reason of a failure is at its end."""

    async def main() -> None:
        ended = await sh("seq 1 100000; seq 1 100000 >&2", max_output=10)
        assert (ended.stdout, ended.stderr) == (b"1\n2\n3\n4\n5\n", b"99\n100000\n")

    run_in_loop(main())


def test_a_command_that_times_out_keeps_its_output(
    run_in_loop: Callable[[Running], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.types.command.process.GRACE", 0.1)

    async def main() -> None:
        ended = await sh("echo so far; sleep 60", seconds=0.3)
        assert (ended.code, ended.stdout) == (None, b"so far\n")

    run_in_loop(main())


@pytest.fixture
def stubborn(tmp_path: Path) -> tuple[str, Path]:
    """A command that ends while its child ignores SIGTERM and holds no pipe."""
    file = tmp_path / "child"
    child = f"trap '' TERM; echo $$ > {file}; exec >&- 2>&-; while :; do sleep 0.05; done"
    return f'/bin/sh -c "{child.replace("$", chr(92) + "$")}" & wait', file


def test_the_whole_process_group_is_killed_after_a_timeout(
    run_in_loop: Callable[[Running], None],
    stubborn: tuple[str, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engine.types.command.process.GRACE", 0.3)
    code, file = stubborn

    async def main() -> None:
        ended = await sh(code, seconds=1)
        assert ended.code is None
        child = await number_in(file)
        await until(lambda: not is_running(child))

    run_in_loop(main())


@pytest.mark.parametrize(("times", "grace"), [(1, 0.3), (2, 1000.0)])
def test_the_whole_process_group_is_killed_when_the_caller_is_cancelled(
    run_in_loop: Callable[[Running], None],
    stubborn: tuple[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    times: int,
    grace: float,
) -> None:
    """Cancelled once, it ends after the grace time; cancelled again meanwhile, at once."""
    monkeypatch.setattr("engine.types.command.process.GRACE", grace)
    code, file = stubborn

    async def main() -> None:
        task = asyncio.create_task(sh(code))
        child = await number_in(file)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: not is_running(child))

    run_in_loop(main())


@pytest.mark.parametrize("turns", range(8))
def test_a_caller_cancelled_at_the_start_leaves_no_process(
    run_in_loop: Callable[[Running], None], tmp_path: Path, turns: int
) -> None:
    file = tmp_path / "pid"

    async def main() -> None:
        task = asyncio.create_task(sh(f"echo $$ > {file}; exec sleep 60"))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        text = file.read_text() if file.exists() else ""
        if text.strip():
            await until(lambda: not is_running(int(text)))

    run_in_loop(main())


def test_a_command_gets_sigterm_before_sigkill(
    run_in_loop: Callable[[Running], None], tmp_path: Path
) -> None:
    async def main() -> None:
        code = f"trap 'echo tidy > {tmp_path}/file; exit 0' TERM; while :; do sleep 0.02; done"
        await sh(code, seconds=0.5)
        assert (tmp_path / "file").read_text() == "tidy\n"

    run_in_loop(main())


@pytest.mark.parametrize("own_session", [True, False])
def test_a_daemon_that_a_command_started_is_not_killed(
    run_in_loop: Callable[[Running], None], tmp_path: Path, own_session: bool
) -> None:
    """Even a daemon that holds the pipes does not delay the end of the command."""
    file = tmp_path / "daemon"
    program = (
        "import os, subprocess, sys;"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'],"
        f" start_new_session={own_session});"
        f"print(child.pid, file=open({str(file)!r}, 'w')); os._exit(0)"
    )

    async def main() -> None:
        argv = [sys.executable, "-c", program]
        ended = await run(
            argv,
            program=argv[0],
            cwd=None,
            environment={},
            seconds=PATIENCE,
            max_output=100,
        )
        daemon = await number_in(file)
        try:
            assert ended.code == 0
            assert is_running(daemon)
        finally:
            os.kill(daemon, signal.SIGKILL)

    run_in_loop(main())


@pytest.mark.parametrize(
    "wrong",
    [{"program": "/no/such/program"}, {"cwd": "/no/such/folder"}, {"environment": {"a": "\0"}}],
)
def test_a_command_that_cannot_start_raises(
    run_in_loop: Callable[[Running], None], wrong: dict[str, Any]
) -> None:
    async def main() -> None:
        known: dict[str, Any] = {"program": "/bin/sh", "cwd": None, "environment": {}}
        attempt: Awaitable[CommandResult] = run(
            ["sh", "-c", "true"], **(known | wrong), seconds=PATIENCE, max_output=10
        )
        with pytest.raises((OSError, ValueError)):
            await attempt

    run_in_loop(main())
