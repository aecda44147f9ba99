"""Instance groups: members of a plug-in's type, from a launch configuration."""

import json

from tests.integration.nested.test_lifecycle import output
from tests.support.program import Json, Program

INSTANCE = """
heat_template_version: 2018-08-31
parameters:
  ImageId: {type: string}
resources:
  one: {type: OS::Heat::TestResource, properties: {value: {get_param: ImageId}}}
outputs:
  PublicIp: {value: {get_attr: [one, output]}}
"""
PLUGIN_TYPE = {"resource_registry": {"AWS::EC2::Instance": "instance.yaml"}}


def launch_template(image: str, size: int = 2) -> Json:
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Resources": {
            "conf": {
                "Type": "AWS::AutoScaling::LaunchConfiguration", "Properties": {"ImageId": image},
            },
            "g": {
                "Type": "OS::Heat::InstanceGroup",
                "UpdatePolicy": {"RollingUpdate": {"MaxBatchSize": 1, "MinInstancesInService": 1}},
                "Properties": {
                    "AvailabilityZones": ["nova"], "LaunchConfigurationName": {"Ref": "conf"},
                    "Size": size,
                },
            },
        },
        "Outputs": {"list": {"Value": {"Fn::GetAtt": ["g", "InstanceList"]}}},
    }  # fmt: skip


async def test_instances_are_updated_with_their_launch_configuration(running: Program) -> None:
    sent = {"stack_name": "s", "template": launch_template("a")}
    status, refused = await running.call("POST", "/stacks", sent)
    assert status == 400
    (wrong,) = refused["error"]["findings"]
    assert wrong["place"] == "Resources.g.Properties.LaunchConfigurationName"
    assert "(AWS::EC2::Instance) of its members" in wrong["reason"]
    assert wrong["remedy"].startswith("No OpenStack is configured.")
    assert "resource_registry" in wrong["remedy"]

    more = {"environment": PLUGIN_TYPE, "files": {"instance.yaml": INSTANCE}}
    await running.create("s", {}, template=launch_template("a"), **more)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    assert await output(running, "s", "list") == "a,a"
    await running.update("s", "PUT", template=launch_template("b", 3), **more)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await output(running, "s", "list") == "b,b,b"


async def test_secrets_of_a_launch_configuration_are_masked_in_the_instances(
    running: Program,
) -> None:
    """Also if only the reference of the launch configuration, which is no secret, differs."""
    template = launch_template("")
    template["Parameters"] = {"image": {"Type": "String", "NoEcho": True, "Default": "s3cret-1"}}
    template["Resources"]["conf"]["Properties"]["ImageId"] = {"Ref": "image"}
    instance = INSTANCE.replace("{get_attr: [one, output]}", "192.0.2.1")
    more = {"environment": PLUGIN_TYPE, "files": {"instance.yaml": instance}}
    sent = {"stack_name": "s", "template": template, **more}
    _, previewed = await running.call("POST", "/stacks/preview", sent)
    await running.create("s", {}, **sent)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    changed = {"template": template, **more, "parameters": {"image": "s3cret-2"}}
    update = await running.stack_request("PUT", "s", "/preview?show_nested=True", changed)
    scaled = {**template, "Resources": template["Resources"] | launch_template("", 3)["Resources"]}
    scaled["Resources"]["conf"] = template["Resources"]["conf"]
    larger = {"template": scaled, **more}
    unchanged = await running.stack_request("PUT", "s", "/preview?show_nested=True", larger)
    shown = [previewed, update, unchanged]
    assert all('"path": "g/' in json.dumps(one) for one in shown)
    rows = await running.stack_request("GET", "s", "/resources?nested_depth=3")
    for row in rows["resources"]:
        (link,) = [one["href"] for one in row["links"] if one["rel"] == "self"]
        path = "/stacks/" + link.partition("/stacks/")[2]
        shown += [
            (await running.call("GET", path))[1],
            (await running.call("GET", f"{path.partition('/resources')[0]}/template"))[1],
            (await running.call("GET", f"{path.partition('/resources')[0]}/events"))[1],
            (await running.call("GET", path.partition("/resources")[0]))[1],
        ]
    assert len(shown) > 3 + 4 * 4
    for one in shown:
        text = json.dumps(one).replace('"Default": "s3cret-1"', "")
        assert "s3cret" not in text


def scaling_template(most: int = 3) -> Json:
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Resources": {
            "conf": {
                "Type": "AWS::AutoScaling::LaunchConfiguration", "Properties": {"ImageId": "a"},
            },
            "g": {
                "Type": "AWS::AutoScaling::AutoScalingGroup",
                "UpdatePolicy": {"AutoScalingRollingUpdate": {"MaxBatchSize": 1}},
                "Properties": {
                    "AvailabilityZones": {"Fn::GetAZs": ""},
                    "LaunchConfigurationName": {"Ref": "conf"}, "MinSize": "1", "MaxSize": most,
                },
            },
            "up": {
                "Type": "AWS::AutoScaling::ScalingPolicy",
                "Properties": {
                    "AutoScalingGroupName": {"Ref": "g"}, "AdjustmentType": "ChangeInCapacity",
                    "ScalingAdjustment": "1",
                },
            },
            "alarm": {
                "Type": "OS::Heat::Value", "Properties": {"value": [{"Ref": "up"}]},
            },
        },
        "Outputs": {"list": {"Value": {"Fn::GetAtt": ["g", "InstanceList"]}}},
    }  # fmt: skip


async def test_a_signal_scales_the_instances_of_an_auto_scaling_group(running: Program) -> None:
    more = {"environment": PLUGIN_TYPE, "files": {"instance.yaml": INSTANCE}}
    await running.create("s", {}, template=scaling_template(), **more)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    assert await output(running, "s", "list") == "a"
    shown = (await running.stack_request("GET", "s", "/resources/up"))["resource"]
    assert shown["attributes"]["AlarmUrl"] == "******"
    for expected in ("a,a", "a,a,a"):
        await running.stack_request("POST", "s", "/resources/up/signal")
        assert await running.until_ended("s") == "UPDATE_COMPLETE"
        assert await output(running, "s", "list") == expected
    await running.stack_request("POST", "s", "/resources/up/signal")  # it has MaxSize members
    await running.update("s", "PUT", template=scaling_template(most=2), **more)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await output(running, "s", "list") == "a,a"
