"""All orchestration calls of openstacksdk: its proxy, and its cloud layer."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openstack
import openstack.exceptions
import pytest
from openstack.orchestration.v1._proxy import Proxy

from tests.support.client_settings import ClientSettings
from tests.support.program import resource, template

TEMPLATE = template(
    {"a": resource({"get_param": "size"}), "b": resource("b")},
    description="A walk",
    parameters={"size": {"type": "number", "default": 8}},
    outputs={"size": {"value": {"get_attr": ["a", "output"]}}},
)
#: Methods that the cloud layer uses.
OTHER = {"read_env_and_templates"}
TEXT = """
heat_template_version: 2018-08-31
parameters: {size: {type: number, default: 8}}
resources: {a: {type: OS::Heat::TestResource, properties: {value: {get_param: size}}}}
"""


def run_all(settings: ClientSettings, folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library's own warning
        with openstack.connect(**settings.sdk, load_yaml_config=False) as cloud:
            orchestration = RecordingProxy(cloud.orchestration)
            stacks(orchestration)
            parts_of_a_stack(orchestration)
            actions(orchestration)
            nested_stacks(orchestration)
            software(orchestration)
            templates(orchestration, folder)
            cloud_layer(cloud, folder)
    calls = {name for name, one in vars(Proxy).items() if callable(one) and name[0] != "_"}
    assert calls - orchestration.called - OTHER == set()


def run_some(settings: ClientSettings, folder: Path) -> None:
    """A call of each kind, which is sufficient for another way to authenticate."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library's own warning
        with openstack.connect(**settings.sdk, load_yaml_config=False) as cloud:
            stacks(cloud.orchestration)
            parts_of_a_stack(cloud.orchestration)
            software(cloud.orchestration)
            cloud.orchestration.delete_stack("sdk")
            assert cloud.delete_stack("none") is False


