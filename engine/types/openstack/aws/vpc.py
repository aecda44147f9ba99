"""AWS::EC2::VPC and what it consists of: networks, subnets and routers of Neutron.

A VPC is a network, and a router of the same name, as in Heat. A route table is another router; a
tag names its VPC, so that a gateway attachment finds it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from engine.errors import Findings
from engine.hot.schema.properties import fill_defaults
from engine.hot.schema.type_schema import TypeSchema
from engine.types.contract import Call, Done, Failed, InternalType, Outcome, ResourceType, Wait
from engine.types.openstack.aws.lookups import (
    connect,
    disconnect,
    external_network,
    gateway_of,
    network_of_subnet,
    router_of_vpc,
    set_gateway,
)
from engine.types.openstack.aws.mapped_type import MappedType, refuse_unimplemented
from engine.types.openstack.aws.schema import GATEWAY_ATTACHMENT, INTERNET_GATEWAY
from engine.types.openstack.cloud import Cloud, Session, id_of
from engine.types.openstack.cloud_operation import CloudType, run_guarded
from engine.types.openstack.neutron.lookups import NETWORKS, ROUTERS, SUBNETS
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import NETWORK
from engine.words import Json

#: In the data of a VPC: the ID of its router.
_ROUTER: Final = "router"
#: In the data of a gateway attachment: its external network, and the routers that it has connected.
_EXTERNAL: Final = "network"
_ROUTERS: Final = "routers"
#: In its progress besides: the VPC, and the routers to disconnect.
_VPC: Final = "vpc"
_LEFT: Final = "left"
_UNUSED_TAGS: Final = ("Tags",)


def vpc_tag(network: str) -> str:
    """The tag of the route tables of a VPC. network: the ID of the VPC."""
    return f"headgate-vpc:{network}"


class Vpc(MappedType):
    """The other type is that of networks; routers: that of routers."""

    names: ClassVar = {}
    not_implemented: ClassVar = _UNUSED_TAGS
    follows_up: ClassVar = True

    def __init__(
        self, schema: TypeSchema, other: ResourceType, cloud: Cloud, routers: ResourceType
    ) -> None:
        super().__init__(schema, other, cloud)
        self._routers = routers

    def map(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        return {}

    async def follow_up(self, call: Call, session: Session, done: Done) -> Outcome:
        """Create the router. Both objects have the name that is derived from the operation."""
        outcome = await self._run_router(call, "create")
        if isinstance(outcome, Failed):
            data = {**done.data, **({_ROUTER: outcome.physical_id} if outcome.physical_id else {})}
            return replace(outcome, physical_id=done.physical_id, data=data)
        if not isinstance(outcome, Done):
            return outcome
        return replace(done, data={**done.data, _ROUTER: outcome.physical_id})

    async def before_delete(self, call: Call, session: Session) -> Outcome | None:
        router = call.data.get(_ROUTER)
        if router is None and call.physical_id is not None:
            router = await _default_router(session, call.physical_id)
        if router is None:
            return None
        outcome = await self._run_router(replace(call, physical_id=router, data={}), "delete")
        if isinstance(outcome, Done):
            return None
        if isinstance(outcome, Failed):
            return replace(outcome, physical_id=call.physical_id, data=call.data)
        return outcome

    async def _run_router(self, call: Call, operation: str) -> Outcome:
        properties = fill_defaults(self._routers.schema, {})
        return await self.run_type(
            self._routers, replace(call, properties=properties, previous=None), operation
        )

    def own_data(self, call: Call, done: Done) -> dict[str, Json]:
        return {_ROUTER: call.data[_ROUTER]} if _ROUTER in call.data else {}


class Ec2Subnet(MappedType):
    names: ClassVar = {"VpcId": ("network",), "CidrBlock": ("cidr",), "AvailabilityZone": ()}
    not_implemented: ClassVar = _UNUSED_TAGS
    follows_up: ClassVar = True

    def map(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        return {
            "network": properties.get("VpcId"),
            "cidr": properties.get("CidrBlock"),
            "ip_version": 4,
        }

    async def follow_up(self, call: Call, session: Session, done: Done) -> Outcome:
        network = await NETWORKS.find_id(session, str(call.properties["VpcId"]), call.project)
        if (router := await router_of_vpc(session, network)) is not None:
            await connect(session, id_of(NETWORK, router), str(done.physical_id))
        return done

    async def before_delete(self, call: Call, session: Session) -> Outcome | None:
        if call.physical_id is None:
            return None
        try:
            network = await NETWORKS.find_id(session, str(call.properties["VpcId"]), call.project)
        except CloudError as error:
            if not error.is_missing:
                raise
            return None
        if (router := await _default_router(session, network)) is not None:
            await disconnect(session, router, call.physical_id)
        return None

    def own_attributes(self, call: Call, attributes: Mapping[str, Json]) -> dict[str, Json]:
        return {"AvailabilityZone": call.properties.get("AvailabilityZone")}


class RouteTable(MappedType):
    """A router, which gets the gateway that the router of the VPC has."""

    names: ClassVar = {"VpcId": ("tags",)}
    not_implemented: ClassVar = _UNUSED_TAGS

    def map(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        return {"tags": [vpc_tag(str(properties.get("VpcId")))]}

    async def resolve(self, call: Call, session: Session) -> Mapping[str, Json]:
        network = await NETWORKS.find_id(session, str(call.properties["VpcId"]), call.project)
        router = await router_of_vpc(session, network)
        found: dict[str, Json] = {"tags": [vpc_tag(network)]}
        if router is not None and (external := gateway_of(router)):
            found["external_gateway_info"] = {"network": external}
        return found


class RouteTableAssociation(MappedType):
    """An interface of a route table, in place of that of the router of the VPC."""

    names: ClassVar = {"RouteTableId": ("router",), "SubnetId": ("subnet",)}

    def map(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        return {"router": properties.get("RouteTableId"), "subnet": properties.get("SubnetId")}

    async def resolve(self, call: Call, session: Session) -> Mapping[str, Json]:
        given = call.properties
        subnet = await SUBNETS.find_id(session, str(given["SubnetId"]), call.project)
        table = await ROUTERS.find_id(session, str(given["RouteTableId"]), call.project)
        router = await _router_of_subnet(session, subnet, call.project)
        if router not in (None, table):
            await disconnect(session, str(router), subnet)
        return {"router": table, "subnet": subnet}

    async def after_delete(self, call: Call, session: Session) -> None:
        given = call.properties
        try:
            subnet = await SUBNETS.find_id(session, str(given["SubnetId"]), call.project)
            router = await _router_of_subnet(session, subnet, call.project)
            if router is not None:
                await connect(session, router, subnet)
        except CloudError as error:
            if not error.is_missing:
                raise


class InternetGateway(InternalType):
    schema = INTERNET_GATEWAY

    def create(self, call: Call) -> Outcome:
        return Done(call.own_name)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        refuse_unimplemented(_UNUSED_TAGS, properties, place, findings)


class GatewayAttachment(CloudType):
    """The gateways of all route tables of a VPC. The physical ID is that of the VPC.

    data: `network`: the external network; `routers`: by ID, the route tables that the attachment
    has connected, with the external network of each. Only these are disconnected. They are saved
    before the requests that connect them, so that a failure has them. A failed attachment is
    repaired. A replaced one disconnects none if its replacement is of the same VPC.
    """

    schema = GATEWAY_ATTACHMENT
    repairs = True
    template_ids = True

    async def create(self, call: Call) -> Outcome:
        saved = call.progress or {}
        if _ROUTERS not in saved:
            return await run_guarded(call, lambda: self._prepare(call), call.physical_id)
        both = {**saved[_LEFT], **saved[_ROUTERS]}
        data = {_EXTERNAL: saved[_EXTERNAL], _ROUTERS: both}
        return await run_guarded(call, lambda: self._attach(call, saved), saved[_VPC], data)

    async def update(self, call: Call) -> Outcome:
        if not call.touches("VpcId"):
            return Done(call.physical_id, call.attributes, call.data)
        return await self.create(call)

    async def _prepare(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        vpc = await NETWORKS.find_id(session, str(call.properties["VpcId"]), call.project)
        external = await external_network(session, call.data.get(_EXTERNAL))
        tables = await _route_tables(session, vpc)
        wanted, left = gateway_changes(
            tables, call.data.get(_ROUTERS) or {}, external, takes_over=call.replaced == vpc
        )
        return Wait(call.now, {_VPC: vpc, _EXTERNAL: external, _ROUTERS: wanted, _LEFT: left})

    async def _attach(self, call: Call, saved: Mapping[str, Json]) -> Outcome:
        session = self._cloud.session(call)
        external, wanted = saved[_EXTERNAL], saved[_ROUTERS]
        for one in await _route_tables(session, saved[_VPC]):
            router = id_of(NETWORK, one)
            if router in wanted and gateway_of(one) != external:
                await set_gateway(session, router, external)
        await _disconnect_routers(session, saved[_LEFT])
        return Done(saved[_VPC], data={_EXTERNAL: external, _ROUTERS: wanted})

    async def _delete(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        await _disconnect_routers(session, call.data.get(_ROUTERS) or {})
        return Done(None)

    async def _check(self, call: Call) -> Outcome:
        """An adopted attachment has connected all route tables."""
        session = self._cloud.session(call)
        vpc = await NETWORKS.find_id(session, str(call.properties["VpcId"]), call.project)
        external = call.data.get(_EXTERNAL) or await external_network(session)
        tables = await _route_tables(session, vpc)
        for one in tables:
            if gateway_of(one) != external:
                public = "a route table has no gateway"
                raise CloudError(f"{public}: {one.get('id')}", public=public)
        connected = {id_of(NETWORK, one): external for one in tables}
        data = {_ROUTERS: connected, **call.data, _EXTERNAL: external}
        return Done(vpc, call.attributes, data)


def gateway_changes(
    tables: Sequence[Mapping[str, Json]],
    connected: Mapping[str, str],
    external: str,
    *,
    takes_over: bool,
) -> tuple[dict[str, str], dict[str, str]]:
    """(route tables of the attachment, route tables to disconnect): router to external network.

    tables: of the VPC. connected: those that the attachment has connected before. external: the
    network for all tables. takes_over: a replaced attachment of the VPC leaves its route tables.
    """
    gateways = {id_of(NETWORK, one): gateway_of(one) for one in tables}
    wanted = {
        router: external
        for router, network in gateways.items()
        if network != external or connected.get(router) == external or takes_over
    }
    return wanted, {key: one for key, one in connected.items() if key not in gateways}


async def _disconnect_routers(session: Session, networks: Mapping[str, str]) -> None:
    """Gateways in another network are of other clients. networks: by router."""
    async for one in session.by_ids(NETWORK, "/routers", "routers", sorted(networks)):
        router = id_of(NETWORK, one)
        if router in networks and gateway_of(one) == networks[router]:
            try:
                await set_gateway(session, router, None)
            except CloudError as error:
                if not error.is_missing:
                    raise


async def _route_tables(session: Session, network: str) -> list[Mapping[str, Json]]:
    found = await session.list(NETWORK, "/routers", "routers", {"tags": vpc_tag(network)})
    return list(found)


async def _default_router(session: Session, network: str) -> str | None:
    """The ID of the router of a VPC; None if it or the network does not exist."""
    try:
        router = await router_of_vpc(session, network)
    except CloudError as error:
        if error.is_missing:
            return None
        raise
    return None if router is None else id_of(NETWORK, router)


async def _router_of_subnet(session: Session, subnet: str, project: str) -> str | None:
    network = await network_of_subnet(session, subnet, project)
    return await _default_router(session, network)
