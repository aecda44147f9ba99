"""The unmodified `openstack` command line (python-openstackclient with python-heatclient)."""

import json
import os
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


class Client:
    """One user of the client, with a project and a folder of their own."""

    def __init__(self, server: ServerProcess, project: str, folder: Path) -> None:
        self._endpoint = f"{server.url}/v1/{project}"
        self._folder = folder

    def file(self, name: str, text: str) -> Path:
        path = self._folder / name
        path.write_text(text)
        return path

    def run(self, *words: str, code: int = 0) -> str:
        """One command as people give it, with all that the endpoint needs as options."""
        options = ["--os-auth-type", "none", "--os-endpoint", self._endpoint]
        done = self._done([str(OPENSTACK), *options, *words], "", {})
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def session(self, *lines: str) -> str:
        """Several commands in one process, as in the client's interactive mode.

        Its exit code is 1 however well all went; what went wrong is on standard error.
        """
        environment = {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": self._endpoint}
        done = self._done([str(OPENSTACK)], "\n".join([*lines, "quit", ""]), environment)
        assert done.stderr == "", (lines, done.stdout, done.stderr)
        return done.stdout

    def _done(
        self, command: list[str], text: str, environment: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, input=text, env=os.environ | environment, capture_output=True, text=True,
            timeout=100,
        )  # fmt: skip


def documents(said: str) -> list[Any]:
    """The JSON documents in what a session printed, between lines of other kinds."""
    found, decoder, lines = [], json.JSONDecoder(), said.splitlines(keepends=True)
    while lines:
        if lines[0].startswith(("[\n", "[]", "{")):
            document, end = decoder.raw_decode("".join(lines))
            found.append(document)
            lines = "".join(lines)[end:].splitlines(keepends=True)
        else:
            lines = lines[1:]
    return found


def test_a_stack_held_by_a_hook_of_its_environment(server: ServerProcess, tmp_path: Path) -> None:
    client = Client(server, "held-by-environment", tmp_path)
    template = client.file("t.yaml", TEMPLATE)
    environment = client.file(
        "e.yaml", "resource_registry: {resources: {app: {hooks: pre-create}}}"
    )
    create = ("stack", "create", "-t", str(template), "-e", str(environment), "--tags", "one,two")
    (made,) = documents(client.run(*create, "--parameter", "size=12", "life", "-f", "json"))
    assert made["stack_status"] == "CREATE_IN_PROGRESS"
    polled, shown, listed, resources, after = documents(
        client.session(
            "stack hook poll life -f json",
            "stack hook clear life app",
            "stack update --existing --wait life",
            "stack show life -f json",
            "stack list -f json",
            "stack resource list life -f json",
            "stack delete --yes --wait life",
            "stack list -f json",
        )
    )
    assert [one["Resource Status Reason"] for one in polled] == [
        "CREATE paused until Hook pre-create is cleared"
    ]
    assert shown["stack_status"] == "UPDATE_COMPLETE"
    assert shown["parameters"]["size"] == "12" and shown["tags"] == ["one", "two"]
    assert len(shown["outputs"][0]["output_value"]) == 12
    assert [one["Stack Name"] for one in listed] == ["life"]
    assert {one["resource_name"] for one in resources} == {"pw", "app"}
    assert after == []


def test_waiting_for_create_and_update(server: ServerProcess, tmp_path: Path) -> None:
    client = Client(server, "waiting", tmp_path)
    template = client.file("t.yaml", TEMPLATE)
    said = client.session(
        f"stack create -t {template} --wait --poll 1 life -f json",
        f"stack update -t {template} --parameter size=20 --wait life -f json",
        "stack output show life password -f json",
        "stack event list life",
    )
    made, changed, password = documents(said)
    assert made["stack_status"] == "CREATE_COMPLETE"
    assert changed["stack_status"] == "UPDATE_COMPLETE"
    assert len(password["output_value"]) == 20
    for told in (
        "CREATE_COMPLETE  Stack CREATE completed successfully",
        "UPDATE_COMPLETE  Stack UPDATE completed successfully",
    ):
        assert said.count(told) == 2  # while it was waited for, and in the list of events


def test_waiting_ends_at_a_stopped_stack_and_says_how_to_go_on(
    server: ServerProcess, tmp_path: Path
) -> None:
    client = Client(server, "stopped", tmp_path)
    template = client.file("t.yaml", TEMPLATE)
    rule = "{on: pre-create, timeout: 1s}"
    environment = client.file(
        "e.yaml", f"resource_registry: {{resources: {{app: {{hooks: [{rule}]}}}}}}"
    )
    said = client.run("stack", "create", "-t", str(template), "-e", str(environment), "--wait",
                      "--poll", "1", "held", code=1)  # fmt: skip
    assert "CREATE_FAILED  Stopped: app" in said and "update the stack to resume" in said
    (shown,) = documents(client.run("stack", "show", "held", "-f", "json"))
    assert shown["stack_status"] == "CREATE_STOPPED"


def test_lists_by_tags_and_templates_of_types(server: ServerProcess, tmp_path: Path) -> None:
    client = Client(server, "lists", tmp_path)
    template = client.file("t.yaml", TEMPLATE)
    client.session(
        f"stack create -t {template} --tags x,y --wait --poll 1 one -f json",
        f"stack create -t {template} --tags x --wait --poll 1 two -f json",
    )
    modes = ("", "--tag-mode any", "--tag-mode not", "--tag-mode not-any")
    *lists, begun = documents(
        client.session(
            *(f"stack list --tags x,y {mode} -f json" for mode in modes),
            "orchestration resource type show OS::Heat::RandomString --template-type hot -f json",
        )
    )
    found = [{one["Stack Name"] for one in listed} for listed in lists]
    assert found == [{"one"}, {"one", "two"}, {"two"}, set()]
    assert begun["parameters"]["length"]["default"] == 32
    assert begun["resources"]["RandomString"]["type"] == "OS::Heat::RandomString"


def test_what_is_wrong_is_printed(server: ServerProcess, tmp_path: Path) -> None:
    client = Client(server, "wrong", tmp_path)
    template = client.file("t.yaml", TEMPLATE.replace("length", "lenght"))
    said = client.run("stack", "create", "-t", str(template), "bad", code=1)
    assert "Property error: : resources.pw.properties: : Unknown Property lenght" in said
    assert "nosuch" in client.run("stack", "show", "nosuch", code=1)
    assert documents(client.run("stack", "list", "-f", "json")) == [[]]
