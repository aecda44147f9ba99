"""Resource types of software: configs, their deployments to servers, and the servers."""

from engine.types.contract import ResourceType
from engine.types.software.configs import (
    CloudConfig,
    SoftwareComponent,
    SoftwareConfig,
    StructuredConfig,
)
from engine.types.software.deployment import SoftwareDeployment, StructuredDeployment
from engine.types.software.keeper import SoftwareKeeper
from engine.types.software.multipart import MultipartMime

__all__ = ["SoftwareKeeper", "software_types"]


def software_types(keeper: SoftwareKeeper) -> list[ResourceType]:
    configs = (SoftwareConfig, StructuredConfig, CloudConfig, SoftwareComponent, MultipartMime)
    deployments = (SoftwareDeployment, StructuredDeployment)
    return [type_(keeper) for type_ in (*configs, *deployments)]
