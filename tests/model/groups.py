"""The operations of groups in the model of a stack tree: the real type decides the batches."""

import json
from dataclasses import replace

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
from engine.types.groups.member_template import GROUP
from engine.types.groups.resource_group import INDEX, ResourceGroup
from engine.words import Json, Operation
from tests.model.system_state import NodeView, ResourceSpec, SystemState, Worker

TYPE = ResourceGroup()


def properties_of(group: ResourceSpec) -> dict[str, Json]:
    """The properties of a group, whose members differ in nothing."""
    body = {"type": "T", "properties": {"value": group.value}}
    return {"count": len(group.nested), "resource_def": body}


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
    members = [
        Member(row.name, "T", row.action, row.status, "there", row.name, {}, call.now)
        for row in nested.rows
        if row.replaced_by is None
    ]
    bodies = {
        spec.name: {"type": "T", "properties": {"value": spec.value}} for spec in nested.template
    }
    records: dict[str, Json] = {GROUP: {"removed": [], "placed": {}}}
    return replace(child, members=members, template={"resources": bodies}, parameters=records)


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
    bodies = command.goal.template["resources"]
    rules = {one.name: one.rules for one in group.nested}
    return tuple(
        ResourceSpec(name, value=body["properties"]["value"], rules=rules[name])
        for name, body in bodies.items()
    )
