"""OS::Heat::None: takes any properties, does nothing. Used to switch a type off."""

from engine.hot.schema.type_schema import TypeSchema
from engine.types.contract import Call, Done, Outcome, ResourceType


class NoneResource(ResourceType):
    uses_credential = False
    schema = TypeSchema(
        "OS::Heat::None",
        description="Does nothing; takes any properties and gives null for any attribute.",
        any_property=True,
        any_attribute=True,
    )

    def create(self, call: Call) -> Outcome:
        return Done(str(call.operation_key))

    def update(self, call: Call) -> Outcome:
        return Done(call.physical_id)

    def delete(self, call: Call) -> Outcome:
        return Done(None)
