"""Types that Heat has hidden: what they request from Neutron."""

from typing import Any

import pytest

from engine.types.contract import Done, Failed
from tests.unit.types.calls import KEY, a_call
from tests.unit.types.openstack.clouds import Answers, answer, type_with
from tests.unit.types.openstack.test_aws_types import ok, requests_of, run_to_the_end

Json = Any
IDS = [f"{number:08x}-1111-4111-8111-111111111111" for number in range(1, 8)]
NET, PORT, SERVER, FLOATING, EXTERNAL, ROUTER, OTHER = IDS
ADDRESS, ASSOCIATION = "OS::Nova::FloatingIP", "OS::Nova::FloatingIPAssociation"
GATEWAY = "OS::Neutron::RouterGateway"
FOUND = {
    "id": FLOATING,
    "floating_network_id": EXTERNAL,
    "floating_ip_address": "192.0.2.7",
    "port_id": None,
}


async def perform(
    name: str, operation: str, given: Json, cloud: Answers, **known: Json
) -> tuple[Any, list[tuple[str, str, Json]]]:
    """The outcome, and the requests: method, path and body."""
    call = a_call(type_with(cloud, name), given, credential="t", **known)
    outcome, _ = await run_to_the_end(type_with(cloud, name), operation, call)
    assert not cloud.answers
    return outcome, requests_of(cloud)


@pytest.mark.parametrize(
    ("given", "asked"),
    [({}, ok(networks=[{"id": EXTERNAL}])), ({"pool": EXTERNAL}, None)],
    ids=["the-only-network", "a-pool"],
)
async def test_a_floating_ip_is_of_its_pool_or_of_the_only_external_network(
    given: Json, asked: Json
) -> None:
    created = answer(201, {"floatingip": FOUND})
    cloud = Answers(*([asked] if asked else []), created)
    done, sent = await perform(ADDRESS, "create", given, cloud)
    assert sent[-1][2]["floatingip"]["floating_network_id"] == EXTERNAL
    assert done.physical_id == FLOATING
    shown = {key: done.attributes[key] for key in ("pool", "ip")}
    assert shown == {"pool": EXTERNAL, "ip": "192.0.2.7"}


PORTS = [{"id": PORT, "created_at": "1", "fixed_ips": [{"ip_address": "10.0.0.5"}]}]


async def test_a_server_gets_the_floating_ip_at_its_first_port() -> None:
    given = {"server_id": SERVER, "floating_ip": FLOATING}
    cloud = Answers(ok(ports=PORTS), ok(floatingip={**FOUND, "port_id": PORT}))
    done, sent = await perform(ASSOCIATION, "create", given, cloud)
    method, path, body = sent[-1]
    assert (method, path) == ("PUT", f"floatingips/{FLOATING}")
    assert body["floatingip"] == {"port_id": PORT, "fixed_ip_address": "10.0.0.5"}
    assert done.physical_id == FLOATING
    # get_resource returns a name, as in Heat.
    name = f"s-r-{KEY.hex[:12]}"
    assert type_with(cloud, ASSOCIATION).reference("r", FLOATING, done.data) == name


async def test_the_floating_ip_moves_to_another_server() -> None:
    before = {"server_id": OTHER, "floating_ip": FLOATING}
    given = {"server_id": SERVER, "floating_ip": FLOATING}
    cloud = Answers(ok(ports=PORTS), ok(floatingip={**FOUND, "port_id": PORT}))
    known = {"physical_id": FLOATING, "previous": before, "changed": frozenset({"server_id"})}
    done, sent = await perform(ASSOCIATION, "update", given, cloud, **known)
    assert isinstance(done, Done)
    assert sent[-1][2]["floatingip"]["port_id"] == PORT


def router(network: str | None) -> Json:
    return ok(router={"id": ROUTER, "external_gateway_info": network and {"network_id": network}})


async def test_a_router_gets_a_gateway() -> None:
    cloud = Answers(router(EXTERNAL))
    done, sent = await perform(GATEWAY, "create", {"router_id": ROUTER, "network": EXTERNAL}, cloud)
    body = {"router": {"external_gateway_info": {"network_id": EXTERNAL}}}
    assert sent == [("PUT", f"routers/{ROUTER}", body)]
    assert done.physical_id == f"{ROUTER}:{EXTERNAL}"


async def test_a_refused_gateway_has_its_physical_id() -> None:
    """It is saved before the request: a delete removes what the request may have made."""
    cloud = Answers(answer(409, {"NeutronError": {"type": "InUse", "message": "in use"}}))
    failed, _ = await perform(GATEWAY, "create", {"router_id": ROUTER, "network": EXTERNAL}, cloud)
    assert isinstance(failed, Failed) and failed.physical_id == f"{ROUTER}:{EXTERNAL}"


@pytest.mark.parametrize(
    ("network", "removed"), [(EXTERNAL, True), (OTHER, False), (None, False)],
    ids=["its-own", "that-of-a-replacement", "none"],
)  # fmt: skip
async def test_a_delete_removes_only_its_own_gateway(network: str | None, removed: bool) -> None:
    given = {"router_id": ROUTER, "network": EXTERNAL}
    cloud = Answers(router(network), *([router(None)] if removed else []))
    known = {"physical_id": f"{ROUTER}:{EXTERNAL}"}
    done, sent = await perform(GATEWAY, "delete", given, cloud, **known)
    assert isinstance(done, Done)
    changes = [one for one in sent if one[0] == "PUT"]
    cleared: Json = ("PUT", f"routers/{ROUTER}", {"router": {"external_gateway_info": {}}})
    assert changes == ([cleared] if removed else [])


async def test_a_delete_after_its_router_is_done() -> None:
    given = {"router_id": ROUTER, "network": EXTERNAL}
    known = {"physical_id": f"{ROUTER}:{EXTERNAL}"}
    done, _ = await perform(GATEWAY, "delete", given, Answers(answer(404, {})), **known)
    assert isinstance(done, Done)


@pytest.mark.parametrize(("network", "healthy"), [(EXTERNAL, True), (None, False)])
async def test_a_check_finds_a_missing_gateway(network: str | None, healthy: bool) -> None:
    given = {"router_id": ROUTER, "network": EXTERNAL}
    known = {"physical_id": f"{ROUTER}:{EXTERNAL}"}
    found, _ = await perform(GATEWAY, "check", given, Answers(router(network)), **known)
    assert isinstance(found, Done) is healthy
