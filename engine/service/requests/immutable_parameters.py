"""Immutable parameters: an update must not change their values, whether the new value is from the
request, an environment or a default."""

from uuid import UUID

from engine.errors import Finding, Findings, Invalid
from engine.hot.schema.parameters import convert_parameters
from engine.hot.template.template import parse_template
from engine.service.requests.blueprint import Blueprint
from engine.store.connection import Connection
from engine.store.stack_queries import read_template


async def check_immutable(
    conn: Connection, stack_id: UUID, version: int, blueprint: Blueprint
) -> None:
    """Raise Invalid (ImmutableParameterModified) if an update changes an immutable parameter.

    version: the stack's current template version.
    """
    definition = blueprint.definition
    names = {name for name, schema in definition.schemas.items() if schema.immutable}
    if not names:
        return
    before = await read_template(conn, stack_id, version)
    schemas = parse_template(before.template).parameters
    given = {**before.environment.get("parameters", {}), **before.parameters}
    values = convert_parameters(
        {name: schemas[name] for name in names & schemas.keys()},
        {name: value for name, value in given.items() if name in names & schemas.keys()},
        before.environment.get("parameter_defaults", {}),
        Findings(),
    )
    changed = sorted(
        name for name, value in values.items() if value != definition.parameters.get(name)
    )
    if changed:
        reason = (
            f"The following parameters are immutable and may not be updated: {', '.join(changed)}"
        )
        remedy = "Leave their values as they are, or create a new stack."
        raise Invalid([Finding("", reason, remedy, "ImmutableParameterModified")])
