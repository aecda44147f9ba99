"""The resource types of Magnum."""

from engine.types.contract import ResourceType
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.magnum.cluster import Cluster
from engine.types.openstack.magnum.cluster_template import ClusterTemplate
from engine.types.openstack.magnum.lookups import constraints


def magnum_types(cloud: Cloud) -> list[ResourceType]:
    """The types; the first one has the custom constraints of both."""
    types: list[ResourceType] = [ClusterTemplate(cloud), Cluster(cloud)]
    types[0].constraints = constraints(cloud)
    return types
