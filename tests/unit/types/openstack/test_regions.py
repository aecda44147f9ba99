"""The requests of a stack go to the region that its environment names; caches and lists of one
region are not those of another."""

from typing import Any

import pytest

from engine.types.completion import AcceptedOperation
from engine.types.contract import ResourceType
from engine.types.custom_constraints import ValidationContext
from engine.types.http_client import Request, Response
from engine.types.openstack.cloud import Cloud, CloudAccess
from engine.types.openstack.cloud_operation import wait_for_observer
from engine.types.openstack.lookups import FLAVORS, IMAGES
from engine.types.openstack.names import ObjectConstraint
from engine.types.openstack.region_constraint import RegionConstraint
from engine.types.openstack.services import COMPUTE, IDENTITY, find_endpoint, find_regions
from engine.types.regions import listed_region, name_in_region, region_definition, service_of
from engine.work.observer.provider_endpoints import RequestRates
from hub.auth.keystone_cloud import KeystoneCloud
from tests.unit.types.calls import NOW, a_call, run
from tests.unit.types.openstack.clouds import Answers, Renewing, answer, types_of_all_services
from tests.unit.types.openstack.test_malformed_answers import (
    ID,
    NAMES,
    OBJECTS,
    SameAnswer,
    properties_of,
)

Json = Any
TWO = "RegionTwo"


class Recorded(SameAnswer):
    """Records the host of each request."""

    def __init__(self) -> None:
        super().__init__(OBJECTS["ready"])
        self.hosts: list[str] = []

    async def send(self, request: Request) -> Response:
        self.hosts.append(request.url.split("/")[2].partition(":")[0])
        return await super().send(request)


def a_type(name: str, web: Recorded) -> ResourceType:
    found = types_of_all_services(Cloud(web, Renewing()))
    return next(one for one in found if one.schema.name == name)


@pytest.mark.parametrize("name", NAMES)
async def test_each_request_of_a_type_goes_to_the_region_of_its_stack(name: str) -> None:
    web = Recorded()
    type_ = a_type(name, web)
    given = properties_of(type_)
    existing = {"physical_id": ID, "previous": given, "changed": frozenset(given)}
    for operation, more in (
        ("create", {}),
        ("update", existing),
        ("check", existing),
        ("delete", existing),
    ):
        await run(type_, operation, a_call(type_, given, credential="t", region=TWO, **more))
    observed = a_call(type_, given, region=TWO, **existing)
    if type_.observation_key(observed) is not None:
        await type_.observe([observed])  # type: ignore[misc]
    assert web.hosts or name in WITHOUT_REQUESTS, name
    assert {one for one in web.hosts if not one.endswith(f".{TWO}")} <= {"h"}, web.hosts


#: Types whose operations send no request with these properties.
WITHOUT_REQUESTS = (
    "AWS::EC2::InternetGateway",
    "OS::Keystone::GroupRoleAssignment",
    "OS::Keystone::UserRoleAssignment",
    "OS::Mistral::ExternalResource",
    "OS::Neutron::RouterGateway",  # before its names are known to be IDs
)


#: Types that the observer completes by lists, with what a list needs besides the region.
COMPLETED = {
    "OS::Nova::Server": {}, "OS::Cinder::Volume": {},
    "OS::Octavia::LoadBalancer": {"path": "/lbaas/loadbalancers"},
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLETED)
@pytest.mark.parametrize("region", ["", TWO])
async def test_the_observer_lists_the_objects_of_a_region(name: str, region: str) -> None:
    web = Recorded()
    definition = {**COMPLETED[name], **region_definition(region)}
    async for _ in a_type(name, web).read_objects("p", definition):
        pass
    (host,) = web.hosts
    assert host.endswith(f".{TWO}") is bool(region)


class Accepting:
    """Completions by the observer. accepted: what waits for it."""

    def __init__(self) -> None:
        self.accepted: list[AcceptedOperation] = []

    async def wait(self, operation: AcceptedOperation) -> None:
        self.accepted.append(operation)


