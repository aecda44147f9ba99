"""Resource definitions that a later definition of the same stack can use again.

Only those that follow from the resource's own body and type: no function is called in the body, and
the type refers to no other resource. Whether the body's type and `depends_on` still lead to the
same is checked each time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import orjson

from engine.hot.definition.model import ResourceDefinition
from engine.hot.schema.type_schema import TypeSchema
from engine.hot.template.template import ResourceBody


@dataclass(frozen=True, slots=True)
class ReusableResource:
    """body: see `body_digest`. size: bytes of the properties and metadata, which count toward a
    limit."""

    body: bytes
    schema: TypeSchema
    definition: ResourceDefinition
    size: int


@dataclass(frozen=True, slots=True)
class ReusableResources:
    """version: of the template. resources: by name."""

    version: str = ""
    resources: Mapping[str, ReusableResource] = field(default_factory=dict, repr=False)


NONE_REUSABLE = ReusableResources()


def body_digest(body: ResourceBody) -> bytes:
    """Return a digest of a body of a root stack's template, without its name and condition.

    Bodies are not compared as values: 1, 1.0 and true are equal, and differ as properties.
    """
    written = orjson.dumps([
        body.type, body.properties, body.metadata, body.depends_on, body.deletion_policy,
        body.update_policy, body.description, body.external_id, body.lifecycle,
        body.preconditions, body.postconditions,
    ])  # fmt: skip
    return blake2b(written, digest_size=20).digest()


def is_independent(body: ResourceBody, schema: TypeSchema, definition: ResourceDefinition) -> bool:
    """Return whether the definition of a body without function calls follows from that body and the
    type alone."""
    return (
        schema.grouping is None
        and not schema.names_resources
        and body.external_id is None
        and body.update_policy is None
        and body.lifecycle is None
        and body.computed_depends_on is None
        and body.preconditions is None
        and body.postconditions is None
        and definition.masked_properties is None
    )
