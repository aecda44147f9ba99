"""The contract of resource types, checked for all registered types."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import orjson
import pytest

from engine.errors import Findings, Invalid, NotFound
from engine.hot.definition.stack import check_resolved, fill_defaults
from engine.hot.expressions.member_attributes import visible_attributes as as_people_see
from engine.hot.schema.constraints import CHECKS
from engine.hot.schema.type_schema import Attribute, Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Failed, Outcome, Replace, ResourceType, Wait
from engine.types.registry import TypeRegistry
from engine.words import Json, ResourceId
from tests.support import in_memory_service
from tests.unit.types.calls import KEY, NOW, PYTHON, a_call, ended, findings_of, registry, run

TYPES: TypeRegistry = registry()
SECRET = "hunter2-secret"
ECHO = [PYTHON, "-c", """import json, os; print(json.dumps({"id": "x", "n": 1}))"""]

#: Properties of each type that work, and changes of them. A new type needs an entry here.
EXAMPLES: Mapping[str, tuple[dict[str, Json], dict[str, Json]]] = {
    "OS::Heat::None": ({"any": 1}, {"any": 2}),
    "OS::Heat::TestResource": ({"value": "a", "wait_secs": 1}, {"value": "b"}),
    "OS::Heat::RandomString": ({"length": 40}, {"salt": "other"}),
    "OS::Heat::Value": ({"value": "1", "type": "number"}, {"value": "2"}),
    "OS::Heat::SoftwareConfig": (
        {"config": "true", "inputs": [{"name": "a"}]},
        {"config": "false"},
    ),
    "OS::Heat::StructuredConfig": ({"config": {"a": 1}}, {"config": {"a": 2}}),
    "OS::Heat::SoftwareDeployment": (
        {"server": "web-1", "signal_transport": "NO_SIGNAL"},
        {"input_values": {"a": 1}},
    ),
    "OS::Heat::StructuredDeployment": (
        {"server": "web-1", "signal_transport": "NO_SIGNAL"},
        {"input_values": {"a": 1}},
    ),
    **dict.fromkeys(
        (
            "OS::Heat::SoftwareDeploymentGroup",
            "OS::Heat::SoftwareDeployments",
            "OS::Heat::StructuredDeploymentGroup",
            "OS::Heat::StructuredDeployments",
        ),
        ({"servers": {"a": "server-a"}}, {"servers": {"a": "server-a", "b": "server-b"}}),
    ),
    "OS::Heat::DeployedServer": ({"name": "web"}, {"name": "db"}),
    "OS::Heat::CloudConfig": ({"cloud_config": {"a": 1}}, {"cloud_config": {"a": 2}}),
    "OS::Heat::SoftwareComponent": (
        {"configs": [{"tool": "script", "config": "true"}]},
        {"configs": [{"tool": "script", "config": "false"}]},
    ),
    "OS::Heat::MultipartMime": (
        {"parts": [{"config": "#!/bin/sh"}]},
        {"parts": [{"config": "#cloud-config", "subtype": "cloud-config"}]},
    ),
    "OS::Heat::ResourceGroup": ({"count": 2, "resource_def": {"type": "T"}}, {"count": 3}),
    "OS::Heat::ResourceChain": ({"resources": ["T"]}, {"resources": ["T", "U"]}),
    "OS::Heat::AutoScalingGroup": (
        {"min_size": 1, "max_size": 3, "resource": {"type": "T"}},
        {"min_size": 2},
    ),
    "AWS::AutoScaling::LaunchConfiguration": ({"ImageId": "a"}, {"ImageId": "b"}),
    "OS::Heat::InstanceGroup": (
        {"AvailabilityZones": [], "LaunchConfigurationName": "l", "Size": 1},
        {"Size": 2},
    ),
    "AWS::AutoScaling::AutoScalingGroup": (
        {
            "AvailabilityZones": [],
            "LaunchConfigurationName": "l",
            "MinSize": 1,
            "MaxSize": 3,
        },
        {"MinSize": 2},
    ),
    "AWS::AutoScaling::ScalingPolicy": (
        {
            "AutoScalingGroupName": "g",
            "AdjustmentType": "ExactCapacity",
            "ScalingAdjustment": 2,
        },
        {"ScalingAdjustment": 3},
    ),
    "OS::Heat::ScalingPolicy": (
        {
            "auto_scaling_group_id": "g",
            "adjustment_type": "exact_capacity",
            "scaling_adjustment": 2,
        },
        {"scaling_adjustment": 3},
    ),
    "Headgate::Command": (
        {"create": ECHO, "update": ECHO, "delete": ECHO, "check": ECHO, "timeout": 20},
        {"triggers": {"a": 1}},
    ),
    "OS::Heat::Delay": ({"min_wait": 1, "max_jitter": 2}, {"actions": ["CREATE", "DELETE"]}),
    "OS::Heat::AccessPolicy": ({"AllowedResources": ["a"]}, {"AllowedResources": []}),
    "OS::Heat::WaitConditionHandle": ({}, {"signal_transport": "CFN_SIGNAL"}),
    "OS::Heat::UpdateWaitConditionHandle": ({}, {}),
    "OS::Heat::SwiftSignalHandle": ({}, {}),
    "OS::Heat::WaitCondition": ({"handle": "NO_SIGNAL", "timeout": 9}, {"count": 2}),
    "OS::Heat::SwiftSignal": ({"handle": "NO_SIGNAL", "timeout": 9}, {"timeout": 8}),
    "AWS::CloudFormation::Stack": (
        {"TemplateURL": "http://templates.test/a.yaml", "Parameters": {"a": 1}},
        {"Parameters": {"a": 2}},
    ),
    "AWS::CloudFormation::WaitConditionHandle": ({}, {}),
    "AWS::CloudFormation::WaitCondition": ({"Handle": "NO_SIGNAL", "Timeout": 9}, {"Count": 2}),
    "OS::Heat::Stack": (
        {"context": {"region_name": "west"}, "template": "resources: {}", "parameters": {"a": 1}},
        {"parameters": {"a": 2}},
    ),
    "Headgate::HTTP": (
        in_memory_service.properties(attributes={"x": "$.state"}, hidden=["x"]),
        {"create": {"url": in_memory_service.URL, "body": {"a": 1}}},
    ),
}
#: Properties that fail, with SECRET at every place that can hold a secret.
FAILING: Mapping[str, dict[str, Json]] = {
    "OS::Heat::TestResource": {"value": SECRET, "fail": True},
    "OS::Heat::RandomString": {
        "salt": SECRET,
        "length": 1,
        "character_classes": [{"class": "digits", "min": 2}],
    },
    "OS::Heat::Value": {"value": SECRET, "type": "number"},
    "OS::Heat::MultipartMime": {"parts": [{"config": SECRET, "type": "multipart"}]},
    "Headgate::Command": {
        "create": [PYTHON, "-c", "import os, sys; sys.exit(os.environ['SECRET'])"],
        "update": [PYTHON, "-c", "import os, sys; sys.exit(os.environ['SECRET'])"],
        "environment": {"SECRET": SECRET},
    },
    "OS::Heat::Stack": {
        "context": {"region_name": "none"},
        "template": SECRET,
        "parameters": {"a": SECRET},
    },
    "Headgate::HTTP": {
        name: {
            "url": f"{in_memory_service.URL}/none",
            "method": "PUT",
            "body": {"password": SECRET},
        }
        for name in ("create", "update")
    },
}


@pytest.fixture(params=TYPES.names())
def type_(request: pytest.FixtureRequest) -> ResourceType:
    return TYPES.get(request.param)


@pytest.fixture
def example(type_: ResourceType) -> tuple[dict[str, Json], dict[str, Json]]:
    """Properties, and the same with changes."""
    first, changes = EXAMPLES[type_.schema.name]
    return first, first | changes


async def create_done(type_: ResourceType, properties: Mapping[str, Json]) -> Done:
    outcome = await ended(type_, "create", a_call(type_, properties))
    assert isinstance(outcome, Done), outcome
    return outcome


def call_again(
    type_: ResourceType, properties: Mapping[str, Json], done: Done, **more: Any
) -> Call:
    more = {"physical_id": done.physical_id, "data": done.data} | more
    return a_call(type_, properties, **more)


def check_done(type_: ResourceType, outcome: Outcome) -> None:
    assert isinstance(outcome, Done), outcome
    assert outcome.physical_id is None or outcome.physical_id
    orjson.dumps([outcome.attributes, outcome.data])
    attributes = as_people_see(outcome.attributes)
    if not type_.schema.any_attribute:
        assert set(attributes) <= set(type_.schema.attributes)
    for name, value in attributes.items():
        if name in type_.schema.attributes:
            check_kind(type_.schema.attributes[name], value)


PYTHON_OF: Mapping[Kind, type | tuple[type, ...]] = {
    Kind.STRING: str,
    Kind.INTEGER: int,
    Kind.NUMBER: (int, float),
    Kind.BOOLEAN: bool,
    Kind.LIST: list,
    Kind.MAP: dict,
    Kind.ANY: object,
}


def check_kind(attribute: Attribute, value: Json) -> None:
    assert value is None or isinstance(value, PYTHON_OF[attribute.kind])


# -- the schema -----------------------------------------------------------------------------------


def nested_fields(fields: Mapping[str, Property]) -> Iterator[tuple[str, Property]]:
    for name, one in fields.items():
        yield name, one
        yield from nested_fields(one.fields or {})
        if one.items is not None:
            yield from nested_fields({f"{name}[]": one.items})


def test_the_schema_is_well_formed(type_: ResourceType) -> None:
    schema = type_.schema
    assert re.fullmatch(r"\w+(::\w+)+", schema.name)
    assert schema.description.endswith(".")
    for name, one in nested_fields(schema.properties):
        assert re.fullmatch(r"\w+(\[\])*", name)
        assert one.fields is None or one.kind is Kind.MAP
        assert one.items is None or one.kind is Kind.LIST
        assert not (one.required and one.default is not None), name
        assert {rule.kind for rule in one.constraints} <= CHECKS.keys()
    for name, one in schema.properties.items():
        assert one.description, name
    for name, attribute in schema.attributes.items():
        assert attribute.description, name


def test_the_defaults_satisfy_the_types_own_rules(type_: ResourceType) -> None:
    """Also nested ones, and the type's own rules across properties."""
    first, _ = EXAMPLES[type_.schema.name]
    defaults = fill_defaults(type_.schema, first)
    assert findings_of(type_, defaults) == []
    for name, one in nested_fields(type_.schema.properties):
        if one.default is not None:
            alone = TypeSchema("Test::One", {name: one})
            found = Findings()
            check_resolved(alone, {name: one.default}, "", found)
            assert found.all == [], name


