"""Resource types of software: configs, their deployments to servers, and the servers."""

from engine.types.contract import ResourceType
from engine.types.object_signals import NO_SERVICES, SignalServices
from engine.types.software.configs import (
    CloudConfig,
    SoftwareComponent,
    SoftwareConfig,
    StructuredConfig,
)
from engine.types.software.deployed_server import DeployedServer, ServerTransport, ServerUrls
from engine.types.software.deployment import SoftwareDeployment, StructuredDeployment
from engine.types.software.deployment_group import deployment_groups
from engine.types.software.metadata_objects import NO_METADATA_SERVICES, MetadataServices
from engine.types.software.multipart import MultipartMime
from engine.types.software.software_store import SoftwareStore

__all__ = ["ServerUrls", "SoftwareStore", "software_types"]


def software_types(
    software_store: SoftwareStore,
    servers: ServerUrls,
    services: SignalServices = NO_SERVICES,
    metadata_services: MetadataServices = NO_METADATA_SERVICES,
) -> list[ResourceType]:
    """The software types. servers: the metadata URLs of servers. services: that servers can send
    signals to. metadata_services: that can have the metadata of servers."""
    configs = (SoftwareConfig, StructuredConfig, CloudConfig, SoftwareComponent, MultipartMime)
    deployments = (SoftwareDeployment, StructuredDeployment)
    return [
        *(type_(software_store) for type_ in configs),
        *(type_(software_store, services) for type_ in deployments),
        DeployedServer(ServerTransport(servers, software_store, metadata_services)),
        *deployment_groups(services.transports),
    ]
