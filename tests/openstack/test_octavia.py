"""Load balancers and what belongs to them, on a real Octavia."""

import asyncio
import copy
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.openstack import neutron_stacks, stacks
from tests.openstack.cloud import OpenStack, Project, alarms_of
from tests.openstack.crashes import die_after_each, settings_file
from tests.openstack.neutron_stacks import attributes, ended, physical_ids, ref, update
from tests.openstack.observations import drift_of, observing
from tests.openstack.orchestration_endpoint import registered_orchestration
from tests.openstack.stacks import admin_run, create, delete, network, run
from tests.support.program import Http, Program, ServerProcess, eventually, template

Json = Any
__all__ = ["admin_run", "network", "observing", "run"]  # fixtures
#: A load balancer with this in its name ends in ERROR.
FAILING = "testbed-create-fails"


@pytest.fixture(scope="session", autouse=True)
def octavia(openstack: OpenStack) -> None:
    """Octavia runs; it starts once per run."""
    openstack.start("octavia")


@pytest.fixture
def subnet(project: Project, network: Any) -> str:
    """The ID of a subnet."""
    (found,) = project.cloud.network.subnets(network_id=network.id)
    return str(found.id)


def octavia_resource(kind: str, **properties: Json) -> Json:
    return {"type": f"OS::Octavia::{kind}", "properties": properties}


def balanced(subnet: str, *, weight: int = 1, **balancer: Json) -> dict[str, Json]:
    """A load balancer with everything that can belong to it."""
    return {
        "lb": octavia_resource("LoadBalancer", vip_subnet=subnet, **balancer),
        "listener": octavia_resource(
            "Listener", loadbalancer=ref("lb"), protocol="HTTP", protocol_port=80
        ),
        "pool": octavia_resource(
            "Pool", listener=ref("listener"), protocol="HTTP", lb_algorithm="ROUND_ROBIN"
        ),
        "one": octavia_resource(
            "PoolMember", pool=ref("pool"), address="10.31.0.101", protocol_port=80, weight=weight
        ),
        "two": octavia_resource(
            "PoolMember", pool=ref("pool"), address="10.31.0.102", protocol_port=80, tags=["t"]
        ),
        "monitor": octavia_resource(
            "HealthMonitor", pool=ref("pool"), type="HTTP", delay=3, timeout=2, max_retries=3
        ),
        "policy": octavia_resource(
            "L7Policy", listener=ref("listener"), action="REDIRECT_TO_URL", redirect_url="http://h/"
        ),
        "rule": octavia_resource(
            "L7Rule", l7policy=ref("policy"), type="PATH", compare_type="STARTS_WITH", value="/a"
        ),
    }


