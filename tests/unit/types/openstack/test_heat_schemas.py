"""The schemas of the types of OpenStack are those of Heat 27, except for listed differences.

tests/openstack/heat_schemas/schemas.json has the facts of Heat's schemas.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from engine.errors import NotFound
from engine.hot.schema.absent_types import ABSENT_TYPES
from engine.hot.schema.type_schema import SHOW, Attribute, Constraint, Kind, Property
from tests.unit.types.calls import registry
from tests.unit.types.openstack.clouds import types_of_all_services

Json = Any
RECORDED = Path(__file__).parents[3] / "openstack" / "heat_schemas" / "schemas.json"
DOCS = Path(__file__).parents[4] / "docs" / "reference" / "openstack-types.md"
SERVICES = (
    "AWS::AutoScaling::",
    "AWS::CloudFormation::Stack",
    "AWS::EC2::",
    "OS::Aodh::",
    "OS::Barbican::",
    "OS::Cinder::",
    "OS::Designate::",
    "OS::Glance::",
    "OS::Keystone::",
    "OS::Magnum::",
    "OS::Manila::",
    "OS::Mistral::",
    "OS::Neutron::",
    "OS::Nova::",
    "OS::Octavia::",
    "OS::Swift::",
    "OS::Trove::",
    "OS::Zaqar::",
)
HEAT: Mapping[str, Json] = {
    name: schema
    for name, schema in orjson.loads(RECORDED.read_bytes()).items()
    if name.startswith(SERVICES)
}
#: What differs, as docs/reference/openstack-types.md says.
DIFFERENCES = {
    # It passes its properties unchanged: the type of the members checks them.
    "AWS::AutoScaling::LaunchConfiguration": [
        "BlockDeviceMappings.*: missing",
        "ImageId: constraints [], in Heat [{'custom_constraint': 'glance.image'}]",
        "InstanceId: missing",
        "InstanceType: constraints [], in Heat [{'custom_constraint': 'nova.flavor'}]",
        "KernelId: not in Heat",
        "KeyName: constraints [], in Heat [{'custom_constraint': 'nova.keypair'}]",
        "NovaSchedulerHints.*: missing",
        "RamDiskId: not in Heat",
    ],
    "AWS::EC2::VPCGatewayAttachment": [
        f"{name}: update 'in_place', in Heat 'replace'" for name in ("InternetGatewayId", "VpcId")
    ],
    "OS::Octavia::PoolMember": [
        f"monitor_{name}: update 'in_place', in Heat 'replace'" for name in ("address", "port")
    ],
    # Headgate sends no signals to workflows. policies: a former name.
    "OS::Mistral::Workflow": [
        "tasks.*.policies: missing",
        "attribute alarm_url: None, in Heat string",
    ],
    "OS::Nova::Server": ["attribute first_address: string, in Heat None"],  # hidden in Heat
    "OS::Neutron::MeteringRule": ["excluded: default False, in Heat 'False'"],
    "OS::Neutron::Router": ["l3_agent_id: not in Heat"],  # hidden in Heat
    "OS::Neutron::Port": ["fixed_ips.*.subnet_id: missing"],  # a former name
    "OS::Swift::Container": [
        f"{name}: update 'in_place', in Heat 'replace'"
        for name in (
            "PurgeOnDelete",
            "X-Account-Meta",
            "X-Container-Meta",
            "X-Container-Read",
            "X-Container-Write",
        )
    ],
    "OS::Neutron::SecurityGroupRule": ["description: update 'in_place', in Heat 'replace'"],
}
#: Heat has the text.
DIFFERENCES |= {
    name: [f"{key}: default True, in Heat 'true'" for key in ("enabled", "repeat_actions")]
    for name in HEAT
    if name.startswith("OS::Aodh::")
}
#: The types that exist without a cloud as well.
SCALING = {
    name: registry().get(name).schema
    for name in registry().names()
    if name.startswith(("AWS::AutoScaling::", "AWS::CloudFormation::Stack"))
}
TYPES = {one.schema.name: one.schema for one in types_of_all_services()} | SCALING


def test_the_types_are_those_of_heat() -> None:
    assert HEAT.keys() - TYPES.keys() - ABSENT_TYPES.keys() == set()
    assert TYPES.keys() - HEAT.keys() == set()


def test_each_type_of_heat_exists_or_is_refused_with_a_reason() -> None:
    names = orjson.loads((RECORDED.parent / "names.json").read_bytes())
    own = {*registry().names(), *TYPES}
    assert set(names) - own == ABSENT_TYPES.keys()
    assert own & ABSENT_TYPES.keys() == set()


@pytest.mark.parametrize("name", sorted(ABSENT_TYPES))
def test_an_absent_type_is_refused_with_a_reason_and_a_remedy(name: str) -> None:
    with pytest.raises(NotFound) as raised:
        registry().get(name)
    absent = ABSENT_TYPES[name]
    assert raised.value.finding.remedy == f"{absent.reason} {absent.remedy}"
    instead = set(re.findall(r"OS::\w+::\w+", absent.remedy))
    assert instead <= TYPES.keys() | set(registry().names())
    section = DOCS.read_text().partition("## Types that Headgate does not have")[2]
    (row,) = [line for line in section.splitlines() if f"`{name}`" in line.split(" | ")[0]]
    assert set(re.findall(r"OS::\w+::\w+", row.split(" | ")[-1])) == instead


@pytest.mark.parametrize("name", sorted(TYPES))
def test_a_schema_is_that_of_heat(name: str) -> None:
    schema, heat = TYPES[name], HEAT[name]
    found = [
        *_property_differences("", schema.properties, heat["properties"]),
        *_attribute_differences(schema.attributes, heat["attributes"]),
    ]
    assert found == DIFFERENCES.get(name, [])


#: What Heat accepts and does not list: former names, obsolete properties and attributes.
HIDDEN_IN_HEAT = {
    "OS::Cinder::Volume": {"imageRef", "multiattach"},
    "OS::Neutron::FloatingIP": {"floating_network_id"},
    "OS::Neutron::Port": {"network_id", "replacement_policy"},
    "OS::Neutron::RouterInterface": {"router_id", "subnet_id", "port_id"},
    "OS::Neutron::Subnet": {"network_id"},
    "OS::Nova::Server": {"admin_user"},
}


@pytest.mark.parametrize("name", sorted(HIDDEN_IN_HEAT))
def test_what_heat_hides_is_accepted(name: str) -> None:
    properties = TYPES[name].properties
    former = {old for one in properties.values() for old in one.former_names}
    obsolete = {key for key, one in properties.items() if one.obsolete}
    assert HIDDEN_IN_HEAT[name] <= former | obsolete


@pytest.mark.parametrize("name", sorted(TYPES))
def test_every_property_and_attribute_is_described(name: str) -> None:
    schema = TYPES[name]
    assert schema.description.endswith(".")
    assert [key for key, one in schema.attributes.items() if not one.description] == []
    assert [path for path, one in _all("", schema.properties) if not one.description] == []


def _all(place: str, properties: Mapping[str, Property]) -> Iterator[tuple[str, Property]]:
    """All properties and their fields, by path. The property describes the items of a list."""
    for name, one in properties.items():
        if name != "*":
            yield f"{place}{name}", one
        yield from _all(f"{place}{name}.", _fields(one))


def _fields(one: Property) -> Mapping[str, Property]:
    return {"*": one.items} if one.items is not None else one.fields or {}


def _property_differences(
    place: str, own: Mapping[str, Property], heat: Mapping[str, Json]
) -> Iterator[str]:
    current = {name for name, one in own.items() if not one.obsolete}
    for name in sorted(heat.keys() | current):
        if name not in own or name not in heat:
            yield f"{place}{name}: {'missing' if name in heat else 'not in Heat'}"
            continue
        mine, theirs = own[name], heat[name]
        update = "immutable" if mine.immutable else "in_place" if mine.update_allowed else "replace"
        compared = {
            "type": (mine.kind.value, theirs["type"]),
            "required": (mine.required, theirs["required"]),
            # Heat tells it for properties, not for their fields.
            "update": (update, theirs.get("update", update)),
            "default": (mine.default, theirs.get("default")),
            "constraints": (
                [_constraint(one) for one in mine.constraints],
                [_without_description(one) for one in theirs.get("constraints", ())],
            ),
        }
        for what, (ours, their) in compared.items():
            if ours != their:
                yield f"{place}{name}: {what} {ours!r}, in Heat {their!r}"
        inside = theirs.get("schema", {})
        yield from _property_differences(f"{place}{name}.", _fields(mine), inside)


def _attribute_differences(
    own: Mapping[str, Attribute], heat: Mapping[str, str | None]
) -> Iterator[str]:
    mine = {name: one.kind.value for name, one in own.items()}
    theirs = {name: kind or Kind.ANY for name, kind in heat.items() if name != SHOW}  # all have it
    for name in sorted(mine.keys() | theirs.keys()):
        if mine.get(name) != theirs.get(name):
            yield f"attribute {name}: {mine.get(name)}, in Heat {theirs.get(name)}"


def _constraint(one: Constraint) -> Json:
    match one.kind:
        case "allowed_values":
            return {one.kind: sorted(map(str, one.allowed))}
        case "custom_constraint":
            return {one.kind: one.name}
        case "allowed_pattern":
            return {one.kind: one.pattern}
    return {one.kind: {"min": one.min, "max": one.max}}


def _without_description(constraint: Json) -> Json:
    ((kind, value),) = ((key, one) for key, one in constraint.items() if key != "description")
    match kind:
        case "allowed_values":
            return {kind: sorted(map(str, value))}
        case "custom_constraint" | "allowed_pattern":
            return {kind: value}
    return {kind: {"min": value.get("min"), "max": value.get("max")}}
