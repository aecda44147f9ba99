"""The resource types of Designate."""

from engine.types.contract import ResourceType
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.designate.dns_types import RecordSet, Zone
from engine.types.openstack.designate.lookups import zone_constraint


def designate_types(cloud: Cloud) -> list[ResourceType]:
    """The types; the first one has the custom constraint of all."""
    types: list[ResourceType] = [Zone(cloud), RecordSet(cloud)]
    types[0].constraints = (zone_constraint(cloud),)
    return types
