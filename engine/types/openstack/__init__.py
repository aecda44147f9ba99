"""The OS::* resource types: objects of OpenStack services, with the requester's token."""

from engine.types.contract import ResourceType
from engine.types.openstack.cloud import Cloud


def openstack_types(cloud: Cloud) -> list[ResourceType]:
    """The types of all services of a cloud."""
    return []
