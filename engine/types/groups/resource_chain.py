"""OS::Heat::ResourceChain: one member of each listed type, in order."""

from collections.abc import Awaitable, Iterator, Mapping, Sequence

from engine.hot.expressions.member_attributes import Aggregation
from engine.hot.schema.type_schema import Attribute, Grouping, Kind, Property, TypeSchema, updatable
from engine.types.contract import Call, Child, Outcome, ReconcileNested
from engine.types.groups.group import Group, exact_size, member_attributes
from engine.types.groups.group_steps import GroupStep, Progress, preview_members, run_steps
from engine.types.groups.member_changes import by_index, change_all
from engine.types.groups.member_template import (
    Body,
    CurrentMembers,
    sample,
    split_member_place,
)
from engine.types.nested_observation import AllowedSize
from engine.words import Json

AGGREGATIONS: Mapping[str, Aggregation] = {
    "refs": Aggregation.REFERENCES,
    "attributes": Aggregation.EACH_BY_NAME,
}


class ResourceChain(Group):
    body_properties = ("resource_properties",)
    schema = TypeSchema(
        "OS::Heat::ResourceChain",
        description="One member of each listed type, with the same properties.",
        properties={
            "resources": updatable(
                Kind.LIST,
                "Types of the members, in order.",
                required=True,
                items=Property(Kind.STRING),
            ),
            "concurrent": Property(
                Kind.BOOLEAN, "Create members concurrently, or one after the other.", default=False
            ),
            "resource_properties": Property(Kind.MAP, "Properties of each member."),
        },
        attributes={
            "refs": Attribute(Kind.LIST, "The values of get_resource for the members."),
            "attributes": Attribute(
                Kind.MAP,
                "One attribute of each member, by member name.",
                takes_member_attribute=True,
            ),
        },
        grouping=Grouping(
            lambda properties: _sample(properties),
            lambda properties: None,
            lambda place: _property_place(place),
            of_each=True,
        ),
    )

    def create(self, call: Call) -> Outcome | Awaitable[Outcome]:
        return run_steps(call, _ChainPlan(call), lambda child: self.done(call, child))

    update = create

    def preview_members(self, call: Call) -> ReconcileNested | None:
        return preview_members(call, _ChainPlan(call), len(call.properties["resources"]))

    def allowed_size(self, properties: Mapping[str, Json]) -> AllowedSize | None:
        return exact_size(len(properties.get("resources") or []))

    def attributes(self, call: Call, child: Child) -> Mapping[str, Json]:
        known = {one.name: one for one in child.members}
        return member_attributes(
            [known[name] for name in by_index(known)], AGGREGATIONS, of_each=True
        )


def chain_members(properties: Mapping[str, Json]) -> Iterator[tuple[str, Body]]:
    """The name and definition of each member."""
    for place, type_name in enumerate(properties.get("resources") or []):
        body: dict[str, Json] = {"type": type_name}
        if shared := properties.get("resource_properties"):
            body["properties"] = shared
        if place and not properties.get("concurrent"):
            body["depends_on"] = [str(place - 1)]
        yield str(place), body


def _sample(
    properties: Mapping[str, Json],
) -> tuple[Mapping[str, Json], Mapping[str, Json]] | None:
    types, shared = properties.get("resources"), properties.get("resource_properties") or {}
    if not isinstance(types, list) or not isinstance(shared, dict):
        return None
    return (
        sample(dict(chain_members(properties))) if all(isinstance(t, str) for t in types) else None
    )


def _property_place(place: str) -> str:
    name, rest = split_member_place(place)
    if rest.startswith(".properties"):
        return "resource_properties" + rest.removeprefix(".properties")
    if rest.startswith("<"):  # inside the template of the member
        return f"resources[{name}]{rest}"
    return f"resources[{name}]"


class _ChainPlan:
    def __init__(self, call: Call) -> None:
        self._bodies = dict(chain_members(call.properties))
        self.has_secrets = call.has_secrets

    def compute_records(self, current: CurrentMembers) -> Mapping[str, Json]:
        return {}

    def step(
        self, current: CurrentMembers, at: Progress, names: Sequence[str] | None
    ) -> GroupStep | None:
        change = change_all(current, [*self._bodies], self._bodies.__getitem__)
        return GroupStep("members", change) if change.any else None
