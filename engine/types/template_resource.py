"""A template as a resource type: parameters are properties, and outputs are attributes."""

from collections.abc import Callable, Mapping

from engine.hot.expressions.member_attributes import REFERENCE, members_entry
from engine.hot.schema.type_schema import TypeSchema
from engine.types.contract import (
    ActOnNested,
    Call,
    Child,
    DeleteNested,
    Done,
    Outcome,
    ReconcileNested,
    ResourceType,
    run_nested,
)
from engine.types.nested_state import adopt_nested, restore_nested, snapshot_nested
from engine.words import Json, Operation

#: An attribute, and an output that overrides the value of `get_resource`.
STACK_ID = "OS::stack_id"


class TemplateResource(ResourceType):
    """The implementation of all template types. The template is validated when the parent stack is
    accepted, and read again when the nested stack is created."""

    has_nested_stack = True
    schema = TypeSchema(
        "a template",
        description="A nested stack from a template.",
        any_property=True,
        any_attribute=True,
    )

    def create(self, call: Call) -> Outcome:
        return run_nested(
            call, "create", ReconcileNested(None, call.properties), _completion_of(call)
        )

    def update(self, call: Call) -> Outcome:
        restored = restore_nested(call, call.properties, _completion_of(call))
        if restored is not None:
            return restored
        return run_nested(
            call, "update", ReconcileNested(None, call.properties), _completion_of(call)
        )

    def delete(self, call: Call) -> Outcome:
        return (
            _end_delete()
            if call.child is None
            else run_nested(call, "delete", DeleteNested(), lambda _: _end_delete())
        )

    def adopt(self, call: Call) -> Outcome:
        return adopt_nested(call, lambda _: ReconcileNested(None, call.properties), _completion_of)

    def snapshot(self, call: Call) -> Outcome:
        return snapshot_nested(call)

    def check(self, call: Call) -> Outcome:
        return run_nested(call, "check", ActOnNested(Operation.CHECK), _completion_of(call))

    def suspend(self, call: Call) -> Outcome:
        return run_nested(call, "suspend", ActOnNested(Operation.SUSPEND), _completion_of(call))

    def resume(self, call: Call) -> Outcome:
        return run_nested(call, "resume", ActOnNested(Operation.RESUME), _completion_of(call))

    def reference(
        self, resource_name: str, physical_id: str | None, data: Mapping[str, Json]
    ) -> str:
        return str(data.get("reference") or physical_id or resource_name)


def _end_delete() -> Done:
    return Done(None)


def _completion_of(call: Call) -> Callable[[Child], Done]:
    """The outcome when a command on the nested stack has completed."""

    def done(child: Child) -> Done:
        known = stack_arn(call.project, child)
        reference = child.outputs.get(STACK_ID) or known
        members = [(one.name, one.reference, one.attributes) for one in child.members]
        members_values = members_entry(
            members, secret={one.name: one.secret_attributes for one in child.members}
        )
        attributes = {STACK_ID: known, **child.outputs, **members_values}
        secret = set(child.secret_outputs)
        if STACK_ID in secret:
            secret.add(REFERENCE)
        return Done(str(child.id), attributes, {"reference": reference}, secret=secret)

    return done


def stack_arn(project: str, child: Child) -> str:
    """The globally unique name of a stack, in Heat's form."""
    return f"arn:openstack:heat::{project}:stacks/{child.name}/{child.id}"
