"""The view of a stack and its plan that is stored with the stack's gate nodes: for lifecycle
plug-ins, subscribers and approvers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.lifecycle.contract import PlannedChange, StackView
from engine.lifecycle.gate import view_document
from engine.plan.draft import ExistingResource, Plan
from engine.plan.overrides import Override
from engine.principal import Principal
from engine.service.plan_preview import KINDS, PlanPreviewer, read_rows
from engine.service.requests.blueprint import Blueprint
from engine.store.connection import Connection
from engine.store.stacks import templates
from engine.types.registry import TypeRegistry
from engine.words import GATES, IN_PLACE_OPERATIONS, Action, Direction, Json


@dataclass(frozen=True, slots=True)
class GateView:
    """The traversal that a view describes. number: of the traversal. version: of the template.

    only: names of the resources that a partial update may change; None if it is not partial.
    """

    stack_id: UUID
    project: str
    name: str
    action: Action
    number: int
    version: int
    requested_by: Principal
    tags: Sequence[str]
    only: Sequence[str] | None = None


async def view_of_update(
    conn: Connection,
    started: GateView,
    planned: Plan,
    blueprint: Blueprint,
    existing: Sequence[ExistingResource],
    registry: TypeRegistry,
    overrides: Mapping[str, Sequence[Override]],
) -> dict[str, Json]:
    """The view of a traversal with a template version as its target: the change of each
    resource. overrides: by resource name."""
    definition = blueprint.definition
    rows = await read_rows(conn, started.stack_id, planned, definition) if existing else []
    restricted = blueprint.environment.registry.restrictions_of
    shown = PlanPreviewer(
        registry, planned, definition, restricted, existing, rows, overrides
    ).walk()
    plan = tuple(
        PlannedChange(
            name=one.name,
            type=one.type,
            change=one.kind,
            physical_id=one.physical_id,
            properties={name: to["to"] for name, to in one.changes.items() if "to" in to},
            changes=one.changes if one.kind in ("updated", "replaced") else {},
            unknown=tuple(one.unknown),
            certain=one.certain and not registry.has_nested_stack(one.type),
            nested=registry.has_nested_stack(one.type),
        )
        for one in shown
        if one.kind != KINDS[None]
    )
    return _document(started, definition.shown_parameters(), plan)


async def view_of_nodes(
    conn: Connection, started: GateView, planned: Plan, registry: TypeRegistry
) -> dict[str, Json]:
    """The view of a delete or an in-place action: the operation on each resource."""
    shown = (
        await templates.read_template_summary(conn, started.stack_id, started.version)
    ).parameters
    plan = tuple(
        PlannedChange(
            name=node.name,
            type=node.type,
            change="deleted" if node.direction is Direction.CLEANUP else node.operation.value,
            nested=registry.has_nested_stack(node.type),
        )
        for node in planned.nodes
        if node.operation not in GATES
        and (node.direction is Direction.CLEANUP or node.operation in IN_PLACE_OPERATIONS)
    )
    return _document(started, shown, plan)


def _document(
    started: GateView, parameters: Mapping[str, Json], plan: Sequence[PlannedChange]
) -> dict[str, Json]:
    return view_document(
        StackView(
            project=started.project,
            stack_id=started.stack_id,
            stack_name=started.name,
            action=started.action.value,
            traversal=started.number,
            version=started.version,
            requested_by=started.requested_by.name,
            parameters=parameters,
            tags=tuple(started.tags),
            plan=plan,
            only=None if started.only is None else tuple(started.only),
        )
    )
