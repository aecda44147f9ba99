"""`headgate admin` in a process of its own, on a database of the test's."""

import asyncio
import json
import os
from dataclasses import dataclass

from tests.support import forks
from tests.support.program import Json


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Json:
        return json.loads(self.out)


async def admin(*words: str, url: str = "", **settings: str) -> Said:
    """settings: variables of the environment, without HEADGATE_."""
    said = {f"HEADGATE_{name}": value for name, value in settings.items()}
    environment = os.environ | said | ({"HEADGATE_DATABASE__URL": url} if url else {})
    done = await asyncio.to_thread(forks.run, ("admin", *words), environment)
    assert "Traceback" not in done.stderr, done.stderr
    return Said(done.returncode, done.stdout, done.stderr)
