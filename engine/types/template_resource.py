"""A template as a resource type: its parameters are the properties, its outputs the attributes."""

from collections.abc import Callable, Mapping

from engine.hot.inside import kept, secret_texts
from engine.hot.repeating import repeats
from engine.hot.schema import TypeSchema
from engine.types.contract import Away, Call, Child, Done, Outcome, ResourceType, Toward, Visit
from engine.types.nested import brought
from engine.words import Json, Operation

#: An attribute, and an output that says what `get_resource` gives.
STACK_ID = "OS::stack_id"


class TemplateResource(ResourceType):
    """All template types are this one: what the template in question says was checked when the
    stack around was accepted, and is read again when the stack inside is made."""

    nests = True
    schema = TypeSchema(
        "a template",
        description="A stack inside of a stack, made from a template.",
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
        attributes = {STACK_ID: known, **child.outputs, **_inside(child)}
        return Done(str(child.id), attributes, {"reference": reference})

    return done


def _inside(child: Child) -> dict[str, Json]:
    members = [(one.name, one.reference, one.attributes) for one in child.members]
    secret = [one.name for one in child.members if one.secret]
    inside = kept(members, secret=secret)
    hidden = secret_texts(inside)
    if not hidden:
        return inside
    hides = [name for name, value in child.outputs.items() if repeats(value, hidden)]
    return kept(members, secret=secret, hides=hides)


def address(project: str, child: Child) -> str:
    """What a stack is called where only one thing in the world may be meant, as Heat writes it."""
    return f"arn:openstack:heat::{project}:stacks/{child.name}/{child.id}"
