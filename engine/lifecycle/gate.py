"""The operations of a stack's gates, which workers call after their hooks."""

from engine.hot.schema.type_schema import TypeSchema
from engine.lifecycle.plugins import Plugins
from engine.lifecycle.view import view_of
from engine.plan.gates import STACK_TYPE
from engine.types.contract import Call, Done, Failed, Outcome, ResourceType


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
