"""The schema of Headgate::HTTP."""

from collections.abc import Mapping

from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Kind,
    Property,
    TypeSchema,
    updatable,
)
from engine.types.operator_credentials import CONSTRAINT

#: The requests of a resource, with their default methods.
METHODS: Mapping[str, str] = {
    "create": "POST",
    "find": "GET",
    "read": "GET",
    "update": "PUT",
    "delete": "DELETE",
    "check": "GET",
    "list": "GET",
}
DEFAULT_INTERVAL, DEFAULT_TIMEOUT = 5, 300
_KNOWN = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


def _request(name: str, description: str) -> Property:
    return updatable(
        Kind.MAP,
        description,
        required=name == "create",
        fields={
            "url": Property(
                Kind.STRING, "URL; a URL that starts with / is appended to `base`.", required=True
            ),
            "method": Property(
                Kind.STRING,
                f"HTTP method; the default is {METHODS[name]}.",
                constraints=(Constraint("allowed_values", allowed=_KNOWN),),
            ),
            "headers": Property(Kind.MAP, "Headers of this request."),
            "body": Property(Kind.ANY, "A string is sent unchanged, any other value as JSON."),
            "expect": Property(
                Kind.LIST,
                "Success statuses; the default is 200 to 299.",
                items=Property(
                    Kind.INTEGER, "A status.", constraints=(Constraint("range", min=100, max=599),)
                ),
            ),
        },
    )


SCHEMA = TypeSchema(
    "Headgate::HTTP",
    description="Manages an object of a service with HTTP requests. Off by default.",
    properties={
        "base": updatable(Kind.STRING, "Prefix of URLs that start with /."),
        "credential": updatable(
            Kind.STRING,
            "Name of a credential that the operator configures.",
            constraints=(Constraint("custom_constraint", name=CONSTRAINT),),
        ),
        "headers": updatable(Kind.MAP, "Headers of every request."),
        "create": _request("create", "Creates the object."),
        "find": _request(
            "find", "Finds the object of a lost create request before create is sent again."
        ),
        "read": _request("read", "Reads the state of the object."),
        "update": _request(
            "update", "Updates in place; without it, an update replaces the resource."
        ),
        "delete": _request("delete", "Deletes the object; without it, the object is kept."),
        "check": _request("check", "Sent by a check; the default is read."),
        "list": updatable(
            Kind.MAP,
            "Reads many objects at once. Resources with the same `list` are observed by one "
            "request.",
            fields={
                "url": Property(
                    Kind.STRING,
                    "URL; a URL that starts with / is appended to `base`.",
                    required=True,
                ),
                "headers": Property(Kind.MAP, "Headers of this request."),
                "items": Property(
                    Kind.STRING, "JSON path to the list in the response.", required=True
                ),
                "id": Property(
                    Kind.STRING, "JSON path to the ID in an item of the list.", required=True
                ),
                "next": Property(
                    Kind.STRING,
                    "JSON path to the URL of the next page, on the same server; absent or null in "
                    "the last page.",
                ),
            },
        ),
        "id": updatable(
            Kind.STRING,
            "JSON path to the ID in the response to create or find, or the ID itself.",
            public=True,
        ),
        "attributes": updatable(Kind.MAP, "JSON paths of the attributes, by name."),
        "hidden": updatable(
            Kind.LIST,
            "Names of secret attributes.",
            items=Property(Kind.STRING, "Name of an attribute."),
        ),
        "ready": updatable(
            Kind.MAP,
            "When the create or update counts as complete, based on the result of read or list.",
            fields={
                "source": Property(
                    Kind.STRING,
                    "`read` (the default): each object is read until it is ready. `list`: the "
                    "observer reads all objects with the same `list` by one request, and completes "
                    "those that are ready.",
                    constraints=(Constraint("allowed_values", allowed=("read", "list")),),
                ),
                "path": Property(Kind.STRING, "JSON path to the state.", required=True),
                "values": Property(Kind.LIST, "States of a ready object.", required=True),
                "failed": Property(Kind.LIST, "States of a failed object."),
            },
        ),
        "compare": updatable(
            Kind.MAP,
            "Expected values in a check, by JSON path.",
            constraints=(Constraint("length", max=100),),
        ),
        "idempotency_header": updatable(
            Kind.STRING,
            "Header with the key of the operation, in requests that change something.",
            default="Idempotency-Key",
        ),
        "interval": updatable(
            Kind.NUMBER,
            "Longest interval between two requests for ready, in seconds.",
            default=DEFAULT_INTERVAL,
            constraints=(Constraint("range", min=0.1, max=3_600),),
        ),
        "timeout": updatable(
            Kind.NUMBER,
            "Seconds in which the object must become ready, or be deleted.",
            default=DEFAULT_TIMEOUT,
            constraints=(Constraint("range", min=0.1, max=604_800),),
        ),
    },
    attributes={
        "outputs": Attribute(Kind.MAP, "Values of `attributes`, by name, without the hidden ones."),
        "secrets": Attribute(Kind.MAP, "Values of the hidden attributes, by name.", secret=True),
    },
)
