"""Routers and addresses that they translate: OS::Neutron::Router, RouterInterface, ExtraRoute,
ExtraRouteSet, FloatingIP, FloatingIPAssociation, FloatingIPPortForward."""

from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from engine.errors import Findings
from engine.hot.schema.type_schema import (
    Attribute,
    ImplicitDependency,
    Kind,
    Property,
    TypeSchema,
    updatable,
)
from engine.types.contract import Call, Done, Outcome, ResourceType, Wait
from engine.types.custom_constraints import ValidationContext
from engine.types.observation import PRESENT, Observation
from engine.types.openstack.cloud import IDS_AT_ONCE, Cloud, Session, id_of, segment
from engine.types.openstack.cloud_operation import keep_for_successor, unknown_state
from engine.types.openstack.live_values import LiveProperties
from engine.types.openstack.neutron.agents import L3, set_agents
from engine.types.openstack.neutron.lookups import (
    FLOATING_IPS,
    NETWORKS,
    PORTS,
    ROUTERS,
    SUBNETS,
    between,
    custom,
    one_of,
)
from engine.types.openstack.neutron.networks import (
    ADMIN_STATE,
    ROUTE,
    TAGS,
    TENANT,
    VALUE_SPECS,
    name_of,
)
from engine.types.openstack.neutron.neutron_type import (
    NeutronType,
    UniqueContentType,
    fixed_ip,
    without_nulls,
)
from engine.types.openstack.object_type import ABSENT, Mark, ObjectRow, existing_error
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import NETWORK
from engine.words import Json, ObservedState, ResourceId

#: What a port must come after, so that a floating IP can reach it.
_REACHABLE: Final = (
    ImplicitDependency("OS::Neutron::RouterInterface"),
    ImplicitDependency("OS::Neutron::Router", "floating_network", "external_gateway_info.network"),
    ImplicitDependency("OS::Neutron::RouterGateway", "floating_network", "network"),
)

ROUTER: Final = TypeSchema(
    "OS::Neutron::Router",
    description="A router between networks.",
    follows=(
        ImplicitDependency("OS::Neutron::Subnet", "external_gateway_info.network", "network"),
    ),
    properties={
        "name": name_of("router"),
        "external_gateway_info": updatable(
            Kind.MAP,
            "Its gateway.",
            fields={
                "network": updatable(
                    Kind.STRING, "Name or ID of the external network.", required=True
                ),
                "enable_snat": updatable(
                    Kind.BOOLEAN, "Whether it translates addresses of senders."
                ),
                "external_fixed_ips": updatable(
                    Kind.LIST,
                    "Its addresses in the external network.",
                    items=Property(
                        Kind.MAP,
                        "An address.",
                        fields={
                            "ip_address": Property(
                                Kind.STRING, "The address.", constraints=custom("ip_addr")
                            ),
                            "subnet": Property(
                                Kind.STRING,
                                "Name or ID of the subnet.",
                                constraints=custom("neutron.subnet"),
                            ),
                        },
                    ),
                ),
            },
        ),
        "value_specs": VALUE_SPECS,
        "admin_state_up": ADMIN_STATE,
        "l3_agent_ids": updatable(
            Kind.LIST,
            "IDs of the L3 agents that serve it, for administrators.",
            items=Property(Kind.STRING, "ID of an agent."),
        ),
        "l3_agent_id": updatable(Kind.STRING, "The former form of l3_agent_ids: one ID."),
        "distributed": Property(Kind.BOOLEAN, "Whether it is distributed."),
        "ha": Property(Kind.BOOLEAN, "Whether it is highly available."),
        "availability_zone_hints": updatable(
            Kind.LIST, "Availability zones to prefer. A change replaces the router."
        ),
        "tags": TAGS,
        "tenant_id": TENANT,
    },
    attributes={
        "status": Attribute(Kind.STRING, "Status in Neutron."),
        "external_gateway_info": Attribute(Kind.MAP, "Its gateway."),
        "name": Attribute(Kind.STRING, "Name."),
        "admin_state_up": Attribute(Kind.STRING, "Whether it is up."),
        "tenant_id": Attribute(Kind.STRING, "ID of the owning project."),
    },
)

