"""All commands of `openstack` about stacks, templates, software configs and deployments."""

import json
import os
import time
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from tests.support.client_settings import ClientSettings
from tests.support.openstack_shell import OpenstackShell
from tests.support.program import PATIENCE

#: The entry points that list python-heatclient's commands.
GROUP = "openstack.orchestration.v1"
SERVER = "00000000-0000-0000-0000-000000000001"
TEMPLATE = """
heat_template_version: 2018-08-31
description: A walk
parameters: {size: {type: number, default: 8}, secret: {type: string, hidden: true, default: s3cret}}
resources:
  pw: {type: OS::Heat::RandomString, properties: {length: {get_param: size}}}
  app:
    type: OS::Heat::TestResource
    metadata: {role: web}
    properties: {value: {get_attr: [pw, value]}}
outputs:
  password: {description: the secret, value: {get_attr: [pw, value]}}
"""
FAILING = """
heat_template_version: 2018-08-31
resources: {bad: {type: OS::Heat::TestResource, properties: {value: x, fail: true}}}
"""
OUTER = """
heat_template_version: 2018-08-31
resources:
  web: {type: middle.yaml}
  db: {type: OS::Heat::TestResource, properties: {value: x}}
"""
MIDDLE = """
heat_template_version: 2018-08-31
resources: {server: {type: inner.yaml}}
"""
INNER = """
heat_template_version: 2018-08-31
resources: {one: {type: OS::Heat::TestResource, properties: {value: x}}}
"""
NESTED_HOOK = """
resource_registry: {resources: {web: {server: {one: {hooks: pre-create}}}}}
"""


