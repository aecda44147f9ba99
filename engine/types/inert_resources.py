"""OS::Heat::None: takes any properties, does nothing. Used to switch a type off."""

from engine.hot.schema.type_schema import Kind, Property, TypeSchema
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


class AccessPolicy(ResourceType):
    """Who asks for it are users that EC2's types make, of which there are none here."""

    uses_credential = False
    schema = TypeSchema(
        "OS::Heat::AccessPolicy",
        description="Names resources that a user may read; stored, without effect.",
        properties={
            "AllowedResources": Property(
                Kind.LIST,
                "Names of resources of the template.",
                required=True,
                items=Property(Kind.STRING),
            )
        },
        names_resources=("AllowedResources",),
    )

    def create(self, call: Call) -> Outcome:
        return Done(str(call.resource_id))

    def delete(self, call: Call) -> Outcome:
        return Done(None)
