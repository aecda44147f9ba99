"""What is known of the members of a group before anything is evaluated."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.hot.registry import CircularAlias, Registry
from engine.hot.schema import TypeSchema
from engine.hot.template import ResourceBody
from engine.words import Json


def with_members(
    schema: TypeSchema, body: ResourceBody, registry: Registry, types: Mapping[str, TypeSchema]
) -> TypeSchema:
    """The schema of a resource's type; of a group, with what its members have."""
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
        of_members=_attributes(found) if len(found) == len(known) else None,
        secret_members=any(one.has_secrets() or one.secret_members for one in found),
    )


def _of_member(
    type_name: Json, resource: str, registry: Registry, types: Mapping[str, TypeSchema]
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
    """Those that any of them has; None: anything may be one."""
    if any(one.any_attribute or one.grouping is not None for one in schemas):
        return None
    return frozenset().union(*(one.attributes for one in schemas))
