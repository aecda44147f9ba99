"""Runs one command of an operator's machine: bounded in time and output, and gone at the end.

The command gets a process group of its own. When time is over, or the caller is cancelled, the
whole group is asked to end, then made to. What the command put into a session of its own (a
daemon) lives on.
"""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

#: Seconds between asking a group to end and making it.
GRACE = 3.0
#: Seconds to read on after the command has ended: a daemon may hold the pipe open.
AFTERMATH = 0.2


@dataclass(frozen=True, slots=True)
class Ended:
    """code: None when time was over. stdout, stderr: at most so many bytes as asked for."""

    code: int | None
    stdout: bytes
    stderr: bytes


async def run(
    argv: Sequence[str],
    *,
    cwd: str | None,
    environment: Mapping[str, str],
    seconds: float,
    max_output: int,
) -> Ended:
    """Raises OSError when the command cannot be started."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env=dict(environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    out, err = bytearray(), bytearray()
    readers = [
        asyncio.create_task(_read(process.stdout, out, max_output)),
        asyncio.create_task(_read(process.stderr, err, max_output)),
    ]
    try:
        code = await _ended(process, seconds)
        await asyncio.wait(readers, timeout=AFTERMATH)
    finally:
        for reader in readers:
            reader.cancel()
        if process.returncode is None:
            await _end(process)
    return Ended(code, bytes(out), bytes(err))


async def _read(stream: asyncio.StreamReader | None, kept: bytearray, most: int) -> None:
    """Read to the end, keep the first `most` bytes."""
    while stream is not None and (chunk := await stream.read(65_536)):
        kept += chunk[: max(0, most - len(kept))]


async def _ended(process: asyncio.subprocess.Process, seconds: float) -> int | None:
    try:
        async with asyncio.timeout(seconds):
            return await process.wait()
    except TimeoutError:
        return None


async def _end(process: asyncio.subprocess.Process) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await process.wait()
                return