async def test_operations_of_different_regions_wait_for_different_lists() -> None:
    web = Recorded()
    type_, completions = a_type("OS::Nova::Server", web), Accepting()
    type_.completions = completions
    cloud = Cloud(web, Renewing())
    for region in ("", TWO):
        call = a_call(type_, properties_of(type_), region=region)
        await wait_for_observer(type_, cloud, call, "servers", ID, "builds", {"path": "/servers"})
    assert [(one.key, one.definition) for one in completions.accepted] == [
        ("servers", {"path": "/servers"}),
        ("servers in RegionTwo", {"path": "/servers", **region_definition(TWO)}),
    ]


async def test_a_constraint_that_one_region_has_verified_is_verified_in_another() -> None:
    web = Answers(*[answer(200, {"images": [{"id": ID, "name": "i"}]})] * 3)
    constraint = ObjectConstraint("glance.image", IMAGES, Cloud(web, Renewing()))
    for region in ("", TWO, "", TWO):
        context = ValidationContext("p", NOW, "token", region)
        assert await constraint.validate("i", context) is None
    assert [one.url.split("/")[2] for one in web.requests] == ["image", f"image.{TWO}"]


async def test_a_missing_service_is_reported_with_its_region() -> None:
    class NoCompute(Renewing):
        async def endpoint(self, service: Json, token: str, region: str) -> str | None:
            return None

    context = ValidationContext("p", NOW, "token", TWO)
    cloud = Cloud(Answers(), NoCompute())
    wrong = await ObjectConstraint("nova.flavor", FLAVORS, cloud).validate("f", context)
    assert wrong is not None and f"has no endpoint of Nova in the region {TWO}" in wrong


async def test_an_unknown_region_is_reported_with_the_available_ones() -> None:
    constraint = RegionConstraint(Cloud(Answers(), Renewing()))
    context = ValidationContext("p", NOW, "token", "RegionTow")
    assert await constraint.validate(TWO, context) is None
    wrong = await constraint.validate("RegionTow", context)
    assert wrong == (
        'your service catalog has no region "RegionTow". Did you mean "RegionTwo"?'
        " Available regions: RegionOne, RegionTwo"
    )


CATALOG = [
    {"type": "identity", "endpoints": [
        {"region_id": "RegionOne", "interface": "public", "url": "http://keystone"}]},
    {"type": "compute", "endpoints": [
        {"region_id": "RegionOne", "interface": "public", "url": "http://one"},
        {"region_id": TWO, "interface": "public", "url": "http://two"}]},
]  # fmt: skip


class CatalogClient:
    async def catalog(self, token: str) -> Json:
        return CATALOG


async def test_endpoints_are_those_of_the_region() -> None:
    client: Any = CatalogClient()
    tokens: Any = None
    cloud = KeystoneCloud(client, tokens, CloudAccess("RegionOne"))
    assert await cloud.endpoint(COMPUTE, "t", "") == "http://one"
    assert await cloud.endpoint(COMPUTE, "t", TWO) == "http://two"
    assert await cloud.endpoint(COMPUTE, "t", "three") is None
    # Keystone serves all regions.
    assert await cloud.endpoint(IDENTITY, "t", TWO) == "http://keystone/v3"
    assert await cloud.regions("t") == ["RegionOne", TWO]
    assert find_endpoint(CATALOG, COMPUTE, "", "public") == "http://one"
    assert find_regions([{"type": "x"}]) == []


def test_lists_and_endpoints_of_different_regions_have_different_names() -> None:
    assert name_in_region("servers", "") == "servers"
    assert name_in_region("servers", TWO) == "servers in RegionTwo"
    assert name_in_region("", TWO) == ""
    assert service_of(name_in_region("Nova", TWO)) == "Nova"
    assert listed_region(region_definition(TWO)) == TWO
    assert listed_region(region_definition("")) == ""


def test_a_service_has_its_budget_in_each_region() -> None:
    rates = RequestRates(1.0, [(["Nova"], 60.0), (["Neutron in RegionTwo"], 5.0)])
    assert rates.rate_of("Nova") == rates.rate_of("Nova in RegionTwo") == 60.0
    assert rates.rate_of("Neutron in RegionTwo") == 5.0
    assert rates.rate_of("Neutron") == 1.0