def test_unknown_properties_are_refused(type_: ResourceType) -> None:
    if type_.schema.any_property:
        a_call(type_, {"no_such_property": 1})
        return
    with pytest.raises(Invalid):
        a_call(type_, {**EXAMPLES[type_.schema.name][0], "no_such_property": 1})


# -- operations -----------------------------------------------------------------------------------


async def test_a_resource_is_created_updated_and_deleted(
    type_: ResourceType, example: tuple[dict[str, Json], dict[str, Json]]
) -> None:
    before, after = example
    done = await create_done(type_, before)
    check_done(type_, done)
    assert done.physical_id
    call = call_again(
        type_,
        after,
        done,
        previous=a_call(type_, before).properties,
        changed=frozenset(name for name in after if after[name] != before.get(name)),
    )
    assert isinstance(type_.needs_replace(call), bool)
    outcome = await ended(type_, "update", call)
    if not isinstance(outcome, Replace):
        check_done(type_, outcome)
        assert isinstance(outcome, Done)
        done = outcome
    gone = await ended(type_, "delete", call_again(type_, after, done))
    assert isinstance(gone, Done)
    assert isinstance(type_.reference("r", done.physical_id, done.data), str)
    assert type_.reference("r", None, {}) == "r"


@pytest.mark.parametrize("operation", ["create", "update", "delete"])
async def test_an_operation_can_be_repeated_with_the_same_key(
    type_: ResourceType, example: tuple[dict[str, Json], dict[str, Json]], operation: str
) -> None:
    """After a crash before anything was saved, the second call must succeed too."""
    before, after = example
    done = await create_done(type_, before)
    call = (
        a_call(type_, before)
        if operation == "create"
        else call_again(type_, after, done, previous=before, changed=frozenset(after))
    )
    first, second = [await ended(type_, operation, call) for _ in range(2)]
    assert type(first) is type(second)
    if isinstance(first, Done) and isinstance(second, Done):
        assert first.physical_id == second.physical_id


