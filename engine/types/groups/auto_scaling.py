"""OS::Heat::AutoScalingGroup: identical members whose number scaling policies adjust."""

from collections.abc import Mapping

from engine.errors import Findings
from engine.hot.expressions.member_attributes import Aggregation
from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Grouping,
    Kind,
    TypeSchema,
    updatable,
)
from engine.types.contract import Call, Child
from engine.types.groups.group import (
    Policy,
    batch_properties,
    healthy_members,
    member_attributes,
    policy_of,
    whole_number,
)
from engine.types.groups.member_template import Body, property_place, sample
from engine.types.groups.scaling_group import ScalingGroup
from engine.words import Json, Point

AGGREGATIONS: Mapping[str, Aggregation] = {
    "refs": Aggregation.REFERENCES,
    "refs_map": Aggregation.REFERENCES_BY_NAME,
    "outputs": Aggregation.EACH_BY_NAME,
    "outputs_list": Aggregation.EACH,
    "current_size": Aggregation.COUNT,
}
FROM_ZERO = (Constraint("range", min=0),)


class AutoScalingGroup(ScalingGroup):
    body_properties = ("resource",)
    schema = TypeSchema(
        "OS::Heat::AutoScalingGroup",
        description="Identical members whose number scaling policies adjust.",
        properties={
            "resource": updatable(
                Kind.MAP,
                "Definition of each member, as in the resources section of a template.",
                required=True,
            ),
            "max_size": updatable(
                Kind.INTEGER, "Maximum number of members.", required=True, constraints=FROM_ZERO
            ),
            "min_size": updatable(
                Kind.INTEGER, "Minimum number of members.", required=True, constraints=FROM_ZERO
            ),
            "cooldown": updatable(
                Kind.INTEGER,
                "Seconds after a change of size in which scaling policies have no effect.",
            ),
            "desired_capacity": updatable(
                Kind.INTEGER, "Number of members until a scaling policy changes it."
            ),
            "rolling_updates": updatable(
                Kind.MAP,
                "How members are replaced when their definition changes.",
                default={"min_in_service": 0, "max_batch_size": 1, "pause_time": 0},
                fields=batch_properties("change"),
            ),
        },
        attributes={
            "refs": Attribute(Kind.LIST, "The values of get_resource for the members."),
            "refs_map": Attribute(Kind.MAP, "The values of get_resource, by member name."),
            "outputs": Attribute(
                Kind.MAP,
                "One attribute of each member, by member name.",
                takes_member_attribute=True,
            ),
            "outputs_list": Attribute(
                Kind.LIST, "One attribute of each member.", takes_member_attribute=True
            ),
            "current_size": Attribute(Kind.INTEGER, "Current number of members.", public=True),
        },
        steps=(Point.PRE_BATCH, Point.PRE_SCALE_IN),
        grouping=Grouping(
            lambda properties: sample({"member": properties.get("resource")}),
            lambda properties: _size(properties),
            lambda place: property_place(place, "resource"),
        ),
    )

    def body(self, call: Call) -> Body:
        body: Body = call.properties["resource"]
        return body

    def wanted_size(self, properties: Mapping[str, Json]) -> int | None:
        size: int | None = properties.get("desired_capacity")
        return size

    def bounds(self, properties: Mapping[str, Json]) -> tuple[int, int]:
        return properties["min_size"], properties["max_size"]

    def policy(self, call: Call) -> Policy | None:
        return policy_of(call.properties["rolling_updates"])

    def cooldown(self, properties: Mapping[str, Json]) -> float:
        return properties.get("cooldown") or 0

    def attributes(self, call: Call, child: Child) -> Mapping[str, Json]:
        return member_attributes(healthy_members(child), AGGREGATIONS, by_index=True)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        min_size, max_size = properties.get("min_size"), properties.get("max_size")
        size = properties.get("desired_capacity")
        if min_size is not None and max_size is not None and min_size > max_size:
            reason = f"min_size ({min_size}) can not be greater than max_size ({max_size})"
            findings.add(f"{place}.min_size", reason, "Lower it, or raise max_size.")
            return
        if size is None:
            return
        if (min_size is not None and size < min_size) or (max_size is not None and size > max_size):
            reason = "desired_capacity must be between min_size and max_size"
            findings.add(
                f"{place}.desired_capacity", reason, f"Use a value from {min_size} to {max_size}."
            )


def _size(properties: Mapping[str, Json]) -> int | None:
    """The initial size; None if unknown."""
    size = properties.get("desired_capacity")
    return whole_number(properties.get("min_size") if size is None else size)
