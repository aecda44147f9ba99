"""Runs one command of an operator's machine: bounded in time and output, and gone at the end.

The command gets a session and a process group of its own. When time is over, or the caller is
cancelled, the whole group is asked to end, then made to. A command that ends by itself may leave
something behind on purpose: what it left in the background lives on.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from engine.types.command.allow_list import RunAs

#: Seconds between asking a group to end and making it.
GRACE = 3.0
#: Seconds to read on after the command has ended: a daemon may hold the pipe open.
AFTERMATH = 0.2
#: Seconds between two looks at a group that was asked to end.
LOOK = 0.02


@dataclass(frozen=True, slots=True)
class Ended:
    """code: None when time was over, below 0 when a signal ended it.

    stdout, stderr: at most so many bytes as asked for.
    """

    code: int | None
    stdout: bytes
    stderr: bytes


class _Watch(asyncio.SubprocessProtocol):
    """Keeps `most` bytes of each stream and tells when it is over.

    Of standard output the first, of standard error the last: there is the reason of a failure.

    A protocol, not asyncio's `Process`: that one's wait() may last as long as a daemon holds a
    pipe, and cannot close its pipes.
    """

    def __init__(self, most: int) -> None:
        self.kept = {1: bytearray(), 2: bytearray()}
        self.exited = asyncio.Event()
        self.read = asyncio.Event()
        self._most = most
        self._open = {1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        kept = self.kept[fd]
        if fd == 1:
            kept += data[: max(0, self._most - len(kept))]
        else:
            kept += data
            del kept[: max(0, len(kept) - self._most)]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open:
            self.read.set()

    def process_exited(self) -> None:
        self.exited.set()


async def run(
    argv: Sequence[str],
    *,
    program: str,
    cwd: str | None,
    environment: Mapping[str, str],
    seconds: float,
    max_output: int,
    run_as: RunAs | None = None,
) -> Ended:
    """program: the file to execute; argv[0] is only the name it is told it has.

    Raises OSError, ValueError or SubprocessError when the command cannot be started.
    """
    if any("\0" in text for text in (*argv, *environment, *environment.values())):
        raise ValueError("a text with a NUL character cannot be handed to a program")
    watch = _Watch(max_output)
    transport = await _start(watch, argv, program, cwd, environment, _becoming(run_as))
    try:
        over = not await _within(watch.exited, seconds)
        await _within(watch.read, AFTERMATH)
        code = None if over else transport.get_returncode()
        return Ended(code, bytes(watch.kept[1]), bytes(watch.kept[2]))
    finally:
        try:
            if not watch.exited.is_set():
                await _end_group(transport.get_pid(), watch)
        finally:
            transport.close()


async def _start(
    watch: _Watch,
    argv: Sequence[str],
    program: str,
    cwd: str | None,
    environment: Mapping[str, str],
    become: Callable[[], None] | None,
) -> asyncio.SubprocessTransport:
    """A caller cancelled while the process starts must not leave it behind, on any loop."""
    starting = asyncio.create_task(
        asyncio.get_running_loop().subprocess_exec(
            lambda: watch,
            *argv,
            executable=program,
            cwd=cwd,
            env=dict(environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            preexec_fn=become,
        )
    )
    try:
        transport, _ = await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_discard)
        await asyncio.wait([starting])
        if starting.exception() is None:
            await _within(watch.exited, GRACE)
        raise
    return transport


def _becoming(run_as: RunAs | None) -> Callable[[], None] | None:
    """What changes a new process to another account, before it runs the program.

    uvloop knows no other way.
    """
    if run_as is None or run_as.uid is None:
        return None
    uid, gid, groups = run_as.uid, run_as.gid, list(run_as.groups)

    def become() -> None:
        os.setgroups(groups)
        os.setgid(gid)
        os.setuid(uid)

    return become


def _discard(started: asyncio.Task[tuple[asyncio.SubprocessTransport, _Watch]]) -> None:
    if not started.cancelled() and started.exception() is None:
        transport, _ = started.result()
        _signal(transport.get_pid(), signal.SIGKILL)
        transport.close()


async def _within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


async def _end_group(group: int, watch: _Watch) -> None:
    """Ask, wait for all of the group, then make it; at once when cancelled meanwhile."""
    try:
        _signal(group, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                while _signal(group, 0):  # noqa: ASYNC110 - nothing tells when a group is gone
                    await asyncio.sleep(LOOK)
    finally:
        _signal(group, signal.SIGKILL)
        await _within(watch.exited, GRACE)


def _signal(group: int, number: int) -> bool:
    """False when nobody is left in the group."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
