"""OS::Nova::Server on a real OpenStack, through a Headgate server."""

import asyncio
from typing import Any

import aiohttp
import pytest

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.stacks import (
    NO_NETWORKS,
    create,
    delete,
    network,
    network_of,
    reason,
    resource_of,
    run,
    server,
    update,
    update_until_ended,
)
from tests.support.program import Program, eventually, template

__all__ = ["network", "run"]  # fixtures
Json = Any
CONFIRM = {"hooks": [{"at": "a", "on": ["confirm-resize"]}]}


def only_server(project: Project) -> Any:
    (found,) = project.cloud.compute.servers()
    return found


async def test_a_server_has_what_its_properties_say(
    run: Program, project: Project, network: Any
) -> None:
    properties = {
        "name": "web",
        "metadata": {"a": 1, "b": {"c": True}},
        "tags": ["t"],
        "networks": [{"network": network.name, "fixed_ip": "10.31.0.77"}],
        "user_data": "#!/bin/sh\ntrue",
        "config_drive": True,
    }
    await create(run, {"a": server(**properties)})
    found = only_server(project)
    assert (found.name, found.status, found.flavor["original_name"]) == ("web", "ACTIVE", "m1.nano")
    assert found.metadata["a"] == "1" and found.metadata["b"] == '{"c":true}'
    assert found.tags == ["t"] and found.has_config_drive
    shown = await resource_of(run, "s")
    attributes = shown["attributes"]
    assert shown["physical_resource_id"] == found.id
    assert attributes["networks"] == {network.name: ["10.31.0.77"], network.id: ["10.31.0.77"]}
    (address,) = attributes["addresses"][network.name]
    assert address["port"] == next(project.cloud.network.ports(device_id=found.id)).id
    assert attributes["show"]["metadata"] == {"a": "1", "b": '{"c":true}'}
    await delete(run)


async def test_updates_in_place(run: Program, project: Project, network: Any) -> None:
    before = {"name": "one", "metadata": {"a": "1"}}
    await create(run, {"a": server(**before)})
    server_id = only_server(project).id
    settings = {"name": "two", "metadata": {"b": "2"}, "tags": ["x", "y"], "admin_pass": "hidden"}
    await update(run, {"a": server(**settings)})
    found = only_server(project)
    assert (found.id, found.name, sorted(found.tags)) == (server_id, "two", ["x", "y"])
    assert found.metadata["b"] == "2" and "a" not in found.metadata

    attached = {**settings, "networks": [{"network": network.id}]}
    await update(run, {"a": server(**attached)})
    (interface,) = project.cloud.compute.server_interfaces(server_id)
    assert interface.net_id == network.id
    with network_of(project, "10.32.0.0/24") as other:
        moved = {**settings, "networks": [{"network": network.id}, {"network": other.id}]}
        await update(run, {"a": server(**moved)})
        found_ids = {one.port_id for one in project.cloud.compute.server_interfaces(server_id)}
        assert interface.port_id in found_ids and len(found_ids) == 2
        await update(run, {"a": server(**{**settings, "networks": NO_NETWORKS})})
        assert not list(project.cloud.compute.server_interfaces(server_id))
    ignored = {**settings, "user_data": "#!/bin/sh", "user_data_update_policy": "IGNORE"}
    await update(run, {"a": server(**ignored)})
    assert only_server(project).id == server_id
    await delete(run)


async def test_a_subnet_gets_a_port_that_ends_with_the_server(
    run: Program, project: Project, network: Any
) -> None:
    (subnet_id,) = project.cloud.network.get_network(network.id).subnet_ids
    own = [{"subnet": subnet_id, "port_extra_properties": {"port_security_enabled": False}}]
    await create(run, {"a": server(networks=own)})
    (port,) = project.cloud.network.ports(network_id=network.id, device_owner="compute:nova")
    assert not port.is_port_security_enabled
    await update(run, {"a": server(networks=[{"network": network.id}])})  # its port fits
    assert project.cloud.network.get_port(port.id).device_id == only_server(project).id
    await update(run, {"a": server()})
    assert project.cloud.network.find_port(port.id) is None
    await update(run, {"a": server(networks=own)})
    await delete(run)


