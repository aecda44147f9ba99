"""The types AWS::EC2::*: those of OpenStack, with the properties of Amazon's."""

from collections.abc import Sequence

from engine.types.contract import ResourceType
from engine.types.openstack.aws import schema
from engine.types.openstack.aws.addresses import ElasticIp, ElasticIpAssociation
from engine.types.openstack.aws.instance import Instance
from engine.types.openstack.aws.network_interface import NetworkInterface
from engine.types.openstack.aws.security_group import Ec2SecurityGroup
from engine.types.openstack.aws.volumes import Ec2Volume, Ec2VolumeAttachment
from engine.types.openstack.aws.vpc import (
    Ec2Subnet,
    GatewayAttachment,
    InternetGateway,
    RouteTable,
    RouteTableAssociation,
    Vpc,
)
from engine.types.openstack.cloud import Cloud


def aws_types(cloud: Cloud, others: Sequence[ResourceType]) -> list[ResourceType]:
    """others: the types of Nova, Neutron and Cinder, which do the work."""
    named = {one.schema.name: one for one in others}
    router = named["OS::Neutron::Router"]
    interface = named["OS::Neutron::RouterInterface"]
    floating, connected = "OS::Neutron::FloatingIP", "OS::Neutron::FloatingIPAssociation"
    return [
        Instance(schema.INSTANCE, named["OS::Nova::Server"], cloud),
        Ec2Volume(schema.VOLUME, named["OS::Cinder::Volume"], cloud),
        Ec2VolumeAttachment(schema.VOLUME_ATTACHMENT, named["OS::Cinder::VolumeAttachment"], cloud),
        Ec2SecurityGroup(schema.SECURITY_GROUP, named["OS::Neutron::SecurityGroup"], cloud),
        NetworkInterface(schema.NETWORK_INTERFACE, named["OS::Neutron::Port"], cloud),
        ElasticIp(schema.EIP, named[floating], cloud),
        ElasticIpAssociation(schema.EIP_ASSOCIATION, named[connected], cloud),
        Vpc(schema.VPC, named["OS::Neutron::Net"], cloud, router),
        Ec2Subnet(schema.SUBNET, named["OS::Neutron::Subnet"], cloud),
        RouteTable(schema.ROUTE_TABLE, router, cloud),
        RouteTableAssociation(schema.ROUTE_TABLE_ASSOCIATION, interface, cloud),
        InternetGateway(),
        GatewayAttachment(cloud),
    ]
