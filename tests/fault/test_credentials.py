"""While everything waits, no credential is anywhere: in no table, no file, and not in memory.

The server runs with an allocator that overwrites what is freed, so that what is found in its memory
is what it holds. That the search finds a credential that is held is shown first.
"""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.fault.load import Effects, a_folder
from tests.support.program import Http, ServerProcess, eventually, template

TOKEN = "planted-credential-3f9a5be1c07d42"
WIPING = {"PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "165"}


@pytest.fixture
def folder() -> Iterator[Path]:
    with a_folder() as found:
        yield found


@asynccontextmanager
async def serving(server: ServerProcess) -> AsyncIterator[Http]:
    try:
        server.start()
        async with aiohttp.ClientSession() as session:
            yield Http(session, server.url)
    finally:
        server.stop()


def in_memory(pid: int, wanted: bytes) -> int:
    """How often these bytes are in the memory that a process may write."""
    found = 0
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            place, rights, *_ = line.split()
            if not rights.startswith("rw"):
                continue
            start, end = (int(part, 16) for part in place.split("-"))
            try:
                memory.seek(start)
                found += memory.read(end - start).count(wanted)
            except (OSError, ValueError, OverflowError):
                continue  # what the kernel maps there cannot be read
    return found


def in_files(folder: Path, wanted: bytes) -> list[str]:
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and not path.is_socket() and wanted in path.read_bytes()
    ]


async def test_a_credential_is_gone_while_everything_waits(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in WIPING.items():
        monkeypatch.setenv(name, value)
    effects = Effects(folder)
    gate = folder / "gate"
    resources = {
        "slow": effects.resource(until=str(gate)),
        "held": effects.resource(depends_on="slow"),
    }
    server = ServerProcess(folder, settings=effects.settings, anew=True)
    async with serving(server) as http:
        headers = {"X-Auth-Token": TOKEN}
        body = {"stack_name": "s", "template": template(resources),
                "environment": {"hooks": [{"at": "held", "on": "pre-create"}]}}  # fmt: skip
        status, said = await http.call("POST", "/stacks", body, headers=headers)
        assert status == 201, said

        async def runs() -> bool:
            return in_memory(server.pid, TOKEN.encode()) > 0

        await eventually(runs)  # it is in use: given to the command that runs
        assert in_files(folder, TOKEN.encode()) == []  # and in the database only sealed
        gate.touch()
        (hook,) = await http.waiting("s")
        await http.call("GET", "/stacks")  # whatever was read from the connection before is over
        assert await _gone(server.pid)
        assert in_files(folder, TOKEN.encode()) == []
        assert os.stat(folder / "data" / "credentials.key").st_mode & 0o77 == 0
        status, _ = await http.call(
            "POST", f"/hooks/{hook['id']}/signal", {"decision": "continue"}, headers=headers
        )
        assert status == 200
        assert await http.until_ended("s") == "CREATE_COMPLETE"
        assert await _gone(server.pid)


async def _gone(pid: int) -> bool:
    async def look() -> bool:
        return in_memory(pid, TOKEN.encode()) == 0

    await eventually(look)
    return True
