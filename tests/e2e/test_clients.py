"""Real clients, unmodified, and the calls of others, through the whole API."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.e2e.walks import command_line, gophercloud, openstacksdk, terraform
from tests.support.program import ServerProcess
from tests.support.ways import Way, unasked


def finished(walk: Callable[[Way, Path], Awaitable[None]]) -> Callable[[Way, Path], None]:
    async def bounded(way: Way, folder: Path) -> None:
        async with asyncio.timeout(60):
            await walk(way, folder)

    return lambda way, folder: asyncio.run(bounded(way, folder))


WALKS: dict[str, Callable[[Way, Path], None]] = {
    "openstack": command_line.walk,
    "openstacksdk": openstacksdk.walk,
    "gophercloud": finished(gophercloud.walk),
    "terraform": finished(terraform.walk),
}


@pytest.mark.parametrize("client", WALKS)
def test_a_client_walks_the_whole_api(server: ServerProcess, tmp_path: Path, client: str) -> None:
    WALKS[client](unasked(server.url, f"walk-{client}"), tmp_path)