async def test_an_operation_can_be_repeated_from_any_saved_progress(
    type_: ResourceType, example: tuple[dict[str, Json], dict[str, Json]]
) -> None:
    """After a crash, an operation is called again with the progress of its last `Wait`."""
    call = a_call(type_, example[0])
    outcome = await run(type_, "create", call)
    while isinstance(outcome, Wait):
        assert outcome.until is not None
        assert outcome.until >= call.now
        kept = orjson.loads(orjson.dumps(outcome.progress))  # as the store returns it
        call = replace(call, now=outcome.until, progress=kept)
        lost = await run(type_, "create", call)
        outcome = await run(type_, "create", call)
        assert type(lost) is type(outcome)
    check_done(type_, await ended(type_, "create", call) if type_.has_nested_stack else outcome)


async def test_two_creates_make_two_physical_resources(type_: ResourceType) -> None:
    """Except if the properties determine the ID."""
    if type_.schema.name == "Headgate::Command":
        properties: dict[str, Json] = {"create": [PYTHON, "-c", "pass"]}
    else:
        properties = EXAMPLES[type_.schema.name][0]
    calls = [
        a_call(type_, properties, operation_key=key, resource_id=ResourceId(key))
        for key in (KEY, UUID(int=7))
    ]
    outcomes = [await ended(type_, "create", call) for call in calls]
    ids = {one.physical_id for one in outcomes if isinstance(one, Done)}
    assert len(ids) == 2


