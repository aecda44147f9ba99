"""Parameters that are immutable: no update gives them another value, whoever names it (the request,
an environment, a default), once a stack has them."""

from uuid import UUID

from engine.errors import Finding, Findings, Invalid
from engine.hot.parameters import parameter_values
from engine.hot.template import parse_template
from engine.service.blueprint import Blueprint
from engine.store.connection import Connection
from engine.store.read import read_template


async def check_immutable(
    conn: Connection, stack_id: UUID, version: int, blueprint: Blueprint
) -> None:
    """version: what the stack is now. Raises Invalid."""
    definition = blueprint.definition
    names = {name for name, schema in definition.schemas.items() if schema.immutable}
    if not names:
        return
    before = await read_template(conn, stack_id, version)
    schemas = parse_template(before.template).parameters
    given = {**before.environment.get("parameters", {}), **before.parameters}
    values = parameter_values(
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
        remedy = "Give them the values that they have."
        raise Invalid([Finding("", reason, remedy, "ImmutableParameterModified")])
