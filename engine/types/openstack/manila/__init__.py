"""The resource types of Manila."""

from engine.types.contract import ResourceType
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.manila.lookups import constraints
from engine.types.openstack.manila.security_service import SecurityService
from engine.types.openstack.manila.share import Share
from engine.types.openstack.manila.share_network import ShareNetwork
from engine.types.openstack.manila.share_type import ShareType


def manila_types(cloud: Cloud) -> list[ResourceType]:
    """The types; the first one has the custom constraints of all."""
    types: list[ResourceType] = [
        Share(cloud),
        ShareNetwork(cloud),
        ShareType(cloud),
        SecurityService(cloud),
    ]
    types[0].constraints = constraints(cloud)
    return types
