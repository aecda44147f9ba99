"""What is written down of a goal besides its traversal: the version, and the rules that stay."""

from engine.hooks.matching import Breakpoints
from engine.hooks.rule import encode_rules
from engine.service.blueprint import stored_outputs
from engine.service.goals import Goal
from engine.store import accept, begin
from engine.store.connection import Connection


async def store_version(conn: Connection, goal: Goal, most: int) -> None:
    """most: versions that are kept of a template."""
    blueprint, definition = goal.blueprint, goal.blueprint.definition
    await accept.insert_template(
        conn,
        stack_id=goal.stack_id,
        version=goal.version,
        description=definition.description,
        template=blueprint.template.document,
        environment=blueprint.environment.document,
        files=blueprint.files,
        parameters=blueprint.parameters,
        shown=definition.shown_parameters(),
        hidden=definition.hidden,
        outputs=stored_outputs(definition),
        requested_by=goal.requested_by,
        source=blueprint.source,
    )
    await accept.forget_versions(conn, goal.stack_id, most)


async def store_rules(conn: Connection, goal: Goal) -> None:
    """Breakpoints of lasting sources stay with the resources, and go with them."""
    blueprint, resources = goal.blueprint, goal.blueprint.definition.resources
    declared = (*goal.found.live, *blueprint.asked, *blueprint.by_environment,
                *blueprint.by_template)  # fmt: skip
    before = goal.found.kept or any(row.rules for row in goal.found.rows)
    if declared or before:
        lasting = Breakpoints(blueprint.by_environment, blueprint.by_template)
        rules = {name: encode_rules(lasting.of(name)) for name in resources}
        of_stack = encode_rules(lasting.of_stack())
        await begin.store_rules(conn, goal.stack_id, rules, of_stack)
