"""Real clients, unmodified, and the calls of others, through the whole API."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from uuid import uuid4

import pytest

from tests.e2e.walks import command_line, gophercloud, openstacksdk, terraform
from tests.support.access import given_directly
from tests.support.keystone import PASSWORD, Keystone
from tests.support.program import Program, ServerProcess, program
from tests.support.ways import Way, by_catalogue, by_password, by_token, unasked

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


#: By a way in that the whole walks do not take.
SHORT: dict[str, Walk] = {
    "openstack": command_line.short_walk,
    "openstacksdk": openstacksdk.short_walk,
}


@pytest.mark.parametrize(
    ("enter", "client"), [(with_a_password, "openstack"), (with_a_token, "openstacksdk")]
)
async def test_the_other_way_in_is_as_good(
    database_url: str, tmp_path: Path, enter: Enter, client: str
) -> None:
    async with program(database_url, {"auth.mode": "tokens"}) as run:
        await asyncio.to_thread(SHORT[client], await enter(run, "web"), tmp_path)


async def test_clients_find_the_server_in_the_catalogue_of_a_keystone(
    database_url: str, tmp_path: Path, keystone: Keystone
) -> None:
    """They know of the server nothing but what the Keystone says, and of themselves a password."""
    project = await keystone.project(f"walks-{uuid4().hex[:6]}")
    await keystone.user(f"ann-{project.name}", project, ["member"])
    asker = f"headgate-{project.name}"
    await keystone.user(asker, project, ["admin"])
    said = {"url": keystone.url, "username": asker, "password": PASSWORD, "project": project.name}
    settings = {f"auth.keystone.{name}": value for name, value in said.items()}
    async with program(database_url, {"auth.mode": "keystone", **settings}) as run:
        await keystone.offer(run.url)
        at = {
            "auth_url": f"{keystone.url}/v3",
            "username": f"ann-{project.name}",
            "password": PASSWORD,
        }
        way = by_catalogue(run.url, project.id, project.name, at)
        for walk in SHORT.values():
            await asyncio.to_thread(walk, way, tmp_path)


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
