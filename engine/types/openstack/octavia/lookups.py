"""The collections of Octavia whose objects templates name, and the constraints on such names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from engine.types.openstack.cloud import Cloud, id_of
from engine.types.openstack.names import Lookup, ObjectConstraint
from engine.types.openstack.services import LOAD_BALANCER
from engine.words import Json


@dataclass(frozen=True, slots=True)
class _ZoneLookup(Lookup):
    """Availability zones have no IDs; their names stand for them."""

    def id_of(self, found: Mapping[str, Json]) -> str:
        return id_of(self.service, found, "name")


LOAD_BALANCERS: Final = Lookup(
    "loadbalancer", LOAD_BALANCER, "/lbaas/loadbalancers", "loadbalancers"
)
LISTENERS: Final = Lookup("listener", LOAD_BALANCER, "/lbaas/listeners", "listeners")
POOLS: Final = Lookup("pool", LOAD_BALANCER, "/lbaas/pools", "pools")
L7_POLICIES: Final = Lookup("l7policy", LOAD_BALANCER, "/lbaas/l7policies", "l7policies")
FLAVORS: Final = Lookup("flavor", LOAD_BALANCER, "/lbaas/flavors", "flavors")
FLAVOR_PROFILES: Final = Lookup(
    "flavorprofile", LOAD_BALANCER, "/lbaas/flavorprofiles", "flavorprofiles"
)
ZONES: Final = _ZoneLookup(
    "availability zone", LOAD_BALANCER, "/lbaas/availabilityzones", "availability_zones"
)
ZONE_PROFILES: Final = Lookup(
    "availability zone profile",
    LOAD_BALANCER,
    "/lbaas/availabilityzoneprofiles",
    "availability_zone_profiles",
)

#: Custom constraints by name.
CONSTRAINTS: Final[Mapping[str, Lookup]] = {
    "octavia.loadbalancer": LOAD_BALANCERS,
    "octavia.listener": LISTENERS,
    "octavia.pool": POOLS,
    "octavia.l7policy": L7_POLICIES,
    "octavia.flavor": FLAVORS,
    "octavia.flavorprofile": FLAVOR_PROFILES,
    "octavia.availabilityzone": ZONES,
    "octavia.availabilityzoneprofile": ZONE_PROFILES,
}


def load_balancing_constraints(cloud: Cloud) -> list[ObjectConstraint]:
    return [ObjectConstraint(name, lookup, cloud) for name, lookup in CONSTRAINTS.items()]
