"""A template as a resource type: its parameters are the properties, its outputs the attributes."""

from collections.abc import Callable, Mapping

from engine.hot.expressions.member_attributes import REFERENCE, members_entry
from engine.hot.schema.type_schema import TypeSchema
from engine.types.contract import Away, Call, Child, Done, Outcome, ResourceType, Toward, Visit
from engine.types.nested_commands import brought
from engine.words import Json, Operation

#: An attribute, and an output that says what `get_resource` gives.
STACK_ID = "OS::stack_id"


class TemplateResource(ResourceType):
    """All template types are this one: what the template in question says was checked when the
    stack around was accepted, and is read again when the stack inside is made."""

    nests = True
    schema = TypeSchema(
        "a template",
        description="A nested stack from a template.",
        any_property=True,
        any_attribute=True,
    )

    def create(self, call: Call) -> Outcome:
        return brought(call, "create", Toward(None, call.properties), _made(call))

    def update(self, call: Call) -> Outcome:
        return brought(call, "update", Toward(None, call.properties), _made(call))

    def delete(self, call: Call) -> Outcome:
        return _gone() if call.child is None else brought(call, "delete", Away(), lambda _: _gone())

    def check(self, call: Call) -> Outcome:
        return brought(call, "check", Visit(Operation.CHECK), _made(call))

    def suspend(self, call: Call) -> Outcome:
        return brought(call, "suspend", Visit(Operation.SUSPEND), _made(call))

    def resume(self, call: Call) -> Outcome:
        return brought(call, "resume", Visit(Operation.RESUME), _made(call))

    def reference(
        self, resource_name: str, physical_id: str | None, data: Mapping[str, Json]
    ) -> str:
        return str(data.get("reference") or physical_id or resource_name)


def _gone() -> Done:
    return Done(None)


def _made(call: Call) -> Callable[[Child], Done]:
    """What the resource is, once the stack inside is what it should be."""

    def done(child: Child) -> Done:
        known = address(call.project, child)
        reference = child.outputs.get(STACK_ID) or known
        members = [(one.name, one.reference, one.attributes) for one in child.members]
        inside = members_entry(members, secret={one.name: one.secret for one in child.members})
        attributes = {STACK_ID: known, **child.outputs, **inside}
        secret = set(child.secret_outputs)
        if STACK_ID in secret:
            secret.add(REFERENCE)
        return Done(str(child.id), attributes, {"reference": reference}, secret=secret)

    return done


def address(project: str, child: Child) -> str:
    """What a stack is called where only one thing in the world may be meant, as Heat writes it."""
    return f"arn:openstack:heat::{project}:stacks/{child.name}/{child.id}"
