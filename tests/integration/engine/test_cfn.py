"""Stacks of CloudFormation templates, in all requests that read a template."""

import json
from pathlib import Path

import pytest

from engine.types.contract import Failed
from tests.support.changes import (
    error_text,
    expect_error,
    until_complete,
    until_deleted,
    until_status,
)
from tests.support.program import Json, Program
from tests.support.scripted_type import World

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


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


def full_template(version: Json) -> Json:
    """The keys of mappings are texts, so a number is looked up by its text."""
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
    status, response = await run.call("POST", "/stacks", sent)
    assert status == 201, response


@pytest.mark.parametrize("version", [AWS, HEAT], ids=["aws", "heat"])
async def test_a_cloudformation_stack_is_created_updated_restored_and_deleted(
    run: Program, world: World, version: Json
) -> None:
    template = full_template(version)
    await create(run, "s", json.dumps(template))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    stack = await run.stack("s")
    arn = f"arn:openstack:heat::{run.project}:stacks/s/{stack['id']}"
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
    assert await run.stack_request("GET", "s", "/template") == template
    assert await run.stack_request("GET", "s", "/resources/a/metadata") == {
        "metadata": {"stack": "s"}
    }
    response = await run.stack_request("GET", "s", "/resources/a")
    assert response["resource"]["description"] == "the first"
    assert "s3cret-word" not in json.dumps(await run.stack_request("GET", "s", "/resources/none"))

    wanted = {"parameters": {"Size": "2"}, "existing": True}
    previewed = await run.stack_request("PATCH", "s", "/preview", wanted)
    (changed,) = previewed["resource_changes"]["updated"]
    assert changed["changes"] == {"size": {"from": 11, "to": 22}}
    await run.update("s", parameters={"Size": "2", "Names": "q,r"})
    await until_complete(run, "s")
    assert list(world.things.values()) == [22]
    outputs = {one["output_key"]: one for one in (await run.stack("s"))["outputs"]}
    assert outputs["b"]["output_value"] == "size:r"
    assert outputs["found"]["output_error"] == "Mappings has no value for these keys"

    snapshot = (await run.stack_request("POST", "s", "/snapshots", {"name": "one"}))["id"]
    await until_status(run, "s", "SNAPSHOT_COMPLETE")
    await run.update("s", "PUT", template=things(version, "a"))
    await until_complete(run, "s")
    await run.stack_request("POST", "s", f"/snapshots/{snapshot}/restore")
    await until_status(run, "s", "RESTORE_COMPLETE")
    assert await run.stack_request("GET", "s", "/template") == template
    exported = await run.stack_request("GET", "s", "/export")
    assert exported["template"] == template
    await run.stack_request("DELETE", "s")
    await until_deleted(run, "s")
    assert not world.things


async def test_errors_are_reported_with_their_cloudformation_path(
    run: Program, world: World
) -> None:
    invalid = full_template(AWS)
    invalid["Resources"] = RESOURCES | {"c": {"Type": "Test::Thing", "Properties": {"sise": 1}}}
    invalid["Resources"]["d"] = {"Type": "Test::Thing", "DependsOn": "nobody"}
    invalid["Outputs"] = {}
    sent = {"stack_name": "s", "template": invalid}
    for path in ("/stacks", "/validate", "/stacks/preview"):
        status, response = await run.call("POST", path, sent)
        message = error_text(response["error"])
        assert status == 400
        separator = ": " if path == "/validate" else ": : "
        parts = ("Property error", "Resources.c.Properties", "Unknown Property sise")
        assert separator.join(parts) in message
        assert 'Did you mean "size"?' in message
        assert 'The specified reference "nobody" (in d) is incorrect.' in message
        assert "Resources.d.DependsOn: " in message
    assert not world.done
    # An error in a value that is unknown until run time has the place in the template.
    unknown_length = things(AWS, "a") | {"Outputs": {}}
    unknown_length["Resources"]["b"] = {
        "Type": "OS::Heat::RandomString",
        "Properties": {"length": {"Fn::GetAtt": ["a", "size"]}},
    }
    unknown_length["Resources"]["a"] = {"Type": "Test::Thing", "Properties": {"size": 1000}}
    await create(run, "s", unknown_length)
    assert await run.until_ended("s") == "CREATE_FAILED"
    reason = (await run.stack("s"))["stack_status_reason"]
    assert "Resources.b.Properties.length: 1000 is out of range" in reason


