"""The schemas of the types of Trove, as Heat has them."""

from typing import Final

from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Kind,
    Property,
    TypeSchema,
    updatable,
)
from engine.types.openstack.neutron.lookups import between, custom

_MAX_NAME: Final = (Constraint("length", max=255),)
_NAME_OR_PASSWORD: Final = Constraint(
    "allowed_pattern", pattern=r"[a-zA-Z0-9_]+[a-zA-Z0-9_@?#\s]*[a-zA-Z0-9_]+"
)
_VOLUME_SIZE: Final = between(1, 150)

_INTERFACE: Final = Property(
    Kind.MAP,
    "Interface, in a network. Trove 26 accepts no port, and one interface.",
    fields={
        "network": Property(
            Kind.STRING, "Name or ID of the network.", constraints=custom("neutron.network")
        ),
        "port": Property(
            Kind.STRING, "Name or ID of the port.", constraints=custom("neutron.port")
        ),
        "fixed_ip": Property(
            Kind.STRING, "IPv4 address in the network.", constraints=custom("ip_addr")
        ),
    },
)
INSTANCE: Final = TypeSchema(
    "OS::Trove::Instance",
    description="A database server.",
    properties={
        "name": updatable(
            Kind.STRING,
            "Name; by default derived from the names of the stack and the resource.",
            constraints=_MAX_NAME,
        ),
        "flavor": updatable(
            Kind.STRING,
            "Name or ID of the flavor.",
            required=True,
            constraints=custom("trove.flavor"),
        ),
        "size": updatable(
            Kind.INTEGER,
            "Size of the volume in GiB. It cannot become smaller.",
            required=True,
            constraints=_VOLUME_SIZE,
        ),
        "databases": updatable(
            Kind.LIST,
            "Databases.",
            default=[],
            items=Property(
                Kind.MAP,
                "Database.",
                fields={
                    "character_set": Property(
                        Kind.STRING, "Character set; a change has no effect.", default="utf8"
                    ),
                    "collate": Property(
                        Kind.STRING,
                        "Rules of comparison; a change has no effect.",
                        default="utf8_general_ci",
                    ),
                    "name": Property(
                        Kind.STRING,
                        "Name.",
                        required=True,
                        constraints=(
                            Constraint("length", max=64),
                            Constraint(
                                "allowed_pattern",
                                pattern=r"[a-zA-Z0-9_\-]+[a-zA-Z0-9_@?#\s\-]*[a-zA-Z0-9_\-]+",
                            ),
                        ),
                    ),
                },
            ),
        ),
        "users": updatable(
            Kind.LIST,
            "Users of the databases.",
            default=[],
            items=Property(
                Kind.MAP,
                "User.",
                fields={
                    "name": updatable(
                        Kind.STRING,
                        "Name.",
                        required=True,
                        constraints=(Constraint("length", max=16), _NAME_OR_PASSWORD),
                    ),
                    "password": updatable(
                        Kind.STRING,
                        "Password.",
                        required=True,
                        hidden=True,
                        constraints=(_NAME_OR_PASSWORD,),
                    ),
                    "host": updatable(
                        Kind.STRING, "Address from which the user may connect.", default="%"
                    ),
                    "databases": updatable(
                        Kind.LIST,
                        "Names of the databases that the user may use.",
                        required=True,
                        constraints=(Constraint("length", min=1),),
                        items=Property(Kind.STRING, "Name of a database."),
                    ),
                },
            ),
        ),
        "availability_zone": Property(Kind.STRING, "Availability zone."),
        "restore_point": Property(Kind.STRING, "ID of the backup that is restored."),
        "datastore_type": Property(
            Kind.STRING, "Name of the datastore, such as mysql.", constraints=_MAX_NAME
        ),
        "datastore_version": Property(
            Kind.STRING,
            "Name of the version of the datastore; by default that of the cloud.",
            constraints=_MAX_NAME,
        ),
        "networks": Property(Kind.LIST, "Interfaces.", default=[], items=_INTERFACE),
        "replica_of": Property(Kind.STRING, "ID of the instance that is replicated."),
        "replica_count": Property(Kind.INTEGER, "Number of replicas: 1."),
    },
    attributes={
        "hostname": Attribute(Kind.STRING, "Name of the host.", public=True),
        "href": Attribute(Kind.STRING, "URL of the instance in the API of Trove.", public=True),
    },
)
CLUSTER: Final = TypeSchema(
    "OS::Trove::Cluster",
    description="Several database servers with the same data.",
    properties={
        "name": Property(
            Kind.STRING,
            "Name; by default derived from the names of the stack and the resource.",
            constraints=_MAX_NAME,
        ),
        "datastore_type": Property(
            Kind.STRING,
            "Name of the datastore, such as pxc.",
            required=True,
            constraints=_MAX_NAME,
        ),
        "datastore_version": Property(
            Kind.STRING,
            "Name of the version of the datastore.",
            required=True,
            constraints=_MAX_NAME,
        ),
        "instances": Property(
            Kind.LIST,
            "Servers.",
            required=True,
            items=Property(
                Kind.MAP,
                "Server.",
                fields={
                    "flavor": Property(
                        Kind.STRING,
                        "Name or ID of the flavor.",
                        required=True,
                        constraints=custom("trove.flavor"),
                    ),
                    "volume_size": Property(
                        Kind.INTEGER,
                        "Size of the volume in GiB.",
                        required=True,
                        constraints=_VOLUME_SIZE,
                    ),
                    "networks": Property(Kind.LIST, "Interfaces.", default=[], items=_INTERFACE),
                    "availability_zone": Property(Kind.STRING, "Availability zone."),
                },
            ),
        ),
    },
    attributes={
        "instances": Attribute(Kind.LIST, "IDs of the servers."),
        "ip": Attribute(Kind.LIST, "Addresses of the servers."),
    },
)
