"""Heat's schema of OS::Nova::Server."""

from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Kind,
    Property,
    TypeSchema,
    updatable,
)
from engine.types.software.deployed_server import SWIFT_DATA_DESCRIPTION, SWIFT_DATA_FIELDS

SERVER = TypeSchema(
    "OS::Nova::Server",
    description="A virtual machine of Nova.",
    properties={
        "admin_user": Property(Kind.STRING, "No effect; Nova has no such name.", obsolete=True),
        "admin_pass": updatable(
            Kind.STRING, "Password of the administrator account inside the server."
        ),
        "availability_zone": Property(
            Kind.STRING, "Availability zone that the server is placed in."
        ),
        "block_device_mapping": Property(
            Kind.LIST,
            "Volumes of the server, in the old form; block_device_mapping_v2 can do more.",
            items=Property(
                Kind.MAP,
                fields={
                    "delete_on_termination": Property(
                        Kind.BOOLEAN, "Delete the volume together with the server."
                    ),
                    "device_name": Property(
                        Kind.STRING, "Device name inside the server, such as vda.", required=True
                    ),
                    "snapshot_id": Property(
                        Kind.STRING,
                        "ID of the volume snapshot to make a volume from.",
                        constraints=(Constraint("custom_constraint", name="cinder.snapshot"),),
                    ),
                    "volume_id": Property(
                        Kind.STRING,
                        "ID of the volume.",
                        constraints=(Constraint("custom_constraint", name="cinder.volume"),),
                    ),
                    "volume_size": Property(Kind.INTEGER, "Size of the new volume, in GiB."),
                },
            ),
        ),
        "block_device_mapping_v2": Property(
            Kind.LIST,
            "Block devices of the server.",
            items=Property(
                Kind.MAP,
                fields={
                    "boot_index": Property(
                        Kind.INTEGER,
                        "Position in the boot order: 0 is the boot device, -1 is none.",
                    ),
                    "delete_on_termination": Property(
                        Kind.BOOLEAN, "Delete the volume together with the server."
                    ),
                    "device_name": Property(
                        Kind.STRING, "Device name inside the server, such as vda."
                    ),
                    "device_type": Property(
                        Kind.STRING,
                        "Type of the device.",
                        constraints=(Constraint("allowed_values", allowed=("cdrom", "disk")),),
                    ),
                    "disk_bus": Property(
                        Kind.STRING,
                        "Bus of the device.",
                        constraints=(
                            Constraint(
                                "allowed_values",
                                allowed=("ide", "lame_bus", "sata", "scsi", "usb", "virtio"),
                            ),
                        ),
                    ),
                    "ephemeral_format": Property(
                        Kind.STRING,
                        "File system of the ephemeral disk.",
                        constraints=(
                            Constraint(
                                "allowed_values", allowed=("ext2", "ext3", "ext4", "xfs", "ntfs")
                            ),
                        ),
                    ),
                    "ephemeral_size": Property(
                        Kind.INTEGER,
                        "Size of a local ephemeral disk, in GiB.",
                        constraints=(Constraint("range", min=1),),
                    ),
                    "image": Property(
                        Kind.STRING,
                        "Name or ID of the image to make a volume from.",
                        constraints=(Constraint("custom_constraint", name="glance.image"),),
                    ),
                    "image_id": Property(
                        Kind.STRING,
                        "As image; deprecated.",
                        constraints=(Constraint("custom_constraint", name="glance.image"),),
                    ),
                    "snapshot_id": Property(
                        Kind.STRING,
                        "ID of the volume snapshot to make a volume from.",
                        constraints=(Constraint("custom_constraint", name="cinder.snapshot"),),
                    ),
                    "swap_size": Property(Kind.INTEGER, "Size of a local swap disk, in MiB."),
                    "volume_id": Property(
                        Kind.STRING,
                        "ID of the volume.",
                        constraints=(Constraint("custom_constraint", name="cinder.volume"),),
                    ),
                    "volume_size": Property(Kind.INTEGER, "Size of the new volume, in GiB."),
                    "volume_type": Property(
                        Kind.STRING,
                        "Name or ID of the type of the new volume.",
                        constraints=(Constraint("custom_constraint", name="cinder.vtype"),),
                    ),
                },
            ),
        ),
        "config_drive": Property(
            Kind.BOOLEAN, "Attach a config drive with the metadata and user data."
        ),
        "deployment_swift_data": updatable(
            Kind.MAP,
            SWIFT_DATA_DESCRIPTION,
            default={},
            fields={
                name: Property(Kind.STRING, text, constraints=(Constraint("length", min=1),))
                for name, text in SWIFT_DATA_FIELDS.items()
            },
        ),
        "diskConfig": Property(
            Kind.STRING,
            "AUTO: one partition as large as the flavor's disk; MANUAL: those of the image.",
            constraints=(Constraint("allowed_values", allowed=("AUTO", "MANUAL")),),
        ),
        "flavor": updatable(
            Kind.STRING,
            "Name or ID of the flavor.",
            required=True,
            constraints=(Constraint("custom_constraint", name="nova.flavor"),),
        ),
        "flavor_update_policy": updatable(
            Kind.STRING,
            "Whether another flavor resizes the server or replaces it.",
            default="RESIZE",
            constraints=(Constraint("allowed_values", allowed=("RESIZE", "REPLACE")),),
        ),
        "image": updatable(
            Kind.STRING,
            "Name or ID of the image to boot from.",
            constraints=(Constraint("custom_constraint", name="glance.image"),),
        ),
        "image_update_policy": updatable(
            Kind.STRING,
            "Whether another image rebuilds the server or replaces it.",
            default="REBUILD",
            constraints=(
                Constraint(
                    "allowed_values", allowed=("REBUILD", "REPLACE", "REBUILD_PRESERVE_EPHEMERAL")
                ),
            ),
        ),
        "key_name": Property(
            Kind.STRING,
            "Name of the SSH key pair.",
            constraints=(Constraint("custom_constraint", name="nova.keypair"),),
        ),
        "metadata": updatable(
            Kind.MAP,
            "Keys and values that the server can read; other values than text become JSON.",
            default={},
        ),
        "name": updatable(
            Kind.STRING,
            "Name of the server; by default derived from the names of the stack and the resource.",
        ),
        "networks": updatable(
            Kind.LIST,
            "Network interfaces, or one entry: allocate_network: auto or none.",
            items=Property(
                Kind.MAP,
                fields={
                    "allocate_network": updatable(
                        Kind.STRING,
                        "auto: Nova takes or creates a network; none: no interface.",
                        constraints=(Constraint("allowed_values", allowed=("none", "auto")),),
                    ),
                    "fixed_ip": Property(
                        Kind.STRING,
                        "IP address of the interface.",
                        constraints=(Constraint("custom_constraint", name="ip_addr"),),
                    ),
                    "floating_ip": Property(Kind.STRING, "ID of a floating IP for the interface."),
                    "network": Property(
                        Kind.STRING,
                        "Name or ID of the network.",
                        constraints=(Constraint("custom_constraint", name="neutron.network"),),
                    ),
                    "port": Property(
                        Kind.STRING,
                        "Name or ID of an existing port.",
                        constraints=(Constraint("custom_constraint", name="neutron.port"),),
                    ),
                    "port_extra_properties": updatable(
                        Kind.MAP,
                        "Properties of the port that is created for the interface.",
                        fields={
                            "admin_state_up": updatable(
                                Kind.BOOLEAN, "Whether the port forwards packets.", default=True
                            ),
                            "allowed_address_pairs": updatable(
                                Kind.LIST,
                                "Further addresses that the port may send from.",
                                items=Property(
                                    Kind.MAP,
                                    fields={
                                        "ip_address": Property(
                                            Kind.STRING,
                                            "IP address or CIDR.",
                                            required=True,
                                            constraints=(
                                                Constraint("custom_constraint", name="ip_or_cidr"),
                                            ),
                                        ),
                                        "mac_address": Property(
                                            Kind.STRING,
                                            "MAC address.",
                                            constraints=(
                                                Constraint("custom_constraint", name="mac_addr"),
                                            ),
                                        ),
                                    },
                                ),
                            ),
                            "binding:vnic_type": updatable(
                                Kind.STRING,
                                "Type of the virtual network card.",
                                default="normal",
                                constraints=(
                                    Constraint(
                                        "allowed_values",
                                        allowed=(
                                            "normal",
                                            "direct",
                                            "macvtap",
                                            "direct-physical",
                                            "baremetal",
                                            "virtio-forwarder",
                                            "smart-nic",
                                        ),
                                    ),
                                ),
                            ),
                            "mac_address": Property(
                                Kind.STRING,
                                "MAC address of the port.",
                                constraints=(Constraint("custom_constraint", name="mac_addr"),),
                            ),
                            "no_fixed_ips": updatable(
                                Kind.BOOLEAN, "Make the port without an IP address.", default=False
                            ),
                            "port_security_enabled": updatable(
                                Kind.BOOLEAN,
                                "Whether the port has security groups and anti-spoofing rules.",
                            ),
                            "propagate_uplink_status": updatable(
                                Kind.BOOLEAN,
                                "Whether the state of the uplink is shown to the server.",
                            ),
                            "qos_policy": updatable(
                                Kind.STRING,
                                "Name or ID of the QoS policy.",
                                constraints=(
                                    Constraint("custom_constraint", name="neutron.qos_policy"),
                                ),
                            ),
                            "value_specs": updatable(
                                Kind.MAP, "Further fields of the request to Neutron.", default={}
                            ),
                        },
                    ),
                    "subnet": Property(Kind.STRING, "Name or ID of the subnet."),
                    "tag": Property(
                        Kind.STRING, "Tag of the device in the metadata of the server."
                    ),
                    "uuid": Property(
                        Kind.STRING,
                        "As network; deprecated.",
                        constraints=(Constraint("custom_constraint", name="neutron.network"),),
                    ),
                },
            ),
        ),
        "personality": Property(
            Kind.MAP, "Files that Nova writes into the server, by path.", default={}
        ),
        "reservation_id": Property(Kind.STRING, "Accepted for compatibility with Heat; no effect."),
        "scheduler_hints": Property(Kind.MAP, "Hints for Nova's scheduler."),
        "security_groups": Property(
            Kind.LIST,
            "Names or IDs of the security groups of the interfaces that Nova creates.",
            default=[],
        ),
        "software_config_transport": updatable(
            Kind.STRING,
            "How the server's agent polls for its metadata.",
            default="POLL_SERVER_CFN",
            constraints=(
                Constraint(
                    "allowed_values",
                    allowed=(
                        "POLL_SERVER_CFN",
                        "POLL_SERVER_HEAT",
                        "POLL_TEMP_URL",
                        "ZAQAR_MESSAGE",
                    ),
                ),
            ),
        ),
        "tags": updatable(Kind.LIST, "Tags of the server.", items=Property(Kind.STRING)),
        "user_data": updatable(
            Kind.STRING, "Data for cloud-init, or the ID of a software config.", default=""
        ),
        "user_data_format": Property(
            Kind.STRING,
            "RAW: unchanged; the others add files for the server's agent.",
            default="HEAT_CFNTOOLS",
            constraints=(
                Constraint("allowed_values", allowed=("HEAT_CFNTOOLS", "RAW", "SOFTWARE_CONFIG")),
            ),
        ),
        "user_data_update_policy": updatable(
            Kind.STRING,
            "Whether other user data replaces or rebuilds the server, or has no effect.",
            default="REPLACE",
            constraints=(Constraint("allowed_values", allowed=("REPLACE", "IGNORE", "REBUILD")),),
        ),
    },
    attributes={
        "accessIPv4": Attribute(Kind.STRING, "IPv4 address that clients should use.", public=True),
        "accessIPv6": Attribute(Kind.STRING, "IPv6 address that clients should use.", public=True),
        "addresses": Attribute(
            Kind.MAP, "Addresses by name of the network, with the IDs of their ports.", public=True
        ),
        "console_urls": Attribute(
            Kind.MAP, "URLs of consoles; always empty, because they expire.", public=True
        ),
        "first_address": Attribute(
            Kind.STRING, "An address of the server. Use `networks` instead.", public=True
        ),
        "instance_name": Attribute(
            Kind.STRING,
            "Name of the server on its hypervisor, if the user may see it.",
            public=True,
        ),
        "name": Attribute(Kind.STRING, "Name of the server."),
        "networks": Attribute(
            Kind.MAP, "IP addresses by name and by ID of the network.", public=True
        ),
        "os_collect_config": Attribute(
            Kind.MAP, "Settings of the server's os-collect-config.", secret=True
        ),
        "tags": Attribute(Kind.LIST, "Tags of the server."),
    },
    public_reference=True,
)
