"""The resource types of Keystone. Most need the rights of an administrator."""

from engine.types.contract import ResourceType
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.keystone.catalog import catalog_types
from engine.types.openstack.keystone.identities import identity_types
from engine.types.openstack.keystone.lookups import identity_constraints
from engine.types.openstack.keystone.role_assignments import role_assignment_types
from engine.types.openstack.region_constraint import RegionConstraint


def keystone_types(cloud: Cloud) -> list[ResourceType]:
    """The types; the first one has the custom constraints of all."""
    types = [*identity_types(cloud), *catalog_types(cloud), *role_assignment_types(cloud)]
    types[0].constraints = (*identity_constraints(cloud), RegionConstraint(cloud))
    return types