class CommandLineUser:
    """A user of the command line, with a folder for files."""

    def __init__(self, shell: OpenstackShell, folder: Path) -> None:
        self.shell, self.folder = shell, folder

    def file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def run(self, *arguments: str, code: int = 0) -> str:
        return self.shell.run(*arguments, code=code)

    def show(self, *arguments: str) -> Any:
        return self.shell.document(*arguments)

    def until(self, stack: str, status: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while (found := self.show("stack", "show", stack)["stack_status"]) != status:
            assert time.monotonic() < deadline, found
            time.sleep(0.05)

    def until_listed(self, stack: str, statuses: Mapping[str, str]) -> dict[str, Any]:
        """Wait until resources, also of nested stacks, have these statuses; return all by name."""
        deadline = time.monotonic() + PATIENCE
        while True:
            listed = self.show("stack", "resource", "list", "-n", "2", stack)
            found = {one["resource_name"]: one for one in listed}
            shown = {name: one["resource_status"] for name, one in found.items()}
            if statuses.items() <= shown.items():
                return found
            assert time.monotonic() < deadline, shown
            time.sleep(0.05)

    def physical_ids(self, stack: str) -> dict[str, str]:
        """The physical IDs of a stack's resources, by name."""
        listed = self.show("stack", "resource", "list", stack)
        return {one["resource_name"]: one["physical_resource_id"] for one in listed}

    def until_empty(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while found := self.show("stack", "list"):
            assert time.monotonic() < deadline, found
            time.sleep(0.05)


def run_all(settings: ClientSettings, folder: Path) -> None:
    with OpenstackShell(settings.options, os.environ | dict(settings.environment)) as shell:
        user = CommandLineUser(shell, folder)
        build_and_types(user)
        one_stack(user)
        stack_parts(user)
        resources_and_events(user)
        hooks(user)
        actions(user)
        snapshots(user)
        failures(user)
        nested_stacks(user)
        abandon_and_adopt(user)
        software(user)
        refused_requests(user)
    commands = {one.name.replace("_", " ") for one in entry_points(group=GROUP)}
    assert {
        one for one in commands if not any(ran.startswith(one) for ran in shell.commands)
    } == set()


def run_some(settings: ClientSettings, folder: Path) -> None:
    """A call of each kind, which is sufficient for another way to authenticate."""
    with OpenstackShell(settings.options, os.environ | dict(settings.environment)) as shell:
        user = CommandLineUser(shell, folder)
        template = user.file("t.yaml", TEMPLATE)
        user.run("stack", "create", "-t", template, "--wait", "--poll", "1", "life")
        user.run("stack", "update", "--existing", "--parameter", "size=21", "life")
        user.until("life", "UPDATE_COMPLETE")
        (listed,) = user.show("stack", "list")
        assert listed["Stack Name"] == "life"
        stack_parts(user)
        resources_and_events(user)
        user.run("stack", "delete", "--yes", "life")
        hooks(user)
        software(user)
        user.until_empty()


def build_and_types(user: CommandLineUser) -> None:
    assert user.show("orchestration", "build", "info")["api"]["revision"]
    services = user.show("orchestration", "service", "list")
    assert "up" in {one["Status"] for one in services if one["Topic"] == "engine"}
    versions = user.show("orchestration", "template", "version", "list")
    assert {"hot", "cfn"} == {one["Type"] for one in versions}
    listed = ("orchestration", "template", "function", "list", "heat_template_version.2018-08-31")
    plain, all_of_them = user.show(*listed), user.show(*listed, "--with_conditions")
    names = {one["Functions"] for one in plain}
    assert {"get_attr", "str_replace"} <= names
    assert {"equals", "not"} <= {one["Functions"] for one in all_of_them} - names
    types = ("orchestration", "resource", "type")
    found = user.show(*types, "list", "--filter", "name=OS::Heat::Random")
    assert [one["Resource Type"] for one in found] == ["OS::Heat::RandomString"]
    assert len(user.show(*types, "list", "--long")[0]) == 2
    result = user.show(*types, "show", "OS::Heat::RandomString", "--long")
    assert result["properties"]["length"]["default"] == 32
    for form, key in (("hot", "heat_template_version"), ("cfn", "HeatTemplateFormatVersion")):
        printed = user.show(*types, "show", "OS::Heat::RandomString", "--template-type", form)
        assert key in printed
    template = user.file("t.yaml", TEMPLATE)
    output = user.show(
        "orchestration", "template", "validate", "-t", template, "--show-nested",
        "--ignore-errors", "99001", "--parameter", "size=4",
    )  # fmt: skip
    assert output["Parameters"]["secret"]["NoEcho"] == "true"


def one_stack(user: CommandLineUser) -> None:
    template = user.file("t.yaml", TEMPLATE)
    environment = user.file("e.yaml", "parameters: {size: 12}")
    create = ("stack", "create", "-t", template, "-e", environment, "--tags", "one,two")
    planned = user.show(*create, "--dry-run", "life")
    assert {one["resource_name"] for one in planned["resources"]} == {"pw", "app"}
    assert user.show("stack", "list") == []
    output = user.run(*create, "--timeout", "30", "--wait", "--poll", "1", "life")
    assert "Stack CREATE completed successfully" in output
    result = user.show("stack", "show", "life")
    assert (result["stack_status"], result["timeout_mins"]) == ("CREATE_COMPLETE", 30)
    assert (result["tags"], result["parameters"]["secret"]) == (["one", "two"], "******")
    update = ("stack", "update", "-t", template, "--parameter", "size=20")
    changes = user.show(*update, "--dry-run", "life")
    planned = {kind: [one["resource_name"] for one in of] for kind, of in changes.items() if of}
    assert planned == {"replaced": ["pw"], "updated": ["app"]}
    assert user.show("stack", "update", "--existing", "--dry-run", "--show-nested", "life")
    user.run(*update, "life")
    user.until("life", "UPDATE_COMPLETE")
    user.run("stack", "update", "--existing", "--parameter", "size=21", "--tags", "x", "life")
    user.until("life", "UPDATE_COMPLETE")
    for options in (
        ("--tags", "x"), ("--property", "name=life"), ("--property", "status=COMPLETE"),
        ("--short",), ("--nested", "--deleted", "--hidden", "--limit", "1"),
        ("--sort", "stack_name:asc"), ("--all-projects", "--tags", "x"),
    ):  # fmt: skip
        (listed,) = user.show("stack", "list", *options)
        assert listed["Stack Name"] == "life"
    for mode, names in (("any", ["life"]), ("not", ["life"]), ("not-any", [])):
        listed = user.show("stack", "list", "--tags", "x,y", "--tag-mode", mode)
        assert [one["Stack Name"] for one in listed] == names
    assert user.show("stack", "list", "--tags", "x,y") == []
    assert "Project" in user.show("stack", "list", "--long")[0]


def stack_parts(user: CommandLineUser) -> None:
    assert user.show("stack", "template", "show", "life")["description"] == "A walk"
    assert user.show("stack", "environment", "show", "life")["parameters"]["size"] == "21"
    assert user.show("stack", "file", "list", "life") == {"files": {}}
    (output,) = user.show("stack", "output", "list", "life")
    assert output == {"output_key": "password", "description": "the secret"}
    value = user.show("stack", "output", "show", "life", "password")["output_value"]
    assert len(value) == 21
    outputs = user.show("stack", "output", "show", "life", "--all")
    assert value in json.dumps(outputs)


def resources_and_events(user: CommandLineUser) -> None:
    listed = user.show("stack", "resource", "list", "life", "-n", "2", "--long")
    assert {one["resource_name"] for one in listed} == {"pw", "app"}
    found = user.show("stack", "resource", "list", "life", "--filter", "name=app")
    assert [one["resource_type"] for one in found] == ["OS::Heat::TestResource"]
    result = user.show("stack", "resource", "show", "life", "app", "--with-attr", "output")
    assert result["attributes"]["output"] == "******"  # it shows a secret of another resource
    assert user.show("stack", "resource", "metadata", "life", "app") == {"role": "web"}
    mark = ("stack", "resource", "mark", "unhealthy")
    user.run(*mark, "life", "app", "it smells")
    result = user.show("stack", "resource", "show", "life", "app")
    assert (result["resource_status"], result["resource_status_reason"]) == (
        "CHECK_FAILED", "it smells",
    )  # fmt: skip
    user.run(*mark, "--reset", "life", "app")
    output = user.run("stack", "resource", "signal", "life", "pw", "--data", "{}", code=1)
    assert "signal" in output
    events = ("stack", "event", "list", "life")
    unpaged = user.show(*events)
    (one,) = user.show(*events, "--resource", "app", "--limit", "1")
    assert one["resource_name"] == "app"
    after = user.show(*events, "--marker", unpaged[-2]["id"])
    assert [one["id"] for one in after] == [unpaged[-1]["id"]]
    deep = user.show(*events, "--nested-depth", "2", "--sort", "event_time:desc")
    assert {one["id"] for one in deep} == {one["id"] for one in unpaged}
    (failed,) = user.show(*events, "--filter", "resource_status=FAILED")
    assert failed["resource_status"] == "CHECK_FAILED"
    result = user.show("stack", "event", "show", "life", "app", one["id"])
    assert result["resource_type"] == "OS::Heat::TestResource"
    assert result["resource_properties"]["value"] == "******"  # computed from a secret


def hooks(user: CommandLineUser) -> None:
    template = user.file("t.yaml", TEMPLATE)
    breakpoints = user.file("h.yaml", "resource_registry: {resources: {app: {hooks: pre-create}}}")
    user.run("stack", "create", "-t", template, "-e", breakpoints, "held")
    deadline = time.monotonic() + PATIENCE
    while not (waiting := user.show("stack", "hook", "poll", "held")):
        assert time.monotonic() < deadline
    assert [one["Resource Name"] for one in waiting] == ["app"]
    user.run("stack", "hook", "clear", "--pre-create", "held", "app")
    user.until("held", "CREATE_COMPLETE")
    gate = user.file("g.yaml", "resource_registry: {resources: {app: {hooks: pre-update}}}")
    user.run("stack", "update", "-t", template, "-e", gate, "--parameter", "size=9", "held")
    user.run("stack", "cancel", "--no-rollback", "held")
    user.until("held", "UPDATE_FAILED")
    user.run("stack", "update", "-t", template, "-e", gate, "--parameter", "size=9", "held")
    user.run("stack", "cancel", "held")
    user.until("held", "ROLLBACK_COMPLETE")
    assert "not in cancelable state" in user.run("stack", "cancel", "held", code=1)
    user.run("stack", "delete", "--yes", "held")


def actions(user: CommandLineUser) -> None:
    for action in ("check", "suspend", "resume"):
        user.run("stack", action, "life")
        user.until("life", f"{action.upper()}_COMPLETE")


def snapshots(user: CommandLineUser) -> None:
    output = user.show("stack", "snapshot", "create", "--name", "good", "life")
    user.until("life", "SNAPSHOT_COMPLETE")
    (listed,) = user.show("stack", "snapshot", "list", "life")
    assert (listed["id"], listed["name"], listed["status"]) == (output["ID"], "good", "COMPLETE")
    result = user.show("stack", "snapshot", "show", "life", output["ID"])
    assert result["snapshot"]["data"]["template"]["resources"].keys() == {"pw", "app"}
    more = user.file("m.yaml", TEMPLATE.replace("  app:", "  new: {type: OS::Heat::None}\n  app:"))
    user.run("stack", "update", "-t", more, "life")
    user.until("life", "UPDATE_COMPLETE")
    assert user.physical_ids("life").keys() == {"pw", "app", "new"}
    user.run("stack", "snapshot", "restore", "life", output["ID"])
    user.until("life", "RESTORE_COMPLETE")
    assert user.physical_ids("life").keys() == {"pw", "app"}
    user.run("stack", "snapshot", "delete", "-y", "life", output["ID"])
    assert user.show("stack", "snapshot", "list", "life") == []
    restore = ("stack", "snapshot", "restore", "life", output["ID"])
    assert "not found" in user.run(*restore, code=1)


def failures(user: CommandLineUser) -> None:
    output = user.run("stack", "create", "-t", user.file("f.yaml", FAILING), "--wait",
                     "--poll", "1", "failing", code=1)  # fmt: skip
    assert "CREATE_FAILED" in output
    output = user.run("stack", "failures", "list", "--long", "failing")
    assert "failing.bad" in output and "CREATE_FAILED" in output
    user.run("stack", "delete", "--yes", "failing")


def nested_stacks(user: CommandLineUser) -> None:
    outer, held = user.file("outer.yaml", OUTER), user.file("inside.yaml", NESTED_HOOK)
    user.file("middle.yaml", MIDDLE)
    user.file("inner.yaml", INNER)
    user.run("stack", "create", "-t", outer, "-e", held, "tree")
    poll = ("stack", "hook", "poll", "tree", "--nested-depth", "3")
    deadline = time.monotonic() + PATIENCE
    while not (waiting := user.show(*poll)):
        assert time.monotonic() < deadline
    (one,) = waiting
    assert (one["Resource Name"], one["Resource Status"]) == ("one", "INIT_COMPLETE")
    assert one["Stack Name"].startswith("tree-web-") and "-server-" in one["Stack Name"]
    assert user.show("stack", "hook", "poll", "tree") == []
    user.run("stack", "hook", "clear", "--pre-create", "tree", "web/server/one")
    user.until("tree", "CREATE_COMPLETE")
    listed = user.show("stack", "resource", "list", "tree", "-n", "5")
    by_name = {one["resource_name"]: one for one in listed}
    assert by_name.keys() == {"web", "db", "server", "one"}
    assert by_name["one"]["stack_name"] == user.show(
        "stack", "show", by_name["server"]["physical_resource_id"]
    )["stack_name"]  # fmt: skip
    assert len(user.show("stack", "resource", "list", "tree", "-n", "1")) == 3
    nested = user.show("stack", "list", "--nested")
    assert len(nested) == 1 + len(user.show("stack", "list")) + 1
    parents = {one["Stack Name"]: one["Parent"] for one in nested}
    assert parents["tree"] is None and by_name["web"]["physical_resource_id"] in parents.values()
    events = ("stack", "event", "list", "tree", "--nested-depth", "2")
    stacks = {one["stack_name"] for one in user.show(*events)}
    assert stacks >= {"tree", *(name for name in parents if name.startswith("tree-"))}
    inside = by_name["web"]["physical_resource_id"]
    output = user.run("stack", "update", "--existing", inside, code=1)
    assert "is the resource web of stack tree" in output and "Update stack tree." in output
    user.run("stack", "delete", "--yes", "tree")


def abandon_and_adopt(user: CommandLineUser) -> None:
    exported, parcel = str(user.folder / "exported"), str(user.folder / "parcel")
    real = user.physical_ids("life")
    user.run("stack", "export", "life", "--output-file", exported)
    user.run("stack", "abandon", "life", "--output-file", parcel)
    assert json.loads(Path(exported).read_text())["resources"].keys() == {"pw", "app"}
    user.run("stack", "adopt", "--adopt-file", parcel, "again")
    user.until("again", "ADOPT_COMPLETE")
    assert user.physical_ids("again") == real
    user.run("stack", "delete", "--yes", "again")
    user.until_empty()


def software(user: CommandLineUser) -> None:
    script = user.file("script", "#!/bin/sh\necho $greeting")
    definition = user.file("d.yaml", "inputs: [{name: greeting}]\noutputs: [{name: result}]")
    output = user.show("software", "config", "create", "--config-file", script, "--group", "script",
                      "--definition-file", definition, "hello")  # fmt: skip
    result = user.show("software", "config", "show", output["id"])
    assert (result["group"], result["inputs"][0]["type"]) == ("script", "String")
    assert "echo" in user.run("software", "config", "show", "--config-only", output["id"])
    deployed = user.show(
        "software", "deployment", "create", "--config", output["id"], "--server", SERVER,
        "--action", "CREATE", "--signal-transport", "NO_SIGNAL", "--input-value", "greeting=hi",
        "first",
    )  # fmt: skip
    (listed,) = user.show("software", "deployment", "list", "--server", SERVER, "--long")
    assert (listed["id"], listed["status"]) == (deployed["id"], "IN_PROGRESS")
    assert (
        user.show("software", "deployment", "show", "--long", deployed["id"])["server_id"] == SERVER
    )
    metadata = user.run("software", "deployment", "metadata", "show", SERVER)
    assert "greeting" in metadata and "hi" in metadata
    user.run("software", "deployment", "output", "show", "--all", deployed["id"])
    assert len(user.show("software", "config", "list", "--limit", "5")) == 2
    user.run("software", "deployment", "delete", deployed["id"])
    user.run("software", "config", "delete", output["id"])
    for nouns in (("software", "deployment"), ("software", "config")):
        assert user.show(*nouns, "list") == []
        assert "not found" in user.run(*nouns, "show", output["id"], code=1)


def refused_requests(user: CommandLineUser) -> None:
    wrong = user.file("w.yaml", TEMPLATE.replace("length", "lenght"))
    output = user.run("stack", "create", "-t", wrong, "wrong", code=1)
    assert "Property error: : resources.pw.properties: : Unknown Property lenght" in output
    assert "Stack not found: none" in user.run("stack", "show", "none", code=1)
    assert "not found" in user.run("stack", "delete", "--yes", "none", code=1)
    output = user.run("orchestration", "resource", "type", "show", "No::Such", code=1)
    assert "No::Such" in output
    output = user.run("stack", "list", "--property", "disable_rollback=perhaps", code=1)
    assert "disable_rollback" in output