async def test_a_load_balancer_lives_and_changes(
    observing: Program, openstack: OpenStack, project: Project, subnet: str
) -> None:
    """Create, update in place, find and repair drift, delete. Operations on what is immutable wait;
    the observer's lists complete them."""
    await create(observing, balanced(subnet))
    made = await physical_ids(observing)
    shown = await attributes(observing, "lb")
    assert shown["vip_subnet_id"] == subnet
    assert shown["vip_address"].startswith("10.31.0.")
    requests = openstack.requests("octavia")
    assert [one for one in requests if f"/lbaas/listeners?project_id={project.id}" in one]
    cloud: Any = project.cloud.load_balancer
    changed = balanced(subnet, weight=5, description="d", name="web")
    of = {name: one["properties"] for name, one in changed.items()}
    of["policy"] |= {"action": "REJECT", "redirect_url": None, "position": 1}
    of["rule"] |= {"value": "/b", "invert": True}
    of["monitor"] |= {"url_path": "/ready", "expected_codes": "200,204"}
    of["listener"] |= {"allowed_cidrs": ["10.0.0.0/8"], "connection_limit": 9}
    of["pool"] |= {"session_persistence": {"type": "APP_COOKIE", "cookie_name": "c"}}
    of["two"] |= {"tags": ["u", "v"], "monitor_address": "10.31.0.103", "monitor_port": 8080}
    assert await update(observing, changed) == "UPDATE_COMPLETE"
    assert await physical_ids(observing) == made
    assert await drift_of(observing) == {}
    member = await asyncio.to_thread(cloud.get_member, made["one"], made["pool"])
    two = await asyncio.to_thread(cloud.get_member, made["two"], made["pool"])
    assert (two.monitor_address, two.monitor_port) == ("10.31.0.103", 8080)
    pool = await asyncio.to_thread(cloud.get_pool, made["pool"])
    policy = await asyncio.to_thread(cloud.get_l7_policy, made["policy"])
    balancer = await asyncio.to_thread(cloud.get_load_balancer, made["lb"])
    assert (member.weight, balancer.description, balancer.name) == (5, "d", "web")
    assert (pool.session_persistence["cookie_name"], policy.action) == ("c", "REJECT")
    assert policy.redirect_url is None

    for change in (
        lambda: cloud.update_member(made["one"], made["pool"], weight=0),
        lambda: cloud.delete_l7_rule(made["rule"], made["policy"]),
        lambda: cloud.update_pool(made["pool"], lb_algorithm="SOURCE_IP"),
    ):
        await asyncio.to_thread(change)
        await asyncio.to_thread(cloud.wait_for_load_balancer, made["lb"], interval=0.3)
    assert await drift_of(observing) == {
        "one": ("changed", ["weight"]),
        "rule": ("missing", []),
        "pool": ("changed", ["lb_algorithm"]),
    }
    await stacks.update(observing, balanced(subnet), converge=True)  # removes what was added, too
    assert await drift_of(observing) == {}
    repaired = await physical_ids(observing)
    assert {name for name, one in repaired.items() if one != made[name]} == {"rule"}
    pool = await asyncio.to_thread(cloud.get_pool, made["pool"])
    listener = await asyncio.to_thread(cloud.get_listener, made["listener"])
    member = await asyncio.to_thread(cloud.get_member, made["one"], made["pool"])
    assert (pool.session_persistence, pool.lb_algorithm) == (None, "ROUND_ROBIN")
    assert (listener.connection_limit, listener.allowed_cidrs) == (-1, None)
    two = await asyncio.to_thread(cloud.get_member, made["two"], made["pool"])
    assert (member.weight, two.monitor_address, two.monitor_port) == (1, None, None)
    changed = balanced(subnet)
    changed["monitor"]["properties"] |= {"type": "TCP"}
    status = await update(observing, changed)
    assert "It may have the place of the health monitor that it replaces, " in status
    assert "with one update, and add it with the next" in status
    await delete(observing)


async def test_a_failed_load_balancer_is_replaced(
    run: Program, project: Project, subnet: str
) -> None:
    """The reason says where to look; what waits for the load balancer ends, too."""
    failing = {"lb": octavia_resource("LoadBalancer", vip_subnet=subnet, name=FAILING)}
    await run.create("s", failing)
    assert await run.until_ended("s") == "CREATE_FAILED"
    shown = await run.stack_request("GET", "s", "/resources/lb")
    reason = shown["resource"]["resource_status_reason"]
    assert "the load balancer has failed: ERROR. Octavia does not publish the reason" in reason
    failed = shown["resource"]["physical_resource_id"]
    working = {"lb": octavia_resource("LoadBalancer", vip_subnet=subnet, name="web")}
    assert await update(run, working) == "UPDATE_COMPLETE"
    (balancer,) = await asyncio.to_thread(
        lambda: list(project.cloud.load_balancer.load_balancers())
    )
    assert (balancer.id != failed, balancer.name) == (True, "web")
    await delete(run)


