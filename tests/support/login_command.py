"""Runs `headgate login` and `headgate logout` as a process, while a test is the browser."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from yarl import URL

from tests.support.command_line import command

#: Seconds until it must have printed or ended.
PATIENCE = 60.0


class Command:
    """`headgate` as a process, as a user without tokens runs it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.shown = ""

    async def until_code(self) -> tuple[URL, str]:
        """The address to open and the code, as the terminal shows them."""
        assert self.process.stderr is not None
        async with asyncio.timeout(PATIENCE):
            while "Type this code into the page" not in self.shown:
                line = await self.process.stderr.readline()
                assert line, self.shown
                self.shown += line.decode()
        address = re.search(r"^http\S+", self.shown, re.MULTILINE)
        code = re.search(r"page: ([A-Z]{4}-[A-Z]{4})$", self.shown, re.MULTILINE)
        assert address and code, self.shown
        return URL(address[0], encoded=True), code[1]

    async def end(self, typed: str = "") -> tuple[int, str]:
        """The exit code and everything that was printed."""
        async with asyncio.timeout(PATIENCE):
            out, error = await self.process.communicate(typed.encode())
        assert "Traceback" not in error.decode()
        return self.process.returncode or 0, self.shown + error.decode() + out.decode()


@asynccontextmanager
async def started(file: Path, *words: str, **variables: str) -> AsyncIterator[Command]:
    """file: with the contexts."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "SSH_CONNECTION"},
        "HEADGATE_CONTEXTS": str(file), "NO_COLOR": "1", "BROWSER": "/bin/true", **variables,
    }  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        *command(*words), env=environment, stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield Command(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
