"""Attributes of a resource, as people may see them."""

from engine.hot.expressions.masking import MASK
from engine.hot.expressions.member_attributes import mask_attributes, visible_attributes
from engine.hot.expressions.secret_leaks import leaks_secret, secret_texts
from engine.hot.schema.type_schema import TypeSchema
from engine.store.records import ResourceRecord
from engine.words import Json


def shown_attributes(one: ResourceRecord, schema: TypeSchema | None) -> dict[str, Json]:
    """Secret ones are masked: those that the row of the resource names, and those that its type
    keeps secret. Of rows that an earlier version wrote, whatever repeats a hidden value of the
    properties is masked, as the value of an OS::Heat::Value does."""
    declared = (
        {name for name, known in schema.attributes.items() if known.secret} if schema else set()
    )
    attributes = visible_attributes(
        mask_attributes(one.attributes or {}, declared.union(one.secret or ()))
    )
    if one.secret is not None or one.shown is None:
        return attributes
    hidden = set(secret_texts(one.properties, one.shown))
    return {
        name: MASK if leaks_secret(value, hidden) else value for name, value in attributes.items()
    }
