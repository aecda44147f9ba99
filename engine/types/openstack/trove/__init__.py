"""The resource types of Trove."""

from engine.types.contract import ResourceType
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.names import ObjectConstraint
from engine.types.openstack.trove.cluster import DatabaseCluster
from engine.types.openstack.trove.instance import DatabaseInstance
from engine.types.openstack.trove.lookups import FLAVORS


def trove_types(cloud: Cloud) -> list[ResourceType]:
    """The types; the first one has the custom constraint of all."""
    types: list[ResourceType] = [DatabaseInstance(cloud), DatabaseCluster(cloud)]
    types[0].constraints = (ObjectConstraint("trove.flavor", FLAVORS, cloud),)
    return types
