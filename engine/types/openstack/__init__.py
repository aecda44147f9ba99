"""The resource types OS::* and AWS::EC2::*: objects of OpenStack services, with the requester's
token.

- `cloud.py`: the client. `Cloud.session(call)` sends requests as the requester;
  `Cloud.observer_session(call)` observes, with the operator's reader credential or that of the
  project's owner, and exists only with `Cloud.can_observe`. `Cloud.reader_session(region)` is for
  completions, and exists only with `Cloud.has_reader`.
- `services.py`: the services, with the microversions that the types need.
- `service_errors.py`: errors with the services' own messages (`CloudError`).
- `names.py`: names become IDs (`Lookup`), and custom constraints (`ObjectConstraint`).
- `object_type.py`: a type that a table row describes (`ObjectRow`, `ObjectType`). Types with rules
  of their own override its methods.

Each service has a module or package with a function that returns its types, such as
``neutron_types(cloud)``; `openstack_types` lists them. A type puts its custom constraints in
`ResourceType.constraints`; a constraint that several types need is one object, in one of them.
"""

from engine.types.contract import ResourceType
from engine.types.openstack.aodh import aodh_types
from engine.types.openstack.aws import aws_types
from engine.types.openstack.barbican import barbican_types
from engine.types.openstack.cinder import cinder_types
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.designate import designate_types
from engine.types.openstack.former_types import former_types
from engine.types.openstack.glance import glance_types
from engine.types.openstack.keystone import keystone_types
from engine.types.openstack.magnum import magnum_types
from engine.types.openstack.manila import manila_types
from engine.types.openstack.mistral import mistral_types
from engine.types.openstack.neutron import neutron_types
from engine.types.openstack.nova import nova_types
from engine.types.openstack.octavia import octavia_types
from engine.types.openstack.swift import swift_types
from engine.types.openstack.trove import trove_types
from engine.types.openstack.zaqar import zaqar_types
from engine.types.software import ServerUrls, SoftwareStore
from engine.types.software.deployed_server import ServerTransport
from engine.types.software.metadata_objects import NO_METADATA_SERVICES, MetadataServices


def openstack_types(
    cloud: Cloud,
    software_store: SoftwareStore,
    servers: ServerUrls,
    metadata_services: MetadataServices = NO_METADATA_SERVICES,
) -> list[ResourceType]:
    """The types of all services of a cloud. servers: the metadata URLs of servers.
    metadata_services: that can have the metadata of servers."""
    transport = ServerTransport(servers, software_store, metadata_services)
    core = [
        *neutron_types(cloud),
        *nova_types(cloud, software_store, transport),
        *cinder_types(cloud),
    ]
    return [
        *core,
        *aws_types(cloud, core),
        *former_types(cloud, core),
        *glance_types(cloud),
        *keystone_types(cloud),
        *octavia_types(cloud),
        *swift_types(cloud),
        *barbican_types(cloud),
        *designate_types(cloud),
        *magnum_types(cloud),
        *manila_types(cloud),
        *mistral_types(cloud),
        *trove_types(cloud),
        *zaqar_types(cloud),
        *aodh_types(cloud),
    ]
