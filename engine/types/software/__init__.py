"""Resource types of software: configs, their deployments to servers, and the servers."""

from engine.types.contract import ResourceType
from engine.types.software.configs import (
    CloudConfig,
    SoftwareComponent,
    SoftwareConfig,
    StructuredConfig,
)
from engine.types.software.deployed_server import DeployedServer
from engine.types.software.deployment import SoftwareDeployment, StructuredDeployment
from engine.types.software.deployment_group import deployment_groups
from engine.types.software.multipart import MultipartMime
from engine.types.software.server_metadata_urls import ServerUrls
from engine.types.software.software_store import SoftwareKeeper

__all__ = ["ServerUrls", "SoftwareKeeper", "software_types"]


def software_types(keeper: SoftwareKeeper, servers: ServerUrls) -> list[ResourceType]:
    """servers: where servers ask what is deployed to them."""
    configs = (SoftwareConfig, StructuredConfig, CloudConfig, SoftwareComponent, MultipartMime)
    deployments = (SoftwareDeployment, StructuredDeployment)
    own = [*(type_(keeper) for type_ in (*configs, *deployments)), DeployedServer(servers)]
    return [*own, *deployment_groups()]
