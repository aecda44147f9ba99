"""The schemas of the types AWS::EC2::*, as in Heat."""

from collections.abc import Mapping
from typing import Final

from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    ImplicitDependency,
    Kind,
    Property,
    TypeSchema,
    updatable,
)
from engine.types.openstack.neutron.lookups import between, custom, one_of

_PAIR: Final[Mapping[str, Property]] = {
    "Key": Property(Kind.STRING, "The key.", required=True),
    "Value": Property(Kind.STRING, "The value.", required=True),
}
_ANY_PAIR: Final = Property(Kind.MAP, "A key and a value.", fields=_PAIR)
_UNUSED_TAGS: Final = Property(Kind.LIST, "Not implemented, as in Heat.", items=_ANY_PAIR)
_TAGS: Final = "Keys and values in the metadata of the {}."

INSTANCE: Final = TypeSchema(
    "AWS::EC2::Instance",
    description="A server, with the properties of an instance of Amazon EC2.",
    properties={
        "ImageId": Property(
            Kind.STRING,
            "Name or ID of the image.",
            required=True,
            constraints=custom("glance.image"),
        ),
        "InstanceType": updatable(
            Kind.STRING,
            "Name or ID of the flavor. A change resizes the server.",
            required=True,
            constraints=custom("nova.flavor"),
        ),
        "KeyName": Property(
            Kind.STRING, "Name of the key pair.", constraints=custom("nova.keypair")
        ),
        "AvailabilityZone": Property(Kind.STRING, "Availability zone."),
        "SecurityGroups": Property(Kind.LIST, "Names or IDs of security groups."),
        "SecurityGroupIds": Property(Kind.LIST, "IDs of further security groups."),
        "NetworkInterfaces": updatable(
            Kind.LIST,
            "IDs of ports, or maps of NetworkInterfaceId and DeviceIndex. They replace SubnetId.",
        ),
        "SubnetId": updatable(Kind.STRING, "ID of the subnet in which the server gets a port."),
        "Tags": updatable(Kind.LIST, _TAGS.format("server"), items=_ANY_PAIR),
        "NovaSchedulerHints": Property(Kind.LIST, "Hints for the scheduler.", items=_ANY_PAIR),
        "UserData": Property(Kind.STRING, "User data."),
        "Volumes": Property(
            Kind.LIST,
            "Volumes to attach.",
            default=[],
            items=Property(
                Kind.MAP,
                "A volume.",
                fields={
                    "Device": Property(Kind.STRING, "Device name.", required=True),
                    "VolumeId": Property(
                        Kind.STRING,
                        "Name or ID of the volume.",
                        required=True,
                        constraints=custom("cinder.volume"),
                    ),
                },
            ),
        ),
        "BlockDeviceMappings": Property(
            Kind.LIST,
            "Volumes to create from snapshots.",
            items=Property(
                Kind.MAP,
                "A volume.",
                fields={
                    "DeviceName": Property(Kind.STRING, "Device name.", required=True),
                    "Ebs": Property(
                        Kind.MAP,
                        "The volume.",
                        fields={
                            "DeleteOnTermination": Property(
                                Kind.BOOLEAN, "Whether it is deleted with the server.", default=True
                            ),
                            "Iops": Property(Kind.NUMBER, "Not implemented, as in Heat."),
                            "SnapshotId": Property(
                                Kind.STRING,
                                "Name or ID of the snapshot.",
                                constraints=custom("cinder.snapshot"),
                            ),
                            "VolumeSize": Property(Kind.STRING, "Size in GiB."),
                            "VolumeType": Property(Kind.STRING, "Not implemented, as in Heat."),
                        },
                    ),
                    "NoDevice": Property(Kind.MAP, "Not implemented, as in Heat."),
                    "VirtualName": Property(Kind.STRING, "Not implemented, as in Heat."),
                },
            ),
        ),
    },
    attributes={
        "AvailabilityZone": Attribute(Kind.STRING, "Availability zone of the server."),
        "PrivateDnsName": Attribute(Kind.STRING, "Its first address."),
        "PublicDnsName": Attribute(Kind.STRING, "Its first address."),
        "PrivateIp": Attribute(Kind.STRING, "Its first address."),
        "PublicIp": Attribute(Kind.STRING, "Its first address."),
    },
)

VOLUME: Final = TypeSchema(
    "AWS::EC2::Volume",
    description="A volume, with the properties of a volume of Amazon EC2.",
    snapshots=True,
    properties={
        "AvailabilityZone": Property(
            Kind.STRING, "Availability zone.", required=True, immutable=True
        ),
        "Size": Property(Kind.INTEGER, "Size in GiB.", immutable=True, constraints=between(1)),
        "SnapshotId": Property(
            Kind.STRING,
            "ID of the backup that it is restored from.",
            immutable=True,
            constraints=custom("cinder.backup"),
        ),
        "Tags": Property(Kind.LIST, _TAGS.format("volume"), immutable=True, items=_ANY_PAIR),
    },
)

VOLUME_ATTACHMENT: Final = TypeSchema(
    "AWS::EC2::VolumeAttachment",
    description="Attaches a volume to a server.",
    properties={
        "InstanceId": Property(
            Kind.STRING,
            "ID of the server.",
            required=True,
            immutable=True,
            constraints=custom("nova.server"),
        ),
        "VolumeId": Property(
            Kind.STRING,
            "ID of the volume.",
            required=True,
            immutable=True,
            constraints=custom("cinder.volume"),
        ),
        "Device": Property(
            Kind.STRING,
            "Device name. Hypervisors may choose another one.",
            required=True,
            immutable=True,
            constraints=(Constraint("allowed_pattern", pattern="/dev/vd[b-z]"),),
        ),
    },
)


