"""Real clients, unmodified, and the calls of others, through the whole API."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from tests.e2e.walks import command_line, gophercloud, openstacksdk, terraform
from tests.support.access import given_directly
from tests.support.program import Program, ServerProcess, program
from tests.support.ways import Way, by_password, by_token, unasked

Walk = Callable[[Way, Path], None]
#: A token or password for somebody who may do everything, made in the server's own database.
Enter = Callable[[Program, str], Awaitable[Way]]


def finished(walk: Callable[[Way, Path], Awaitable[None]]) -> Walk:
    async def bounded(way: Way, folder: Path) -> None:
        async with asyncio.timeout(60):
            await walk(way, folder)

    return lambda way, folder: asyncio.run(bounded(way, folder))


WALKS: dict[str, Walk] = {
    "openstack": command_line.walk,
    "openstacksdk": openstacksdk.walk,
    "gophercloud": finished(gophercloud.walk),
    "terraform": finished(terraform.walk),
}


@pytest.mark.parametrize("client", WALKS)
def test_a_client_walks_the_whole_api(server: ServerProcess, tmp_path: Path, client: str) -> None:
    WALKS[client](unasked(server.url, f"walk-{client}"), tmp_path)


async def with_a_token(run: Program, project: str) -> Way:
    token = await given_directly(run.database, "*", "root", ["admin"])
    return by_token(run.url, project, token)


async def with_a_password(run: Program, project: str) -> Way:
    password = await given_directly(run.database, "*", "ann", ["admin"], password="long enough 1")
    return by_password(run.url, project, "ann", password)


@pytest.mark.parametrize(
    ("enter", "clients"),
    [
        (with_a_token, ("openstack", "gophercloud")),
        (with_a_password, ("openstacksdk", "terraform")),
    ],
)
async def test_clients_that_say_who_they_are(
    database_url: str, tmp_path: Path, enter: Enter, clients: Sequence[str]
) -> None:
    async with program(database_url, {"auth.mode": "tokens"}) as run:
        way = await enter(run, "web")
        for client in clients:
            await asyncio.to_thread(WALKS[client], way, tmp_path)