async def test_no_port_stays_if_a_create_fails(
    run: Program, project: Project, network: Any
) -> None:
    (subnet_id,) = project.cloud.network.get_network(network.id).subnet_ids
    outside = {"subnet": subnet_id, "fixed_ip": "10.99.0.1"}
    await run.create("s", {"a": server(networks=[{"subnet": subnet_id}, outside])})
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert "10.99.0.1" in await reason(run, "s")
    assert not list(project.cloud.network.ports(network_id=network.id, device_owner=""))
    await delete(run)


async def test_an_address_may_be_written_in_another_form(
    run: Program, project: Project, network: Any
) -> None:
    project.cloud.network.create_subnet(network_id=network.id, cidr="2001:db8::/64", ip_version=6)
    await create(run, {"a": server()})
    entry = {"network": network.id, "fixed_ip": "2001:DB8:0:0::77"}
    await update(run, {"a": server(networks=[entry])})
    (port,) = project.cloud.network.ports(network_id=network.id)
    assert "2001:db8::77" in [one["ip_address"] for one in port.fixed_ips]
    again = [{**entry, "fixed_ip": "2001:db8::0077"}]
    await update(run, {"a": server(networks=again)})
    assert [one.id for one in project.cloud.network.ports(network_id=network.id)] == [port.id]
    await delete(run)


async def test_another_image_rebuilds_after_its_confirmation(
    run: Program, project: Project
) -> None:
    images: Any = project.cloud.image
    cirros = images.find_image("cirros")
    image = images.create_image(
        name="other", disk_format="raw", container_format="bare", data=b"x" * 1024
    )
    try:
        await create(run, {"a": server()})
        server_id = only_server(project).id
        hooks = {"hooks": [{"at": "a", "on": ["confirm-rebuild"]}]}
        after = {"a": server(image=image.id)}
        await start_update(run, after, hooks)
        (hook,) = await run.waiting_hooks("s")
        assert hook["resource"]["seen"]["image_to"] == image.id
        await run.signal(hook, "reject")
        assert await run.until_ended("s") == "UPDATE_FAILED"
        assert only_server(project).image.id == cirros.id
        await update(run, after, environment={"hooks": []})
        found = only_server(project)
        assert (found.id, found.image.id, found.status) == (server_id, image.id, "ACTIVE")
        await delete(run)
    finally:
        images.delete_image(image)


async def start_update(run: Program, resources: Json, environment: Json) -> None:
    await run.update("s", "PUT", template=template(resources), environment=environment)


async def test_a_resize_without_a_rule_is_confirmed(run: Program, project: Project) -> None:
    await create(run, {"a": server()})
    server_id = only_server(project).id
    await update(run, {"a": server(flavor="m1.tiny")})
    found = only_server(project)
    expected = (server_id, "m1.tiny", "ACTIVE")
    assert (found.id, found.flavor["original_name"], found.status) == expected
    await delete(run)


async def test_a_resize_waits_for_its_confirmation(run: Program, project: Project) -> None:
    await create(run, {"a": server()})
    await start_update(run, {"a": server(flavor="m1.tiny")}, CONFIRM)
    (hook,) = await run.waiting_hooks("s")
    assert only_server(project).status == "VERIFY_RESIZE"
    seen = hook["resource"]["seen"]
    assert (seen["flavor_from"], seen["flavor_to"]) == ("m1.nano", "m1.tiny")
    await run.signal(hook)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    found = only_server(project)
    assert (found.status, found.flavor["original_name"]) == ("ACTIVE", "m1.tiny")

    await start_update(run, {"a": server(flavor="m1.nano")}, CONFIRM)
    (hook,) = await run.waiting_hooks("s")
    await run.signal(hook, "reject", reason="too slow")
    assert await run.until_ended("s") == "UPDATE_FAILED"
    assert "resize rejected by" in await reason(run, "s")
    assert "too slow" in await reason(run, "s")
    found = only_server(project)
    assert (found.status, found.flavor["original_name"]) == ("ACTIVE", "m1.tiny")
    await delete(run)


