"""Heat's schemas of the types of Cinder."""

from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Kind,
    Property,
    TypeSchema,
    updatable,
)

VOLUME = TypeSchema(
    "OS::Cinder::Volume",
    description="A volume of Cinder.",
    properties={
        "availability_zone": Property(Kind.STRING, "Availability zone of the volume."),
        "backup_id": updatable(
            Kind.STRING,
            "ID of the backup that the volume is restored from.",
            constraints=(Constraint("custom_constraint", name="cinder.backup"),),
        ),
        "description": updatable(Kind.STRING, "Description of the volume."),
        "image": Property(
            Kind.STRING,
            "Name or ID of the image that is copied to the volume.",
            constraints=(Constraint("custom_constraint", name="glance.image"),),
            former_names=("imageRef",),
        ),
        "metadata": updatable(Kind.MAP, "Keys and values of the volume.", default={}),
        "multiattach": Property(Kind.BOOLEAN, "No effect; the volume type has it.", obsolete=True),
        "name": updatable(
            Kind.STRING,
            "Name of the volume; by default derived from the names of the stack and the resource.",
        ),
        "read_only": updatable(Kind.BOOLEAN, "Whether the volume can only be attached read-only."),
        "scheduler_hints": Property(Kind.MAP, "Hints for Cinder's scheduler."),
        "size": updatable(
            Kind.INTEGER,
            "Size in GiB. An update can only increase it.",
            constraints=(Constraint("range", min=1),),
        ),
        "snapshot_id": Property(
            Kind.STRING,
            "ID of the snapshot that the volume is created from.",
            constraints=(Constraint("custom_constraint", name="cinder.snapshot"),),
        ),
        "source_volid": Property(
            Kind.STRING,
            "ID of the volume that is copied.",
            constraints=(Constraint("custom_constraint", name="cinder.volume"),),
        ),
        "volume_type": updatable(
            Kind.STRING,
            "Name or ID of the volume type; another type moves the volume (retype).",
            constraints=(Constraint("custom_constraint", name="cinder.vtype"),),
        ),
    },
    attributes={
        "attachments": Attribute(Kind.STRING, "Attachments of the volume, as text.", public=True),
        "attachments_list": Attribute(Kind.LIST, "Attachments of the volume.", public=True),
        "availability_zone": Attribute(Kind.STRING, "Availability zone of the volume."),
        "bootable": Attribute(
            Kind.STRING, "Whether a server can boot from the volume, true or false.", public=True
        ),
        "created_at": Attribute(Kind.STRING, "Time of creation.", public=True),
        "display_description": Attribute(Kind.STRING, "Description of the volume."),
        "display_name": Attribute(Kind.STRING, "Name of the volume."),
        "encrypted": Attribute(Kind.STRING, "Whether the volume is encrypted.", public=True),
        "metadata": Attribute(Kind.STRING, "Keys and values of the volume, as JSON text."),
        "metadata_values": Attribute(Kind.MAP, "Keys and values of the volume."),
        "multiattach": Attribute(
            Kind.BOOLEAN,
            "Whether several servers can use the volume at the same time.",
            public=True,
        ),
        "size": Attribute(Kind.STRING, "Size in GiB."),
        "snapshot_id": Attribute(
            Kind.STRING, "ID of the snapshot that the volume was created from."
        ),
        "source_volid": Attribute(Kind.STRING, "ID of the volume that was copied."),
        "status": Attribute(
            Kind.STRING, "Status of the volume at the end of the last operation.", public=True
        ),
        "volume_type": Attribute(Kind.STRING, "Name of the volume type."),
    },
)

