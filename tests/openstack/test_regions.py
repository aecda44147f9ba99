"""Stacks whose environment names a region of the cloud use the endpoints of that region.

The second region has the services of the first one; a proxy before Neutron shows its requests.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.headgate import connected_headgate, reader_settings
from tests.openstack.neutron_stacks import NETWORK, create, delete, ended, neutron
from tests.openstack.observations import drift_of
from tests.openstack.proxied_region import Proxy, proxied_region
from tests.openstack.stacks import SETTINGS, server, volume
from tests.support.changes import observed
from tests.support.program import Program, eventually, template

Json = Any

NESTED = json.dumps(template({"inner": neutron("Net", value_specs={"description": "inner"})}))


@pytest_asyncio.fixture
async def region(openstack: OpenStack, project: Project) -> AsyncIterator[tuple[str, Proxy]]:
    """The name of a second region, and the proxy before its Neutron."""
    name = f"two-{project.name}"
    async with proxied_region(openstack, name) as proxy:
        yield name, proxy


@pytest_asyncio.fixture
async def observing(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> AsyncIterator[Program]:
    """A Headgate server with a reader credential. Its configured region is the first one."""
    with openstack.reader(f"reader-{project.name}") as reader:
        settings = {
            **SETTINGS,
            **reader_settings(reader, tmp_path),
            "resource_types.openstack.region": openstack.region,
        }
        async with connected_headgate(database_url, openstack, project, settings=settings) as run:
            yield run


def context(name: str) -> Json:
    return {"context": {"region_name": name}}


def sent(proxy: Proxy, start: str) -> list[str]:
    """The requests to the second region that begin with this, which are then forgotten."""
    found = [one for one in proxy.lines if one.startswith(start)]
    proxy.lines.clear()
    return found


async def test_all_requests_of_a_stack_go_to_its_region(
    observing: Program, project: Project, region: tuple[str, Proxy]
) -> None:
    name, proxy = region
    group = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 1, "resource_def": neutron("Net", name="member")},
    }
    files = {"nested.yaml": NESTED}
    resources = {**NETWORK, "group": group, "nested": {"type": "nested.yaml"}}
    await create(observing, resources, environment=context(name), files=files)
    assert len(sent(proxy, "POST /v2.0/networks")) == 3  # also of both nested stacks
    # Another stack of the same server and user stays in the configured region.
    await create(observing, {"other": neutron("Net")}, "one")
    assert proxy.lines == []
    await observed(observing, "one")
    assert proxy.lines == []
    (net,) = project.cloud.network.networks(name="member")
    project.cloud.network.update_network(net, name="renamed")
    assert [*(await drift_of(observing)).values()] == [("changed", ["name"])]
    assert sent(proxy, "GET /v2.0/networks")
    await delete(observing, "one")
    assert not sent(proxy, "DELETE")
    await delete(observing, "s")
    assert len(sent(proxy, "DELETE /v2.0/networks/")) == 3


async def test_a_name_is_looked_up_in_the_region_of_each_stack(
    observing: Program, project: Project, region: tuple[str, Proxy]
) -> None:
    """A constraint that was verified in one region is verified again in another one."""
    name, proxy = region
    network = project.cloud.network.create_network(name="known")
    await create(observing, {"a": neutron("Subnet", network="known", cidr="10.7.0.0/24")}, "one")
    assert proxy.lines == []
    other = {"a": neutron("Subnet", network="known", cidr="10.8.0.0/24")}
    await create(observing, other, "s", environment=context(name))
    assert [one for one in proxy.lines if "name=known" in one]
    proxy.is_away = True
    body = {"stack_name": "t", "template": template(other), "environment": context(name)}
    body["template"]["resources"]["a"]["properties"]["network"] = "unknown"
    status, answer = await observing.call("POST", "/stacks", body)
    assert status == 400 and proxy.refused, answer
    proxy.is_away = False
    await delete(observing, "one")
    await delete(observing, "s")
    project.cloud.network.delete_network(network)


async def test_a_stack_keeps_its_region(
    observing: Program, openstack: OpenStack, region: tuple[str, Proxy]
) -> None:
    name, proxy = region
    net = {"a": neutron("Net")}
    await create(observing, net, "s", environment=context(name))
    proxy.lines.clear()
    stack_id = (await observing.stack("s"))["id"]
    path = f"/stacks/s/{stack_id}"
    body = {"template": template(net), "environment": context(openstack.region)}
    status, refused = await observing.call("PUT", path, body)
    assert status == 400
    text = str(refused)
    assert f"The stack has resources in the region {name}" in text
    assert "context.region_name" in text and "create another stack" in text
    assert proxy.lines == []
    # An update that names none keeps it.
    for method, more in (("PATCH", "b"), ("PUT", "c")):
        await observing.update("s", method, template=template({**net, more: neutron("Net")}))
        assert await ended(observing) == "UPDATE_COMPLETE"
        assert len(sent(proxy, "POST /v2.0/networks")) == 1
    # Without resources, the region can change.
    await observing.update("s", template=template({}))
    assert await ended(observing) == "UPDATE_COMPLETE"
    body = {"template": template(net), "environment": context(openstack.region)}
    proxy.lines.clear()
    await observing.update("s", "PUT", **body)
    assert await ended(observing) == "UPDATE_COMPLETE"
    assert proxy.lines == []
    await delete(observing, "s")


async def test_an_unknown_region_is_refused_with_the_nearest_ones(
    observing: Program, openstack: OpenStack
) -> None:
    body = {
        "stack_name": "s",
        "template": template({"a": neutron("Net")}),
        "environment": context(openstack.region.lower()),
    }
    status, answer = await observing.call("POST", "/stacks", body)
    assert status == 400
    found = answer["error"]["findings"][0]
    assert found["place"] == "context.region_name"
    assert f'Did you mean "{openstack.region}"? Available regions: ' in found["reason"]


async def test_creates_are_completed_by_lists_of_their_region(
    observing: Program, region: tuple[str, Proxy], tmp_path: Path
) -> None:
    name, _ = region
    ready = tmp_path / "ready"
    resources = {
        "server": server(metadata={"testbed.spawn_file": str(ready)}),
        "volume": volume(metadata={"testbed.create_file": str(ready)}),
    }
    await observing.create("one", resources)
    await observing.create("s", resources, environment=context(name))

    async def are_listed() -> bool:
        query = "select type from completion_request where sent > 0"
        return len(await observing.database.pool.fetch(query)) == 4

    await eventually(are_listed)
    ready.touch()
    for stack in ("one", "s"):
        assert await observing.until_ended(stack) == "CREATE_COMPLETE"
        await delete(observing, stack)


async def test_an_import_reads_in_the_region_that_it_names(
    observing: Program, openstack: OpenStack, project: Project, region: tuple[str, Proxy]
) -> None:
    name, proxy = region
    network = project.cloud.network.create_network(name="lan")
    wanted = {"resources": [{"type": "OS::Neutron::Net", "id": network.id}]}
    status, read = await observing.call("POST", "/import", wanted)
    assert (status, read["findings"]) == (200, []) and proxy.lines == []
    status, read = await observing.call("POST", "/import", {**wanted, **context(name)})
    assert (status, read["findings"]) == (200, [])
    assert sent(proxy, f"GET /v2.0/networks/{network.id}")
    status, answer = await observing.call(
        "POST", "/import", {**wanted, **context(openstack.region.lower())}
    )
    assert status == 400
    found = answer["error"]["findings"][0]
    assert found["place"] == "context.region_name"
    assert f'Did you mean "{openstack.region}"?' in found["reason"]
    body = {"stack_name": "s", "template": read["template"], "environment": context(name)}
    status, answer = await observing.call("POST", "/stacks", body)
    assert status == 201, answer
    assert await ended(observing) == "CREATE_COMPLETE"
    assert not sent(proxy, "POST")
    await delete(observing, "s")
    assert len(sent(proxy, "DELETE /v2.0/networks/")) == 1
