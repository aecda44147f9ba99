"""The types of Neutron."""

from engine.types.contract import ResourceType
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.neutron.lookups import object_constraints
from engine.types.openstack.neutron.networks import network_types
from engine.types.openstack.neutron.policies import policy_types
from engine.types.openstack.neutron.ports import port_types
from engine.types.openstack.neutron.routers import router_types
from engine.types.openstack.neutron.security_groups import security_group_types


def neutron_types(cloud: Cloud) -> list[ResourceType]:
    """The types; the first one has the custom constraints of all."""
    types = [
        *network_types(cloud),
        *port_types(cloud),
        *security_group_types(cloud),
        *router_types(cloud),
        *policy_types(cloud),
    ]
    types[0].constraints = tuple(object_constraints(cloud))
    return types
