"""OS::Heat::AccessPolicy: a list of resources that somebody may read. Makes nothing."""

from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Outcome, ResourceType


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
