"""Stores the template version and the lasting breakpoint rules of a `DesiredState`."""

from engine.hooks.rule import encode_rules
from engine.hooks.rule_matching import Breakpoints
from engine.service.requests.blueprint import stored_outputs
from engine.service.requests.change import DesiredState
from engine.store import stack_rows, traversal_start
from engine.store.connection import Connection


async def store_version(
    conn: Connection, desired: DesiredState, most: int, *, project: str
) -> None:
    """Store the template version. most: the number of versions that the stack retains."""
    blueprint, definition = desired.blueprint, desired.blueprint.definition
    await stack_rows.insert_template(
        conn,
        project=project,
        stack_id=desired.stack_id,
        version=desired.version,
        description=definition.description,
        template=blueprint.template.document,
        environment=blueprint.environment.document,
        files=blueprint.files,
        parameters=blueprint.parameters,
        shown=definition.shown_parameters(),
        hidden=definition.hidden,
        outputs=stored_outputs(definition),
        requested_by=desired.requested_by,
        source=blueprint.source,
    )
    await stack_rows.forget_versions(conn, desired.stack_id, most)


async def store_rules(conn: Connection, desired: DesiredState) -> None:
    """Store the rules of the template and the environment with the stack and its resources."""
    blueprint, resources = desired.blueprint, desired.blueprint.definition.resources
    declared = (*desired.current.live, *blueprint.asked, *blueprint.by_environment,
                *blueprint.by_template)  # fmt: skip
    before = desired.current.has_rules or any(row.rules for row in desired.current.rows)
    if declared or before:
        lasting = Breakpoints(blueprint.by_environment, blueprint.by_template)
        rules = {name: encode_rules(lasting.of(name)) for name in resources}
        of_stack = encode_rules(lasting.of_stack())
        await traversal_start.store_rules(conn, desired.stack_id, rules, of_stack)
