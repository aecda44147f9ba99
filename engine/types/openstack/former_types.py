"""Types that Heat has hidden and still creates, with Neutron: OS::Nova::FloatingIP,
OS::Nova::FloatingIPAssociation and OS::Neutron::RouterGateway."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from engine.hot.schema.type_schema import (
    Attribute,
    ImplicitDependency,
    Kind,
    Property,
    TypeSchema,
    updatable,
)
from engine.types.contract import Call, Done, Outcome, ResourceType, Wait
from engine.types.openstack.aws.lookups import (
    external_network,
    gateway_of,
    port_of_server,
    read,
    set_gateway,
)
from engine.types.openstack.aws.mapped_type import MappedType
from engine.types.openstack.cloud import Cloud, Session
from engine.types.openstack.cloud_operation import CloudType, run_guarded
from engine.types.openstack.neutron.lookups import NETWORKS, ROUTERS, custom
from engine.types.openstack.service_errors import CloudError
from engine.words import Json

NOVA_FLOATING_IP: Final = TypeSchema(
    "OS::Nova::FloatingIP",
    description="A former type: use OS::Neutron::FloatingIP.",
    properties={
        "pool": Property(
            Kind.STRING, "Name or ID of the external network; the default is the only one."
        ),
    },
    attributes={
        "pool": Attribute(Kind.STRING, "ID of the external network."),
        "ip": Attribute(Kind.STRING, "The address."),
    },
)

NOVA_ASSOCIATION: Final = TypeSchema(
    "OS::Nova::FloatingIPAssociation",
    description="A former type: use OS::Neutron::FloatingIPAssociation.",
    follows=(ImplicitDependency("OS::Neutron::RouterInterface"),),
    properties={
        "server_id": updatable(
            Kind.STRING,
            "ID of the server that gets the floating IP.",
            required=True,
            constraints=custom("nova.server"),
        ),
        "floating_ip": updatable(Kind.STRING, "ID or address of the floating IP.", required=True),
    },
)

ROUTER_GATEWAY: Final = TypeSchema(
    "OS::Neutron::RouterGateway",
    description="A former type: use external_gateway_info of OS::Neutron::Router.",
    follows=(
        ImplicitDependency("OS::Neutron::RouterInterface", "router_id", "router"),
        ImplicitDependency("OS::Neutron::Subnet", "network", "network"),
    ),
    properties={
        "router_id": Property(
            Kind.STRING,
            "Name or ID of the router.",
            required=True,
            constraints=custom("neutron.router"),
        ),
        "network": Property(
            Kind.STRING,
            "Name or ID of the external network.",
            constraints=custom("neutron.network"),
            former_names=("network_id",),
        ),
    },
)


class NovaFloatingIp(MappedType):
    names: ClassVar = {"pool": ("floating_network",)}

    def map(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        return {"floating_network": pool} if (pool := properties.get("pool")) else {}

    async def resolve(self, call: Call, session: Session) -> Mapping[str, Json]:
        if call.properties.get("pool") or call.previous is not None:
            return {}
        return {"floating_network": await external_network(session)}

    def own_attributes(self, call: Call, attributes: Mapping[str, Json]) -> dict[str, Json]:
        shown = attributes.get("show") or {}
        return {
            "pool": shown.get("floating_network_id"),
            "ip": shown.get("floating_ip_address"),
        }


class NovaFloatingIpAssociation(MappedType):
    """With the first port of the server. Its physical ID is that of the floating IP; get_resource
    returns a name, as in Heat."""

    names: ClassVar = {
        "server_id": ("port_id", "fixed_ip_address"),
        "floating_ip": ("floatingip_id",),
    }

    def map(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        return {"floatingip_id": properties.get("floating_ip")}

    async def resolve(self, call: Call, session: Session) -> Mapping[str, Json]:
        port, address = await port_of_server(session, str(call.properties["server_id"]))
        return {"port_id": port, "fixed_ip_address": address}

    def own_data(self, call: Call, done: Done) -> dict[str, Json]:
        return {"name": call.data.get("name") or call.own_name}

    def reference(
        self, resource_name: str, physical_id: str | None, data: Mapping[str, Json]
    ) -> str:
        return str(data.get("name") or resource_name)


#: In the progress of a gateway: its physical ID.
_GATEWAY: Final = "gateway"


class RouterGateway(CloudType):
    """The physical ID is ``ROUTER:NETWORK``, as in Heat.

    It is saved before the request that connects them. A delete leaves a gateway to another network,
    which a replacement or another client has set.
    """

    schema = ROUTER_GATEWAY
    template_ids = True

    async def create(self, call: Call) -> Outcome:
        if (gateway := (call.progress or {}).get(_GATEWAY)) is None:
            return await run_guarded(call, lambda: self._prepare(call), call.physical_id)
        return await run_guarded(call, lambda: self._connect(call, gateway), gateway)

    async def _prepare(self, call: Call) -> Outcome:
        session, given = self._cloud.session(call), call.properties
        if not given.get("network"):
            reason = "Property network not assigned"
            raise CloudError(f"{reason}. Name the external network.", public=reason)
        router = await ROUTERS.find_id(session, str(given["router_id"]), call.project)
        network = await NETWORKS.find_id(session, str(given["network"]), call.project)
        return Wait(call.now, {_GATEWAY: f"{router}:{network}"})

    async def _connect(self, call: Call, gateway: str) -> Outcome:
        router, _, network = gateway.partition(":")
        await set_gateway(self._cloud.session(call), router, network)
        return Done(gateway)

    async def _delete(self, call: Call) -> Outcome:
        router, _, network = (call.physical_id or "").partition(":")
        if not network:
            return Done(None)
        session = self._cloud.session(call)
        try:
            if gateway_of(await read(session, "routers", "router", router)) == network:
                await set_gateway(session, router, None)
        except CloudError as error:
            if not error.is_missing:
                raise
        return Done(None)

    async def _check(self, call: Call) -> Outcome:
        router, _, network = (call.physical_id or "").partition(":")
        if not network:
            reason = "the ID of a gateway is ROUTER:NETWORK"
            raise CloudError(reason, public=reason)
        if (
            gateway_of(await read(self._cloud.session(call), "routers", "router", router))
            != network
        ):
            reason = "the router has no gateway to the network"
            raise CloudError(reason, public=reason)
        return Done(call.physical_id, call.attributes, call.data)


def former_types(cloud: Cloud, others: Sequence[ResourceType]) -> list[ResourceType]:
    """others: the types of Neutron, which do the work."""
    named = {one.schema.name: one for one in others}
    floating, connected = "OS::Neutron::FloatingIP", "OS::Neutron::FloatingIPAssociation"
    return [
        NovaFloatingIp(NOVA_FLOATING_IP, named[floating], cloud),
        NovaFloatingIpAssociation(NOVA_ASSOCIATION, named[connected], cloud),
        RouterGateway(cloud),
    ]
