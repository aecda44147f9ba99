"""Heat's schemas of the types of Nova, except OS::Nova::Server."""

from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Kind,
    Property,
    TypeSchema,
    updatable,
)

KEY_PAIR = TypeSchema(
    "OS::Nova::KeyPair",
    description="An SSH key pair of a user. Without public_key, Headgate makes the pair.",
    properties={
        "name": Property(
            Kind.STRING,
            "Name of the key pair, unique for the user.",
            required=True,
            constraints=(Constraint("length", min=1, max=255),),
        ),
        "public_key": Property(Kind.STRING, "The public key; without it, a pair is created."),
        "save_private_key": Property(
            Kind.BOOLEAN,
            "No effect: a private key that Headgate creates is always kept.",
            default=False,
        ),
        "type": Property(
            Kind.STRING,
            "Type of the key.",
            constraints=(Constraint("allowed_values", allowed=("ssh", "x509")),),
        ),
        "user": Property(
            Kind.STRING,
            "Name or ID of the owner, if it is another user; for administrators.",
            constraints=(Constraint("custom_constraint", name="keystone.user"),),
        ),
    },
    attributes={
        "private_key": Attribute(
            Kind.STRING, "The private key, if Headgate created the pair.", secret=True
        ),
        "public_key": Attribute(Kind.STRING, "The public key."),
    },
    public_reference=True,
)

SERVER_GROUP = TypeSchema(
    "OS::Nova::ServerGroup",
    description="A group of servers that Nova places together or apart.",
    properties={
        "name": Property(Kind.STRING, "Name of the group."),
        "policies": Property(
            Kind.LIST,
            "How the servers are placed; one policy.",
            default=["anti-affinity"],
            constraints=(
                Constraint(
                    "allowed_values",
                    allowed=("anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity"),
                ),
            ),
            items=Property(Kind.STRING),
        ),
        "rules": Property(
            Kind.MAP,
            "Rules of the policy.",
            fields={
                "max_server_per_host": Property(
                    Kind.NUMBER, "Maximum number of servers on a host, with anti-affinity."
                )
            },
        ),
    },
)

FLAVOR = TypeSchema(
    "OS::Nova::Flavor",
    description="A flavor: the size of servers.",
    properties={
        "disk": Property(Kind.INTEGER, "Size of the root disk in GiB.", default=0),
        "ephemeral": Property(
            Kind.INTEGER, "Size of the second, ephemeral disk in GiB.", default=0
        ),
        "extra_specs": updatable(Kind.MAP, "Further requirements of the flavor, by key."),
        "flavorid": Property(Kind.STRING, "ID of the flavor; by default Nova generates one."),
        "is_public": Property(
            Kind.BOOLEAN, "Whether all projects can use the flavor.", default=True
        ),
        "name": Property(Kind.STRING, "Name of the flavor."),
        "ram": Property(Kind.INTEGER, "Memory in MiB.", required=True),
        "rxtx_factor": Property(Kind.NUMBER, "Factor of the bandwidth.", default=1.0),
        "swap": Property(Kind.INTEGER, "Size of the swap disk in MiB.", default=0),
        "tenants": updatable(
            Kind.LIST,
            "Names or IDs of the projects that can use a flavor that is not public.",
            default=[],
            items=Property(
                Kind.STRING, constraints=(Constraint("custom_constraint", name="keystone.project"),)
            ),
        ),
        "vcpus": Property(Kind.INTEGER, "Number of virtual CPUs.", required=True),
    },
    attributes={
        "extra_specs": Attribute(Kind.MAP, "Further requirements of the flavor, by key."),
        "is_public": Attribute(Kind.BOOLEAN, "Whether all projects can use the flavor."),
    },
)
HOST_AGGREGATE = TypeSchema(
    "OS::Nova::HostAggregate",
    description="A host aggregate: hosts with common metadata. For administrators.",
    properties={
        "availability_zone": updatable(Kind.STRING, "Availability zone that the hosts are in."),
        "hosts": updatable(
            Kind.LIST,
            "Names of the hosts.",
            items=Property(
                Kind.STRING, constraints=(Constraint("custom_constraint", name="nova.host"),)
            ),
        ),
        "metadata": updatable(Kind.MAP, "Keys and values, which flavors can require.", default={}),
        "name": updatable(Kind.STRING, "Name of the aggregate.", required=True),
    },
)

QUOTA = TypeSchema(
    "OS::Nova::Quota",
    description="The limits of a project in Nova. For administrators.",
    properties={
        "cores": updatable(
            Kind.INTEGER,
            "Number of virtual CPUs; -1: unlimited.",
            constraints=(Constraint("range", min=-1),),
        ),
        "fixed_ips": updatable(
            Kind.INTEGER,
            "Number of fixed IPs; -1: unlimited.",
            constraints=(Constraint("range", min=-1),),
        ),
        "floating_ips": updatable(
            Kind.INTEGER,
            "Number of floating IPs; -1: unlimited.",
            constraints=(Constraint("range", min=-1),),
        ),
        "injected_file_content_bytes": updatable(
            Kind.INTEGER,
            "Bytes of an injected file; -1: unlimited.",
            constraints=(Constraint("range", min=-1),),
        ),
        "injected_file_path_bytes": updatable(
            Kind.INTEGER,
            "Bytes of the path of an injected file; -1: unlimited.",
            constraints=(Constraint("range", min=-1),),
        ),
        "injected_files": updatable(
            Kind.INTEGER,
            "Number of injected files; -1: unlimited.",
            constraints=(Constraint("range", min=-1),),
        ),
        "instances": updatable(
            Kind.INTEGER,
            "Number of servers; -1: unlimited.",
            constraints=(Constraint("range", min=-1),),
        ),
        "key_pairs": updatable(
            Kind.INTEGER,
            "Number of key pairs of a user; -1: unlimited.",
            constraints=(Constraint("range", min=-1),),
        ),
        "metadata_items": updatable(
            Kind.INTEGER,
            "Number of metadata items of a server; -1: unlimited.",
            constraints=(Constraint("range", min=-1),),
        ),
        "project": Property(
            Kind.STRING,
            "Name or ID of the project.",
            required=True,
            constraints=(Constraint("custom_constraint", name="keystone.project"),),
        ),
        "ram": updatable(
            Kind.INTEGER,
            "Memory in MiB; -1: unlimited.",
            constraints=(Constraint("range", min=-1),),
        ),
        "security_group_rules": updatable(
            Kind.INTEGER,
            "Number of rules of a security group; -1: unlimited.",
            constraints=(Constraint("range", min=-1),),
        ),
        "security_groups": updatable(
            Kind.INTEGER,
            "Number of security groups; -1: unlimited.",
            constraints=(Constraint("range", min=-1),),
        ),
        "server_group_members": updatable(
            Kind.INTEGER,
            "Number of servers in a server group; -1: unlimited.",
            constraints=(Constraint("range", min=-1),),
        ),
        "server_groups": updatable(
            Kind.INTEGER,
            "Number of server groups; -1: unlimited.",
            constraints=(Constraint("range", min=-1),),
        ),
    },
)
