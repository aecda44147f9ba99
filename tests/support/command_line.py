"""`headgate` as people and scripts run it: in a process of its own, against a server."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import forks
from tests.support.program import ServerProcess

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
TEMPLATE, ENVIRONMENT = str(EXAMPLES / "first-stack.yaml"), str(EXAMPLES / "first-env.yaml")
#: The codes of answers, as opposed to those of complaints.
ANSWERS = (0, 3, 4, 5, 6)


def command(*words: str, server: ServerProcess | None = None) -> list[str]:
    where = ["--url", server.url] if server else []
    return [sys.executable, "-m", "hub.cli.main", *words, *where]


def headgate(server: ServerProcess, *words: str, code: int = 0, roles: str = "") -> str:
    """What it printed: the answer, or the complaint when the code is one of an error."""
    done = forks.run((*words, "--url", server.url), os.environ | {"HEADGATE_ROLES": roles})
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stdout if code in ANSWERS else done.stderr


def spoken(server: ServerProcess, *words: str, code: int = 0, roles: str = "") -> Any:
    return json.loads(headgate(server, *words, "--json", code=code, roles=roles))


@contextmanager
def started(*words: str, server: ServerProcess, **streams: Any) -> Iterator[subprocess.Popen[str]]:
    """A command that goes on while the test does; it does not outlive the test."""
    with subprocess.Popen(command(*words, server=server), text=True, **streams) as running:
        try:
            yield running
        finally:
            if running.poll() is None:
                running.kill()