class RecordingProxy:
    """The proxy, and the names of its called methods."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self.called: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.called.add(name)
        return getattr(self._proxy, name)


def until(orchestration: Any, stack: Any, status: str) -> None:
    orchestration.wait_for_status(stack, status, ["CREATE_FAILED"], interval=0.05, wait=30)


def expect_missing(call: Callable[..., Any], *words: Any, **more: Any) -> None:
    with pytest.raises(openstack.exceptions.NotFoundException):
        call(*words, **more)


def stacks(orchestration: Any) -> None:
    planned = orchestration.create_stack(preview=True, name="sdk", template=TEMPLATE)
    assert planned.name == "sdk" and list(orchestration.stacks()) == []
    stack = orchestration.create_stack(
        name="sdk", template=TEMPLATE, parameters={"size": 5}, tags=["one", "two"], timeout_mins=30
    )
    until(orchestration, stack, "CREATE_COMPLETE")
    assert (stack.parameters["size"], stack.timeout_mins) == ("5", 30)
    for found in (
        orchestration.find_stack("sdk"), orchestration.find_stack(stack.id),
        orchestration.get_stack(stack.id), orchestration.get_stack(stack),
    ):  # fmt: skip
        assert (found.id, found.name, found.status) == (stack.id, "sdk", "CREATE_COMPLETE")
    shown = orchestration.get_stack(stack.id)
    assert [one["output_value"] for one in shown.outputs] == ["5"]
    assert orchestration.find_stack("sdk", resolve_outputs=False).outputs is None
    assert orchestration.find_stack("none") is None
    expect_missing(orchestration.get_stack, "none")
    more = [orchestration.create_stack(name=f"sdk{n}", template=TEMPLATE) for n in range(3)]
    listed = list(orchestration.stacks(limit=1))
    assert [one.name for one in listed] == ["sdk2", "sdk1", "sdk0", "sdk"]
    assert [one.name for one in orchestration.stacks(name="sdk1")] == ["sdk1"]
    assert {one.name for one in orchestration.stacks(tags=["one"])} == {"sdk"}
    assert [one.name for one in orchestration.stacks(status="FAILED")] == []
    for one in more:
        orchestration.delete_stack(one)
        orchestration.wait_for_delete(one, interval=0.05, wait=30)
    orchestration.update_stack(stack.id, template=TEMPLATE, parameters={"size": 6}, preview=True)
    orchestration.update_stack(stack.id, template=TEMPLATE, parameters={"size": 7})
    until(orchestration, stack, "UPDATE_COMPLETE")
    assert orchestration.get_stack(stack.id).parameters["size"] == "7"


def parts_of_a_stack(orchestration: Any) -> None:
    stack = orchestration.find_stack("sdk")
    assert orchestration.get_stack_template(stack).resources.keys() == {"a", "b"}
    assert orchestration.get_stack_environment("sdk").parameters == {"size": 7}
    assert orchestration.get_stack_files(stack) == {}
    for found in (orchestration.resources(stack), orchestration.resources("sdk")):
        assert {one.name: one.resource_type for one in found} == {
            "a": "OS::Heat::TestResource", "b": "OS::Heat::TestResource",
        }  # fmt: skip
    (only,) = orchestration.resources(stack, name="a")
    assert (only.status, only.links[0]["rel"]) == ("UPDATE_COMPLETE", "self")
    events = list(orchestration.stack_events(stack))
    paged = list(orchestration.stack_events(stack, limit=3))
    assert [one.id for one in paged] in ([one.id for one in events], [one.id for one in events][:3])
    of_one = list(orchestration.stack_events(stack, "b"))
    assert {one.resource_name for one in of_one} == {"b"} and len(of_one) == 2
    newest = next(iter(orchestration.stack_events(stack, sort_dir="desc", limit=1)))
    assert newest.resource_status == "UPDATE_COMPLETE"


def actions(orchestration: Any) -> None:
    stack = orchestration.find_stack("sdk")
    for act, status in (
        (orchestration.check_stack, "CHECK_COMPLETE"),
        (orchestration.suspend_stack, "SUSPEND_COMPLETE"),
        (orchestration.resume_stack, "RESUME_COMPLETE"),
    ):
        act(stack.id)
        until(orchestration, stack, status)
    exported = orchestration.export_stack(stack)
    assert exported["resources"].keys() == {"a", "b"}
    assert orchestration.abandon_stack(stack)["status"] == "COMPLETE"
    expect_missing(orchestration.get_stack, "sdk")


def nested_stacks(orchestration: Any) -> None:
    files = {"inner.yaml": json.dumps(template({"one": resource("x")}))}
    outer = template({"web": {"type": "inner.yaml"}})
    stack = orchestration.create_stack(name="tree", template=outer, files=files)
    until(orchestration, stack, "CREATE_COMPLETE")
    (inside,) = orchestration.stacks(owner_id=stack.id)
    assert (inside.parent_id, inside.name[:9]) == (stack.id, "tree-web-")
    (web,) = orchestration.resources(stack)
    assert web.physical_resource_id == inside.id
    assert [one.name for one in orchestration.resources(inside)] == ["one"]
    assert "tree" in {one.name for one in orchestration.stacks()}
    names = {one.resource_name for one in orchestration.stack_events(stack, nested_depth=1)}
    assert names == {"tree", "web", inside.name, "one"}
    orchestration.delete_stack(stack)
    orchestration.wait_for_delete(stack, interval=0.05, wait=30)


def software(orchestration: Any) -> None:
    config = orchestration.create_software_config(
        name="c", group="script", config="true", inputs=[{"name": "i"}], outputs=[{"name": "o"}]
    )
    assert orchestration.get_software_config(config).inputs[0]["type"] == "String"
    assert [one.id for one in orchestration.software_configs()] == [config.id]
    deployment = orchestration.create_software_deployment(
        config_id=config.id, server_id="s", action="CREATE", status="IN_PROGRESS",
        input_values={"i": 1},
    )  # fmt: skip
    orchestration.update_software_deployment(
        deployment, status="COMPLETE", output_values={"o": 2}, status_reason="done"
    )
    found = orchestration.get_software_deployment(deployment.id)
    assert (found.status, found.output_values, found.input_values) == (
        "COMPLETE",
        {"o": 2},
        {"i": 1},
    )
    assert [one.id for one in orchestration.software_deployments(server_id="s")] == [deployment.id]
    assert list(orchestration.software_deployments(server_id="t")) == []
    orchestration.delete_software_deployment(deployment)
    orchestration.delete_software_config(config)
    expect_missing(orchestration.get_software_config, config.id)
    expect_missing(orchestration.delete_software_deployment, deployment.id, ignore_missing=False)


def templates(orchestration: Any, folder: Path) -> None:
    path = folder / "sdk.yaml"
    path.write_text(TEXT)
    files, read = orchestration.get_template_contents(template_file=str(path))
    assert files == {} and "resources" in read
    valid = orchestration.validate_template(TEMPLATE, environment={}, ignore_errors="99001")
    assert valid.parameters["size"]["Type"] == "Number"
    with pytest.raises(openstack.exceptions.BadRequestException, match="No::Such"):
        orchestration.validate_template(template({"a": {"type": "No::Such"}}))


def cloud_layer(cloud: Any, folder: Path) -> None:
    path, environment = folder / "cloud.yaml", folder / "environment.yaml"
    path.write_text(TEXT)
    environment.write_text("parameters: {size: 9}")
    stack = cloud.create_stack("cloud", tags=["t"], template_file=str(path), rollback=False,
                              environment_files=[str(environment)], wait=True)  # fmt: skip
    assert (stack.status, stack.parameters["size"]) == ("CREATE_COMPLETE", "9")
    assert cloud.get_stack("cloud").id == cloud.get_stack(stack.id).id == stack.id
    assert [one.name for one in cloud.search_stacks("cloud")] == ["cloud"]
    assert cloud.search_stacks(filters={"status": "CREATE_FAILED"}) == []
    assert [one.name for one in cloud.list_stacks(tags=["t"])] == ["cloud"]
    changed = cloud.update_stack("cloud", template_file=str(path), size=10)
    until(cloud.orchestration, changed, "UPDATE_COMPLETE")
    assert cloud.get_stack("cloud").parameters["size"] == "10"
    assert cloud.get_template_contents(template_file=str(path))
    assert cloud.delete_stack("cloud") is True
    cloud.orchestration.wait_for_delete(changed, interval=0.05, wait=30)
    assert cloud.get_stack("cloud") is None and cloud.delete_stack("cloud") is False
