"""A template as a resource type: parameters are properties, and outputs are attributes."""

from collections.abc import Callable, Mapping

from engine.hot.expressions.member_attributes import REFERENCE, members_entry
from engine.hot.nested.template_stack import OUTPUTS, SCHEMA, TEMPLATE_URL, stack_parameters
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

    def command(self, properties: Mapping[str, Json]) -> ReconcileNested:
        """The command that creates or updates the nested stack."""
        return ReconcileNested(None, properties)

    def create(self, call: Call) -> Outcome:
        return run_nested(call, "create", self.command(call.properties), self._completion_of(call))

    def update(self, call: Call) -> Outcome:
        command, done = self.command(call.properties), self._completion_of(call)
        restored = restore_nested(call, command.parameters, done, command.file)
        if restored is not None:
            return restored
        return run_nested(call, "update", command, done)

    def delete(self, call: Call) -> Outcome:
        return (
            _end_delete()
            if call.child is None
            else run_nested(call, "delete", DeleteNested(), lambda _: _end_delete())
        )

    def adopt(self, call: Call) -> Outcome:
        return adopt_nested(call, lambda _: self.command(call.properties), self._completion_of)

    def snapshot(self, call: Call) -> Outcome:
        return snapshot_nested(call)

    def check(self, call: Call) -> Outcome:
        return run_nested(call, "check", ActOnNested(Operation.CHECK), self._completion_of(call))

    def suspend(self, call: Call) -> Outcome:
        return run_nested(
            call, "suspend", ActOnNested(Operation.SUSPEND), self._completion_of(call)
        )

    def resume(self, call: Call) -> Outcome:
        return run_nested(call, "resume", ActOnNested(Operation.RESUME), self._completion_of(call))

    def _completion_of(self, call: Call) -> Callable[[Child], Done]:
        """The outcome when a command on the nested stack has completed."""

        def done(child: Child) -> Done:
            known = stack_arn(call.project, child)
            reference = self.reference_of(child, known)
            attributes, secret = self.attributes_of(child, known)
            return Done(str(child.id), attributes, {"reference": reference}, secret=secret)

        return done

    def reference_of(self, child: Child, arn: str) -> str:
        """The result of get_resource."""
        return str(child.outputs.get(STACK_ID) or arn)

    def attributes_of(self, child: Child, arn: str) -> tuple[dict[str, Json], set[str]]:
        """The attributes of the resource, and the names of the secret ones."""
        members = [(one.name, one.reference, one.attributes) for one in child.members]
        members_values = members_entry(
            members, secret={one.name: one.secret_attributes for one in child.members}
        )
        attributes = {STACK_ID: arn, **child.outputs, **members_values}
        secret = set(child.secret_outputs)
        if STACK_ID in secret:
            secret.add(REFERENCE)
        return attributes, secret

    def reference(
        self, resource_name: str, physical_id: str | None, data: Mapping[str, Json]
    ) -> str:
        return str(data.get("reference") or physical_id or resource_name)


class TemplateStack(TemplateResource):
    """AWS::CloudFormation::Stack: the template is among the files of the stack, by its URL."""

    schema = SCHEMA

    def command(self, properties: Mapping[str, Json]) -> ReconcileNested:
        parameters = stack_parameters(properties)
        return ReconcileNested(
            None,
            parameters if isinstance(parameters, Mapping) else {},
            file=properties.get(TEMPLATE_URL) or "",
        )

    def reference_of(self, child: Child, arn: str) -> str:
        return arn

    def attributes_of(self, child: Child, arn: str) -> tuple[dict[str, Json], set[str]]:
        attributes = {f"{OUTPUTS}{name}": value for name, value in child.outputs.items()}
        return attributes, {f"{OUTPUTS}{name}" for name in child.secret_outputs}


def _end_delete() -> Done:
    return Done(None)


def stack_arn(project: str, child: Child) -> str:
    """The globally unique name of a stack, in Heat's form."""
    return f"arn:openstack:heat::{project}:stacks/{child.name}/{child.id}"
