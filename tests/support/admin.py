"""`headgate admin` in a process of its own, on a database of the test's."""

import asyncio
import json
import os
import sys
from dataclasses import dataclass

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
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "hub.cli.main", "admin", *words, env=environment,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(60):
            out, err = await process.communicate()
    except TimeoutError:
        process.kill()
        raise
    assert b"Traceback" not in err, err.decode()
    return Said(process.returncode or 0, out.decode(), err.decode())
