"""Runs `headgate` as a process, against a server: forked, or a new Python process (`command`)."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import forks
from tests.support.program import ServerProcess

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
TEMPLATE, ENVIRONMENT = str(EXAMPLES / "first-stack.yaml"), str(EXAMPLES / "first-env.yaml")
#: Exit codes of commands that print their result on standard output.
RESULT_CODES = (0, 3, 4, 5, 6)


def command(*arguments: str, server: ServerProcess | None = None) -> list[str]:
    options = ["--url", server.url] if server else []
    return [sys.executable, "-m", "hub.cli.main", *arguments, *options]


def completed(
    *arguments: str,
    server: ServerProcess | None = None,
    typed: str = "",
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """The ended command. typed: its standard input. environment: additional variables."""
    options = ["--url", server.url] if server else []
    variables = os.environ | {**(environment or {})}
    return forks.run([*arguments, *options], variables, typed=typed)


def headgate(server: ServerProcess, *arguments: str, code: int = 0, roles: str = "") -> str:
    """What the command printed: its result, or the error message if it failed."""
    done = completed(*arguments, server=server, environment={"HEADGATE_ROLES": roles})
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stdout if code in RESULT_CODES else done.stderr


def headgate_json(server: ServerProcess, *arguments: str, code: int = 0, roles: str = "") -> Any:
    return json.loads(headgate(server, *arguments, "--json", code=code, roles=roles))


@contextmanager
def running_command(
    *arguments: str, server: ServerProcess, **streams: Any
) -> Iterator[subprocess.Popen[str]]:
    """A command that runs while the test does; it is killed at the end of the block."""
    with subprocess.Popen(command(*arguments, server=server), text=True, **streams) as running:
        try:
            yield running
        finally:
            if running.poll() is None:
                running.kill()
