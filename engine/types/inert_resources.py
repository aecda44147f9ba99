"""Resource types without any effect: OS::Heat::None and OS::Heat::AccessPolicy."""

from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Outcome, ResourceType


class NoneResource(ResourceType):
    """Accepts any properties. An environment maps a type to it to disable that type."""

    uses_credential = False
    schema = TypeSchema(
        "OS::Heat::None",
        description="Does nothing; accepts any properties and returns null for any attribute.",
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
    """In Heat, only the users of the EC2 types refer to it; Headgate has no such types."""

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