async def test_nothing_is_created_twice(
    database_url: str, openstack: OpenStack, project: Project, subnet: str, tmp_path: Path
) -> None:
    server = ServerProcess(tmp_path, settings=settings_file(openstack), database_url=database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    # Each has another way in which an interrupted create finds its object.
    resources = balanced(subnet, name="web", description="d")
    del resources["two"]
    try:
        async with aiohttp.ClientSession(
            connector=connector, headers={"X-Auth-Token": project.token()}
        ) as session:
            http = Http(session, server.url, project.id)
            assert await die_after_each(server, http, resources) == "CREATE_COMPLETE"
            cloud: Any = project.cloud.load_balancer
            (balancer,) = await asyncio.to_thread(lambda: list(cloud.load_balancers()))
            (pool,) = await asyncio.to_thread(lambda: list(cloud.pools()))
            (policy,) = await asyncio.to_thread(lambda: list(cloud.l7_policies()))
            counted = [len(one) for one in (balancer.listeners, pool.members, policy.rules)]
            assert (counted, bool(pool.health_monitor_id)) == ([1, 1, 1], True)
            assert (balancer.name, balancer.description) == ("web", "d")
            await neutron_stacks.delete(http)
    finally:
        server.kill()


async def test_offers_and_quotas(
    admin_run: Program, openstack: OpenStack, project: Project, subnet: str
) -> None:
    """The types for administrators, and the reason of a create that exceeds a quota."""
    resources = {
        "profile": octavia_resource(
            "FlavorProfile", provider_name="amphora",
            flavor_data='{"loadbalancer_topology": "SINGLE"}',
        ),
        "flavor": octavia_resource("Flavor", flavor_profile=ref("profile"), name="small"),
        "zones": octavia_resource(
            "AvailabilityZoneProfile", provider_name="amphora",
            availability_zone_data='{"compute_zone": "nova"}',
        ),
        "zone": octavia_resource(
            "AvailabilityZone", availability_zone_profile=ref("zones"), name="a"
        ),
        "quota": octavia_resource("Quota", project=project.id, loadbalancer=0),
    }  # fmt: skip
    await create(admin_run, resources)
    changed = copy.deepcopy(resources)
    changed["flavor"]["properties"] |= {"description": "d", "enabled": False, "name": "tiny"}
    changed["zone"]["properties"] |= {"description": "d"}
    assert await update(admin_run, changed) == "UPDATE_COMPLETE"
    cloud: Any = openstack.admin.load_balancer
    flavor = await asyncio.to_thread(cloud.find_flavor, "tiny")
    zone = await asyncio.to_thread(cloud.find_availability_zone, "a")
    assert (flavor.description, flavor.is_enabled, zone.description) == ("d", False, "d")
    await admin_run.create("t", {"lb": octavia_resource("LoadBalancer", vip_subnet=subnet)})
    status = await ended(admin_run, "t")
    assert status.startswith("CREATE_FAILED: ")
    assert "Quota exceeded: Quota has been met for resources: Load Balancer." in status
    assert "load_balancer: 0" in status
    await delete(admin_run, "t")
    await delete(admin_run)


async def test_an_unknown_name_is_refused_with_the_nearest_one(
    run: Program, project: Project, subnet: str
) -> None:
    listener = octavia_resource("Listener", loadbalancer="wep", protocol="TCP", protocol_port=1)
    body = {"stack_name": "s", "template": template({"listener": listener})}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 400
    assert "Unable to find loadbalancer with name or id 'wep'" in response["error"]["message"]


@pytest.fixture(scope="session")
def aodh(openstack: OpenStack) -> None:
    openstack.start("aodh")


@pytest.mark.usefixtures("aodh")
async def test_an_alarm_watches_the_members_of_a_pool(
    run: Program, project: Project, subnet: str
) -> None:
    """The template names the pool, and Aodh gets its ID. The action needs a trust."""
    made = {
        "lb": octavia_resource("LoadBalancer", vip_subnet=subnet),
        **{
            name: octavia_resource(
                "Pool", name=name, loadbalancer=ref("lb"), protocol="TCP",
                lb_algorithm="ROUND_ROBIN",
            )
            for name in ("web", "other")
        },
    }  # fmt: skip
    await create(run, made)
    pools = await physical_ids(run)
    watched = {
        "pool": "web",
        "stack": {"get_param": "OS::stack_id"},
        "autoscaling_group_id": "group",
        "alarm_actions": ["trust+heat://"],
    }
    made["alarm"] = {"type": "OS::Aodh::LBMemberHealthAlarm", "properties": watched}
    assert await update(run, made) == "UPDATE_COMPLETE"
    before = (await physical_ids(run))["alarm"]
    stack_id = (await run.stack("s"))["id"]
    (found,) = await asyncio.to_thread(alarms_of, project.cloud)
    assert found.fields["loadbalancer_member_health_rule"] == {
        "pool_id": pools["web"], "stack_id": stack_id, "autoscaling_group_id": "group",
    }  # fmt: skip
    watched |= {"pool": "other", "autoscaling_group_id": "another"}
    assert await update(run, made) == "UPDATE_COMPLETE"
    (found,) = await asyncio.to_thread(alarms_of, project.cloud)
    rule = found.fields["loadbalancer_member_health_rule"]
    assert (rule["pool_id"], rule["autoscaling_group_id"]) == (pools["other"], "another")
    assert (found.id, found.fields["alarm_actions"]) == (before, ["trust+heat:"])
    await delete(run)


MEMBER = """
heat_template_version: 2018-08-31
parameters: {network: {type: string}, pool: {type: string}}
resources:
  port:
    type: OS::Neutron::Port
    properties: {network: {get_param: network}}
  member:
    type: OS::Octavia::PoolMember
    properties:
      pool: {get_param: pool}
      address: {get_attr: [port, fixed_ips, 0, ip_address]}
      protocol_port: 80
"""


@pytest.mark.usefixtures("aodh")
async def test_an_alarm_marks_an_unhealthy_member_of_a_group(
    run: Program, openstack: OpenStack, project: Project, network: Any, subnet: str
) -> None:
    """Aodh finds the member in Octavia, marks the member of the group, and updates the stack."""
    member = {"type": "member.yaml", "properties": {"network": network.id, "pool": ref("pool")}}
    resources = {
        "lb": octavia_resource("LoadBalancer", vip_subnet=subnet),
        "pool": octavia_resource(
            "Pool", loadbalancer=ref("lb"), protocol="HTTP", lb_algorithm="ROUND_ROBIN"
        ),
        "group": {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {"min_size": 1, "max_size": 1, "resource": member},
        },
        "alarm": {
            "type": "OS::Aodh::LBMemberHealthAlarm",
            "properties": {
                "pool": ref("pool"), "stack": {"get_param": "OS::stack_id"},
                "autoscaling_group_id": ref("group"), "alarm_actions": ["trust+heat://"],
                "repeat_actions": False,
            },
        },
    }  # fmt: skip
    await create(run, resources, files={"member.yaml": MEMBER})
    pool = (await physical_ids(run))["pool"]
    api: Any = project.cloud.load_balancer
    (ill,) = await asyncio.to_thread(lambda: list(api.members(pool)))

    async def marks() -> list[str]:
        """The reasons of failed checks in the group."""
        found = await run.stack_request("GET", "s", "/events?nested_depth=1")
        return [
            one["resource_status_reason"]
            for one in found["events"]
            if one["resource_status"] == "CHECK_FAILED"
        ]

    async def is_updated() -> bool:
        return str((await run.stack("s"))["stack_status"]) == "UPDATE_COMPLETE"

    async with registered_orchestration(openstack, f"{run.url}/v1/%(tenant_id)s"):
        # There is no amphora that reports the health of members.
        failed = f"update octavia.member set operating_status = 'ERROR' where id = '{ill.id}'"
        await asyncio.to_thread(openstack.query, failed)
        await eventually(marks)
        assert await marks() == ["unhealthy load balancer member"]
        await eventually(is_updated)
    await delete(run)
