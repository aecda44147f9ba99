"""The unmodified `openstack` command line (python-openstackclient with python-heatclient)."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.program import ServerProcess

OPENSTACK = Path(sys.executable).parent / "openstack"
TEMPLATE = """
heat_template_version: 2018-08-31
parameters: {size: {type: number, default: 8}}
resources:
  pw: {type: OS::Heat::RandomString, properties: {length: {get_param: size}}}
  app: {type: OS::Heat::TestResource, properties: {value: {get_attr: [pw, value]}}}
outputs: {password: {value: {get_attr: [app, output]}}}
"""


def openstack(server: ServerProcess, *words: str, code: int = 0) -> str:
    endpoint = f"{server.url}/v1/demo"
    command = [str(OPENSTACK), "--os-auth-type", "none", "--os-endpoint", endpoint, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == code, (words, done.stdout, done.stderr)
    return done.stdout + done.stderr


def spoken(server: ServerProcess, *words: str) -> Any:
    return json.loads(openstack(server, *words, "-f", "json"))


def test_the_commands_of_a_stacks_life(server: ServerProcess, tmp_path: Path) -> None:
    template, environment = tmp_path / "t.yaml", tmp_path / "e.yaml"
    template.write_text(TEMPLATE)
    environment.write_text("resource_registry: {resources: {app: {hooks: pre-create}}}")
    create = ("stack", "create", "-t", str(template), "-e", str(environment), "--tags", "one,two")
    made = spoken(server, *create, "--parameter", "size=12", "life")
    assert made["stack_status"] == "CREATE_IN_PROGRESS"
    polled = spoken(server, "stack", "hook", "poll", "life")
    assert [one["Resource Status Reason"] for one in polled] == [
        "CREATE paused until Hook pre-create is cleared"
    ]
    openstack(server, "stack", "hook", "clear", "life", "app")
    openstack(server, "stack", "update", "--existing", "--wait", "life")
    shown = spoken(server, "stack", "show", "life")
    assert shown["stack_status"] == "UPDATE_COMPLETE"
    assert shown["parameters"]["size"] == "12" and shown["tags"] == ["one", "two"]
    assert len(shown["outputs"][0]["output_value"]) == 12
    listed = spoken(server, "stack", "list")
    assert [one["Stack Name"] for one in listed] == ["life"]
    resources = spoken(server, "stack", "resource", "list", "life")
    assert {one["resource_name"] for one in resources} == {"pw", "app"}
    events = openstack(server, "stack", "event", "list", "life")
    assert "CREATE_IN_PROGRESS  Stack CREATE started" in events
    openstack(server, "stack", "delete", "--yes", "--wait", "life")
    assert spoken(server, "stack", "list") == []


def test_waiting_ends_at_a_stopped_stack_and_says_how_to_go_on(
    server: ServerProcess, tmp_path: Path
) -> None:
    template, environment = tmp_path / "t.yaml", tmp_path / "e.yaml"
    template.write_text(TEMPLATE)
    rule = "{on: pre-create, timeout: 1s}"
    environment.write_text(f"resource_registry: {{resources: {{app: {{hooks: [{rule}]}}}}}}")
    create = ("stack", "create", "-t", str(template), "-e", str(environment), "--wait", "held")
    said = openstack(server, *create, code=1)
    assert "CREATE_FAILED  Stopped: app" in said and "update the stack to resume" in said
    assert spoken(server, "stack", "show", "held")["stack_status"] == "CREATE_STOPPED"


def test_what_is_wrong_is_printed(server: ServerProcess, tmp_path: Path) -> None:
    template = tmp_path / "t.yaml"
    template.write_text(TEMPLATE.replace("length", "lenght"))
    said = openstack(server, "stack", "create", "-t", str(template), "bad", code=1)
    assert "Property error: : resources.pw.properties: : Unknown Property lenght" in said
    assert "nosuch" in openstack(server, "stack", "show", "nosuch", code=1)
