"""Networks and what they consist of: OS::Neutron::Net, ProviderNet, Segment, Subnet, SubnetPool,
AddressScope, RBACPolicy."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from engine.errors import Findings
from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Kind,
    Property,
    TypeSchema,
    updatable,
)
from engine.types.contract import Call, ResourceType
from engine.types.openstack.cloud import Cloud, Session
from engine.types.openstack.live_values import LiveProperties
from engine.types.openstack.neutron.agents import DHCP, set_agents
from engine.types.openstack.neutron.lookups import (
    ADDRESS_SCOPES,
    NETWORKS,
    QOS_POLICIES,
    SEGMENTS,
    SUBNET_POOLS,
    between,
    custom,
    one_of,
)
from engine.types.openstack.neutron.neutron_type import (
    NeutronType,
    UniqueContentType,
)
from engine.types.openstack.object_type import ObjectRow
from engine.types.openstack.services import NETWORK
from engine.words import Json

TAGS: Final = updatable(
    Kind.LIST, "Tags; they replace all others.", items=Property(Kind.STRING, "A tag.")
)
VALUE_SPECS: Final = updatable(
    Kind.MAP, "Further fields of the request, as Neutron's API names them.", default={}
)
TENANT: Final = Property(
    Kind.STRING,
    "ID of the owning project. For one of another project, be an administrator.",
)
NETWORK_TYPES: Final = ("local", "vlan", "vxlan", "gre", "geneve", "flat")


def name_of(what: str) -> Property:
    return updatable(Kind.STRING, f"Name of the {what}; the default is derived from the stack.")


ADMIN_STATE: Final = updatable(Kind.BOOLEAN, "Whether it is up.", default=True)

NET: Final = TypeSchema(
    "OS::Neutron::Net",
    description="A network.",
    properties={
        "name": name_of("network"),
        "value_specs": VALUE_SPECS,
        "admin_state_up": ADMIN_STATE,
        "tenant_id": TENANT,
        "shared": updatable(Kind.BOOLEAN, "Whether all projects may use it.", default=False),
        "dhcp_agent_ids": updatable(
            Kind.LIST, "IDs of the DHCP agents that serve it, for administrators."
        ),
        "port_security_enabled": updatable(Kind.BOOLEAN, "Default of its ports."),
        "qos_policy": updatable(
            Kind.STRING, "Name or ID of a QoS policy.", constraints=custom("neutron.qos_policy")
        ),
        "dns_domain": updatable(
            Kind.STRING, "DNS domain of its ports.", constraints=custom("dns_domain")
        ),
        "availability_zone_hints": Property(Kind.LIST, "Availability zones to prefer."),
        "tags": TAGS,
    },
    attributes={
        "status": Attribute(Kind.STRING, "Status in Neutron."),
        "name": Attribute(Kind.STRING, "Name."),
        "subnets": Attribute(Kind.LIST, "IDs of its subnets."),
        "admin_state_up": Attribute(Kind.STRING, "Whether it is up."),
        "tenant_id": Attribute(Kind.STRING, "ID of the owning project."),
        "port_security_enabled": Attribute(Kind.BOOLEAN, "Default of its ports."),
        "mtu": Attribute(Kind.INTEGER, "Largest packet in bytes."),
        "qos_policy_id": Attribute(Kind.STRING, "ID of its QoS policy."),
        "segments": Attribute(Kind.LIST, "Its segments, for administrators."),
        "l2_adjacency": Attribute(Kind.BOOLEAN, "Whether all its ports share one layer 2 network."),
    },
)

PROVIDER_NET: Final = TypeSchema(
    "OS::Neutron::ProviderNet",
    description="A network on a physical network that the operator has set up.",
    properties={
        "name": name_of("network"),
        "network_type": updatable(
            Kind.STRING, "Kind of network.", required=True, constraints=one_of(*NETWORK_TYPES)
        ),
        "physical_network": updatable(Kind.STRING, "Name of the physical network."),
        "segmentation_id": updatable(Kind.STRING, "ID of the VLAN or tunnel."),
        "router_external": updatable(
            Kind.BOOLEAN, "Whether routers can have their gateway in it.", default=False
        ),
        "admin_state_up": ADMIN_STATE,
        "shared": updatable(Kind.BOOLEAN, "Whether all projects may use it.", default=True),
        "port_security_enabled": updatable(Kind.BOOLEAN, "Default of its ports."),
        "dns_domain": updatable(
            Kind.STRING, "DNS domain of its ports.", constraints=custom("dns_domain")
        ),
        "tenant_id": TENANT,
        "availability_zone_hints": updatable(Kind.LIST, "Availability zones to prefer."),
        "tags": TAGS,
    },
    attributes={
        "status": Attribute(Kind.STRING, "Status in Neutron."),
        "subnets": Attribute(Kind.LIST, "IDs of its subnets."),
        "segments": Attribute(Kind.LIST, "Its segments, for administrators."),
    },
)

_POOL: Final = Property(
    Kind.MAP,
    "A range of addresses.",
    fields={
        "start": Property(
            Kind.STRING, "First address.", required=True, constraints=custom("ip_addr")
        ),
        "end": Property(Kind.STRING, "Last address.", required=True, constraints=custom("ip_addr")),
    },
)
ROUTE: Final = Property(
    Kind.MAP,
    "A route.",
    fields={
        "destination": Property(
            Kind.STRING, "Network in CIDR form.", required=True, constraints=custom("net_cidr")
        ),
        "nexthop": Property(
            Kind.STRING, "Address of the next hop.", required=True, constraints=custom("ip_addr")
        ),
    },
)
_IPV6_MODES: Final = one_of("dhcpv6-stateful", "dhcpv6-stateless", "slaac")

SUBNET: Final = TypeSchema(
    "OS::Neutron::Subnet",
    description="A range of addresses of a network.",
    properties={
        "network": Property(
            Kind.STRING,
            "Name or ID of the network.",
            required=True,
            constraints=custom("neutron.network"),
            former_names=("network_id",),
        ),
        "subnetpool": Property(
            Kind.STRING,
            "Name or ID of a subnet pool that gives the addresses.",
            constraints=custom("neutron.subnetpool"),
        ),
        "prefixlen": Property(
            Kind.INTEGER, "Length of the prefix from the pool.", constraints=between(0)
        ),
        "cidr": Property(Kind.STRING, "Addresses in CIDR form.", constraints=custom("net_cidr")),
        "value_specs": VALUE_SPECS,
        "name": name_of("subnet"),
        "ip_version": Property(Kind.INTEGER, "4 or 6.", default=4, constraints=one_of(4, 6)),
        "dns_nameservers": updatable(Kind.LIST, "Addresses of DNS servers.", default=[]),
        "gateway_ip": updatable(
            Kind.STRING,
            'Address of the gateway. "": no gateway. The default is the first address.',
        ),
        "enable_dhcp": updatable(Kind.BOOLEAN, "Whether DHCP serves it.", default=True),
        "allocation_pools": updatable(Kind.LIST, "Addresses that ports get.", items=_POOL),
        "tenant_id": TENANT,
        "host_routes": updatable(Kind.LIST, "Routes for its hosts.", items=ROUTE),
        "ipv6_ra_mode": Property(
            Kind.STRING, "Mode of IPv6 router advertisements.", constraints=_IPV6_MODES
        ),
        "ipv6_address_mode": Property(
            Kind.STRING, "Mode of IPv6 addresses.", constraints=_IPV6_MODES
        ),
        "segment": updatable(
            Kind.STRING, "Name or ID of a segment.", constraints=custom("neutron.segment")
        ),
        "tags": TAGS,
    },
    attributes={
        "name": Attribute(Kind.STRING, "Name."),
        "network_id": Attribute(Kind.STRING, "ID of the network."),
        "tenant_id": Attribute(Kind.STRING, "ID of the owning project."),
        "allocation_pools": Attribute(Kind.LIST, "Addresses that ports get."),
        "gateway_ip": Attribute(Kind.STRING, "Address of the gateway."),
        "host_routes": Attribute(Kind.LIST, "Routes for its hosts."),
        "ip_version": Attribute(Kind.STRING, "4 or 6."),
        "cidr": Attribute(Kind.STRING, "Addresses in CIDR form."),
        "dns_nameservers": Attribute(Kind.LIST, "Addresses of DNS servers."),
        "enable_dhcp": Attribute(Kind.STRING, "Whether DHCP serves it."),
    },
)

SUBNET_POOL: Final = TypeSchema(
    "OS::Neutron::SubnetPool",
    description="A pool of addresses for subnets.",
    properties={
        "name": name_of("pool"),
        "prefixes": updatable(
            Kind.LIST,
            "Address ranges in CIDR form.",
            required=True,
            items=Property(Kind.STRING, "A range.", constraints=custom("net_cidr")),
            constraints=(Constraint("length", min=1),),
        ),
        "address_scope": updatable(
            Kind.STRING,
            "Name or ID of an address scope.",
            constraints=custom("neutron.address_scope"),
        ),
        "default_quota": updatable(
            Kind.INTEGER, "Addresses of one project at most.", constraints=between(0)
        ),
        "default_prefixlen": updatable(
            Kind.INTEGER, "Length of the prefix of a subnet.", constraints=between(0)
        ),
        "min_prefixlen": updatable(Kind.INTEGER, "Shortest prefix.", constraints=between(0)),
        "max_prefixlen": updatable(Kind.INTEGER, "Longest prefix.", constraints=between(0)),
        "is_default": updatable(
            Kind.BOOLEAN, "Whether it is the default pool of the cloud.", default=False
        ),
        "tenant_id": TENANT,
        "shared": Property(Kind.BOOLEAN, "Whether all projects may use it.", default=False),
        "tags": TAGS,
    },
)

ADDRESS_SCOPE: Final = TypeSchema(
    "OS::Neutron::AddressScope",
    description="A range of addresses that do not overlap, to route between its networks.",
    properties={
        "name": name_of("address scope"),
        "shared": updatable(Kind.BOOLEAN, "Whether all projects may use it.", default=False),
        "tenant_id": Property(
            Kind.STRING, "ID of the owning project.", constraints=custom("keystone.project")
        ),
        "ip_version": Property(Kind.INTEGER, "4 or 6.", default=4, constraints=one_of(4, 6)),
    },
)

SEGMENT: Final = TypeSchema(
    "OS::Neutron::Segment",
    description="A layer 2 segment of a network.",
    properties={
        "network": Property(
            Kind.STRING,
            "Name or ID of the network.",
            required=True,
            constraints=custom("neutron.network"),
        ),
        "network_type": Property(
            Kind.STRING, "Kind of network.", required=True, constraints=one_of(*NETWORK_TYPES)
        ),
        "physical_network": Property(Kind.STRING, "Name of the physical network."),
        "segmentation_id": Property(
            Kind.INTEGER, "ID of the VLAN or tunnel.", constraints=between(1)
        ),
        "name": name_of("segment"),
        "description": updatable(Kind.STRING, "Description."),
    },
)

RBAC_POLICY: Final = TypeSchema(
    "OS::Neutron::RBACPolicy",
    description="Shares an object with another project.",
    properties={
        "object_type": Property(
            Kind.STRING,
            "Kind of the object.",
            required=True,
            constraints=one_of(
                "network", "qos_policy", "security_group", "address_scope", "subnetpool"
            ),
        ),
        "target_tenant": updatable(
            Kind.STRING, "ID of the project that may use it; * for all.", required=True
        ),
        "action": Property(
            Kind.STRING,
            "What the project may do.",
            required=True,
            constraints=one_of("access_as_shared", "access_as_external"),
        ),
        "object_id": Property(Kind.STRING, "ID of the object.", required=True),
        "tenant_id": TENANT,
    },
)


class NetType(NeutronType):
    """Of OS::Neutron::Net and ProviderNet."""

    importable = True

    async def attributes_of(self, session: Session, found: Mapping[str, Json]) -> dict[str, Json]:
        """Only administrators can read segments; for others there are none, as in Heat."""
        attributes = await super().attributes_of(session, found)
        if "provider:network_type" in found:
            query = {"network_id": self.id_of(found)}
            attributes["segments"] = await session.list(NETWORK, "/segments", "segments", query)
        else:
            attributes["segments"] = found.get("segments") or []
        return attributes

    async def users(self, session: Session, path: str, object_id: str) -> Sequence[str]:
        return await self.ports_using(session, {"network_id": object_id})

    async def follow_up(
        self, call: Call, session: Session, path: str, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        wanted = call.properties.get("dhcp_agent_ids") or []
        before = (call.previous or {}).get("dhcp_agent_ids") or []
        if (wanted or before) and self.touches(call, "dhcp_agent_ids"):
            await set_agents(session, DHCP, self.id_of(found), wanted)
        return found


class SubnetType(NeutronType):
    importable = True
    keep_empty = frozenset({"gateway_ip"})

    async def live_properties(
        self, session: Session, found: Mapping[str, Json], imported: Collection[str]
    ) -> LiveProperties:
        """A subnet from a pool has the addresses that it got."""
        live = await super().live_properties(session, found, imported)
        live.reasons.pop("prefixlen", None)
        if live.values.get("subnetpool"):
            live.unread("subnetpool", "the subnet has the addresses that the pool gave it")
        if live.values.get("gateway_ip") is None:
            live.values["gateway_ip"] = ""
        return live

    async def value_of(self, call: Call, session: Session, name: str, value: Json) -> Json:
        if name == "gateway_ip" and value == "":
            return None
        return await super().value_of(call, session, name, value)

    async def fields_for_create(self, call: Call, session: Session) -> dict[str, Json]:
        fields = await super().fields_for_create(call, session)
        if call.properties.get("subnetpool") and not call.properties.get("cidr"):
            fields.pop("cidr", None)
        return fields

    async def fields_for_update(
        self, call: Call, session: Session, names: Collection[str]
    ) -> dict[str, Json]:
        """Removed pools stay as they are: Neutron has no default to return to."""
        given = call.properties
        kept = [one for one in names if one != "allocation_pools" or given.get(one) is not None]
        return await super().fields_for_update(call, session, kept)

    async def users(self, session: Session, path: str, object_id: str) -> Sequence[str]:
        return await self.ports_using(session, {"fixed_ips": f"subnet_id={object_id}"})

    def is_same(self, name: str, desired: Json, observed: Json) -> bool:
        if name == "gateway_ip" and desired == "":
            return observed is None
        return super().is_same(name, desired, observed)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        given = {name for name, value in properties.items() if value is not None}
        for one in ("subnetpool", "prefixlen"):
            if {"cidr", one} <= given:
                reason = f"Cannot define the following properties at the same time: cidr, {one}."
                findings.add(place, reason, "Remove one of them.")
        if properties.get("ip_version", 4) == 4:
            for name in sorted(given & {"ipv6_ra_mode", "ipv6_address_mode"}):
                findings.add(f"{place}.{name}", "needs ip_version: 6", "Remove it, or use IPv6.")
        ra, address = properties.get("ipv6_ra_mode"), properties.get("ipv6_address_mode")
        if isinstance(ra, str) and isinstance(address, str) and ra != address:
            reason = "When both ipv6_ra_mode and ipv6_address_mode are set, they must be equal."
            findings.add(place, reason, "Use the same value, or remove one of them.")


class SubnetPoolType(NeutronType):
    async def users(self, session: Session, path: str, object_id: str) -> Sequence[str]:
        query = {"subnetpool_id": object_id}
        found = await session.list(NETWORK, "/subnets", "subnets", query)
        return [f"subnet {one.get('name') or ''} ({one.get('id')})" for one in found[:5]]


class RbacPolicyType(UniqueContentType):
    def narrow_query(self, fields: Mapping[str, Json]) -> Mapping[str, str]:
        return {"object_id": str(fields["object_id"])}


_QOS: Final = {"qos_policy": QOS_POLICIES}


def network_types(cloud: Cloud) -> list[ResourceType]:
    return [
        NetType(
            NET,
            ObjectRow(
                "network", NETWORK, "/networks", "network", "networks",
                fields={"qos_policy": "qos_policy_id"}, lookups=_QOS,
                separate=frozenset({"dhcp_agent_ids"}),
                cleared={"port_security_enabled": True, "dns_domain": ""}, tagged=True,
            ),
            cloud,
        ),
        NetType(
            PROVIDER_NET,
            ObjectRow(
                "network", NETWORK, "/networks", "network", "networks",
                fields={
                    "network_type": "provider:network_type",
                    "physical_network": "provider:physical_network",
                    "segmentation_id": "provider:segmentation_id",
                    "router_external": "router:external",
                },
                cleared={"port_security_enabled": True, "dns_domain": ""}, tagged=True,
            ),
            cloud,
        ),
        SubnetType(
            SUBNET,
            ObjectRow(
                "subnet", NETWORK, "/subnets", "subnet", "subnets",
                fields={"network": "network_id", "subnetpool": "subnetpool_id",
                        "segment": "segment_id"},
                lookups={"network": NETWORKS, "subnetpool": SUBNET_POOLS, "segment": SEGMENTS},
                cleared={"host_routes": [], "dns_nameservers": []}, tagged=True,
            ),
            cloud,
        ),
        SubnetPoolType(
            SUBNET_POOL,
            ObjectRow(
                "subnet pool", NETWORK, "/subnetpools", "subnetpool", "subnetpools",
                fields={"address_scope": "address_scope_id"},
                lookups={"address_scope": ADDRESS_SCOPES}, tagged=True,
            ),
            cloud,
        ),
        NeutronType(
            ADDRESS_SCOPE,
            ObjectRow(
                "address scope", NETWORK, "/address-scopes", "address_scope", "address_scopes",
                marked=False,
            ),
            cloud,
        ),
        NeutronType(
            SEGMENT,
            ObjectRow(
                "segment", NETWORK, "/segments", "segment", "segments",
                fields={"network": "network_id"}, lookups={"network": NETWORKS},
            ),
            cloud,
        ),
        RbacPolicyType(
            RBAC_POLICY,
            ObjectRow(
                "RBAC policy", NETWORK, "/rbac-policies", "rbac_policy", "rbac_policies",
                named=False, marked=False,
            ),
            cloud,
        ),
    ]  # fmt: skip
