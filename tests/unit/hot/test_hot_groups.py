"""Members of groups, as the language evaluates them before they exist."""

import pytest

from engine.errors import LimitReached
from engine.hot.nested.nested_templates import NestedTemplates
from engine.hot.schema.type_schema import Attribute, TypeSchema
from engine.types.groups.auto_scaling import AutoScalingGroup
from engine.types.groups.resource_chain import ResourceChain
from engine.types.groups.resource_group import ResourceGroup
from engine.types.software.deployment_group import deployment_groups
from engine.words import Json
from tests.unit.hot.hot_support import TYPES, defined, faults, thing
from tests.unit.hot.nested_support import template

GROUP = ResourceGroup().schema
SERVER = {"server.yaml": template(resources={"x": thing(), "y": thing()})}


@pytest.mark.parametrize(
    ("type_", "count"),
    [("Test::Thing", 1 + 4), ("server.yaml", 1 + 4 * 3)],
    ids=["plain", "with what is inside of each"],
)
def test_members_are_counted_with_their_nested_resources(type_: str, count: int) -> None:
    group = {"type": GROUP.name, "properties": {"count": 4, "resource_def": {"type": type_}}}

    def check(max_resources: int) -> None:
        nesting = NestedTemplates(SERVER, most_resources=max_resources)
        defined({"resources": {"g": group}}, types=TYPES | {GROUP.name: GROUP}, nesting=nesting)

    check(count)
    with pytest.raises(LimitReached):
        check(count - 1)


@pytest.mark.parametrize("path", [["refs"], ["resource.0", "value"], ["attributes", "value"]])
def test_attributes_of_members_with_secrets_are_secret(path: list[str]) -> None:
    plain = {"value": Attribute()}
    keys = TypeSchema("Keys", attributes={**plain, "key": Attribute(secret=True)})
    for type_, masked in ((keys, True), (TypeSchema("Plain", attributes=plain), False)):
        types = TYPES | {GROUP.name: GROUP, type_.name: type_}
        body = {"type": GROUP.name, "properties": {"resource_def": {"type": type_.name}}}
        reads = thing(text="x", value={"get_attr": ["g", *path]})
        found = defined({"resources": {"g": body, "a": reads}}, types=types).resources["a"]
        assert (found.masked_properties == {"text": "x", "value": "******"}) is masked


@pytest.mark.parametrize(
    ("body", "reason", "at"),
    [
        ({"type": "Nope"}, "The Resource Type (Nope) could not be found.", "type"),
        (thing(txet="x"), "Unknown Property txet", "properties.txet"),
        (thing(size={"get_param": "p"}), "Value is not an integer", "properties.size"),
    ],
    ids=["type", "property", "secret"],
)
def test_an_error_of_members_is_shown_if_it_is_also_one_without_the_secret_values(
    body: Json, reason: str, at: str
) -> None:
    """Of the members of a group, it is unknown which values are secret."""
    body = {**body, "metadata": {"password": {"get_param": "p"}}}
    group = {"type": GROUP.name, "properties": {"resource_def": body}}
    hidden = {"p": {"type": "string", "default": "hush", "hidden": True}}
    template = {"parameters": hidden, "resources": {"g": group}}
    (found,) = faults(template, types=TYPES | {GROUP.name: GROUP})
    assert found.reason == reason
    assert "hush" not in str(found)
    place = "resources.g.properties.resource_def"
    assert (found.inner_place or found.place) == f"{place}.{at}"


GROUPS = {
    one.schema.name: one.schema
    for one in (ResourceGroup(), AutoScalingGroup(), ResourceChain(), *deployment_groups([]))
}
DEPLOYMENTS, MEMBER = "OS::Heat::SoftwareDeploymentGroup", "OS::Heat::SoftwareDeployment"


@pytest.mark.parametrize(
    ("type_", "properties", "at"),
    [
        ("OS::Heat::ResourceGroup", {"resource_def": {"type": "v1.2.yaml"}}, "resource_def"),
        ("OS::Heat::AutoScalingGroup",
         {"min_size": 1, "max_size": 1, "resource": {"type": "v1.2.yaml"}}, "resource"),
        ("OS::Heat::ResourceChain", {"resources": ["Test::Thing", "v1.2.yaml"]}, "resources[1]"),
        (DEPLOYMENTS, {"servers": {"a": "x"}, "config": "c"}, "servers"),
        (DEPLOYMENTS, {"servers": {"a.example.org": "x"}, "config": "c"}, "servers"),
    ],
    ids=["group", "scaled", "chain", "deployments", "server with dots"],
)  # fmt: skip
def test_places_in_the_template_of_a_member_name_its_file(
    type_: str, properties: Json, at: str
) -> None:
    """Also if the name of the file or of a member has dots."""
    parameters = {key: {"type": "string", "default": ""} for key in ("server", "config", "name")}
    files = {"v1.2.yaml": template(parameters=parameters, resources={"x": {"type": "Nope"}})}
    body = {"type": type_, "properties": properties}
    found = faults(
        {"resources": {"g": body}},
        {"resource_registry": {MEMBER: "v1.2.yaml"}},
        types=TYPES | GROUPS,
        nesting=NestedTemplates(files),
    )
    assert ("resources.x.type", f"resources.g.properties.{at}<v1.2.yaml>.resources.x.type") in [
        (one.inner_place, one.place) for one in found
    ]


@pytest.mark.parametrize("server", ["a", "a.example.org", "a<b>", "a[0]"])
def test_findings_of_deployments_are_at_their_property_for_every_name_of_a_server(
    server: str,
) -> None:
    body = {"type": DEPLOYMENTS, "properties": {"servers": {server: "x"}, "config": "c"}}
    found = faults(
        {"resources": {"g": body}},
        {"resource_registry": {MEMBER: "Test::Thing"}},
        types=TYPES | GROUPS,
    )
    places = [one.inner_place or one.place for one in found if "config" in one.reason]
    assert places == ["resources.g.properties.config"]


@pytest.mark.parametrize("key", ["lifecycle", "preconditions", "for_each"])
def test_keys_of_the_own_version_are_for_nested_templates_in_members(key: str) -> None:
    group = AutoScalingGroup().schema
    member = thing() | {key: []}
    body = {"type": group.name, "properties": {"min_size": 1, "max_size": 2, "resource": member}}
    written: Json = {"heat_template_version": "2026-12-01", "resources": {"g": body}}
    (found,) = faults(written, types=TYPES | {group.name: group})
    assert key in found.reason and found.remedy.startswith("Write it in a nested template")
