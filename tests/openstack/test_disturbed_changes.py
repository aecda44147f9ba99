"""Changes that are disturbed in the middle: a token ends, a service is away, the user cancels.

Each has a server that is built until the test lets it be ready.
"""

import asyncio
from pathlib import Path
from typing import Any

from keystoneauth1.exceptions import ClientException

from tests.openstack.cloud import Identity, OpenStack, Project, delete_trusts, identity_of
from tests.openstack.headgate import connected_headgate
from tests.openstack.neutron_stacks import neutron, ref
from tests.openstack.proxied_region import proxied_region
from tests.openstack.stacks import SETTINGS, create, delete, run, server, volume
from tests.support.program import Program, eventually

__all__ = ["run"]  # a fixture
Json = Any


def slow_server(ready: Path, **more: Json) -> Json:
    return {**server(metadata={"testbed.spawn_file": str(ready)}), **more}


async def until_a_server_is_built(project: Project) -> None:
    """Until Nova builds a server of the project."""

    async def is_built() -> bool:
        found = await asyncio.to_thread(lambda: list(project.cloud.compute.servers()))
        return [one.status for one in found] == ["BUILD"]

    await eventually(is_built)


async def end_tokens(openstack: OpenStack, identity: Identity) -> str:
    """Make Keystone refuse all tokens that a user has; return a new one."""
    api = identity_of(openstack.admin)
    user = await asyncio.to_thread(api.find_user, identity.username, ignore_missing=False)
    for enabled in (False, True):
        await asyncio.to_thread(api.update_user, user, is_enabled=enabled)

    def create_token() -> str | None:
        """None: Keystone refuses tokens of the second in which it refused the others."""
        with identity.connect() as connection:
            try:
                token = str(connection.auth_token)
                found = identity_of(openstack.admin).get(
                    "/auth/tokens", headers={"X-Subject-Token": token}
                )
            except ClientException:
                return None
            return token if found.status_code == 200 else None

    return str(await eventually(lambda: asyncio.to_thread(create_token)))


async def test_a_change_outlasts_its_token(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> None:
    """Keystone refuses the token at once; other services remember for minutes that it is valid."""
    settings = {**SETTINGS, "auth.keystone.trusts": True}
    identity = project.add_user(("admin", "member"))
    user = project.connect(identity)
    async with connected_headgate(database_url, openstack, project, settings=settings) as run:
        run.session.headers["X-Auth-Token"] = str(user.auth_token)
        ready = tmp_path / "ready"
        role = {"type": "OS::Keystone::Role", "depends_on": "server"}
        await run.create("s", {"server": slow_server(ready), "role": role})
        await until_a_server_is_built(project)
        run.session.headers["X-Auth-Token"] = await end_tokens(openstack, identity)
        ready.touch()
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        await delete(run)
        await asyncio.to_thread(delete_trusts, user)


async def test_a_change_waits_for_a_service_that_is_away(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> None:
    region = f"region-{project.name}"
    settings = {**SETTINGS, "resource_types.openstack.region": region}
    async with (
        proxied_region(openstack, region) as neutron_proxy,
        connected_headgate(database_url, openstack, project, settings=settings) as run,
    ):
        ready = tmp_path / "ready"
        resources = {
            "net": neutron("Net"),
            "server": slow_server(ready, depends_on="net"),
            "subnet": {
                **neutron("Subnet", network=ref("net"), cidr="10.0.0.0/24"),
                "depends_on": "server",
            },
        }
        await run.create("s", resources)
        await until_a_server_is_built(project)
        neutron_proxy.is_away = True
        ready.touch()

        async def is_missed() -> bool:
            return neutron_proxy.refused > 1

        await eventually(is_missed)
        neutron_proxy.is_away = False
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        assert len(list(project.cloud.network.subnets(project_id=project.id))) == 1
        await delete(run)


async def test_a_cancelled_update_is_rolled_back(
    run: Program, project: Project, tmp_path: Path
) -> None:
    before = {"net": neutron("Net", name="before")}
    await create(run, before)
    ready = tmp_path / "ready"
    after = {
        "net": neutron("Net", name="after"),
        "server": slow_server(ready, depends_on="net"),
        "volume": {**volume(), "depends_on": "server"},
    }
    await run.update(
        "s", "PUT", template={"heat_template_version": "2018-08-31", "resources": after}
    )
    await until_a_server_is_built(project)
    await run.act("s", "cancel_update")
    ready.touch()
    assert await run.until_ended("s") == "ROLLBACK_COMPLETE"
    assert list(project.cloud.compute.servers()) == []
    assert list(project.cloud.block_storage.volumes()) == []
    (net,) = (one for one in project.cloud.network.networks() if one.project_id == project.id)
    assert net.name == "before"
    await delete(run)
