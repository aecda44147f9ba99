"""The types of Octavia."""

from engine.types.contract import ResourceType
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.octavia.flavors import flavor_types
from engine.types.openstack.octavia.load_balancers import load_balancer_types
from engine.types.openstack.octavia.lookups import load_balancing_constraints
from engine.types.openstack.octavia.schema import QUOTA
from engine.types.openstack.quota import Quota
from engine.types.openstack.services import LOAD_BALANCER


def octavia_types(cloud: Cloud) -> list[ResourceType]:
    """The types; the first one has the custom constraints of all."""
    types = [
        *load_balancer_types(cloud),
        *flavor_types(cloud),
        Quota(QUOTA, LOAD_BALANCER, cloud, path="/lbaas/quotas", key="quota"),
    ]
    types[0].constraints = tuple(load_balancing_constraints(cloud))
    return types
