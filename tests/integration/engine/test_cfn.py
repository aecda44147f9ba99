"""Stacks of CFN templates, from their beginning to their end, in all that reads a template."""

import json
from pathlib import Path

import pytest

from engine.types.contract import Failed
from tests.support.changes import ended_again, ended_as, gone, refused
from tests.support.program import Json, Program
from tests.support.things import World

EXAMPLES = Path(__file__).parents[3] / "examples"
AWS = {"AWSTemplateFormatVersion": "2010-09-09"}
HEAT = {"HeatTemplateFormatVersion": "2012-12-12"}
PARAMETERS = {
    "Size": {"Type": "Number", "Default": 1, "MinValue": 1, "MaxValue": 5, "Description": "how"},
    "Secret": {"Type": "String", "Default": "s3cret-word", "NoEcho": "true"},
    "Names": {"Type": "CommaDelimitedList", "Default": "x,y"},
}
RESOURCES = {
    "a": {
        "Type": "Test::Thing",
        "Description": "the first",
        "Metadata": {"stack": {"Ref": "AWS::StackName"}},
        "Properties": {"size": {"Fn::FindInMap": ["Sizes", "n", {"Ref": "Size"}]}},
    },
    "b": {
        "Type": "OS::Heat::TestResource",
        "DependsOn": "a",
        "Properties": {"value": {"Fn::Join": [":", ["size", {"Fn::GetAtt": ["t", "output"]}]]}},
    },
    "t": {
        "Type": "OS::Heat::TestResource",
        "Properties": {"value": {"Fn::Select": ["1", {"Ref": "Names"}]}},
    },
    "word": {"Type": "OS::Heat::RandomString", "Properties": {"length": 8}},
    "none": {"Type": "OS::Heat::None", "Properties": {"anything": {"Ref": "Secret"}}},
}
OUTPUTS = {
    "id": {"Value": {"Ref": "AWS::StackId"}, "Description": "where it is"},
    "b": {"Value": {"Fn::GetAtt": ["b", "output"]}},
    "found": {
        "Value": {"Fn::FindInMap": ["Found", {"Fn::GetAtt": ["t", "output"]}, "as"]},
    },
    "wrong": {"Value": {"Fn::Select": [{"Fn::GetAtt": ["t", "output"]}, [1, 2]]}},
}
MAPPINGS = {"Sizes": {"n": {"1": 11, "2": 22}}, "Found": {"y": {"as": "Y"}}}


def whole(version: Json) -> Json:
    """A size is looked up by its text: keys of mappings are texts."""
    sizes = {"Type": "String", "Default": "1", "AllowedValues": ["1", "2"]}
    return {
        **version,
        "Description": "All of it",
        "Parameters": PARAMETERS | {"Size": sizes},
        "Mappings": MAPPINGS,
        "Resources": RESOURCES,
        "Outputs": OUTPUTS,
    }


def things(version: Json, *names: str, **more: Json) -> Json:
    body = {"Type": "Test::Thing", **more}
    return {**version, "Resources": dict.fromkeys(names, body)}


async def create(run: Program, name: str, template: Json, **body: Json) -> None:
    sent = {"stack_name": name, "template": template, **body}
    status, said = await run.call("POST", "/stacks", sent)
    assert status == 201, said


@pytest.mark.parametrize("version", [AWS, HEAT], ids=["aws", "heat"])
async def test_a_whole_life(run: Program, world: World, version: Json) -> None:
    template = whole(version)
    await create(run, "s", json.dumps(template))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    stack = await run.stack("s")
    arn = f"arn:openstack:heat::p:stacks/s/{stack['id']}"
    assert stack["description"] == stack["template_description"] == "All of it"
    assert stack["parameters"] == {
        "AWS::StackId": arn, "AWS::StackName": "s", "AWS::Region": "ap-southeast-1",
        "Size": "1", "Secret": "******", "Names": "x,y",
    }  # fmt: skip
    outputs = {one["output_key"]: one for one in stack["outputs"]}
    assert {key: one["output_value"] for key, one in outputs.items()} == {
        "id": arn, "b": "size:y", "found": "Y", "wrong": None,
    }  # fmt: skip
    assert outputs["id"]["description"] == "where it is"
    assert 'Index to "Fn::Select" must be an integer' in outputs["wrong"]["output_error"]
    assert await run.at("GET", "s", "/template") == template
    assert await run.at("GET", "s", "/resources/a/metadata") == {"metadata": {"stack": "s"}}
    shown = await run.at("GET", "s", "/resources/a")
    assert shown["resource"]["description"] == "the first"
    assert "s3cret-word" not in json.dumps(await run.at("GET", "s", "/resources/none"))

    wanted = {"parameters": {"Size": "2"}, "existing": True}
    previewed = await run.at("PATCH", "s", "/preview", wanted)
    (changed,) = previewed["resource_changes"]["updated"]
    assert changed["changes"] == {"size": {"from": 11, "to": 22}}
    await run.update("s", parameters={"Size": "2", "Names": "q,r"})
    await ended_again(run, "s")
    assert list(world.things.values()) == [22]
    outputs = {one["output_key"]: one for one in (await run.stack("s"))["outputs"]}
    assert outputs["b"]["output_value"] == "size:r"
    assert outputs["found"]["output_error"] == "Mappings has no value for these keys"

    snapshot = (await run.at("POST", "s", "/snapshots", {"name": "one"}))["id"]
    await ended_as(run, "s", "SNAPSHOT_COMPLETE")
    await run.update("s", "PUT", template=things(version, "a"))
    await ended_again(run, "s")
    await run.at("POST", "s", f"/snapshots/{snapshot}/restore")
    await ended_as(run, "s", "RESTORE_COMPLETE")
    assert await run.at("GET", "s", "/template") == template
    exported = await run.at("GET", "s", "/export")
    assert exported["template"] == template
    await run.at("DELETE", "s")
    await gone(run, "s")
    assert not world.things


