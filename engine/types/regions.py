"""The region of the cloud in which a stack has its objects.

The environment of a root stack names it, and it holds for its nested stacks. "" stands for the
region that the operator has configured, everywhere.
"""

from collections.abc import Mapping
from typing import Final

from engine.words import Json

#: The custom constraint that the requester's service catalog has a region. The types of OpenStack
#: have it.
REGION_CONSTRAINT: Final = "openstack.region"
#: The region in the definition of an operation that waits for the observer.
_LISTED: Final = "stack_region"


def name_in_region(name: str, region: str) -> str:
    """The name of a list or an endpoint: observations of different regions share none."""
    return f"{name} in {region}" if name and region else name


def service_of(endpoint: str) -> str:
    """What `name_in_region` was given."""
    return endpoint.partition(" in ")[0]


def region_definition(region: str) -> Mapping[str, Json]:
    """What `AcceptedOperation.definition` has of the region of its stack."""
    return {_LISTED: region} if region else {}


def listed_region(definition: Mapping[str, Json]) -> str:
    """The region in which `ResourceType.read_objects` lists objects."""
    return str(definition.get(_LISTED, ""))
