"""Heat's schema of OS::Swift::Container, with more properties that an update changes in place."""

from engine.hot.schema.type_schema import Attribute, Kind, Property, TypeSchema, updatable

CONTAINER = TypeSchema(
    "OS::Swift::Container",
    description="A container of objects.",
    properties={
        "PurgeOnDelete": updatable(
            Kind.BOOLEAN,
            "Whether a delete also deletes the objects in the container; false: it fails if there "
            "are any.",
            default=False,
        ),
        "X-Account-Meta": updatable(
            Kind.MAP,
            "Metadata of the account of the project: KEY sets the header X-Account-Meta-KEY.",
            default={},
        ),
        "X-Container-Meta": updatable(
            Kind.MAP,
            "Metadata of the container: KEY sets the header X-Container-Meta-KEY.",
            default={},
        ),
        "X-Container-Read": updatable(
            Kind.STRING, "The access control list of who may read objects."
        ),
        "X-Container-Write": updatable(
            Kind.STRING, "The access control list of who may write objects."
        ),
        "name": Property(Kind.STRING, "Name; by default derived from the stack."),
    },
    attributes={
        "BytesUsed": Attribute(Kind.INTEGER, "Bytes of all objects.", public=True),
        "DomainName": Attribute(Kind.STRING, "Host of the container's URL.", public=True),
        "HeadContainer": Attribute(Kind.MAP, "Headers of the container."),
        "ObjectCount": Attribute(Kind.INTEGER, "Number of objects.", public=True),
        "RootURL": Attribute(Kind.STRING, "URL of the account.", public=True),
        "WebsiteURL": Attribute(Kind.STRING, "URL of the container."),
    },
)
