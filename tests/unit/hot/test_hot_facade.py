"""The attributes of its resource that a nested template reads with resource_facade."""

import pytest

from engine.hot.evaluation.resource_facade import UNKNOWN_FACADE, ResourceFacade
from engine.hot.expressions.expression import FunctionCall
from engine.words import Json
from tests.unit.hot.cfn_support import AWS, HEAT, cfn, cfn_thing
from tests.unit.hot.hot_support import defined, faults, thing

FACADE = ResourceFacade({"who": ["ops"]}, "Retain", {"rolling_update": {"max_batch_size": 2}})
PARTS: list[tuple[str, str, Json]] = [
    ("metadata", "Metadata", FACADE.metadata),
    ("deletion_policy", "DeletionPolicy", FACADE.deletion_policy),
    ("update_policy", "UpdatePolicy", FACADE.update_policy),
]


def hot(part: Json, version: str = "2021-04-16") -> dict[str, Json]:
    return {
        "heat_template_version": version,
        "resources": {"a": thing(value={"resource_facade": part})},
    }


def as_cfn(part: Json, version: str = AWS) -> dict[str, Json]:
    return cfn(version, Resources={"a": cfn_thing(value={"Fn::ResourceFacade": part})})


def value(template: dict[str, Json], facade: ResourceFacade) -> Json:
    return defined(template, facade=facade).resources["a"].properties["value"]


@pytest.mark.parametrize(("part", "written", "found"), PARTS)
def test_each_part_of_the_facade(part: str, written: str, found: Json) -> None:
    for version in ("2013-05-23", "2021-04-16"):
        assert value(hot(part, version), FACADE) == found
    for version in (AWS, HEAT):
        assert value(as_cfn(written, version), FACADE) == found


def test_deletion_and_update_policies_can_be_read() -> None:
    template = hot("metadata")
    template["resources"]["a"]["deletion_policy"] = {"resource_facade": "deletion_policy"}
    assert defined(template, facade=FACADE).resources["a"].deletion_policy == "Retain"


@pytest.mark.parametrize("part", [["metadata"], "Metadata", None, {"list_join": ["", ["meta"]]}])
def test_an_unknown_part_of_the_facade_is_refused(part: Json) -> None:
    (found,) = faults(hot(part), facade=FACADE)
    assert found.reason.endswith("one of: metadata, deletion_policy, update_policy")
    assert found.place == "resources.a.properties.value.resource_facade"


def test_a_root_stack_has_no_facade() -> None:
    for template in (hot("metadata"), as_cfn("Metadata")):
        (found,) = faults(template)
        assert "this stack is not nested" in found.reason
        assert found.remedy.startswith("Give the value as a parameter")


def test_unknown_parts_of_the_facade_stay_unknown() -> None:
    found = value(hot("metadata"), UNKNOWN_FACADE)
    assert isinstance(found, FunctionCall) and found.name == "resource_facade"
    known_only_later = ResourceFacade(
        {"ip": FunctionCall("get_attr", "2021-04-16", ["x", "ip"])}, "Delete", {}
    )
    assert isinstance(value(as_cfn("Metadata"), known_only_later), FunctionCall)
    assert value(as_cfn("DeletionPolicy"), known_only_later) == "Delete"
    template = hot("metadata")
    template["resources"]["a"]["deletion_policy"] = {"resource_facade": "deletion_policy"}
    assert defined(template, facade=UNKNOWN_FACADE).resources["a"].deletion_policy == "Delete"