@pytest.mark.parametrize(("flavor", "asks"), [("m1.tiny", True), ("m1.nano", False)])
async def test_an_update_continues_from_an_unanswered_resize(
    run: Program, project: Project, flavor: str, asks: bool
) -> None:
    await create(run, {"a": server()})
    server_id = only_server(project).id
    hooks = {"hooks": [{"at": "a", "on": ["confirm-resize"], "timeout": "1s"}]}
    await start_update(run, {"a": server(flavor="m1.tiny")}, hooks)
    assert await run.until_ended("s") == "UPDATE_STOPPED"
    assert only_server(project).status == "VERIFY_RESIZE"
    await start_update(run, {"a": server(flavor=flavor)}, CONFIRM)
    if asks:
        (hook,) = await run.waiting_hooks("s")
        await run.signal(hook)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await reason(run, "s")
    found = only_server(project)
    expected = (server_id, flavor, "ACTIVE")
    assert (found.id, found.flavor["original_name"], found.status) == expected
    await delete(run)


@pytest.mark.parametrize(
    "change",
    [
        {"flavor": "m1.tiny", "flavor_update_policy": "REPLACE"},
        {"user_data": "#!/bin/sh"},
        {"config_drive": True},
        {"availability_zone": "nova"},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_what_replaces_a_server(run: Program, project: Project, change: Json) -> None:
    await create(run, {"a": server()})
    server_id = only_server(project).id
    await update(run, {"a": server(**change)})
    assert only_server(project).id != server_id
    await delete(run)


FAILURES: dict[str, tuple[Json, str]] = {
    "networks": ({"networks": None}, "write `networks: [{allocate_network: auto}]`"),
    "image": ({"image": None}, "Neither image nor bootable volume is specified"),
    "spawn": (
        {"metadata": {"testbed.spawn_error": "on fire"}},
        'Went to status ERROR due to "Message: Build of instance',
    ),
    "zone": ({"availability_zone": "moon"}, "availability zone"),
    "group": ({"security_groups": ["no-such"], "networks": "NET"}, "no-such"),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_the_reason_of_a_failure(
    run: Program, project: Project, network: Any, name: str
) -> None:
    change, expected = FAILURES[name]
    if change.get("networks") == "NET":
        change = {**change, "networks": [{"network": network.id}]}
    await run.create("s", {"a": server(**change)})
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert expected in await reason(run, "s")
    await delete(run)


async def test_an_exceeded_quota_and_an_unknown_flavor(
    run: Program, openstack: OpenStack, project: Project
) -> None:
    openstack.admin.compute.update_quota_set(project.id, instances=0)
    await run.create("s", {"a": server()})
    assert await run.until_ended("s") == "CREATE_FAILED"
    quota = "Quota exceeded for instances: Requested 1, but already used 0 of 0 instances"
    assert quota in await reason(run, "s")
    await delete(run)
    body = {"stack_name": "s", "template": template({"a": server(flavor="m1.nanno")})}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 400
    assert 'Did you mean "m1.nano"?' in response["error"]["message"]


async def test_a_snapshot_is_an_image_that_can_be_restored(run: Program, project: Project) -> None:
    images: Any = project.cloud.image
    await create(run, {"a": server(metadata={"a": "1"})})
    server_id, image_id = only_server(project).id, only_server(project).image.id
    taken = await run.stack_request("POST", "s", "/snapshots", {"name": "one"})

    async def queued() -> Any:
        return next(iter(images.images(owner=project.id)), None)

    snapshot = await eventually(queued)
    # The test bed's hypervisor uploads nothing.
    images.update_image(snapshot, disk_format="raw", container_format="bare")
    octets = {"Content-Type": "application/octet-stream"}
    uploaded = images.put(f"/images/{snapshot.id}/file", data=b"x", headers=octets)
    assert uploaded.status_code == 204, uploaded.text
    assert await run.until_ended("s") == "SNAPSHOT_COMPLETE", await reason(run, "s")
    await update(run, {"a": server(metadata={"a": "2"})})
    await run.stack_request("POST", "s", f"/snapshots/{taken['id']}/restore")
    assert await run.until_ended("s") == "RESTORE_COMPLETE", await reason(run, "s")
    found = only_server(project)
    assert (found.id, found.image.id, found.metadata["a"]) == (server_id, snapshot.id, "1")
    assert image_id != snapshot.id
    await delete(run)
    images.delete_image(snapshot.id)


async def test_suspend_resume_and_check(run: Program, project: Project) -> None:
    await create(run, {"a": server()})
    server_id = only_server(project).id
    for action, status in (("suspend", "SUSPENDED"), ("resume", "ACTIVE"), ("check", "ACTIVE")):
        await run.act("s", action)
        assert await run.until_ended("s") == f"{action.upper()}_COMPLETE", await reason(run, "s")
        assert only_server(project).status == status
    project.cloud.compute.stop_server(server_id)
    project.cloud.compute.wait_for_server(only_server(project), status="SHUTOFF")
    await run.act("s", "check")
    assert await run.until_ended("s") == "CHECK_FAILED"
    assert "the server is SHUTOFF, not ACTIVE" in await reason(run, "s")
    await update(run, {"a": server()})
    await asyncio.to_thread(
        project.cloud.compute.wait_for_server, only_server(project), status="ACTIVE"
    )
    assert only_server(project).id == server_id
    await delete(run)


async def test_a_failed_resize_says_why(run: Program, project: Project) -> None:
    await create(run, {"a": server(metadata={"testbed.resize_error": "no fuel"})})
    failing = {"metadata": {"testbed.resize_error": "no fuel"}, "flavor": "m1.tiny"}
    assert await update_until_ended(run, {"a": server(**failing)}) == "UPDATE_FAILED"
    assert "Resizing to 'm1.tiny' failed" in await reason(run, "s")
    assert "no fuel" in await reason(run, "s")
    await delete(run)


@pytest.fixture(scope="session")
def swift(openstack: OpenStack) -> None:
    """Swift runs before the project of a test gets the service catalog."""
    openstack.start("swift")


@pytest.mark.usefixtures("swift")
async def test_a_server_polls_its_deployments_in_swift(run: Program, project: Project) -> None:
    """From its first boot: its user data have the URL. Nothing stays in Swift."""
    properties = {
        "user_data_format": "SOFTWARE_CONFIG",
        "software_config_transport": "POLL_TEMP_URL",
    }
    resources = {
        "a": server(**properties),
        "script": {
            "type": "OS::Heat::SoftwareConfig",
            "properties": {"group": "script", "config": "echo one"},
        },
        "d": {
            "type": "OS::Heat::SoftwareDeployment",
            "properties": {
                "server": {"get_resource": "a"},
                "config": {"get_resource": "script"},
                "signal_transport": "NO_SIGNAL",
            },
        },
    }
    output = {"agent": {"value": {"get_attr": ["a", "os_collect_config"]}}}
    sent = {"stack_name": "s", "template": template(resources, outputs=output)}
    status, response = await run.call("POST", "/stacks", sent)
    assert status == 201, response
    assert await run.until_ended("s") == "CREATE_COMPLETE", await reason(run, "s", "d")
    shown = (await run.stack_request("GET", "s", "/outputs/agent"))["output"]["output_value"]
    url = shown["request"]["metadata_url"]
    assert shown["collectors"] == ["request", "local"]
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        document = await response.json()
    assert [one["config"] for one in document["deployments"]] == ["echo one"]
    assert document["os-collect-config"] == shown
    await delete(run)
    assert not list(project.cloud.object_store.containers())