def _rules(direction: str) -> Property:
    return updatable(
        Kind.LIST,
        f"Rules for {direction} traffic.",
        items=Property(
            Kind.MAP,
            "A rule.",
            fields={
                "CidrIp": Property(Kind.STRING, "The other side, in CIDR form."),
                "FromPort": Property(Kind.STRING, "First port, or the ICMP type; -1: any."),
                "ToPort": Property(Kind.STRING, "Last port, or the ICMP code; -1: any."),
                "IpProtocol": Property(Kind.STRING, "IP protocol, by name or number; -1: any."),
                "SourceSecurityGroupId": Property(Kind.STRING, "ID of the other side's group."),
                "SourceSecurityGroupName": Property(Kind.STRING, "Name of the other side's group."),
                "SourceSecurityGroupOwnerId": Property(Kind.STRING, "Not implemented, as in Heat."),
            },
        ),
    )


SECURITY_GROUP: Final = TypeSchema(
    "AWS::EC2::SecurityGroup",
    description="A security group, with rules of IPv4.",
    properties={
        "GroupDescription": Property(Kind.STRING, "Description.", required=True),
        "VpcId": Property(Kind.STRING, "No effect, as in Heat."),
        "SecurityGroupIngress": _rules("incoming"),
        "SecurityGroupEgress": _rules("outgoing"),
    },
)

NETWORK_INTERFACE: Final = TypeSchema(
    "AWS::EC2::NetworkInterface",
    description="A port in a subnet.",
    properties={
        "Description": Property(Kind.STRING, "No effect, as in Heat."),
        "GroupSet": updatable(
            Kind.LIST, "Names or IDs of security groups; the default is the group `default`."
        ),
        "PrivateIpAddress": Property(Kind.STRING, "Its address."),
        "SubnetId": Property(
            Kind.STRING, "ID of the subnet.", required=True, constraints=custom("neutron.subnet")
        ),
        "Tags": _UNUSED_TAGS,
    },
    attributes={"PrivateIpAddress": Attribute(Kind.STRING, "Its address.")},
)

EIP: Final = TypeSchema(
    "AWS::EC2::EIP",
    description="A floating IP of the only external network.",
    properties={
        "Domain": Property(Kind.STRING, "No effect, as in Heat.", constraints=one_of("vpc")),
        "InstanceId": updatable(
            Kind.STRING, "ID of the server that gets it.", constraints=custom("nova.server")
        ),
    },
    attributes={"AllocationId": Attribute(Kind.STRING, "ID of the floating IP.")},
)

EIP_ASSOCIATION: Final = TypeSchema(
    "AWS::EC2::EIPAssociation",
    description="Connects a floating IP with a server or port.",
    properties={
        "InstanceId": updatable(
            Kind.STRING, "ID of the server.", constraints=custom("nova.server")
        ),
        "EIP": updatable(Kind.STRING, "Address of the floating IP.", constraints=custom("ip_addr")),
        "AllocationId": updatable(Kind.STRING, "ID of the floating IP; or give EIP."),
        "NetworkInterfaceId": updatable(Kind.STRING, "ID of the port; or give InstanceId."),
    },
)

VPC: Final = TypeSchema(
    "AWS::EC2::VPC",
    description="A network, and a router of the same name.",
    properties={
        "CidrBlock": Property(Kind.STRING, "No effect, as in Heat."),
        "Tags": _UNUSED_TAGS,
    },
)

SUBNET: Final = TypeSchema(
    "AWS::EC2::Subnet",
    description="A subnet of a VPC, connected with its router.",
    properties={
        "AvailabilityZone": Property(Kind.STRING, "Shown as the attribute."),
        "CidrBlock": Property(Kind.STRING, "Addresses in CIDR form.", required=True),
        "VpcId": Property(Kind.STRING, "ID of the VPC.", required=True),
        "Tags": _UNUSED_TAGS,
    },
    attributes={"AvailabilityZone": Attribute(Kind.STRING, "The property of this name.")},
)

INTERNET_GATEWAY: Final = TypeSchema(
    "AWS::EC2::InternetGateway",
    description="Stands for the external network.",
    properties={"Tags": _UNUSED_TAGS},
)

GATEWAY_ATTACHMENT: Final = TypeSchema(
    "AWS::EC2::VPCGatewayAttachment",
    description="Connects the route tables of a VPC with the only external network.",
    follows=(ImplicitDependency("AWS::EC2::RouteTable", "VpcId", "VpcId"),),
    properties={
        "VpcId": updatable(Kind.STRING, "ID of the VPC.", required=True),
        "InternetGatewayId": updatable(Kind.STRING, "No effect, as in Heat."),
    },
)

ROUTE_TABLE: Final = TypeSchema(
    "AWS::EC2::RouteTable",
    description="A router for subnets of a VPC.",
    properties={
        "VpcId": Property(Kind.STRING, "ID of the VPC.", required=True),
        "Tags": _UNUSED_TAGS,
    },
)

ROUTE_TABLE_ASSOCIATION: Final = TypeSchema(
    "AWS::EC2::SubnetRouteTableAssociation",
    description="Connects a subnet with a route table, in place of the router of its VPC.",
    properties={
        "RouteTableId": Property(Kind.STRING, "ID of the route table.", required=True),
        "SubnetId": Property(
            Kind.STRING, "ID of the subnet.", required=True, constraints=custom("neutron.subnet")
        ),
    },
)
