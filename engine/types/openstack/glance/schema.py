"""Heat's schema of OS::Glance::WebImage."""

from engine.hot.schema.type_schema import Constraint, Kind, Property, TypeSchema, updatable

WEB_IMAGE = TypeSchema(
    "OS::Glance::WebImage",
    description="An image that Glance downloads from a URL.",
    properties={
        "active": updatable(
            Kind.BOOLEAN, "Whether the image can be used; false deactivates it.", default=True
        ),
        "architecture": updatable(Kind.STRING, "Architecture of the operating system."),
        "container_format": Property(
            Kind.STRING,
            "Container format of the image.",
            required=True,
            constraints=(
                Constraint(
                    "allowed_values", allowed=("ami", "ari", "aki", "bare", "ovf", "ova", "docker")
                ),
            ),
        ),
        "disk_format": Property(
            Kind.STRING,
            "Disk format of the image.",
            required=True,
            constraints=(
                Constraint(
                    "allowed_values",
                    allowed=(
                        "ami",
                        "ari",
                        "aki",
                        "vhd",
                        "vhdx",
                        "vmdk",
                        "raw",
                        "qcow2",
                        "vdi",
                        "iso",
                        "ploop",
                    ),
                ),
            ),
        ),
        "extra_properties": updatable(Kind.MAP, "Further properties of the image.", default={}),
        "id": Property(Kind.STRING, "ID of the image; by default Glance generates one."),
        "kernel_id": updatable(
            Kind.STRING,
            "ID of the kernel image of an AMI.",
            constraints=(
                Constraint(
                    "allowed_pattern",
                    pattern=r"^([0-9a-fA-F]){8}-([0-9a-fA-F]){4}-([0-9a-fA-F]){4}-([0-9a-fA-F]){4}-([0-9a-fA-F]){12}$",
                ),
            ),
        ),
        "location": Property(Kind.STRING, "URL of the data.", required=True),
        "members": updatable(
            Kind.LIST,
            "IDs of the projects that an image with visibility shared is shared with.",
            items=Property(Kind.STRING),
        ),
        "min_disk": Property(
            Kind.INTEGER,
            "Minimum size of a server's disk in GiB.",
            default=0,
            constraints=(Constraint("range", min=0),),
        ),
        "min_ram": Property(
            Kind.INTEGER,
            "Minimum memory of a server in MiB.",
            default=0,
            constraints=(Constraint("range", min=0),),
        ),
        "name": Property(Kind.STRING, "Name of the image."),
        "os_distro": updatable(Kind.STRING, "Name of the operating system, such as debian."),
        "os_version": updatable(Kind.STRING, "Version of the operating system."),
        "owner": updatable(Kind.STRING, "ID of the project that owns the image."),
        "protected": updatable(Kind.BOOLEAN, "Whether the image cannot be deleted.", default=False),
        "ramdisk_id": updatable(
            Kind.STRING,
            "ID of the ramdisk image of an AMI.",
            constraints=(
                Constraint(
                    "allowed_pattern",
                    pattern=r"^([0-9a-fA-F]){8}-([0-9a-fA-F]){4}-([0-9a-fA-F]){4}-([0-9a-fA-F]){4}-([0-9a-fA-F]){12}$",
                ),
            ),
        ),
        "tags": updatable(Kind.LIST, "Tags of the image."),
        "visibility": updatable(
            Kind.STRING,
            "Who can use the image.",
            default="private",
            constraints=(
                Constraint("allowed_values", allowed=("public", "private", "community", "shared")),
            ),
        ),
    },
)
