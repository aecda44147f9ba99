"""The operations of a stack's gates, which workers call after their hooks, and the JSON form of the
view of the stack and its plan that gates store."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from uuid import UUID

from engine.hot.schema.type_schema import TypeSchema
from engine.lifecycle.contract import VERSION, PlannedChange, StackView
from engine.lifecycle.plugins import Plugins
from engine.plan.draft import STACK_TYPE
from engine.types.contract import Call, Done, Failed, Outcome, ResourceType
from engine.words import Json


def view_document(view: StackView) -> dict[str, Json]:
    return {"version_of_view": VERSION, **asdict(view), "plan": [asdict(one) for one in view.plan]}


def view_of(document: Mapping[str, Json]) -> StackView:
    """Decode a view. Fields of later versions are ignored."""
    known = _select_fields(StackView, document)
    plan: Sequence[Mapping[str, Json]] = known.pop("plan", ())
    known["stack_id"] = UUID(str(known["stack_id"]))
    return StackView(
        **known, plan=tuple(PlannedChange(**_select_fields(PlannedChange, one)) for one in plan)
    )


def _select_fields(
    kind: type[StackView | PlannedChange], document: Mapping[str, Json]
) -> dict[str, Json]:
    """Return the fields of this version, with lists as tuples."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in document.items()
        if name in kind.__dataclass_fields__
    }


class StackGate(ResourceType):
    """The type of gates. Its properties are the view of the stack and its plan."""

    uses_credential = False
    schema = TypeSchema(STACK_TYPE, description="The stack itself.", any_property=True)

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins

    async def create(self, call: Call) -> Outcome:
        """Call all plug-ins before the action begins; fail if one refuses it."""
        refusal = await self._plugins.before(view_of(call.properties))
        return Failed(refusal, public_reason=refusal) if refusal else Done(None)

    def delete(self, call: Call) -> Outcome:
        return Done(None)
