"""The operations of groups in the model of a stack tree: the real type decides the batches."""

import json
from dataclasses import replace

from engine.node.node import ENDED
from engine.types.contract import (
    Call,
    Child,
    Confirm,
    Confirmation,
    Member,
    Outcome,
    ReconcileNested,
    RunNested,
)
from engine.types.groups.member_template import GROUP, PREVIOUS
from engine.types.groups.resource_group import INDEX, ResourceGroup
from engine.words import Direction, Json, Operation, State
from tests.model.system_state import NodeView, ResourceSpec, SystemState, Worker
from tests.model.traversals import running_operations

TYPE = ResourceGroup()


def properties_of(group: ResourceSpec) -> dict[str, Json]:
    """The properties of a group, whose members differ in nothing."""
    return {"count": len(group.nested), "resource_def": _body(group.value)}


def update_policy_of(group: ResourceSpec) -> dict[str, Json]:
    return {"rolling_update": {"max_batch_size": group.batch}}


def call_operation(group: ResourceSpec, view: NodeView, call: Call, nested: SystemState) -> Outcome:
    """Call the operation with what the engine reads for it. nested: its nested stack."""
    others = {"index_var": INDEX, "removal_policies": [], "removal_policies_mode": "append"}
    confirmation = None
    if view.confirmation is not None:
        confirmation = Confirmation(*view.confirmation, by="ann")
    whole = replace(
        call,
        properties=properties_of(group) | others,
        update_policy=update_policy_of(group),
        progress=json.loads(view.group_progress) if view.group_progress else None,
        confirmation=confirmation,
        child=None if call.child is None else _with_members(call.child, nested, call),
    )
    method = TYPE.create if view.operation is Operation.CREATE else TYPE.update
    outcome = method(whole)
    assert isinstance(outcome, Outcome)
    return outcome


def _with_members(child: Child, nested: SystemState, call: Call) -> Child:
    """`Children.read`: the current members, and the definitions of the last step."""
    under_way = {row_id for row_id, _ in running_operations(nested)}
    nodes = nested.traversal(nested.current)
    unapplied = {
        node_plan.name
        for node_plan, node in zip(nodes.graph.nodes, nodes.nodes, strict=True)
        if node_plan.direction is Direction.FORWARD
        and node is not None
        and node.state in ENDED - {State.DONE}
    }
    members = [
        Member(
            row.name,
            "T",
            row.action,
            row.status,
            "there",
            row.name,
            {},
            call.now,
            up_to_date=row.name not in unapplied,
            under_way=row.id in under_way,
        )
        for row in nested.rows
        if row.replaced_by is None
    ]
    bodies = {spec.name: _body(spec.value) for spec in nested.template}
    previous = {spec.name: _body(spec.previous) for spec in nested.template if spec.previous}
    records: dict[str, Json] = {GROUP: {"removed": [], "placed": {}}, PREVIOUS: previous}
    return replace(child, members=members, template={"resources": bodies}, parameters=records)


def _body(value: str) -> dict[str, Json]:
    return {"type": "T", "properties": {"value": value}}


def with_progress(worker: Worker, outcome: Outcome) -> Worker:
    """The worker with the progress that the operation returned."""
    assert worker.view is not None
    if not isinstance(outcome, Confirm | RunNested):
        return worker
    progress = json.dumps(outcome.progress, sort_keys=True)
    return worker._replace(view=worker.view._replace(group_progress=progress))


def template_of(group: ResourceSpec, command: RunNested) -> tuple[ResourceSpec, ...]:
    """The template of the nested stack after a step."""
    assert isinstance(command.goal, ReconcileNested) and command.goal.template is not None
    bodies, previous = command.goal.template["resources"], command.goal.parameters[PREVIOUS]
    rules = {one.name: one.rules for one in group.nested}
    return tuple(
        ResourceSpec(name, value=_value_of(body), rules=rules[name],
                     previous=_value_of(previous[name]) if name in previous else "")
        for name, body in bodies.items()
    )  # fmt: skip


def _value_of(body: Json) -> str:
    return str(body["properties"]["value"])
