"""Database instances, on a real Trove. One process stands for the guest agents of the instances,
and keeps databases and users in memory.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.openstack.cloud import OpenStack, Project, database_clusters_of, delete_databases
from tests.openstack.crashes import die_after_each, settings_file
from tests.openstack.headgate import connected_headgate, reader_settings
from tests.openstack.neutron_stacks import delete as delete_stack
from tests.openstack.neutron_stacks import physical_ids
from tests.openstack.observations import drift_of
from tests.openstack.stacks import (
    SETTINGS,
    create,
    delete,
    network_of,
    reason,
    resource_of,
    update,
    update_until_ended,
)
from tests.support.program import Http, Program, ServerProcess, eventually, template

Json = Any
SECRET = "correct_horse_4182"


@pytest.fixture(scope="session", autouse=True)
def trove(openstack: OpenStack) -> None:
    """Trove runs, with two datastores; it starts once per run."""
    openstack.start("trove")
    admin = openstack.admin
    image = admin.image.find_image("cirros", ignore_missing=False)
    root = admin.session.get_endpoint(service_type="database", interface="public")
    for name in ("mysql", "pxc"):
        version: Json = {
            "datastore_name": name, "datastore_manager": name, "name": "8.0",
            "image": image.id, "active": True, "default": True, "packages": [],
            "registry_ext": "none", "repl_strategy": "none",
        }  # fmt: skip
        answer = admin.session.post(
            f"{root}/mgmt/datastore-versions", json={"version": version}, raise_exc=False
        )
        assert answer.status_code < 300 or "already" in answer.text, answer.text


@pytest_asyncio.fixture
async def run(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> AsyncIterator[Program]:
    """A server with a reader."""
    with openstack.reader(f"reader-{project.name}") as reader:
        settings = {**SETTINGS, **reader_settings(reader, tmp_path)}
        async with connected_headgate(database_url, openstack, project, settings=settings) as one:
            yield one


@contextmanager
def routed_network_of(project: Project) -> Iterator[Any]:
    """A network with a router, which Trove needs. Instances that a failed test has left are deleted
    first."""
    api = project.cloud.network
    with network_of(project) as network:
        (subnet,) = api.subnets(network_id=network.id)
        router = api.create_router(name="router")
        api.add_interface_to_router(router, subnet=subnet.id)
        try:
            yield network
        finally:
            delete_databases(project.cloud)
            api.remove_interface_from_router(router, subnet=subnet.id)
            api.delete_router(router)


def instance(network: Any, **properties: Json) -> Json:
    usual = {
        "flavor": "m1.nano", "size": 1, "networks": [{"network": network.id}],
        "datastore_type": "mysql",
    }  # fmt: skip
    return {"type": "OS::Trove::Instance", "properties": {**usual, **properties}}


def cluster(network: Any, **properties: Json) -> Json:
    one = {"flavor": "m1.nano", "volume_size": 1, "networks": [{"network": network.id}]}
    usual = {"datastore_type": "pxc", "datastore_version": "8.0", "instances": [one] * 3}
    return {"type": "OS::Trove::Cluster", "properties": {**usual, **properties}}


def user(name: str, *databases: str, password: str = SECRET, **more: Json) -> Json:
    return {"name": name, "password": password, "databases": list(databases), **more}


async def shown(run: Program, name: str = "a") -> Json:
    return (await resource_of(run, "s", name))["attributes"]["show"]


async def read(project: Project, instance_id: str) -> Json:
    """An instance as Trove shows it. Headgate masks what depends on passwords."""
    answer = await asyncio.to_thread(project.cloud.database.get, f"/instances/{instance_id}")
    return answer.json()["instance"]


async def contents(project: Project, instance_id: str) -> tuple[set[str], dict[str, set[str]]]:
    """The databases of an instance, and those of each user, by name and host."""
    path, api = f"/instances/{instance_id}", project.cloud.database
    databases = (await asyncio.to_thread(api.get, f"{path}/databases")).json()["databases"]
    users = (await asyncio.to_thread(api.get, f"{path}/users")).json()["users"]
    return {one["name"] for one in databases}, {
        f"{one['name']}@{one['host']}": {each["name"] for each in one["databases"]} for one in users
    }


def servers_of(openstack: OpenStack, project: Project) -> list[str]:
    """The servers that Trove has for a project, in its own."""
    found = openstack.admin.compute.servers(all_projects=True)
    return [one.id for one in found if one.metadata.get("trove_project_id") == project.id]


async def test_an_instance_lives_and_changes(
    run: Program, openstack: OpenStack, project: Project
) -> None:
    with routed_network_of(project) as network:
        made = {
            "a": instance(
                network, databases=[{"name": "db1"}, {"name": "db2"}],
                users=[user("ann", "db1"), user("bob", "db1", "db2", host="10.0.0.1")],
            ),
            "b": instance(network, name="b", datastore_version="8.0"),
        }  # fmt: skip
        await create(run, made)
        before = await physical_ids(run)
        found = await read(project, before["a"])
        assert (found["status"], found["volume"]["size"]) == ("ACTIVE", 1)
        assert (await resource_of(run, "s", "a"))["attributes"]["href"].endswith(before["a"])
        assert (await shown(run, "b"))["name"] == "b"
        assert await contents(project, before["a"]) == (
            {"db1", "db2"}, {"ann@%": {"db1"}, "bob@10.0.0.1": {"db1", "db2"}},
        )  # fmt: skip
        assert SECRET not in str(await resource_of(run, "s", "a"))
        assert len(await asyncio.to_thread(servers_of, openstack, project)) == 2
        assert await drift_of(run) == {}

        api = project.cloud.database
        path, body = f"/instances/{before['a']}/databases", {"databases": [{"name": "own"}]}
        await asyncio.to_thread(api.post, path, json=body)  # of another client
        made["a"]["properties"] |= {
            "name": "renamed", "flavor": "m1.tiny", "size": 2,
            "databases": [{"name": "db2"}, {"name": "db3"}],
            "users": [user("ann", "db3", password="battery_staple_7"), user("eve", "db2")],
        }  # fmt: skip
        sent = {"template": template(made)}
        planned = await run.stack_request("PUT", "s", "/preview", sent)
        await update(run, made)
        shown_to_users = str((planned, await run.events("s"), await run.resources("s")))
        assert "users" in shown_to_users
        assert SECRET not in shown_to_users and "battery_staple_7" not in shown_to_users
        assert await physical_ids(run) == before
        found = await read(project, before["a"])
        flavor = project.cloud.compute.find_flavor("m1.tiny", ignore_missing=False)
        assert (found["name"], found["flavor"]["id"], found["volume"]["size"]) == (
            "renamed", flavor.id, 2,
        )  # fmt: skip
        assert await contents(project, before["a"]) == (
            {"db2", "db3", "own"}, {"ann@%": {"db3"}, "eve@%": {"db2"}},
        )  # fmt: skip
        await run.stack_request("POST", "s", "/actions", {"check": None})
        assert await run.until_ended("s") == "CHECK_COMPLETE"

        made["a"]["properties"]["size"] = 1
        assert await update_until_ended(run, made) == "UPDATE_FAILED"
        assert "the volume of a database instance cannot become smaller" in await reason(run, "s")
        made["a"]["properties"]["size"] = 2
        await update(run, made)
        assert await physical_ids(run) == before
        await delete(run)
        assert await asyncio.to_thread(servers_of, openstack, project) == []


async def test_a_cluster_lives(run: Program, openstack: OpenStack, project: Project) -> None:
    with routed_network_of(project) as network:
        made = {"a": cluster(network, name="c")}
        await create(run, made)
        before = await physical_ids(run)
        attributes = (await resource_of(run, "s"))["attributes"]
        assert attributes["show"]["task"]["name"] == "NONE"
        assert len(attributes["instances"]) == len(attributes["ip"]) == 3
        assert await drift_of(run) == {}
        await run.stack_request("POST", "s", "/actions", {"check": None})
        assert await run.until_ended("s") == "CHECK_COMPLETE"
        await delete(run)
        api = project.cloud.database
        answer = await asyncio.to_thread(api.get, f"/clusters/{before['a']}")
        assert answer.status_code == 404
        assert await asyncio.to_thread(servers_of, openstack, project) == []


async def test_a_failed_instance_has_the_reason_of_trove(run: Program, project: Project) -> None:
    with routed_network_of(project) as network:
        made = {
            "a": instance(network, flavor="testbed.too-large"),
            "testbed-create-fails": instance(network),
        }
        await run.create("s", made)
        assert await run.until_ended("s") == "CREATE_FAILED"
        for name, text in (
            # Nova stores the fault of a server after its status, and Trove may read it in between.
            ("a", "Server not active, status: ERROR, fault message: "),
            ("testbed-create-fails", "Service not active, status: failed to spawn"),
        ):
            found = await reason(run, "s", name)
            assert "the database instance has failed: ERROR: " in found and text in found, found
        await delete(run)


async def test_changes_of_other_clients_are_found(
    run: Program, openstack: OpenStack, project: Project
) -> None:
    with routed_network_of(project) as network:
        made = {"a": instance(network, name="a"), "b": instance(network)}
        await create(run, made)
        before = await physical_ids(run)
        api = project.cloud.database
        body = {"instance": {"name": "other"}}
        await asyncio.to_thread(api.patch, f"/instances/{before['a']}", json=body)
        await asyncio.to_thread(api.delete, f"/instances/{before['b']}")

        async def is_gone() -> bool:
            answer = await asyncio.to_thread(api.get, f"/instances/{before['b']}")
            return bool(answer.status_code == 404)

        await eventually(is_gone)
        assert await drift_of(run) == {"a": ("changed", ["name"]), "b": ("missing", [])}
        await update(run, made, converge=True)
        assert (await shown(run))["name"] == "a"
        assert await drift_of(run) == {}

        for one in await asyncio.to_thread(servers_of, openstack, project):
            await asyncio.to_thread(openstack.admin.compute.delete_server, one)

        async def has_no_server() -> bool:
            return not await asyncio.to_thread(servers_of, openstack, project)

        await eventually(has_no_server)
        assert await drift_of(run) == {"a": ("degraded", []), "b": ("degraded", [])}
        await run.stack_request("POST", "s", "/actions", {"check": None})
        assert await run.until_ended("s") == "CHECK_FAILED"
        expected = "the server of the database instance does not run: SHUTDOWN"
        assert expected in await reason(run, "s")
        await delete(run)


async def test_unusable_instances_are_refused_before_anything_is_created(
    run: Program, project: Project
) -> None:
    with routed_network_of(project) as network:
        for properties, text in (
            ({"flavor": "none"}, "Unable to find flavor with name or id 'none'"),
            ({"users": [user("ann", "db1")]}, "is missing: users requires it"),
            (
                {"databases": [{"name": "db2"}], "users": [user("ann", "db1")]},
                "has db1, which is not in databases",
            ),
            ({"networks": [{}]}, "has neither network nor port"),
            ({"replica_count": 2}, "creates instances that no resource would delete"),
        ):
            document = {
                "heat_template_version": "2018-08-31",
                "resources": {"a": instance(network, **properties)},
            }
            body = {"stack_name": "s", "template": document}
            status, answer = await run.call("POST", "/stacks", body)
            assert status == 400 and text in str(answer), answer


async def test_a_killed_create_finds_its_own_instances(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> None:
    """A process dies after Trove has accepted an instance, before the result is stored."""
    server = ServerProcess(tmp_path, settings=settings_file(openstack), database_url=database_url)
    with routed_network_of(project) as network:
        databases: Json = {"databases": [{"name": "db1"}], "users": [user("ann", "db1")]}
        made = {"a": instance(network, **databases), "b": instance(network, name="b")}
        async with created_by_killed_servers(server, project, made) as http:
            ids = await physical_ids(http)
            api = project.cloud.database
            assert {one.id for one in api.instances()} == {ids["a"], ids["b"]}
            assert SECRET not in server.log.read_text()


async def test_a_killed_create_finds_its_own_clusters(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> None:
    """As above. A create with a name first saves which clusters have it."""
    server = ServerProcess(tmp_path, settings=settings_file(openstack), database_url=database_url)
    with routed_network_of(project) as network:
        made = {"a": cluster(network), "b": cluster(network, name="b")}
        async with created_by_killed_servers(server, project, made, {"b": 2}) as http:
            ids = await physical_ids(http)
            found = await asyncio.to_thread(database_clusters_of, project.cloud)
            assert {one.id for one in found} == {ids["a"], ids["b"]}
            assert len(await asyncio.to_thread(servers_of, openstack, project)) == 6


@asynccontextmanager
async def created_by_killed_servers(
    server: ServerProcess,
    project: Project,
    resources: dict[str, Json],
    calls: dict[str, int] | None = None,
) -> AsyncIterator[Http]:
    """A client of a server that has created the resources, and died after the request for each;
    then they are deleted. calls: as in `die_after_each`."""
    connector = aiohttp.TCPConnector(force_close=True)
    headers = {"X-Auth-Token": project.token()}
    try:
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
            http = Http(session, server.url, project.id)
            status = await die_after_each(server, http, resources, calls)
            assert status == "CREATE_COMPLETE", (await http.stack("s"))["stack_status_reason"]
            yield http
            await delete_stack(http)

            async def is_gone() -> bool:
                return not await asyncio.to_thread(lambda: list(project.cloud.database.instances()))

            await eventually(is_gone)
    finally:
        server.kill()
