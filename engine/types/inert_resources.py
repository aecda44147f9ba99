"""Resource types without any effect: OS::Heat::None and OS::Heat::AccessPolicy."""

from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from engine.types.contract import Call, Done, InternalType, Outcome


class NoneResource(InternalType):
    """Accepts any properties. An environment maps a type to it to disable that type."""

    computes_only = True
    schema = TypeSchema(
        "OS::Heat::None",
        description="Does nothing; accepts any properties and returns null for any attribute.",
        any_property=True,
        any_attribute=True,
        snapshots=True,
    )

    def create(self, call: Call) -> Outcome:
        return Done(str(call.operation_key))

    def update(self, call: Call) -> Outcome:
        return Done(call.physical_id)


class AccessPolicy(InternalType):
    """Has no effect: in Heat, only users of the EC2 API refer to it, and Headgate has no such
    types."""

    computes_only = True
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
