"""The registry of resource types, and its errors."""

from importlib.metadata import EntryPoint

import pytest

from engine.errors import Conflict, Findings, NotFound, Unavailable
from engine.hot.schema.type_schema import unknown_type_remedy
from engine.types import registry as module
from engine.types.inert_resources import NoneResource
from engine.types.registry import ENTRY_POINTS, TypeRegistry
from tests.unit.types.calls import registry
from tests.unit.types.openstack.clouds import types_of_all_services

OWN = [
    "AWS::AutoScaling::AutoScalingGroup",
    "AWS::AutoScaling::LaunchConfiguration",
    "AWS::AutoScaling::ScalingPolicy",
    "AWS::CloudFormation::Stack",
    "AWS::CloudFormation::WaitCondition",
    "AWS::CloudFormation::WaitConditionHandle",
    "Headgate::Command",
    "Headgate::HTTP",
    "OS::Heat::AccessPolicy",
    "OS::Heat::AutoScalingGroup",
    "OS::Heat::CloudConfig",
    "OS::Heat::Delay",
    "OS::Heat::DeployedServer",
    "OS::Heat::InstanceGroup",
    "OS::Heat::MultipartMime",
    "OS::Heat::None",
    "OS::Heat::RandomString",
    "OS::Heat::ResourceChain",
    "OS::Heat::ResourceGroup",
    "OS::Heat::ScalingPolicy",
    "OS::Heat::SoftwareComponent",
    "OS::Heat::SoftwareConfig",
    "OS::Heat::SoftwareDeployment",
    "OS::Heat::SoftwareDeploymentGroup",
    "OS::Heat::SoftwareDeployments",
    "OS::Heat::Stack",
    "OS::Heat::StructuredConfig",
    "OS::Heat::StructuredDeployment",
    "OS::Heat::StructuredDeploymentGroup",
    "OS::Heat::StructuredDeployments",
    "OS::Heat::SwiftSignal",
    "OS::Heat::SwiftSignalHandle",
    "OS::Heat::TestResource",
    "OS::Heat::UpdateWaitConditionHandle",
    "OS::Heat::Value",
    "OS::Heat::WaitCondition",
    "OS::Heat::WaitConditionHandle",
]


class Plugged(NoneResource):
    schema = type(NoneResource.schema)("Test::Plugged")


def test_names_and_schemas() -> None:
    known = registry()
    assert known.names() == OWN
    assert sorted(known.schemas()) == OWN
    for name in OWN:
        assert known.get(name).schema is known.schemas()[name]


def test_an_unknown_type_is_reported_with_the_nearest_name() -> None:
    with pytest.raises(NotFound, match=r'Did you mean "OS::Heat::RandomString"\?'):
        registry().get("OS::Heat::RandomStrings")


def test_a_type_that_the_operator_can_turn_on_says_so() -> None:
    with pytest.raises(NotFound, match=r"turn on the types of OpenStack: \[resource_types"):
        registry().get("OS::Nova::Server")
    assert unknown_type_remedy("OS::Zaqar::Queue", OWN).startswith("No OpenStack is configured.")
    assert unknown_type_remedy("OS::Nova::Sever", ["OS::Nova::Server"]).startswith("Did you mean")


def test_every_type_of_openstack_can_be_turned_on() -> None:
    names = [one.schema.name for one in types_of_all_services()]
    assert [one for one in names if not unknown_type_remedy(one, OWN).startswith("No OpenS")] == []


def test_two_types_of_one_name_are_refused() -> None:
    with pytest.raises(Conflict, match="OS::Heat::None"):
        TypeRegistry([NoneResource(), NoneResource()])


def test_checks_go_to_the_type() -> None:
    findings = Findings()
    registry().check_properties("OS::Heat::Value", {"value": "x", "type": "number"}, "at", findings)
    assert [one.place for one in findings.all] == ["at.value"]


def plug(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    point = EntryPoint("one", value, ENTRY_POINTS)
    monkeypatch.setattr(module, "entry_points", lambda group: [point] * (group == ENTRY_POINTS))


def test_plug_ins_are_types_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    plug(monkeypatch, f"{__name__}:Plugged")
    assert "Test::Plugged" in registry().names()


@pytest.mark.parametrize("value", ["no.such.module:Type", "builtins:dict", "builtins:nothing"])
def test_a_plugin_that_does_not_load_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    plug(monkeypatch, value)
    with pytest.raises(Unavailable, match="plug-in one"):
        registry()
