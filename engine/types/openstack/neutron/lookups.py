"""The collections of Neutron whose objects templates name, and the constraints on such names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from engine.hot.schema.type_schema import Constraint
from engine.types.openstack.cloud import Cloud, Session
from engine.types.openstack.names import Lookup, ObjectConstraint
from engine.types.openstack.services import IDENTITY, NETWORK
from engine.words import Json

NETWORKS: Final = Lookup("network", NETWORK, "/networks", "networks")
SUBNETS: Final = Lookup("subnet", NETWORK, "/subnets", "subnets")
PORTS: Final = Lookup("port", NETWORK, "/ports", "ports")
ROUTERS: Final = Lookup("router", NETWORK, "/routers", "routers")
SECURITY_GROUPS: Final = Lookup("security_group", NETWORK, "/security-groups", "security_groups")
QOS_POLICIES: Final = Lookup("policy", NETWORK, "/qos/policies", "policies")
SUBNET_POOLS: Final = Lookup("subnetpool", NETWORK, "/subnetpools", "subnetpools")
ADDRESS_SCOPES: Final = Lookup("address_scope", NETWORK, "/address-scopes", "address_scopes")
SEGMENTS: Final = Lookup("segment", NETWORK, "/segments", "segments")
METERING_LABELS: Final = Lookup(
    "metering_label", NETWORK, "/metering/metering-labels", "metering_labels"
)
PROJECTS: Final = Lookup("project", IDENTITY, "/projects", "projects")


@dataclass(frozen=True, slots=True)
class FloatingIpLookup(Lookup):
    """Floating IPs have no names; their addresses stand for them."""

    async def find_named(self, session: Session, name: str) -> Sequence[Mapping[str, Json]]:
        return await session.list(self.service, self.path, self.key, {"floating_ip_address": name})

    def name_of(self, found: Mapping[str, Json]) -> str:
        return str(found.get("floating_ip_address") or "")


FLOATING_IPS: Final = FloatingIpLookup("floatingip", NETWORK, "/floatingips", "floatingips")

#: Custom constraints by name.
CONSTRAINTS: Final[Mapping[str, Lookup]] = {
    "neutron.network": NETWORKS,
    "neutron.subnet": SUBNETS,
    "neutron.port": PORTS,
    "neutron.router": ROUTERS,
    "neutron.security_group": SECURITY_GROUPS,
    "neutron.qos_policy": QOS_POLICIES,
    "neutron.subnetpool": SUBNET_POOLS,
    "neutron.address_scope": ADDRESS_SCOPES,
    "neutron.segment": SEGMENTS,
}


def object_constraints(cloud: Cloud) -> list[ObjectConstraint]:
    return [ObjectConstraint(name, lookup, cloud) for name, lookup in CONSTRAINTS.items()]


def custom(name: str) -> tuple[Constraint, ...]:
    return (Constraint("custom_constraint", name=name),)


def between(low: int | None = None, high: int | None = None) -> tuple[Constraint, ...]:
    return (Constraint("range", min=low, max=high),)


def one_of(*values: Json) -> tuple[Constraint, ...]:
    return (Constraint("allowed_values", allowed=values),)
