"""Headgate::HTTP as data: its properties and attributes."""

from collections.abc import Mapping

from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema
from engine.types.credentials import CONSTRAINT

#: The requests a resource may have, with the method of each that says none.
METHODS: Mapping[str, str] = {
    "create": "POST",
    "find": "GET",
    "read": "GET",
    "update": "PUT",
    "delete": "DELETE",
    "check": "GET",
}
DEFAULT_INTERVAL, DEFAULT_TIMEOUT = 5, 300
_KNOWN = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


def _request(name: str, description: str) -> Property:
    return Property(
        Kind.MAP,
        description,
        required=name == "create",
        update_allowed=True,
        fields={
            "url": Property(
                Kind.STRING, "Where; what begins with / stands behind `base`.", required=True
            ),
            "method": Property(
                Kind.STRING,
                f"How; {METHODS[name]} if not said.",
                constraints=(Constraint("allowed_values", allowed=_KNOWN),),
            ),
            "headers": Property(Kind.MAP, "Headers of this request."),
            "body": Property(Kind.ANY, "A text is sent as it is, anything else as JSON."),
            "expect": Property(
                Kind.LIST,
                "Statuses of success; from 200 to 299 if not said.",
                items=Property(
                    Kind.INTEGER,
                    "A status.",
                    constraints=(Constraint("range", min=100, max=599),),
                ),
            ),
        },
    )


SCHEMA = TypeSchema(
    "Headgate::HTTP",
    description="Is made, changed and cleared away by requests to a service. Off unless allowed.",
    properties={
        "base": Property(
            Kind.STRING, "What addresses that begin with / stand behind.", update_allowed=True
        ),
        "credential": Property(
            Kind.STRING,
            "Name of a credential of the operator's.",
            update_allowed=True,
            constraints=(Constraint("custom_constraint", name=CONSTRAINT),),
        ),
        "headers": Property(Kind.MAP, "Headers of every request.", update_allowed=True),
        "create": _request("create", "Makes it."),
        "find": _request(
            "find", "Finds the object of a lost create request before create is sent again."
        ),
        "read": _request("read", "Tells how it is."),
        "update": _request(
            "update", "Updates in place; without it, an update replaces the resource."
        ),
        "delete": _request("delete", "Clears it away; without one, it is only forgotten."),
        "check": _request("check", "Sent by a check; read if not said."),
        "id": Property(
            Kind.STRING,
            "JSON path to its id, in the answer to create or find; or a text that is the id.",
            update_allowed=True,
        ),
        "attributes": Property(
            Kind.MAP, "JSON paths to its attributes, by name.", update_allowed=True
        ),
        "hidden": Property(
            Kind.LIST,
            "Attributes that are secrets.",
            update_allowed=True,
            items=Property(Kind.STRING, "Name of an attribute."),
        ),
        "ready": Property(
            Kind.MAP,
            "When the create or update counts as complete, based on the result of read.",
            update_allowed=True,
            fields={
                "path": Property(Kind.STRING, "JSON path to the state.", required=True),
                "values": Property(Kind.LIST, "It is ready.", required=True),
                "failed": Property(Kind.LIST, "It has failed."),
            },
        ),
        "compare": Property(Kind.MAP, "What a check wants, by JSON path.", update_allowed=True),
        "idempotency_header": Property(
            Kind.STRING,
            "Header with the key of the operation, in requests that change something.",
            default="Idempotency-Key",
            update_allowed=True,
        ),
        "interval": Property(
            Kind.NUMBER,
            "Longest pause between two looks at whether it is ready, in seconds.",
            default=DEFAULT_INTERVAL,
            update_allowed=True,
            constraints=(Constraint("range", min=0.1, max=3_600),),
        ),
        "timeout": Property(
            Kind.NUMBER,
            "Seconds until it must be ready, or gone.",
            default=DEFAULT_TIMEOUT,
            update_allowed=True,
            constraints=(Constraint("range", min=0.1, max=604_800),),
        ),
    },
    attributes={
        "outputs": Attribute(Kind.MAP, "What the paths of `attributes` lead to, by name."),
        "secrets": Attribute(Kind.MAP, "Those of them that are `hidden`.", secret=True),
    },
)
