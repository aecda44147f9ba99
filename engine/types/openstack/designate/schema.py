"""The schemas of the types of Designate, as Heat has them."""

from typing import Final

from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Kind,
    Property,
    TypeSchema,
    updatable,
)
from engine.types.openstack.neutron.lookups import between, custom, one_of

#: The largest time to live.
MAX_TTL: Final = 2**31 - 1


def _at_most(length: int) -> tuple[Constraint, ...]:
    return (Constraint("length", max=length),)


_TTL: Final = updatable(
    Kind.INTEGER, "Seconds for which resolvers may keep answers.", constraints=between(1, MAX_TTL)
)
_DESCRIPTION: Final = updatable(Kind.STRING, "Description.", constraints=_at_most(160))

ZONE: Final = TypeSchema(
    "OS::Designate::Zone",
    description="A zone: the names below a domain.",
    properties={
        "name": Property(
            Kind.STRING,
            "Name of the domain, with a dot at the end.",
            required=True,
            constraints=_at_most(255),
        ),
        "ttl": _TTL,
        "description": _DESCRIPTION,
        "email": updatable(Kind.STRING, "Address of the person responsible; for the type PRIMARY."),
        "type": Property(
            Kind.STRING,
            "Whether Designate or other servers have the original of the zone.",
            default="PRIMARY",
            constraints=one_of("PRIMARY", "SECONDARY"),
        ),
        "masters": updatable(Kind.LIST, "Former name of primaries."),
        "primaries": updatable(
            Kind.LIST, "Servers that have the original; for the type SECONDARY."
        ),
        "attributes": Property(
            Kind.MAP, "Facts about the zone, from which Designate chooses its pool."
        ),
    },
    attributes={"serial": Attribute(Kind.STRING, "Serial number of the zone.")},
)

RECORD_SET: Final = TypeSchema(
    "OS::Designate::RecordSet",
    description="The records of one name and type in a zone.",
    properties={
        "name": Property(
            Kind.STRING,
            "Name; without a dot at its end, in the zone. By default derived from the stack.",
            constraints=_at_most(255),
        ),
        "ttl": _TTL,
        "description": _DESCRIPTION,
        "type": Property(
            Kind.STRING,
            "Type of the records.",
            required=True,
            constraints=one_of(
                "A", "AAAA", "CNAME", "MX", "SRV", "TXT", "SPF", "NS", "PTR", "SSHFP", "SOA",
                "CAA", "CERT", "NAPTR",
            ),
        ),
        "records": updatable(Kind.LIST, "The data of each record.", required=True),
        "zone": Property(
            Kind.STRING,
            "Name or ID of the zone.",
            required=True,
            constraints=custom("designate.zone"),
        ),
    },
    attributes={},
)  # fmt: skip
