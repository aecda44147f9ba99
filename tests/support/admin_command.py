"""Runs `headgate admin` as a process, against a database of the test."""

import asyncio
import json
import os
from dataclasses import dataclass

from tests.support import forks
from tests.support.program import Json


@dataclass(frozen=True)
class CommandOutput:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Json:
        return json.loads(self.out)


async def run_admin(*arguments: str, url: str = "", **settings: str) -> CommandOutput:
    """settings: environment variables without the prefix HEADGATE_."""
    variables = {f"HEADGATE_{name}": value for name, value in settings.items()}
    environment = os.environ | variables | ({"HEADGATE_DATABASE__URL": url} if url else {})
    done = await asyncio.to_thread(forks.run, ("admin", *arguments), environment)
    assert "Traceback" not in done.stderr, done.stderr
    return CommandOutput(done.returncode, done.stdout, done.stderr)
