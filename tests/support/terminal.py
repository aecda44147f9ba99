"""Runs `headgate` on a terminal of its own, as a user does."""

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.support.command_line import command
from tests.support.program import PATIENCE, ServerProcess


class Terminal:
    """A command on a pseudoterminal. screen: everything that it has printed. returncode: of the
    command, once `close` has returned."""

    def __init__(self, process: "subprocess.Popen[bytes]", ours: int) -> None:
        self._process = process
        self._ours = ours
        self._seen = b""

    @property
    def screen(self) -> str:
        return self._seen.decode(errors="replace").replace("\r\n", "\n")

    def read_until(self, text: str) -> str:
        """The screen as soon as it has this text, which must appear."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.screen:
            assert time.monotonic() < deadline, self.screen
            ready, _, _ = select.select([self._ours], [], [], 1)
            try:
                self._seen += os.read(self._ours, 65536) if ready else b""
            except OSError:  # Linux reports this when the command has ended
                assert text in self.screen, self.screen
        return self.screen

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def type_hidden(self, text: str) -> None:
        """Type when the terminal shows no input any more: what was typed before is discarded."""
        deadline = time.monotonic() + PATIENCE
        while termios.tcgetattr(self._ours)[3] & termios.ECHO:
            assert time.monotonic() < deadline, self.screen
            time.sleep(0.01)
        self.type(text)

    def interrupt(self) -> None:
        """Press Ctrl-C until the command has ended.

        Python can miss a signal that arrives just before it reads the terminal: it blocks in the
        read, and the next Ctrl-C interrupts it.
        """
        deadline = time.monotonic() + PATIENCE
        with contextlib.suppress(OSError):  # Linux reports this when the command has ended
            while time.monotonic() < deadline:
                self.type("\x03")
                while select.select([self._ours], [], [], 1)[0]:
                    self._seen += os.read(self._ours, 65536)
        self._process.wait(PATIENCE)

    def wait(self, code: int = 0) -> str:
        """The whole screen, after the command has ended with this exit code."""
        deadline = time.monotonic() + PATIENCE
        with contextlib.suppress(OSError):  # Linux reports this when the command has ended
            while select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
                self._seen += os.read(self._ours, 65536)
        assert self._process.wait(PATIENCE) == code, self.screen
        return self.screen


@contextmanager
def terminal(
    *arguments: str,
    server: ServerProcess | None = None,
    columns: int = 80,
    lines: int = 24,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Terminal]:
    """Run a command on a terminal of this size; it is killed at the end of the block."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    environ = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NO_COLOR", "COLUMNS", "LINES", "PAGER")
    }
    environ |= {"TERM": "xterm", **(environment or {})}
    process = subprocess.Popen(
        command(*arguments, server=server), stdin=theirs, stdout=theirs, stderr=theirs,
        env=environ, preexec_fn=lambda: os.login_tty(theirs),  # Ctrl-C reaches the command
    )  # fmt: skip
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(PATIENCE)
        os.close(ours)