ROUTER_INTERFACE: Final = TypeSchema(
    "OS::Neutron::RouterInterface",
    description="Connects a router with a subnet or port.",
    properties={
        "router": Property(
            Kind.STRING,
            "Name or ID of the router.",
            required=True,
            constraints=custom("neutron.router"),
            former_names=("router_id",),
        ),
        "subnet": Property(
            Kind.STRING,
            "Name or ID of the subnet; or give port.",
            constraints=custom("neutron.subnet"),
            former_names=("subnet_id",),
        ),
        "port": Property(
            Kind.STRING,
            "Name or ID of the port; or give subnet.",
            constraints=custom("neutron.port"),
            former_names=("port_id",),
        ),
    },
)

EXTRA_ROUTE_SET: Final = TypeSchema(
    "OS::Neutron::ExtraRouteSet",
    description="Routes of a router, in addition to those that others have added.",
    follows=(ImplicitDependency("OS::Neutron::RouterInterface", "router", "router"),),
    properties={
        "router": Property(
            Kind.STRING,
            "Name or ID of the router.",
            required=True,
            constraints=custom("neutron.router"),
        ),
        "routes": updatable(Kind.LIST, "The routes.", default=[], items=ROUTE),
    },
)

EXTRA_ROUTE: Final = TypeSchema(
    "OS::Neutron::ExtraRoute",
    description="A route of a router. OS::Neutron::ExtraRouteSet has many.",
    follows=(ImplicitDependency("OS::Neutron::RouterInterface", "router_id", "router"),),
    properties={
        "router_id": Property(
            Kind.STRING,
            "Name or ID of the router.",
            required=True,
            constraints=custom("neutron.router"),
        ),
        "destination": Property(Kind.STRING, "Network in CIDR form.", required=True),
        "nexthop": Property(Kind.STRING, "Address of the next hop.", required=True),
    },
)

FLOATING_IP: Final = TypeSchema(
    "OS::Neutron::FloatingIP",
    description="An address of an external network for a port.",
    follows=_REACHABLE,
    properties={
        "floating_network": Property(
            Kind.STRING,
            "Name or ID of the external network.",
            required=True,
            constraints=custom("neutron.network"),
            former_names=("floating_network_id",),
        ),
        "floating_subnet": Property(
            Kind.STRING,
            "Name or ID of the external subnet.",
            constraints=custom("neutron.subnet"),
        ),
        "value_specs": Property(
            Kind.MAP, "Further fields of the request, as Neutron's API names them.", default={}
        ),
        "port_id": updatable(
            Kind.STRING, "Name or ID of the port.", constraints=custom("neutron.port")
        ),
        "fixed_ip_address": updatable(
            Kind.STRING, "Address of the port, if it has several.", constraints=custom("ip_addr")
        ),
        "floating_ip_address": Property(
            Kind.STRING, "The address, if it must be this one.", constraints=custom("ip_addr")
        ),
        "dns_name": updatable(
            Kind.STRING,
            "DNS name. A change replaces the floating IP.",
            constraints=custom("rel_dns_name"),
        ),
        "dns_domain": updatable(
            Kind.STRING,
            "DNS domain. A change replaces the floating IP.",
            constraints=custom("dns_domain"),
        ),
    },
    attributes={
        "router_id": Attribute(Kind.STRING, "ID of the router that translates it."),
        "tenant_id": Attribute(Kind.STRING, "ID of the owning project."),
        "floating_network_id": Attribute(Kind.STRING, "ID of the external network."),
        "fixed_ip_address": Attribute(Kind.STRING, "Address of the port."),
        "floating_ip_address": Attribute(Kind.STRING, "The address."),
        "port_id": Attribute(Kind.STRING, "ID of the port."),
    },
)

FLOATING_IP_ASSOCIATION: Final = TypeSchema(
    "OS::Neutron::FloatingIPAssociation",
    description="Connects a floating IP with a port.",
    follows=(ImplicitDependency("OS::Neutron::RouterInterface"),),
    properties={
        "floatingip_id": updatable(Kind.STRING, "ID or address of the floating IP.", required=True),
        "port_id": updatable(
            Kind.STRING,
            "Name or ID of the port.",
            required=True,
            constraints=custom("neutron.port"),
        ),
        "fixed_ip_address": updatable(
            Kind.STRING, "Address of the port, if it has several.", constraints=custom("ip_addr")
        ),
    },
)

