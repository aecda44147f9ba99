"""Real, unmodified clients, and the calls of other ones, against the whole API."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from uuid import uuid4

import pytest

from tests.e2e.client_calls import command_line, gophercloud, openstacksdk, terraform
from tests.support.access import insert_credential
from tests.support.client_settings import (
    ClientSettings,
    by_catalogue,
    by_password,
    by_token,
    without_authentication,
)
from tests.support.keystone import PASSWORD, Keystone
from tests.support.program import Program, ServerProcess, program

ClientRun = Callable[[ClientSettings, Path], None]
#: Creates a token or password with all rights in the server's database.
CreateCredential = Callable[[Program, str], Awaitable[ClientSettings]]


def synchronous(run_client: Callable[[ClientSettings, Path], Awaitable[None]]) -> ClientRun:
    async def bounded(client_settings: ClientSettings, folder: Path) -> None:
        async with asyncio.timeout(60):
            await run_client(client_settings, folder)

    return lambda client_settings, folder: asyncio.run(bounded(client_settings, folder))


ALL_CALLS: dict[str, ClientRun] = {
    "openstack": command_line.run_all,
    "openstacksdk": openstacksdk.run_all,
    "gophercloud": synchronous(gophercloud.run_all),
    "terraform": synchronous(terraform.run_all),
}


@pytest.mark.parametrize("client", ALL_CALLS)
def test_a_client_can_use_the_whole_api(server: ServerProcess, tmp_path: Path, client: str) -> None:
    ALL_CALLS[client](without_authentication(server.url, f"walk-{client}"), tmp_path)


async def with_a_token(run: Program, project: str) -> ClientSettings:
    token = await insert_credential(run.database, "*", "root", ["admin"])
    return by_token(run.url, project, token)


async def with_a_password(run: Program, project: str) -> ClientSettings:
    password = await insert_credential(
        run.database, "*", "ann", ["admin"], password="long enough 1"
    )
    return by_password(run.url, project, "ann", password)


#: Calls that show that a client can authenticate. The others are few.
AUTHENTICATED_RUNS: dict[str, ClientRun] = {
    **ALL_CALLS,
    "openstack": command_line.run_some,
    "openstacksdk": openstacksdk.run_some,
}


@pytest.mark.parametrize(
    ("create_credential", "clients"),
    [
        (with_a_token, ("openstack", "gophercloud")),
        (with_a_password, ("openstacksdk", "terraform")),
    ],
)
async def test_clients_can_authenticate_with_tokens_and_passwords(
    database_url: str, tmp_path: Path, create_credential: CreateCredential, clients: Sequence[str]
) -> None:
    async with program(database_url, {"auth.mode": "tokens"}) as run:
        client_settings = await create_credential(run, "web")
        for client in clients:
            await asyncio.to_thread(AUTHENTICATED_RUNS[client], client_settings, tmp_path)


async def test_clients_find_the_server_in_the_catalog_of_keystone(
    database_url: str, tmp_path: Path, keystone: Keystone
) -> None:
    """The clients have the URL of Keystone and a password."""
    project = await keystone.project(f"walks-{uuid4().hex[:6]}")
    await keystone.user(f"ann-{project.name}", project, ["member"])
    service_user = f"headgate-{project.name}"
    await keystone.user(service_user, project, ["admin"])
    values = {
        "url": keystone.url,
        "username": service_user,
        "password": PASSWORD,
        "project": project.name,
    }
    settings = {f"auth.keystone.{name}": value for name, value in values.items()}
    async with program(database_url, {"auth.mode": "keystone", **settings}) as run:
        await keystone.register(run.url)
        at = {
            "auth_url": f"{keystone.url}/v3",
            "username": f"ann-{project.name}",
            "password": PASSWORD,
        }
        client_settings = by_catalogue(run.url, project.id, project.name, at)
        for client in ("openstack", "openstacksdk"):
            await asyncio.to_thread(AUTHENTICATED_RUNS[client], client_settings, tmp_path)
