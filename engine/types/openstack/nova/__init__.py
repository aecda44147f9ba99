"""The resource types of Nova."""

from engine.types.contract import ResourceType
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.nova.flavor import Flavor
from engine.types.openstack.nova.host_aggregate import HostAggregate
from engine.types.openstack.nova.key_pair import KeyPair
from engine.types.openstack.nova.schema import QUOTA
from engine.types.openstack.nova.server import Server
from engine.types.openstack.nova.server_group import ServerGroup
from engine.types.openstack.quota import Quota
from engine.types.openstack.services import COMPUTE
from engine.types.software import SoftwareStore
from engine.types.software.deployed_server import ServerTransport

#: The newest version of Nova's API that has all limits of the schema.
QUOTA_VERSION = "compute 2.35"


def nova_types(
    cloud: Cloud, software_store: SoftwareStore, transport: ServerTransport
) -> list[ResourceType]:
    """transport: how the agents in servers get their metadata."""
    return [
        Server(cloud, software_store, transport),
        KeyPair(cloud),
        ServerGroup(cloud),
        Flavor(cloud),
        HostAggregate(cloud),
        Quota(QUOTA, COMPUTE, cloud, QUOTA_VERSION),
    ]
