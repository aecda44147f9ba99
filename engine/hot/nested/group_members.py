"""Adds the attributes of members to the schemas of groups, as far as they are known before
evaluation."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.hot.environment.registry import CircularAlias, ResourceRegistry
from engine.hot.schema.type_schema import TypeSchema
from engine.hot.template.template import ResourceBody
from engine.words import Json


def with_member_attributes(
    schema: TypeSchema,
    body: ResourceBody,
    registry: ResourceRegistry,
    types: Mapping[str, TypeSchema],
) -> TypeSchema:
    """Return the schema of a resource's type; for a group, with the attributes of its members."""
    if schema.grouping is None or not isinstance(body.properties, dict):
        return schema
    sample = schema.grouping.sample(body.properties)
    if sample is None:
        return schema
    bodies = sample[0]["resources"].values()
    known = [_of_member(member.get("type"), body.name, registry, types) for member in bodies]
    found = [one for one in known if one is not None]
    return replace(
        schema,
        member_attributes=_attributes(found) if len(found) == len(known) else None,
        has_secret_members=any(one.has_secrets() or one.has_secret_members for one in found),
    )


def _of_member(
    type_name: Json, resource: str, registry: ResourceRegistry, types: Mapping[str, TypeSchema]
) -> TypeSchema | None:
    if not isinstance(type_name, str):
        return None
    try:
        found = registry.find(type_name, resource, types)
    except CircularAlias:
        return None
    if found is None or found.type not in types:
        return None
    return types[found.type]


def _attributes(schemas: Sequence[TypeSchema]) -> frozenset[str] | None:
    """Return the attributes that any member has; None if any attribute may exist."""
    if any(one.any_attribute or one.grouping is not None for one in schemas):
        return None
    return frozenset().union(*(one.attributes for one in schemas))
