"""Every command of `openstack` about stacks, templates, software configs and deployments."""

import json
import os
import time
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from tests.support.openstack_shell import OpenstackShell
from tests.support.program import PATIENCE
from tests.support.ways import Way

#: Where python-heatclient says which commands it has.
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
HELD_INSIDE = """
resource_registry: {resources: {web: {server: {one: {hooks: pre-create}}}}}
"""


class Walk:
    """One user of the command line, with a folder of their own."""

    def __init__(self, shell: OpenstackShell, folder: Path) -> None:
        self.shell, self.folder = shell, folder

    def file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def says(self, *words: str, code: int = 0) -> str:
        return self.shell.run(*words, code=code)

    def shows(self, *words: str) -> Any:
        return self.shell.document(*words)

    def until(self, stack: str, status: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while (found := self.shows("stack", "show", stack)["stack_status"]) != status:
            assert time.monotonic() < deadline, found
            time.sleep(0.05)

    def real(self, stack: str) -> dict[str, str]:
        """The physical ids of a stack's resources, by name."""
        listed = self.shows("stack", "resource", "list", stack)
        return {one["resource_name"]: one["physical_resource_id"] for one in listed}

    def until_there_is_none(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while found := self.shows("stack", "list"):
            assert time.monotonic() < deadline, found
            time.sleep(0.05)


def walk(way: Way, folder: Path) -> None:
    with OpenstackShell(way.options, os.environ | dict(way.environment)) as shell:
        walked = Walk(shell, folder)
        what_the_server_is(walked)
        a_stack(walked)
        its_parts(walked)
        its_resources_and_events(walked)
        hooks(walked)
        actions(walked)
        snapshots(walked)
        failures(walked)
        stacks_inside(walked)
        carried_elsewhere(walked)
        software(walked)
        what_is_refused(walked)
    commands = {one.name.replace("_", " ") for one in entry_points(group=GROUP)}
    assert {one for one in commands if not any(ran.startswith(one) for ran in shell.ran)} == set()


def short_walk(way: Way, folder: Path) -> None:
    """What each client does: to be let in another way takes no more."""
    with OpenstackShell(way.options, os.environ | dict(way.environment)) as shell:
        walked = Walk(shell, folder)
        template = walked.file("t.yaml", TEMPLATE)
        walked.says("stack", "create", "-t", template, "--wait", "--poll", "1", "life")
        walked.says("stack", "update", "--existing", "--parameter", "size=21", "life")
        walked.until("life", "UPDATE_COMPLETE")
        (listed,) = walked.shows("stack", "list")
        assert listed["Stack Name"] == "life"
        its_parts(walked)
        its_resources_and_events(walked)
        walked.says("stack", "delete", "--yes", "life")
        hooks(walked)
        software(walked)
        walked.until_there_is_none()


def what_the_server_is(walk: Walk) -> None:
    assert walk.shows("orchestration", "build", "info")["api"]["revision"]
    services = walk.shows("orchestration", "service", "list")
    assert "up" in {one["Status"] for one in services if one["Topic"] == "engine"}
    versions = walk.shows("orchestration", "template", "version", "list")
    assert {"hot", "cfn"} == {one["Type"] for one in versions}
    listed = ("orchestration", "template", "function", "list", "heat_template_version.2018-08-31")
    plain, all_of_them = walk.shows(*listed), walk.shows(*listed, "--with_conditions")
    names = {one["Functions"] for one in plain}
    assert {"get_attr", "str_replace"} <= names
    assert {"equals", "not"} <= {one["Functions"] for one in all_of_them} - names
    types = ("orchestration", "resource", "type")
    found = walk.shows(*types, "list", "--filter", "name=OS::Heat::Random")
    assert [one["Resource Type"] for one in found] == ["OS::Heat::RandomString"]
    assert len(walk.shows(*types, "list", "--long")[0]) == 2
    shown = walk.shows(*types, "show", "OS::Heat::RandomString", "--long")
    assert shown["properties"]["length"]["default"] == 32
    for form, key in (("hot", "heat_template_version"), ("cfn", "HeatTemplateFormatVersion")):
        made = walk.shows(*types, "show", "OS::Heat::RandomString", "--template-type", form)
        assert key in made
    template = walk.file("t.yaml", TEMPLATE)
    said = walk.shows(
        "orchestration", "template", "validate", "-t", template, "--show-nested",
        "--ignore-errors", "99001", "--parameter", "size=4",
    )  # fmt: skip
    assert said["Parameters"]["secret"]["NoEcho"] == "true"


def a_stack(walk: Walk) -> None:
    template = walk.file("t.yaml", TEMPLATE)
    environment = walk.file("e.yaml", "parameters: {size: 12}")
    create = ("stack", "create", "-t", template, "-e", environment, "--tags", "one,two")
    planned = walk.shows(*create, "--dry-run", "life")
    assert {one["resource_name"] for one in planned["resources"]} == {"pw", "app"}
    assert walk.shows("stack", "list") == []
    made = walk.says(*create, "--timeout", "30", "--wait", "--poll", "1", "life")
    assert "Stack CREATE completed successfully" in made
    shown = walk.shows("stack", "show", "life")
    assert (shown["stack_status"], shown["timeout_mins"]) == ("CREATE_COMPLETE", 30)
    assert (shown["tags"], shown["parameters"]["secret"]) == (["one", "two"], "******")
    update = ("stack", "update", "-t", template, "--parameter", "size=20")
    changes = walk.shows(*update, "--dry-run", "life")
    planned = {kind: [one["resource_name"] for one in of] for kind, of in changes.items() if of}
    assert planned == {"replaced": ["pw"], "updated": ["app"]}
    assert walk.shows("stack", "update", "--existing", "--dry-run", "--show-nested", "life")
    walk.says(*update, "life")
    walk.until("life", "UPDATE_COMPLETE")
    walk.says("stack", "update", "--existing", "--parameter", "size=21", "--tags", "x", "life")
    walk.until("life", "UPDATE_COMPLETE")
    for options in (
        ("--tags", "x"), ("--property", "name=life"), ("--property", "status=COMPLETE"),
        ("--short",), ("--nested", "--deleted", "--hidden", "--limit", "1"),
        ("--sort", "stack_name:asc"), ("--all-projects", "--tags", "x"),
    ):  # fmt: skip
        (listed,) = walk.shows("stack", "list", *options)
        assert listed["Stack Name"] == "life"
    for mode, names in (("any", ["life"]), ("not", ["life"]), ("not-any", [])):
        listed = walk.shows("stack", "list", "--tags", "x,y", "--tag-mode", mode)
        assert [one["Stack Name"] for one in listed] == names
    assert walk.shows("stack", "list", "--tags", "x,y") == []
    assert "Project" in walk.shows("stack", "list", "--long")[0]


def its_parts(walk: Walk) -> None:
    assert walk.shows("stack", "template", "show", "life")["description"] == "A walk"
    assert walk.shows("stack", "environment", "show", "life")["parameters"]["size"] == "21"
    assert walk.shows("stack", "file", "list", "life") == {"files": {}}
    (output,) = walk.shows("stack", "output", "list", "life")
    assert output == {"output_key": "password", "description": "the secret"}
    value = walk.shows("stack", "output", "show", "life", "password")["output_value"]
    assert len(value) == 21
    whole = walk.shows("stack", "output", "show", "life", "--all")
    assert value in json.dumps(whole)


def its_resources_and_events(walk: Walk) -> None:
    listed = walk.shows("stack", "resource", "list", "life", "-n", "2", "--long")
    assert {one["resource_name"] for one in listed} == {"pw", "app"}
    found = walk.shows("stack", "resource", "list", "life", "--filter", "name=app")
    assert [one["resource_type"] for one in found] == ["OS::Heat::TestResource"]
    shown = walk.shows("stack", "resource", "show", "life", "app", "--with-attr", "output")
    assert shown["attributes"]["output"] == "******"  # it repeats a secret of another resource
    assert walk.shows("stack", "resource", "metadata", "life", "app") == {"role": "web"}
    mark = ("stack", "resource", "mark", "unhealthy")
    walk.says(*mark, "life", "app", "it smells")
    shown = walk.shows("stack", "resource", "show", "life", "app")
    assert (shown["resource_status"], shown["resource_status_reason"]) == (
        "CHECK_FAILED", "it smells",
    )  # fmt: skip
    walk.says(*mark, "--reset", "life", "app")
    said = walk.says("stack", "resource", "signal", "life", "pw", "--data", "{}", code=1)
    assert "signal" in said
    events = ("stack", "event", "list", "life")
    whole = walk.shows(*events)
    (one,) = walk.shows(*events, "--resource", "app", "--limit", "1")
    assert one["resource_name"] == "app"
    after = walk.shows(*events, "--marker", whole[-2]["id"])
    assert [one["id"] for one in after] == [whole[-1]["id"]]
    deep = walk.shows(*events, "--nested-depth", "2", "--sort", "event_time:desc")
    assert {one["id"] for one in deep} == {one["id"] for one in whole}
    (failed,) = walk.shows(*events, "--filter", "resource_status=FAILED")
    assert failed["resource_status"] == "CHECK_FAILED"
    shown = walk.shows("stack", "event", "show", "life", "app", one["id"])
    assert shown["resource_type"] == "OS::Heat::TestResource"
    assert shown["resource_properties"]["value"] == "******"  # made of a secret


def hooks(walk: Walk) -> None:
    template = walk.file("t.yaml", TEMPLATE)
    held = walk.file("h.yaml", "resource_registry: {resources: {app: {hooks: pre-create}}}")
    walk.says("stack", "create", "-t", template, "-e", held, "held")
    deadline = time.monotonic() + PATIENCE
    while not (waiting := walk.shows("stack", "hook", "poll", "held")):
        assert time.monotonic() < deadline
    assert [one["Resource Name"] for one in waiting] == ["app"]
    walk.says("stack", "hook", "clear", "--pre-create", "held", "app")
    walk.until("held", "CREATE_COMPLETE")
    gate = walk.file("g.yaml", "resource_registry: {resources: {app: {hooks: pre-update}}}")
    walk.says("stack", "update", "-t", template, "-e", gate, "--parameter", "size=9", "held")
    walk.says("stack", "cancel", "--no-rollback", "held")
    walk.until("held", "UPDATE_FAILED")
    walk.says("stack", "update", "-t", template, "-e", gate, "--parameter", "size=9", "held")
    walk.says("stack", "cancel", "held")
    walk.until("held", "ROLLBACK_COMPLETE")
    assert "not in cancelable state" in walk.says("stack", "cancel", "held", code=1)
    walk.says("stack", "delete", "--yes", "held")


def actions(walk: Walk) -> None:
    for action in ("check", "suspend", "resume"):
        walk.says("stack", action, "life")
        walk.until("life", f"{action.upper()}_COMPLETE")


def snapshots(walk: Walk) -> None:
    made = walk.shows("stack", "snapshot", "create", "--name", "good", "life")
    walk.until("life", "SNAPSHOT_COMPLETE")
    (listed,) = walk.shows("stack", "snapshot", "list", "life")
    assert (listed["id"], listed["name"], listed["status"]) == (made["ID"], "good", "COMPLETE")
    shown = walk.shows("stack", "snapshot", "show", "life", made["ID"])
    assert shown["snapshot"]["data"]["template"]["resources"].keys() == {"pw", "app"}
    more = walk.file("m.yaml", TEMPLATE.replace("  app:", "  new: {type: OS::Heat::None}\n  app:"))
    walk.says("stack", "update", "-t", more, "life")
    walk.until("life", "UPDATE_COMPLETE")
    assert walk.real("life").keys() == {"pw", "app", "new"}
    walk.says("stack", "snapshot", "restore", "life", made["ID"])
    walk.until("life", "RESTORE_COMPLETE")
    assert walk.real("life").keys() == {"pw", "app"}
    walk.says("stack", "snapshot", "delete", "-y", "life", made["ID"])
    assert walk.shows("stack", "snapshot", "list", "life") == []
    restore = ("stack", "snapshot", "restore", "life", made["ID"])
    assert "not found" in walk.says(*restore, code=1)


def failures(walk: Walk) -> None:
    said = walk.says("stack", "create", "-t", walk.file("f.yaml", FAILING), "--wait",
                     "--poll", "1", "failing", code=1)  # fmt: skip
    assert "CREATE_FAILED" in said
    said = walk.says("stack", "failures", "list", "--long", "failing")
    assert "failing.bad" in said and "CREATE_FAILED" in said
    walk.says("stack", "delete", "--yes", "failing")


def stacks_inside(walk: Walk) -> None:
    outer, held = walk.file("outer.yaml", OUTER), walk.file("inside.yaml", HELD_INSIDE)
    walk.file("middle.yaml", MIDDLE)
    walk.file("inner.yaml", INNER)
    walk.says("stack", "create", "-t", outer, "-e", held, "tree")
    poll = ("stack", "hook", "poll", "tree", "--nested-depth", "3")
    deadline = time.monotonic() + PATIENCE
    while not (waiting := walk.shows(*poll)):
        assert time.monotonic() < deadline
    (one,) = waiting
    assert (one["Resource Name"], one["Resource Status"]) == ("one", "INIT_COMPLETE")
    assert one["Stack Name"].startswith("tree-web-") and "-server-" in one["Stack Name"]
    assert walk.shows("stack", "hook", "poll", "tree") == []
    walk.says("stack", "hook", "clear", "--pre-create", "tree", "web/server/one")
    walk.until("tree", "CREATE_COMPLETE")
    listed = walk.shows("stack", "resource", "list", "tree", "-n", "5")
    by_name = {one["resource_name"]: one for one in listed}
    assert by_name.keys() == {"web", "db", "server", "one"}
    assert by_name["one"]["stack_name"] == walk.shows(
        "stack", "show", by_name["server"]["physical_resource_id"]
    )["stack_name"]  # fmt: skip
    assert len(walk.shows("stack", "resource", "list", "tree", "-n", "1")) == 3
    nested = walk.shows("stack", "list", "--nested")
    assert len(nested) == 1 + len(walk.shows("stack", "list")) + 1
    parents = {one["Stack Name"]: one["Parent"] for one in nested}
    assert parents["tree"] is None and by_name["web"]["physical_resource_id"] in parents.values()
    events = ("stack", "event", "list", "tree", "--nested-depth", "2")
    stacks = {one["stack_name"] for one in walk.shows(*events)}
    assert stacks >= {"tree", *(name for name in parents if name.startswith("tree-"))}
    inside = by_name["web"]["physical_resource_id"]
    said = walk.says("stack", "update", "--existing", inside, code=1)
    assert "is the resource web of stack tree" in said and "Update stack tree." in said
    walk.says("stack", "delete", "--yes", "tree")


def carried_elsewhere(walk: Walk) -> None:
    exported, parcel = str(walk.folder / "exported"), str(walk.folder / "parcel")
    real = walk.real("life")
    walk.says("stack", "export", "life", "--output-file", exported)
    walk.says("stack", "abandon", "life", "--output-file", parcel)
    assert json.loads(Path(exported).read_text())["resources"].keys() == {"pw", "app"}
    walk.says("stack", "adopt", "--adopt-file", parcel, "again")
    walk.until("again", "ADOPT_COMPLETE")
    assert walk.real("again") == real
    walk.says("stack", "delete", "--yes", "again")
    walk.until_there_is_none()


def software(walk: Walk) -> None:
    script = walk.file("script", "#!/bin/sh\necho $greeting")
    definition = walk.file("d.yaml", "inputs: [{name: greeting}]\noutputs: [{name: said}]")
    made = walk.shows("software", "config", "create", "--config-file", script, "--group", "script",
                      "--definition-file", definition, "hello")  # fmt: skip
    shown = walk.shows("software", "config", "show", made["id"])
    assert (shown["group"], shown["inputs"][0]["type"]) == ("script", "String")
    assert "echo" in walk.says("software", "config", "show", "--config-only", made["id"])
    deployed = walk.shows(
        "software", "deployment", "create", "--config", made["id"], "--server", SERVER,
        "--action", "CREATE", "--signal-transport", "NO_SIGNAL", "--input-value", "greeting=hi",
        "first",
    )  # fmt: skip
    (listed,) = walk.shows("software", "deployment", "list", "--server", SERVER, "--long")
    assert (listed["id"], listed["status"]) == (deployed["id"], "IN_PROGRESS")
    assert (
        walk.shows("software", "deployment", "show", "--long", deployed["id"])["server_id"]
        == SERVER
    )
    metadata = walk.says("software", "deployment", "metadata", "show", SERVER)
    assert "greeting" in metadata and "hi" in metadata
    walk.says("software", "deployment", "output", "show", "--all", deployed["id"])
    assert len(walk.shows("software", "config", "list", "--limit", "5")) == 2
    walk.says("software", "deployment", "delete", deployed["id"])
    walk.says("software", "config", "delete", made["id"])
    for nouns in (("software", "deployment"), ("software", "config")):
        assert walk.shows(*nouns, "list") == []
        assert "not found" in walk.says(*nouns, "show", made["id"], code=1)


def what_is_refused(walk: Walk) -> None:
    wrong = walk.file("w.yaml", TEMPLATE.replace("length", "lenght"))
    said = walk.says("stack", "create", "-t", wrong, "wrong", code=1)
    assert "Property error: : resources.pw.properties: : Unknown Property lenght" in said
    assert "Stack not found: none" in walk.says("stack", "show", "none", code=1)
    assert "not found" in walk.says("stack", "delete", "--yes", "none", code=1)
    said = walk.says("orchestration", "resource", "type", "show", "No::Such", code=1)
    assert "No::Such" in said
    said = walk.says("stack", "list", "--property", "disable_rollback=perhaps", code=1)
    assert "disable_rollback" in said
