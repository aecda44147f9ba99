"""While everything waits, no credential is in any table, file, or the memory of the server.

The server runs with an allocator that overwrites freed memory, so that the search finds only values
in use. The test first shows that the search finds a credential in use.
"""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.fault.load import Effects, new_folder
from tests.support.program import Http, ServerProcess, eventually, template

TOKEN = "planted-credential-3f9a5be1c07d42"
WIPING = {"PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "165"}


@pytest.fixture
def folder() -> Iterator[Path]:
    with new_folder() as found:
        yield found


@asynccontextmanager
async def running(server: ServerProcess) -> AsyncIterator[Http]:
    try:
        server.start()
        async with aiohttp.ClientSession() as session:
            yield Http(session, server.url)
    finally:
        server.stop()


def in_memory(pid: int, wanted: bytes) -> int:
    """The number of occurrences of these bytes in the writable memory of a process."""
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
                continue  # memory that the kernel maps there cannot be read
    return found


def in_files(folder: Path, wanted: bytes) -> list[str]:
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and not path.is_socket() and wanted in path.read_bytes()
    ]


async def test_no_credential_is_stored_while_everything_waits(
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
    server = ServerProcess(folder, settings=effects.settings, unforked=True)
    async with running(server) as http:
        headers = {"X-Auth-Token": TOKEN}
        body = {"stack_name": "s", "template": template(resources),
                "environment": {"hooks": [{"at": "held", "on": "pre-create"}]}}  # fmt: skip
        status, response = await http.call("POST", "/stacks", body, headers=headers)
        assert status == 201, response

        async def runs() -> bool:
            return in_memory(server.pid, TOKEN.encode()) > 0

        await eventually(runs)  # in use: passed to the running command
        assert in_files(folder, TOKEN.encode()) == []  # encrypted in the database
        gate.touch()
        (hook,) = await http.waiting_hooks("s")
        await http.call("GET", "/stacks")  # the connection's buffers are reused
        assert await _until_ended(server.pid)
        assert in_files(folder, TOKEN.encode()) == []
        assert os.stat(folder / "data" / "credentials.key").st_mode & 0o77 == 0
        status, _ = await http.call(
            "POST", f"/hooks/{hook['id']}/signal", {"decision": "continue"}, headers=headers
        )
        assert status == 200
        assert await http.until_ended("s") == "CREATE_COMPLETE"
        assert await _until_ended(server.pid)


async def _until_ended(pid: int) -> bool:
    async def check() -> bool:
        return in_memory(pid, TOKEN.encode()) == 0

    await eventually(check)
    return True