# -- secrets --------------------------------------------------------------------------------------


async def test_no_secret_is_in_a_representation(
    type_: ResourceType, example: tuple[dict[str, Json], dict[str, Json]]
) -> None:
    done = await create_done(type_, example[0])
    secrets = [
        str(value)
        for name, value in as_people_see(done.attributes).items()
        if name in type_.schema.attributes and type_.schema.attributes[name].secret
    ]
    call = call_again(type_, example[0], done, previous={"x": SECRET}, progress={"x": SECRET})
    shown = [repr(done), repr(call), str(done), repr(Wait(NOW, {"x": SECRET}))]
    shown += [repr(Failed("", None, {"x": SECRET})), str(done.physical_id)]
    for secret in [*secrets, SECRET]:
        assert not [one for one in shown if secret in one]


@pytest.mark.parametrize("operation", ["create", "update"])
@pytest.mark.parametrize("name", sorted(FAILING))
async def test_no_secret_is_in_a_message(name: str, operation: str) -> None:
    type_ = TYPES.get(name)
    properties = FAILING[name]
    for finding in findings_of(type_, properties):
        assert SECRET not in str(finding)
    call = a_call(type_, properties, physical_id="id", changed=frozenset(properties))
    outcome = await ended(type_, operation, call)
    assert isinstance(outcome, Failed | Replace)
    if isinstance(outcome, Failed):
        assert outcome.reason
        assert SECRET not in outcome.reason


def test_every_type_has_an_example() -> None:
    assert sorted(EXAMPLES) == TYPES.names()
    with pytest.raises(NotFound):
        TYPES.get("OS::Heat::Nothing")
