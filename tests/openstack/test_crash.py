"""The server process dies around the requests that create objects; each object exists once."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.headgate import keystone_settings
from tests.openstack.stacks import delete, server, volume
from tests.support.program import Program, ServerProcess, eventually

Json = Any
#: What a worker has done with the resource when the process dies.
DEATHS = {
    "before the first call": "worker.start@a:1:kill",
    "before the request is saved": "worker.judge@a:1:kill",
    "before a poll is saved": "worker.judge@a:2:kill",
    "in a later call": "worker.start@a:3:kill",
}


def settings_of(openstack: OpenStack) -> str:
    sections: dict[str, list[str]] = {}
    for name, value in keystone_settings(openstack).items():
        section, _, key = name.rpartition(".")
        sections.setdefault(section, []).append(f'{key} = "{value}"')
    text = "\n".join(f"[{name}]\n" + "\n".join(lines) for name, lines in sections.items())
    return f'{text}\n[engine]\nlease = "1s"\n[resource_types.openstack]\nenabled = true\n'


@asynccontextmanager
async def dying_server(
    folder: Path, database_url: str, openstack: OpenStack, project: Project, fault: str
) -> AsyncIterator[tuple[ServerProcess, Program]]:
    """A server process that dies at the fault, and a client."""
    process = ServerProcess(folder, settings=settings_of(openstack), database_url=database_url)
    try:
        await asyncio.to_thread(process.start, fault=fault)
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:
            session.headers["X-Auth-Token"] = project.token()
            client = Program(session, process.url, project.id)
            yield process, client
    finally:
        process.stop()


OBJECTS: dict[str, tuple[Json, Callable[[Project], list[Any]]]] = {
    "server": (server(name="fixed"), lambda project: list(project.cloud.compute.servers())),
    "volume": (volume(name="fixed"), lambda project: list(project.cloud.block_storage.volumes())),
    "key pair": (
        {"type": "OS::Nova::KeyPair", "properties": {"name": "fixed"}},
        lambda project: list(project.cloud.compute.keypairs()),
    ),
    "server group": (
        {"type": "OS::Nova::ServerGroup", "properties": {"name": "fixed"}},
        lambda project: list(project.cloud.compute.server_groups()),
    ),
}
CASES = [("server", death) for death in DEATHS] + [
    (kind, "before a poll is saved") for kind in OBJECTS if kind != "server"
] + [("volume", "before the request is saved")]  # fmt: skip


@pytest.mark.parametrize(("kind", "death"), CASES)
async def test_a_death_creates_an_object_once(
    tmp_path: Path,
    database_url: str,
    openstack: OpenStack,
    project: Project,
    kind: str,
    death: str,
) -> None:
    template, objects = OBJECTS[kind]
    fault = DEATHS[death]
    async with dying_server(tmp_path, database_url, openstack, project, fault) as (process, client):
        await client.create("s", {"a": template})

        async def is_dead() -> bool:
            return not process.is_running

        await eventually(is_dead)
        await asyncio.to_thread(process.start)
        status = await client.until_ended("s")
        assert status == "CREATE_COMPLETE", (await client.stack("s"))["stack_status_reason"]
        assert len(objects(project)) == 1
        await delete(client)
        assert not objects(project)