VOLUME_ATTACHMENT = TypeSchema(
    "OS::Cinder::VolumeAttachment",
    description="The attachment of a volume to a server.",
    properties={
        "instance_uuid": updatable(Kind.STRING, "ID of the server.", required=True),
        "mountpoint": updatable(
            Kind.STRING,
            "Device name inside the server, such as /dev/vdb; by default Nova chooses it.",
        ),
        "volume_id": updatable(
            Kind.STRING,
            "ID of the volume; another volume replaces the attachment.",
            required=True,
            constraints=(Constraint("custom_constraint", name="cinder.volume"),),
        ),
    },
)
VOLUME_TYPE = TypeSchema(
    "OS::Cinder::VolumeType",
    description="A volume type. For administrators.",
    properties={
        "description": updatable(Kind.STRING, "Description of the type."),
        "is_public": updatable(
            Kind.BOOLEAN, "Whether all projects can use the type.", default=True
        ),
        "metadata": updatable(Kind.MAP, "Extra specs, which choose the backend and its features."),
        "name": updatable(Kind.STRING, "Name of the type.", required=True),
        "projects": updatable(
            Kind.LIST,
            "Names or IDs of the projects that can use a type that is not public.",
            default=[],
            items=Property(
                Kind.STRING, constraints=(Constraint("custom_constraint", name="keystone.project"),)
            ),
        ),
    },
)

ENCRYPTED_VOLUME_TYPE = TypeSchema(
    "OS::Cinder::EncryptedVolumeType",
    description="The encryption of a volume type. For administrators.",
    properties={
        "cipher": updatable(
            Kind.STRING,
            "Algorithm of the encryption.",
            constraints=(
                Constraint("allowed_values", allowed=("aes-xts-plain64", "aes-cbc-essiv")),
            ),
        ),
        "control_location": updatable(
            Kind.STRING,
            "Who encrypts: front-end, the compute host; back-end, the storage.",
            default="front-end",
            constraints=(Constraint("allowed_values", allowed=("front-end", "back-end")),),
        ),
        "key_size": updatable(Kind.INTEGER, "Length of the key in bits."),
        "provider": updatable(
            Kind.STRING, "Format of the encryption, such as luks.", required=True
        ),
        "volume_type": Property(
            Kind.STRING,
            "Name or ID of the volume type.",
            required=True,
            constraints=(Constraint("custom_constraint", name="cinder.vtype"),),
        ),
    },
)

QOS_SPECS = TypeSchema(
    "OS::Cinder::QoSSpecs",
    description="Quality of service of volume types. For administrators.",
    properties={
        "name": Property(Kind.STRING, "Name of the specs."),
        "specs": updatable(Kind.MAP, "The specs by key.", required=True),
    },
)

QOS_ASSOCIATION = TypeSchema(
    "OS::Cinder::QoSAssociation",
    description="Applies QoS specs to volume types. For administrators.",
    properties={
        "qos_specs": Property(
            Kind.STRING,
            "Name or ID of the QoS specs.",
            required=True,
            constraints=(Constraint("custom_constraint", name="cinder.qos_specs"),),
        ),
        "volume_types": updatable(
            Kind.LIST,
            "Names or IDs of the volume types.",
            required=True,
            items=Property(
                Kind.STRING, constraints=(Constraint("custom_constraint", name="cinder.vtype"),)
            ),
        ),
    },
)

QUOTA = TypeSchema(
    "OS::Cinder::Quota",
    description="The limits of a project in Cinder. For administrators.",
    properties={
        "backup_gigabytes": updatable(
            Kind.INTEGER,
            "GiB of backups; -1: unlimited.",
            constraints=(Constraint("range", min=-1),),
        ),
        "backups": updatable(
            Kind.INTEGER,
            "Number of backups; -1: unlimited.",
            constraints=(Constraint("range", min=-1),),
        ),
        "gigabytes": updatable(
            Kind.INTEGER,
            "GiB of volumes and snapshots; -1: unlimited.",
            constraints=(Constraint("range", min=-1),),
        ),
        "project": Property(
            Kind.STRING,
            "Name or ID of the project.",
            required=True,
            constraints=(Constraint("custom_constraint", name="keystone.project"),),
        ),
        "snapshots": updatable(
            Kind.INTEGER,
            "Number of snapshots; -1: unlimited.",
            constraints=(Constraint("range", min=-1),),
        ),
        "volumes": updatable(
            Kind.INTEGER,
            "Number of volumes; -1: unlimited.",
            constraints=(Constraint("range", min=-1),),
        ),
    },
)
