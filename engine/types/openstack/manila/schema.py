"""The schemas of the types of Manila, as Heat has them."""

from typing import Final

from engine.hot.schema.type_schema import Attribute, Kind, Property, TypeSchema, updatable
from engine.types.openstack.neutron.lookups import custom, one_of

SHARE: Final = TypeSchema(
    "OS::Manila::Share",
    description="A shared file system.",
    properties={
        "share_protocol": Property(
            Kind.STRING,
            "Protocol with which clients mount the share.",
            required=True,
            constraints=one_of("NFS", "CIFS", "GlusterFS", "HDFS", "CEPHFS"),
        ),
        "size": Property(Kind.INTEGER, "Size in GiB.", required=True),
        "snapshot": Property(
            Kind.STRING,
            "Name or ID of the snapshot that the share is created from.",
            constraints=custom("manila.share_snapshot"),
        ),
        "name": updatable(
            Kind.STRING,
            "Name of the share; by default derived from the names of the stack and the resource.",
        ),
        "metadata": updatable(Kind.MAP, "Keys and values of the share."),
        "share_network": Property(
            Kind.STRING,
            "Name or ID of the share network.",
            constraints=custom("manila.share_network"),
        ),
        "description": updatable(Kind.STRING, "Description."),
        "share_type": Property(
            Kind.STRING,
            "Name or ID of the share type; by default that of the cloud.",
            constraints=custom("manila.share_type"),
        ),
        "is_public": updatable(Kind.BOOLEAN, "Whether all projects see the share.", default=False),
        "access_rules": updatable(
            Kind.LIST,
            "Who may mount the share.",
            default=[],
            items=Property(
                Kind.MAP,
                "Rule.",
                fields={
                    "access_to": Property(
                        Kind.STRING, "Address, range of addresses, or user.", required=True
                    ),
                    "access_type": Property(
                        Kind.STRING,
                        "What access_to is.",
                        required=True,
                        constraints=one_of("ip", "user", "cert", "cephx"),
                    ),
                    "access_level": Property(
                        Kind.STRING,
                        "Read-only or read and write; by default, Manila chooses rw.",
                        constraints=one_of("ro", "rw"),
                    ),
                },
            ),
        ),
    },
    attributes={
        "availability_zone": Attribute(Kind.STRING, "Availability zone."),
        "host": Attribute(Kind.STRING, "Host and back end of the share."),
        "export_locations": Attribute(Kind.LIST, "Paths with which clients mount the share."),
        "share_server_id": Attribute(Kind.STRING, "ID of the server that exports the share."),
        "created_at": Attribute(Kind.STRING, "Time of creation.", public=True),
        "status": Attribute(Kind.STRING, "Status.", public=True),
        "project_id": Attribute(Kind.STRING, "ID of the project.", public=True),
    },
)
SHARE_NETWORK: Final = TypeSchema(
    "OS::Manila::ShareNetwork",
    description="A network for share servers.",
    properties={
        "name": updatable(
            Kind.STRING,
            "Name; by default derived from the names of the stack and the resource.",
        ),
        "neutron_network": updatable(
            Kind.STRING,
            "Name or ID of the network; by default that of the subnet.",
            constraints=custom("neutron.network"),
        ),
        "neutron_subnet": updatable(
            Kind.STRING, "Name or ID of the subnet.", constraints=custom("neutron.subnet")
        ),
        "description": updatable(Kind.STRING, "Description."),
        "security_services": updatable(
            Kind.LIST,
            "Security services of the share servers.",
            default=[],
            items=Property(Kind.STRING, "Name or ID of a security service."),
        ),
    },
    attributes={
        "segmentation_id": Attribute(Kind.STRING, "ID of the network's segment."),
        "cidr": Attribute(Kind.STRING, "Range of addresses of the subnet."),
        "ip_version": Attribute(Kind.STRING, "IP version of the subnet."),
        "network_type": Attribute(Kind.STRING, "Type of the network, such as vxlan."),
    },
)
SHARE_TYPE: Final = TypeSchema(
    "OS::Manila::ShareType",
    description="A type of shares, from which Manila chooses the back end.",
    properties={
        "name": Property(Kind.STRING, "Name.", required=True),
        "driver_handles_share_servers": Property(
            Kind.BOOLEAN, "Whether the back end creates share servers.", required=True
        ),
        "is_public": Property(Kind.BOOLEAN, "Whether all projects may use the type.", default=True),
        "snapshot_support": Property(
            Kind.BOOLEAN, "Whether the back end can create snapshots.", default=True
        ),
        "extra_specs": updatable(Kind.MAP, "Further requirements on the back end."),
    },
    attributes={},
)
SECURITY_SERVICE: Final = TypeSchema(
    "OS::Manila::SecurityService",
    description="A directory service with which share servers authenticate users.",
    properties={
        "type": Property(
            Kind.STRING,
            "Kind of the directory service.",
            required=True,
            constraints=one_of("ldap", "kerberos", "active_directory"),
        ),
        "name": updatable(
            Kind.STRING,
            "Name; by default derived from the names of the stack and the resource.",
        ),
        "dns_ip": updatable(Kind.STRING, "Address of the name server."),
        "server": updatable(Kind.STRING, "Address or name of the directory service."),
        "domain": updatable(Kind.STRING, "Domain."),
        "user": updatable(Kind.STRING, "User with which Manila authenticates."),
        "password": updatable(Kind.STRING, "Password of the user.", hidden=True),
        "description": updatable(Kind.STRING, "Description."),
    },
    attributes={},
)
