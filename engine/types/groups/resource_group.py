"""OS::Heat::ResourceGroup: members that differ only in their index."""

from collections.abc import Awaitable, Iterator, Mapping, Sequence

from engine.hot.expressions.member_attributes import Aggregation
from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Grouping,
    Kind,
    Property,
    TypeSchema,
    updatable,
)
from engine.types.contract import Call, Child, Outcome, ReconcileNested
from engine.types.groups.group import (
    Group,
    Policy,
    batch_properties,
    exact_size,
    member_attributes,
    policy_of,
    whole_number,
)
from engine.types.groups.group_steps import preview_members, run_steps, with_placement
from engine.types.groups.member_changes import by_index
from engine.types.groups.member_template import (
    Body,
    CurrentMembers,
    current_members,
    property_place,
    sample,
)
from engine.types.groups.step_plans import REMOVED, IndexedPlan
from engine.types.nested_observation import AllowedSize
from engine.words import Json, Point

AGGREGATIONS: Mapping[str, Aggregation] = {
    "refs": Aggregation.REFERENCES,
    "refs_map": Aggregation.REFERENCES_BY_NAME,
    "attributes": Aggregation.EACH_BY_NAME,
}
INDEX = "%index%"


class ResourceGroup(Group):
    body_properties = ("resource_def",)
    schema = TypeSchema(
        "OS::Heat::ResourceGroup",
        description="Members that differ only in their index, which starts at 0.",
        properties={
            "count": updatable(
                Kind.INTEGER,
                "Number of members.",
                default=1,
                constraints=(Constraint("range", min=0),),
            ),
            "index_var": Property(
                Kind.STRING,
                "Placeholder for the member's index in its properties and metadata.",
                default=INDEX,
                constraints=(Constraint("length", min=3),),
            ),
            "resource_def": updatable(
                Kind.MAP,
                "Definition of each member, as in a template.",
                required=True,
                fields={
                    "type": Property(Kind.STRING, "Its type.", required=True),
                    "properties": Property(Kind.MAP, "Its properties."),
                    "metadata": Property(Kind.MAP, "Its metadata."),
                },
            ),
            "removal_policies": updatable(
                Kind.LIST,
                "Members to remove, independent of count.",
                default=[],
                public=True,
                items=Property(
                    Kind.MAP,
                    fields={
                        "resource_list": Property(
                            Kind.LIST, "Member names, or values of get_resource.", default=[]
                        )
                    },
                ),
            ),
            "removal_policies_mode": updatable(
                Kind.STRING,
                "append: earlier removals stay in effect; update: only the current list counts.",
                default="append",
                constraints=(Constraint("allowed_values", allowed=("append", "update")),),
            ),
        },
        attributes={
            "refs": Attribute(Kind.LIST, "The values of get_resource for the members."),
            "refs_map": Attribute(Kind.MAP, "The values of get_resource, by member name."),
            "attributes": Attribute(
                Kind.MAP,
                "One attribute of each member, by member name.",
                takes_member_attribute=True,
            ),
            "removed_rsrc_list": Attribute(Kind.LIST, "Names that are never used again."),
        },
        update_policy={
            "rolling_update": Property(Kind.MAP, fields=batch_properties("change")),
            "batch_create": Property(Kind.MAP, fields=batch_properties("create", in_service=False)),
        },
        steps=(Point.PRE_BATCH, Point.PRE_SCALE_IN),
        grouping=Grouping(
            lambda properties: _sample(properties),
            lambda properties: whole_number(properties.get("count", 1)),
            lambda place: property_place(place, "resource_def"),
            of_each=True,
        ),
    )

    def create(self, call: Call) -> Outcome | Awaitable[Outcome]:
        policy = policy_of(call.update_policy.get("batch_create"))
        return self._run(call, _plan(call, policy, creates=policy is not None))

    def update(self, call: Call) -> Outcome | Awaitable[Outcome]:
        policy = policy_of(call.update_policy.get("rolling_update"))
        return self._run(call, _plan(call, policy, creates=False))

    def _run(self, call: Call, plan: IndexedPlan) -> Outcome | Awaitable[Outcome]:
        return run_steps(call, plan, lambda child: self.done(call, child), self.placer)

    def preview_members(self, call: Call) -> ReconcileNested | None:
        body = call.properties["resource_def"]
        if not isinstance(body, dict) or not isinstance(body.get("type"), str):
            return None
        plan = _plan(call, None, creates=False)
        return preview_members(call, plan, call.properties["count"])

    def allowed_size(self, properties: Mapping[str, Json]) -> AllowedSize | None:
        return exact_size(whole_number(properties.get("count")))

    def attributes(self, call: Call, child: Child) -> Mapping[str, Json]:
        known = {one.name: one for one in child.members}
        members = [known[name] for name in by_index(known)]
        removed = current_members(child).group.get(REMOVED, [])
        inside = member_attributes(members, AGGREGATIONS, of_each=True)
        return {"removed_rsrc_list": [*removed], **inside}


def _plan(call: Call, policy: Policy | None, *, creates: bool) -> IndexedPlan:
    properties = call.properties
    body, index = properties["resource_def"], properties["index_var"]
    return IndexedPlan(
        properties["count"],
        with_placement(
            lambda name: numbered_member(body, index, name), current_members(call.child)
        ),
        lambda current: [*_removed_members(call, current)],
        call.has_secrets,
        policy,
        creates,
    )


def _sample(
    properties: Mapping[str, Json],
) -> tuple[Mapping[str, Json], Mapping[str, Json]] | None:
    """A group with count 0 is not validated, because templates use it to disable parts."""
    body, index = properties.get("resource_def"), properties.get("index_var") or INDEX
    if not isinstance(body, dict) or "type" not in body or not isinstance(index, str):
        return None
    if properties.get("count", 1) == 0:
        return None
    return sample({"0": numbered_member(body, index, "0")})


def numbered_member(body: Body, index: str, name: str) -> Body:
    """The definition of one member: without nulls, and with its name for the index variable."""
    whole: dict[str, Json] = {"type": body["type"]}
    for section in ("properties", "metadata"):
        values = body.get(section)
        if isinstance(values, dict):
            values = {key: value for key, value in values.items() if value is not None}
        if values:
            whole[section] = replace_index(values, index, name)
    return whole


def replace_index(value: Json, index: str, name: str) -> Json:
    """Replace the index variable in all values; keys do not change, as in Heat."""
    if isinstance(value, str):
        return value.replace(index, name)
    if isinstance(value, dict):
        return {key: replace_index(item, index, name) for key, item in value.items()}
    if isinstance(value, list):
        return [replace_index(item, index, name) for item in value]
    return value


def _removed_members(call: Call, current: CurrentMembers) -> Iterator[str]:
    """The members in the removal policies, by name or value of get_resource; others are ignored."""
    before: Sequence[str] = current.group.get(REMOVED, [])
    if call.properties["removal_policies_mode"] == "append":
        yield from before
    names = {str(reference): name for name, reference in current.references.items()}
    for policy in call.properties["removal_policies"]:
        for one in policy.get("resource_list") or []:
            name = str(one)
            if call.child is None or name in before or name in current.bodies:
                yield name
            elif name in names:
                yield names[name]
