"""Instance groups: members of a plug-in's type, from a launch configuration."""

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
    assert "resource_registry" in wrong["remedy"]

    more = {"environment": PLUGIN_TYPE, "files": {"instance.yaml": INSTANCE}}
    await running.create("s", {}, template=launch_template("a"), **more)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    assert await output(running, "s", "list") == "a,a"
    await running.update("s", "PUT", template=launch_template("b", 3), **more)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await output(running, "s", "list") == "b,b,b"


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