PORT_FORWARD: Final = TypeSchema(
    "OS::Neutron::FloatingIPPortForward",
    description="Forwards a port of a floating IP.",
    follows=(ImplicitDependency("OS::Neutron::RouterInterface"),),
    properties={
        "internal_ip_address": updatable(
            Kind.STRING, "Address of the port.", required=True, constraints=custom("ip_addr")
        ),
        "internal_port_number": updatable(
            Kind.INTEGER, "Number of the port to forward to.", constraints=between(1, 65535)
        ),
        "external_port": updatable(
            Kind.INTEGER,
            "Number of the port of the floating IP.",
            required=True,
            constraints=between(1, 65535),
        ),
        "internal_port": updatable(
            Kind.STRING,
            "Name or ID of the port.",
            required=True,
            constraints=custom("neutron.port"),
        ),
        "protocol": updatable(
            Kind.STRING,
            "IP protocol.",
            required=True,
            constraints=one_of("tcp", "udp", "icmp", "icmp6", "sctp", "dccp"),
        ),
        "floating_ip": Property(Kind.STRING, "ID or address of the floating IP.", required=True),
    },
)


#: Properties that name the agents of a router; Heat does not list the former one.
AGENTS: Final = ("l3_agent_ids", "l3_agent_id")


class RouterType(NeutronType):
    importable = True

    def needs_replace(self, call: Call) -> bool:
        """Neutron cannot change the zones of a router."""
        return "availability_zone_hints" in call.changed

    async def value_of(self, call: Call, session: Session, name: str, value: Json) -> Json:
        if name != "external_gateway_info":
            return await super().value_of(call, session, name, value)
        gateway = without_nulls(value)
        network = await NETWORKS.find_id(session, str(gateway.pop("network")), call.project)
        addresses = [
            await fixed_ip(call, session, one)
            for one in gateway.pop("external_fixed_ips", None) or []
        ]
        fixed = {"external_fixed_ips": addresses} if addresses else {}
        return {**gateway, "network_id": network, **fixed}

    async def follow_up(
        self, call: Call, session: Session, path: str, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        wanted, before = _agents_of(call.properties), _agents_of(call.previous or {})
        if (wanted or before) and any(self.touches(call, name) for name in AGENTS):
            await set_agents(session, L3, self.id_of(found), wanted)
        return found

    async def users(self, session: Session, path: str, object_id: str) -> Sequence[str]:
        query = {"device_id": object_id, "device_owner": "network:router_interface"}
        ports = await session.list(NETWORK, "/ports", "ports", query)
        subnets = [
            id_of(NETWORK, one, "subnet_id")
            for port in ports
            for one in port.get("fixed_ips") or []
        ]
        if subnets:
            return [f"an interface in the subnet {one}" for one in subnets[:5]]
        addresses = await session.list(
            NETWORK, "/floatingips", "floatingips", {"router_id": object_id}
        )
        return [
            f"floating IP {one.get('floating_ip_address')} ({one.get('id')})"
            for one in addresses[:5]
        ]

    async def live_properties(
        self, session: Session, found: Mapping[str, Json], imported: Collection[str]
    ) -> LiveProperties:
        """Only administrators can set `enable_snat`, whose default is true."""
        live = await super().live_properties(session, found, imported)
        gateway = live.values.get("external_gateway_info")
        if isinstance(gateway, dict) and gateway.get("enable_snat"):
            del gateway["enable_snat"]
        return live

    def is_same(self, name: str, desired: Json, observed: Json) -> bool:
        if name != "external_gateway_info":
            return super().is_same(name, desired, observed)
        if not isinstance(observed, Mapping):
            return False
        snat = desired.get("enable_snat")
        return snat is None or snat == observed.get("enable_snat")

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        given = [name for name in AGENTS if properties.get(name)]
        if len(given) > 1:
            _add_conflict(findings, place, "l3_agent_id, l3_agent_ids")
        if given and properties.get("distributed") is True:
            _add_conflict(findings, place, "distributed, l3_agent_id/l3_agent_ids")
        agents = properties.get("l3_agent_ids")
        if isinstance(agents, list) and len(agents) > 1 and properties.get("ha") is not True:
            reason = "Non HA routers can only have one L3 agent."
            findings.add(f"{place}.l3_agent_ids", reason, "Name one agent, or set ha: true.")
        if properties.get("ha") is True and properties.get("distributed") is True:
            findings.add(place, "ha and distributed exclude each other", "Remove one of them.")


def _add_conflict(findings: Findings, place: str, names: str) -> None:
    reason = f"Cannot define the following properties at the same time: {names}."
    findings.add(place, reason, "Remove one of them.")


def _agents_of(properties: Mapping[str, Json]) -> list[str]:
    """The IDs of the agents; empty if Neutron chooses them."""
    one = properties.get("l3_agent_id")
    return properties.get("l3_agent_ids") or ([one] if one else [])


_FORM: Final = "must be ROUTER:subnet_id=SUBNET or ROUTER:port_id=PORT"
#: (router, "subnet_id" or "port_id", ID)
Interface = tuple[str, str, str]


class RouterInterfaceType(NeutronType):
    """The physical ID is ``ROUTER:subnet_id=SUBNET`` or ``ROUTER:port_id=PORT``, as in Heat."""

    async def _create(self, call: Call, session: Session) -> Outcome:
        interface = await self._interface(call, session)
        if ABSENT not in (call.progress or {}):
            if (port := await find_interface_port(session, interface)) is not None:
                raise existing_error("router interface", id_of(NETWORK, port))
            return Wait(call.now, {ABSENT: True})
        if not (call.repeated and await find_interface_port(session, interface)):
            await change_interface(session, interface, "add")
        return await self._interface_done(session, interface)

    async def _interface(self, call: Call, session: Session) -> Interface:
        given = call.properties
        router = await ROUTERS.find_id(session, str(given["router"]), call.project)
        if given.get("subnet"):
            found = await SUBNETS.find_id(session, str(given["subnet"]), call.project)
            return router, "subnet_id", found
        if not given.get("port"):
            reason = "one of subnet and port must be given"
            raise CloudError(reason, public=reason)
        return router, "port_id", await PORTS.find_id(session, str(given["port"]), call.project)

    async def _interface_done(self, session: Session, interface: Interface) -> Outcome:
        router, kind, other = interface
        return Done(f"{router}:{kind}={other}")

    async def _delete(self, call: Call, session: Session) -> Outcome:
        interface = parse_interface(call.physical_id or "")
        if interface is None:
            return await self._delete_if_created(call, session)
        try:
            await change_interface(session, interface, "remove")
        except CloudError as error:
            if error.is_missing:
                return Done(None)
            if "InUse" not in error.kind:
                raise
            users = await self._interface_users(session, interface)
            reason = f"the router interface is in use by {'; '.join(users) or error.message}"
            public = "the router interface is in use"
            raise CloudError(f"{reason}. Delete or detach them first.", public=public) from None
        return Done(None)

    async def _delete_if_created(self, call: Call, session: Session) -> Outcome:
        """After a create whose answer was lost."""
        if call.data.get("lost") is not None:
            interface = await self._interface(call, session)
            if await find_interface_port(session, interface):
                await change_interface(session, interface, "remove")
        return Done(None)

    async def _interface_users(self, session: Session, interface: Interface) -> list[str]:
        query = {"router_id": interface[0]}
        found = await session.list(NETWORK, "/floatingips", "floatingips", query)
        return [
            f"floating IP {one.get('floating_ip_address')} ({one.get('id')})" for one in found[:5]
        ]

    async def _check(self, call: Call, session: Session) -> Outcome:
        interface = parse_interface(call.physical_id or "")
        if interface is None:
            reason = (
                "the ID of a router interface is ROUTER:subnet_id=SUBNET or ROUTER:port_id=PORT"
            )
            raise CloudError(reason, public=reason)
        if await find_interface_port(session, interface) is None:
            reason = "the router interface does not exist"
            raise CloudError(reason, public=reason)
        return await self._interface_done(session, interface)

    def mark(self, call: Call) -> Mark:
        return Mark({}, {})

    async def check_external(self, physical_id: str, context: ValidationContext) -> str | None:
        if parse_interface(physical_id) is None:
            return f"it {_FORM}"
        return None

    async def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        session = self.cloud.observer_session(calls[0])
        known = {call.resource_id: parse_interface(call.physical_id or "") for call in calls}
        routers = sorted({one[0] for one in known.values() if one})
        ports: list[Mapping[str, Json]] = []
        try:
            for start in range(0, len(routers), IDS_AT_ONCE):
                query = {"device_id": routers[start : start + IDS_AT_ONCE]}
                ports += await session.list(NETWORK, "/ports", "ports", query)
        except CloudError as error:
            return {call.resource_id: unknown_state(error) for call in calls}
        present = {
            key
            for port in ports
            for key in (
                (port.get("device_id"), "port_id", port.get("id")),
                *(
                    (port.get("device_id"), "subnet_id", one.get("subnet_id"))
                    for one in port.get("fixed_ips") or []
                ),
            )
        }
        reason = "the router interface does not exist"
        missing = Observation(ObservedState.MISSING, (), reason, reason)
        return {key: PRESENT if one in present else missing for key, one in known.items()}

    def observed_paths(self, properties: Mapping[str, Json]) -> Collection[str] | None:
        return []

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        if properties.get("subnet") and properties.get("port"):
            reason = "Cannot define the following properties at the same time: subnet, port."
            findings.add(place, reason, "Remove one of them.")


async def change_interface(session: Session, interface: Interface, action: str) -> None:
    """Add or remove an interface. action: add or remove. Raises CloudError."""
    router, kind, other = interface
    path = f"/routers/{segment(router)}/{action}_router_interface"
    doing = f"{action} the router interface"
    await session.request(NETWORK, "PUT", path, doing, {kind: other})


async def find_interface_port(session: Session, interface: Interface) -> Mapping[str, Json] | None:
    """The router's port; None if there is none. Raises CloudError."""
    router, kind, other = interface
    query = {"device_id": router}
    query |= {"fixed_ips": f"subnet_id={other}"} if kind == "subnet_id" else {"id": other}
    found = await session.list(NETWORK, "/ports", "ports", query)
    return next(
        (one for one in found if str(one.get("device_owner")).startswith("network:router_int")
         or str(one.get("device_owner")).startswith("network:ha_router_rep")),
        None,
    )  # fmt: skip


def parse_interface(physical_id: str) -> Interface | None:
    router, _, rest = physical_id.partition(":")
    kind, _, other = rest.partition("=")
    known = router and other and kind in ("subnet_id", "port_id")
    return (router, kind, other) if known else None


_ROUTE: Final = ("destination", "nexthop")
#: In the data of routes: those that a failed update may have left.
_ROUTES: Final = "routes"


class RouteType(NeutronType):
    """Routes of a router. The physical ID is the key of the operation that added them.

    A route has no mark: an operation first saves that the router lacks the routes that it adds. The
    data of a failed update has all routes that it may have left. A failed resource is repaired: the
    delete of a replaced one would remove the routes of its replacement.
    """

    repairs = True

    def needs_replace(self, call: Call) -> bool:
        return bool(call.changed & {"router", "router_id"})

    async def guard(self, call: Call, run: Awaitable[Outcome]) -> Outcome:
        if call.previous is not None and ABSENT in (call.progress or {}):
            added = self._added_routes(call)
            both = [*added, *_exclude(self._routes(call.properties), added)]
            call = replace(call, data={**call.data, _ROUTES: both})
        return await super().guard(call, run)

    async def _create(self, call: Call, session: Session) -> Outcome:
        wanted = self._routes(call.properties)
        if ABSENT not in (call.progress or {}):
            return await self._save_absence(call, session, wanted)
        await self._change(call, session, [], wanted)
        return Done(str(call.operation_key))

    async def _update(self, call: Call, session: Session) -> Outcome:
        before, now = self._added_routes(call), self._routes(call.properties)
        if (added := _exclude(now, before)) and ABSENT not in (call.progress or {}):
            return await self._save_absence(call, session, added)
        await self._change(call, session, _exclude(before, now), now)
        return Done(call.physical_id or str(call.operation_key))

    async def _save_absence(
        self, call: Call, session: Session, wanted: Sequence[Mapping[str, Json]]
    ) -> Wait:
        router = await self._router(call, session)
        present = await self._read_routes(session, router)
        if there := [one for one in wanted if one in present]:
            raise existing_error("route", _describe_routes(there))
        return Wait(call.now, {**(call.progress or {}), ABSENT: True})

    async def _delete(self, call: Call, session: Session) -> Outcome:
        try:
            if added := self._added_routes(call):
                await self._change(call, session, added, [])
        except CloudError as error:
            if not error.is_missing:
                raise
        return Done(None)

    def _added_routes(self, call: Call) -> list[Mapping[str, Json]]:
        """The routes that earlier operations have added."""
        if call.physical_id is None and "lost" not in call.data:
            return []
        return list(call.data.get(_ROUTES) or self._routes(call.previous or call.properties))

    async def _check(self, call: Call, session: Session) -> Outcome:
        router = await self._router(call, session)
        present = await self._read_routes(session, router)
        if gone := [one for one in self._routes(call.properties) if one not in present]:
            reason = f"the router lacks the routes {_describe_routes(gone)}"
            raise CloudError(reason, public="routes are missing")
        return Done(call.physical_id, data=call.data)

    async def _read_routes(self, session: Session, router: str) -> list[Mapping[str, Json]]:
        found = await self.get(session, "/routers", router)
        return [{key: one.get(key) for key in _ROUTE} for one in found.get("routes") or []]

    async def _change(
        self,
        call: Call,
        session: Session,
        extra: Sequence[Mapping[str, Json]],
        wanted: Sequence[Mapping[str, Json]],
    ) -> None:
        """Both requests may be repeated: Neutron ignores routes that it has, or has not."""
        path = f"/routers/{segment(await self._router(call, session))}"
        for action, routes in (("remove_extraroutes", extra), ("add_extraroutes", wanted)):
            if routes:
                body = {"router": {"routes": routes}}
                doing = "change the routes of the router"
                await session.request(NETWORK, "PUT", f"{path}/{action}", doing, body)

    async def _router(self, call: Call, session: Session) -> str:
        given = call.properties.get("router") or call.properties["router_id"]
        return await ROUTERS.find_id(session, str(given), call.project)

    def _routes(self, properties: Mapping[str, Json]) -> list[Mapping[str, Json]]:
        if "destination" in properties:
            return [{key: properties[key] for key in _ROUTE}]
        return list(properties.get("routes") or [])

    def mark(self, call: Call) -> Mark:
        return Mark({}, {})

    def observation_key(self, call: Call) -> str | None:
        return None

    async def check_external(self, physical_id: str, context: ValidationContext) -> str | None:
        return "routes of a router have no ID of their own"


def _exclude(
    routes: Sequence[Mapping[str, Json]], others: Sequence[Mapping[str, Json]]
) -> list[Mapping[str, Json]]:
    return [one for one in routes if one not in others]


def _describe_routes(routes: Sequence[Mapping[str, Json]]) -> str:
    return ", ".join(f"{one['destination']} via {one['nexthop']}" for one in routes)


_REPLACES: Final = frozenset({"dns_name", "dns_domain"})


class FloatingIpType(NeutronType):
    def needs_replace(self, call: Call) -> bool:
        """Neutron cannot change the DNS name of a floating IP."""
        return bool(call.changed & _REPLACES)

    async def fields_for_update(
        self, call: Call, session: Session, names: Collection[str]
    ) -> dict[str, Json]:
        sent = set(names) - _REPLACES
        if call.properties.get("port_id") is None:
            sent.discard("fixed_ip_address")
        elif "fixed_ip_address" in sent:
            sent.add("port_id")
        return await super().fields_for_update(call, session, sent)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        # A port that is unknown yet is missing, like one that is not given: Neutron decides.
        return


#: In the progress and the data of an association: the ID of its port.
_PORT: Final = "port"


class AssociationType(NeutronType):
    """The physical ID is that of the floating IP; the data has the port.

    Both are saved before the request that connects them, so that a failure has them. A failed
    association is repaired: the delete of a replaced one would disconnect its replacement. A delete
    leaves a floating IP that a replacement has, for example because of `replace_when`.
    """

    repairs = True

    async def guard(self, call: Call, run: Awaitable[Outcome]) -> Outcome:
        if port := (call.progress or {}).get(_PORT):
            call = replace(call, data={**call.data, _PORT: port})
        return await super().guard(call, run)

    async def _create(self, call: Call, session: Session) -> Outcome:
        if (progress := call.progress or {}).get("id"):
            return await self._connect(call, session, progress["id"], progress[_PORT])
        given = call.properties
        floating = await FLOATING_IPS.find_id(session, str(given["floatingip_id"]), call.project)
        port = await PORTS.find_id(session, str(given["port_id"]), call.project)
        if call.physical_id is not None and floating != call.physical_id:
            await self._release(call, session, call.physical_id)
        return Wait(call.now, {"id": floating, _PORT: port})

    async def _update(self, call: Call, session: Session) -> Outcome:
        return await self._create(call, session)

    async def _connect(self, call: Call, session: Session, floating: str, port: str) -> Outcome:
        fields = {"port_id": port, "fixed_ip_address": call.properties.get("fixed_ip_address")}
        found = await self.put(session, self.row.path, floating, fields)
        attributes = await self.attributes_of(session, found)
        return Done(self.id_of(found), attributes, {_PORT: port})

    async def delete(self, call: Call) -> Outcome:
        return await keep_for_successor(self, call) or await super().delete(call)

    async def _delete(self, call: Call, session: Session) -> Outcome:
        if call.physical_id is not None:
            await self._release(call, session, call.physical_id)
        return Done(None)

    async def _release(self, call: Call, session: Session, floating: str) -> None:
        """Disconnect the floating IP, unless another client has given it another port."""
        try:
            found = await self.find(session, self.row.path, floating) or {}
            if found.get("port_id") and found["port_id"] == await self._port(call, session):
                await self.put(session, self.row.path, floating, {"port_id": None})
        except CloudError as error:
            if not error.is_missing:
                raise

    async def _port(self, call: Call, session: Session) -> str:
        """The port that earlier operations have connected."""
        given = (call.previous or call.properties)["port_id"]
        known = call.data.get(_PORT)
        return str(known or await PORTS.find_id(session, str(given), call.project))

    async def _check(self, call: Call, session: Session) -> Outcome:
        found = await self.find(session, self.row.path, str(call.physical_id))
        if found is None or not found.get("port_id"):
            reason = "the floating IP has no port"
            raise CloudError(reason, public=reason)
        return Done(call.physical_id, await self.attributes_of(session, found), call.data)

    def mark(self, call: Call) -> Mark:
        return Mark({}, {})

    def is_observed(self, name: str) -> bool:
        return name != "floatingip_id" and super().is_observed(name)


class PortForwardType(UniqueContentType):
    ignored = frozenset({"description"})


def router_types(cloud: Cloud) -> list[ResourceType]:
    floating = {"floating_network": NETWORKS, "floating_subnet": SUBNETS, "port_id": PORTS}
    routers = ObjectRow("router", NETWORK, "/routers", "router", "routers")
    addresses = ("floating IP", NETWORK, "/floatingips", "floatingip", "floatingips")
    return [
        RouterType(
            ROUTER,
            ObjectRow(
                "router", NETWORK, "/routers", "router", "routers",
                separate=frozenset(AGENTS), cleared={"external_gateway_info": {}},
                tagged=True, busy=frozenset({"BUILD", "PENDING_CREATE", "ALLOCATING"}),
            ),
            cloud,
        ),
        RouterInterfaceType(ROUTER_INTERFACE, routers, cloud),
        RouteType(EXTRA_ROUTE_SET, routers, cloud),
        RouteType(EXTRA_ROUTE, routers, cloud),
        FloatingIpType(
            FLOATING_IP,
            ObjectRow(
                *addresses,
                fields={"floating_network": "floating_network_id", "floating_subnet": "subnet_id"},
                lookups=floating, named=False,
            ),
            cloud,
        ),
        AssociationType(
            FLOATING_IP_ASSOCIATION,
            ObjectRow(*addresses, lookups={"port_id": PORTS}, named=False, marked=False),
            cloud,
        ),
        PortForwardType(
            PORT_FORWARD,
            ObjectRow(
                "port forwarding", NETWORK, "/floatingips/{floating_ip}/port_forwardings",
                "port_forwarding", "port_forwardings",
                fields={"internal_port": "internal_port_id",
                        "internal_port_number": "internal_port"},
                lookups={"floating_ip": FLOATING_IPS, "internal_port": PORTS},
                named=False, marked=False,
            ),
            cloud,
        ),
    ]  # fmt: skip