async def test_cloudformation_templates_are_validated(run: Program) -> None:
    status, response = await run.call("POST", "/validate", {"template": full_template(HEAT)})
    assert status == 200
    assert response["Parameters"]["Secret"]["NoEcho"] == "true"
    assert response["Parameters"]["Names"]["Type"] == "CommaDelimitedList"
    # A template of a resource type can be validated alone.
    facade = {"Fn::ResourceFacade": "Metadata"}
    template = things(AWS, "a", Properties={"size": facade})
    assert (await run.call("POST", "/validate", {"template": template}))[0] == 200
    status, response = await run.call("POST", "/stacks", {"stack_name": "s", "template": template})
    assert status == 400 and "this stack is not nested" in response["error"]["message"]


async def test_the_example_creates_a_stack(run: Program) -> None:
    text = (EXAMPLES / "first-stack.cfn.json").read_text()
    for stage, names in (("test", {"secret", "app"}), ("prod", {"secret", "app", "monitor"})):
        await create(run, stage, text, parameters={"Stage": stage})
        assert await run.until_ended(stage) == "CREATE_COMPLETE"
        assert set(await run.resources(stage)) == names
    status, response = await run.call(
        "POST", "/stacks", {"stack_name": "s", "template": text, "parameters": {"Stage": "x"}}
    )
    assert status == 400 and "Stage is test or prod." in response["error"]["message"]


async def test_a_generated_template_creates_a_stack(run: Program) -> None:
    response = await run.call("GET", "/resource_types/OS::Heat::RandomString/template")
    parameters = {"character_sequences": [], "sequence": "digits", "salt": ""}
    await create(run, "s", response[1], parameters=parameters)
    assert await run.until_ended("s") == "CREATE_COMPLETE"


@pytest.mark.parametrize("version", [AWS, HEAT], ids=["aws", "heat"])
async def test_a_cloudformation_stack_is_rolled_back_and_its_resource_moved(
    run: Program, world: World, version: Json
) -> None:
    world.script("create", "b", Failed("no room"))
    await create(run, "s", things(version, "a", "b"), disable_rollback=False)
    await until_status(run, "s", "ROLLBACK_COMPLETE")
    assert not world.things
    await create(run, "one", things(version, "a", "b"))
    await create(run, "two", things(version, "c"))
    for name in ("one", "two"):
        assert await run.until_ended(name) == "CREATE_COMPLETE"
    move = {"from": {"stack": "one", "resource": "a"}, "to": "d"}
    await run.update("two", "PUT", template=things(version, "c", "d"), moved=[move])
    await until_complete(run, "two")
    assert set(await run.resources("two")) == {"c", "d"}
    assert set(await run.resources("one")) == {"b"}
    assert (await run.stack_request("GET", "one", "/template")) == things(version, "b")
    assert len(world.things) == 3


@pytest.mark.parametrize("version", [AWS, HEAT], ids=["aws", "heat"])
async def test_a_section_may_be_empty(run: Program, version: Json) -> None:
    await create(run, "s", things(version, "a", Hooks=["pre-delete"]))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    nothing = version | {"Resources": None, "Outputs": None, "Parameters": None}
    await run.update("s", "PUT", template=nothing)
    (hook,) = await run.waiting_hooks("s")
    response = await run.stack_request("GET", "s", "/resources/a")
    assert response["resource"]["description"] == ""
    await run.signal(hook)
    await until_complete(run, "s")
    assert await run.resources("s") == {}


async def test_breakpoints_in_a_template(run: Program) -> None:
    template = things(AWS, "a", Hooks=["pre-create"])
    await create(run, "s", template)
    (hook,) = await run.waiting_hooks("s")
    assert (hook["resource_name"], hook["point"]) == ("a", "pre-create")
    assert (await run.signal(hook))[0] == 200
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    error = await expect_error(
        run, "PUT", "s", "", {"template": things(AWS, "a", Hooks=["pre-eat"])}
    )
    assert error[1]["place"] == "Resources.a.Hooks[0]"
