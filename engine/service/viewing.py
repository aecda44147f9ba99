"""What is kept at a stack's own gate: the stack and its plan, for plug-ins, programs and people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.hot.definition import Definition
from engine.lifecycle.contract import PlannedChange, StackView
from engine.lifecycle.view import view_document
from engine.plan.draft import Existing, Plan
from engine.service.blueprint import Blueprint
from engine.service.prediction import KINDS, Prediction
from engine.store import read
from engine.store.connection import Connection
from engine.store.records import PlannedRecord
from engine.types.registry import Registry
from engine.words import GATES, VISITS, Action, Direction, Json


@dataclass(frozen=True, slots=True)
class Begun:
    """A traversal that begins."""

    stack_id: UUID
    project: str
    name: str
    action: Action
    number: int
    version: int
    requested_by: str
    tags: Sequence[str]


async def rows_of(
    conn: Connection, stack_id: UUID, planned: Plan, definition: Definition
) -> list[PlannedRecord]:
    """The rows that a plan is about, and those that its resources read."""
    names = {node.name for node in planned.nodes}
    wanted = names & definition.resources.keys()
    reads = {one for name in wanted for one in definition.resources[name].reads}
    ids = [node.resource_id for node in planned.nodes]
    return await read.read_planned(conn, stack_id, ids, sorted(names | reads))


async def view_toward(
    conn: Connection,
    begun: Begun,
    planned: Plan,
    blueprint: Blueprint,
    existing: Sequence[Existing],
    registry: Registry,
) -> dict[str, Json]:
    """Of a change toward a version: what becomes of each resource that it concerns."""
    definition = blueprint.definition
    rows = await rows_of(conn, begun.stack_id, planned, definition) if existing else []
    restricted = blueprint.environment.registry.restricted
    shown = Prediction(registry, planned, definition, restricted, existing, rows).walk()
    plan = tuple(
        PlannedChange(
            name=one.name,
            type=one.type,
            change=one.kind,
            physical_id=one.physical_id,
            properties={name: to["to"] for name, to in one.changes.items() if "to" in to},
            changes=one.changes if one.kind in ("updated", "replaced") else {},
            unknown=tuple(one.unknown),
            certain=one.certain,
        )
        for one in shown
        if one.kind != KINDS[None]
    )
    return _document(begun, definition.shown_parameters(), plan)


async def view_of_nodes(conn: Connection, begun: Begun, planned: Plan) -> dict[str, Json]:
    """Of a delete, a check and the like: what is done to each resource."""
    shown = (await read.read_shown(conn, begun.stack_id, begun.version)).parameters
    plan = tuple(
        PlannedChange(
            name=node.name,
            type=node.type,
            change="deleted" if node.direction is Direction.CLEANUP else node.operation.value,
        )
        for node in planned.nodes
        if node.operation not in GATES
        and (node.direction is Direction.CLEANUP or node.operation in VISITS)
    )
    return _document(begun, shown, plan)


def _document(
    begun: Begun, parameters: Mapping[str, Json], plan: Sequence[PlannedChange]
) -> dict[str, Json]:
    return view_document(
        StackView(
            project=begun.project,
            stack_id=begun.stack_id,
            stack_name=begun.name,
            action=begun.action.value,
            traversal=begun.number,
            version=begun.version,
            requested_by=begun.requested_by,
            parameters=parameters,
            tags=tuple(begun.tags),
            plan=plan,
        )
    )
