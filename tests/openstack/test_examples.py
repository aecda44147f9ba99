"""The examples in examples/openstack, and the import of existing resources, on a real OpenStack:
the commands of the pages as written."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.openstack.alarm_events import send_event
from tests.openstack.cloud import OpenStack, Project
from tests.openstack.orchestration_endpoint import registered_orchestration
from tests.openstack.page_reader import member_reader
from tests.openstack.stacks import run
from tests.support.page_commands import page_command
from tests.support.page_reader import Reader
from tests.support.program import PATIENCE, Program, eventually

__all__ = ["run"]  # a fixture
ALL_EXAMPLES = Path(__file__).parents[2] / "examples"
WEB_SERVER = "examples/openstack/web-server/README.md"
SCALING = "examples/openstack/scaling-servers/README.md"
ROLLING = "examples/openstack/rolling-web/README.md"
IMPORT = "docs/how-to/import-existing-resources.md"
DRY_RUN = (
    "headgate stack from-resources lan"
    " OS::Neutron::Net b44a1f34 OS::Neutron::Subnet 9c1d0e77 --dry-run"
)
CREATE = (
    "headgate stack from-resources lan"
    " OS::Neutron::Net b44a1f34 OS::Neutron::Subnet 9c1d0e77 --wait"
)


@pytest.fixture(scope="session", autouse=True)
def octavia(openstack: OpenStack) -> None:
    openstack.start("octavia")


@pytest_asyncio.fixture
async def reader(
    run: Program,
    openstack: OpenStack,
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Reader]:
    """A reader in a folder with the examples; Headgate is in the catalog."""
    (tmp_path / "examples").symlink_to(ALL_EXAMPLES)
    monkeypatch.chdir(tmp_path)
    async with registered_orchestration(openstack, f"{run.url}/v1/%(project_id)s"):
        yield await member_reader(run, openstack, project, {})


async def test_a_web_server_is_resized_after_its_confirmation(
    run: Program, project: Project, reader: Reader
) -> None:
    await reader.type(page_command(WEB_SERVER, "openstack stack create"))
    (server,) = project.cloud.compute.servers()
    (volume,) = project.cloud.block_storage.volumes()
    assert [one["server_id"] for one in volume.attachments] == [server.id]
    (floating_ip,) = project.cloud.network.ips(project_id=project.id)
    shown = await reader.type(page_command(WEB_SERVER, "openstack stack output show"))
    assert floating_ip.floating_ip_address in shown

    await reader.type(page_command(WEB_SERVER, "openstack stack update"))
    (hook,) = await run.waiting_hooks("web")
    (resized,) = project.cloud.compute.servers()
    assert (resized.id, resized.status) == (server.id, "VERIFY_RESIZE")
    assert hook["resource"]["seen"]["flavor_to"] == "m1.tiny"
    assert "confirm-resize" in await reader.type(page_command(WEB_SERVER, "headgate hook list"))
    await reader.type(page_command(WEB_SERVER, "headgate hook continue"))
    assert await run.until_ended("web") == "UPDATE_COMPLETE"
    await run.update("web", parameters={"volume_size": 2})
    assert await run.until_ended("web") == "UPDATE_COMPLETE"
    (confirmed,) = project.cloud.compute.servers()
    (grown,) = project.cloud.block_storage.volumes()
    assert (confirmed.status, confirmed.flavor["original_name"]) == ("ACTIVE", "m1.tiny")
    assert (grown.id, grown.size) == (volume.id, 2)
    await reader.type(page_command(WEB_SERVER, "openstack stack delete"))


async def test_a_network_is_imported(project: Project, reader: Reader) -> None:
    network = project.cloud.network
    lan = network.create_network(name="lan")
    subnet = network.create_subnet(
        name="lan", network_id=lan.id, ip_version=4, cidr="10.31.0.0/24", gateway_ip=None
    )

    async def import_lan(command: str) -> str:
        written = command.replace("b44a1f34", lan.id).replace("9c1d0e77", subnet.id)
        return await reader.type(written)

    await import_lan(page_command(IMPORT, "headgate import OS::Neutron"))
    assert "OS::Neutron::Subnet" in Path("lan.yaml").read_text()
    plan = await import_lan(page_command(IMPORT, DRY_RUN))
    assert plan.count("import") >= 2, plan
    # A reader answers the question.
    await import_lan(f"{page_command(IMPORT, CREATE)} --yes")
    await reader.type("headgate stack delete lan --yes --wait")


@pytest.fixture(scope="session")
def aodh(openstack: OpenStack) -> None:
    openstack.start("aodh")


@pytest.mark.usefixtures("aodh")
async def test_alarms_scale_a_group_of_servers(
    run: Program, openstack: OpenStack, project: Project, reader: Reader
) -> None:
    await reader.type(page_command(SCALING, "openstack stack create"))
    assert len(list(project.cloud.compute.servers())) == 1

    async def servers_after(event: str, size: int) -> None:
        await send_event(openstack, event, shop="main", project_id=project.id)

        async def has_size() -> bool:
            (output,) = (await run.stack("shop"))["outputs"]
            return bool(output["output_value"] == size)

        await eventually(has_size)
        assert await run.until_ended("shop") == "UPDATE_COMPLETE"
        found = await asyncio.to_thread(lambda: list(project.cloud.compute.servers()))
        assert [one.status for one in found] == ["ACTIVE"] * size

    await servers_after("shop.overload", 2)
    await servers_after("shop.idle", 1)
    await reader.type(page_command(SCALING, "openstack stack output show"))
    await reader.type(page_command(SCALING, "openstack stack delete"))


@contextmanager
def draining(reader: Reader) -> Iterator[None]:
    """drain.py of the example runs."""
    command = page_command(ROLLING, "python examples/openstack")
    process = subprocess.Popen(command.split(), env=reader.environment)
    try:
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)


async def test_a_rolling_update_drains_the_members_of_each_batch(
    run: Program, project: Project, reader: Reader, tmp_path: Path
) -> None:
    await reader.type(page_command(ROLLING, "openstack stack create"))
    cloud: Any = project.cloud
    (pool,) = cloud.load_balancer.pools()
    before = {one.id: one for one in cloud.load_balancer.members(pool)}
    servers = {one.id for one in cloud.compute.servers()}
    assert ([one.weight for one in before.values()], len(servers)) == ([1, 1], 2)

    # Each server has connections until the test ends them.
    busy = tmp_path / "connections"
    busy.mkdir()
    for one in before.values():
        (busy / one.address).write_text("2")
    asked = tmp_path / "asked"
    (command := tmp_path / "connections.sh").write_text(
        f'#!/bin/sh\necho "$1" >> "{asked}"\ncat "{busy}/$1"\n'
    )
    command.chmod(0o755)
    with draining(reader):
        updating = asyncio.create_task(reader.type(page_command(ROLLING, "openstack stack update")))
        await eventually(lambda: has_status(run, "web", "UPDATE_IN_PROGRESS"))
        drained: set[str] = set()
        for _ in range(2):

            async def next_drained() -> str | None:
                assert (await run.stack("web"))["stack_status"] == "UPDATE_IN_PROGRESS"
                found = await asyncio.to_thread(lambda: list(cloud.load_balancer.members(pool)))
                empty = [one for one in found if one.weight == 0 and one.address not in drained]
                return str(empty[0].address) if empty else None

            address = await eventually(next_drained)
            (hook,) = await run.waiting_hooks("web")
            assert hook["point"] == "pre-batch"
            drained.add(address)
            (busy / address).write_text("0")
        await updating
    assert drained == {one.address for one in before.values()} == set(asked.read_text().split())
    after = {one.id: one for one in cloud.load_balancer.members(pool)}
    assert [one.weight for one in after.values()] == [1, 1]
    assert not after.keys() & before.keys()
    assert not servers & {one.id for one in cloud.compute.servers()}
    await reader.type(page_command(ROLLING, "openstack stack delete"))


async def has_status(run: Program, stack: str, status: str) -> bool:
    return bool((await run.stack(stack))["stack_status"] == status)