async def test_what_cannot_be_is_told_before_anything_is_done(run: Program, world: World) -> None:
    bad = whole(AWS)
    bad["Resources"] = RESOURCES | {"c": {"Type": "Test::Thing", "Properties": {"sise": 1}}}
    bad["Outputs"] = {"o": {"Value": {"Ref": "nobody"}}}
    sent = {"stack_name": "s", "template": bad}
    for path in ("/stacks", "/validate", "/stacks/preview"):
        status, said = await run.call("POST", path, sent)
        message = said["error"]["message"]
        assert status == 400
        assert "Property error: : Resources.c.Properties: : Unknown Property sise" in message
        assert 'Did you mean "size"?' in message
        assert 'Outputs.o.Value.Ref: The specified reference "nobody"' in message
    assert not world.done
    # What is known only later is told then, in the words of the template.
    late = things(AWS, "a") | {"Outputs": {}}
    late["Resources"]["b"] = {
        "Type": "OS::Heat::RandomString",
        "Properties": {"length": {"Fn::GetAtt": ["a", "size"]}},
    }
    late["Resources"]["a"] = {"Type": "Test::Thing", "Properties": {"size": 1000}}
    await create(run, "s", late)
    assert await run.until_ended("s") == "CREATE_FAILED"
    reason = (await run.stack("s"))["stack_status_reason"]
    assert "Resources.b.Properties.length: 1000 is out of range" in reason


async def test_templates_are_validated(run: Program) -> None:
    status, said = await run.call("POST", "/validate", {"template": whole(HEAT)})
    assert status == 200
    assert said["Parameters"]["Secret"]["NoEcho"] == "true"
    assert said["Parameters"]["Names"]["Type"] == "CommaDelimitedList"
    # A template that stands for a resource of another can be looked at by itself.
    facade = {"Fn::ResourceFacade": "Metadata"}
    template = things(AWS, "a", Properties={"size": facade})
    assert (await run.call("POST", "/validate", {"template": template}))[0] == 200
    status, said = await run.call("POST", "/stacks", {"stack_name": "s", "template": template})
    assert status == 400 and "this stack is not nested" in said["error"]["message"]


async def test_the_example_makes_a_stack(run: Program) -> None:
    text = (EXAMPLES / "first-stack.cfn.json").read_text()
    for stage, names in (("test", {"secret", "app"}), ("prod", {"secret", "app", "monitor"})):
        await create(run, stage, text, parameters={"Stage": stage})
        assert await run.until_ended(stage) == "CREATE_COMPLETE"
        assert set(await run.resources(stage)) == names
    status, said = await run.call(
        "POST", "/stacks", {"stack_name": "s", "template": text, "parameters": {"Stage": "x"}}
    )
    assert status == 400 and "Stage is test or prod." in said["error"]["message"]


async def test_a_template_to_start_from_makes_a_stack(run: Program) -> None:
    found = await run.call("GET", "/resource_types/OS::Heat::RandomString/template")
    given = {"character_sequences": [], "sequence": "digits", "salt": ""}
    await create(run, "s", found[1], parameters=given)
    assert await run.until_ended("s") == "CREATE_COMPLETE"


@pytest.mark.parametrize("version", [AWS, HEAT], ids=["aws", "heat"])
async def test_rolled_back_to_nothing_and_moved(run: Program, world: World, version: Json) -> None:
    world.will("create", "b", Failed("no room"))
    await create(run, "s", things(version, "a", "b"), disable_rollback=False)
    await ended_as(run, "s", "ROLLBACK_COMPLETE")
    assert not world.things
    await create(run, "one", things(version, "a", "b"))
    await create(run, "two", things(version, "c"))
    for name in ("one", "two"):
        assert await run.until_ended(name) == "CREATE_COMPLETE"
    move = {"from": {"stack": "one", "resource": "a"}, "to": "d"}
    await run.update("two", "PUT", template=things(version, "c", "d"), moved=[move])
    await ended_again(run, "two")
    assert set(await run.resources("two")) == {"c", "d"}
    assert set(await run.resources("one")) == {"b"}
    assert (await run.at("GET", "one", "/template")) == things(version, "b")
    assert len(world.things) == 3


@pytest.mark.parametrize("version", [AWS, HEAT], ids=["aws", "heat"])
async def test_a_section_may_be_empty(run: Program, version: Json) -> None:
    await create(run, "s", things(version, "a", Hooks=["pre-delete"]))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    nothing = version | {"Resources": None, "Outputs": None, "Parameters": None}
    await run.update("s", "PUT", template=nothing)
    (hook,) = await run.waiting("s")
    shown = await run.at("GET", "s", "/resources/a")
    assert shown["resource"]["description"] == ""
    await run.signal(hook)
    await ended_again(run, "s")
    assert await run.resources("s") == {}


async def test_breakpoints_in_a_template(run: Program) -> None:
    template = things(AWS, "a", Hooks=["pre-create"])
    await create(run, "s", template)
    (hook,) = await run.waiting("s")
    assert (hook["resource_name"], hook["point"]) == ("a", "pre-create")
    assert (await run.signal(hook))[0] == 200
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    error = await refused(run, "PUT", "s", "", {"template": things(AWS, "a", Hooks=["pre-eat"])})
    assert "Resources.a.Hooks[0]" in error[1]["message"]
