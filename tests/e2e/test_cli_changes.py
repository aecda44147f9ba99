"""Changing a stack safely, undoing a change, and moving a stack to another server, with the real
command line.
"""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.command_line import headgate, headgate_json
from tests.support.direct_api import DirectApi
from tests.support.program import ServerProcess, resource, template

HOOK_ENVIRONMENT = {"hooks": [{"at": "b", "on": "pre-update", "timeout": "2h"}]}


def template_with(**values: str) -> Any:
    """A template of test resources with these values, which are also outputs."""
    outputs = {name: {"value": {"get_attr": [name, "output"]}} for name in values}
    return template({name: resource(value) for name, value in values.items()}, outputs=outputs)


def template_without_outputs(**values: str) -> Any:
    """The same template without outputs."""
    return template({name: resource(value) for name, value in values.items()})


class Files:
    """Templates and environments in a folder, and the options that name them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def template(self, document: Any) -> tuple[str, str]:
        self._count += 1
        return "-t", self.file(f"{self._count}.yaml", document)

    def hook_options(self) -> tuple[str, str]:
        return "-e", self.file("held.yaml", HOOK_ENVIRONMENT)

    def file(self, name: str, document: Any) -> str:
        path = self._folder / name
        path.write_text(json.dumps(document))
        return str(path)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def api(server: ServerProcess) -> DirectApi:
    return DirectApi(server)


class TestDryRun:
    def test_a_dry_run_prints_the_plan_and_changes_nothing(
        self, server: ServerProcess, api: DirectApi, files: Files
    ) -> None:
        before, after = (
            files.template(template_with(a="1", b="1", old="1")),
            files.template(template_with(a="1", b="2", c="3")),
        )
        first = headgate(server, "stack", "create", "dry", *before, "--dry-run")
        assert "dry: 3 added" in first and "No breakpoints." in first
        assert api.get("dry") is None
        api.create("dry", template_with(a="1", b="1", old="1"))
        output = headgate(
            server, "stack", "update", "dry", *after, *files.hook_options(), "--dry-run"
        )
        lines = output.splitlines()
        assert "+   c    OS::Heat::TestResource" in lines
        assert (
            lines[lines.index("~   b    OS::Heat::TestResource") + 1] == '      value: "1" -> "2"'
        )
        assert "-   old  OS::Heat::TestResource" in lines
        assert "dry: 1 added, 1 updated, 1 deleted, 1 unchanged" in lines
        assert "  1. b at pre-update: anyone in the project may answer for 2h, then: stop" in lines
        assert lines[-1].startswith("Plan: ")
        assert api.status("dry") == "CREATE_COMPLETE"
        assert api.outputs("dry") == {"a": "1", "b": "1", "old": "1"}

    def test_an_update_with_a_digest_applies_exactly_the_plan(
        self, server: ServerProcess, api: DirectApi, files: Files
    ) -> None:
        wanted = files.template(template_with(a="2"))
        create = ("stack", "create", "plan", *files.template(template_with(a="1")))
        digest = headgate_json(server, *create, "--dry-run")["stack"]["plan_digest"]
        output = headgate(server, *create, "--plan", digest[::-1], code=1)
        assert "the plan has changed since the dry run" in output
        assert api.get("plan") is None
        assert headgate_json(server, *create, "--plan", digest, "--wait")
        update = ("stack", "update", "plan", *wanted)
        looked = headgate_json(server, *update, "--dry-run")["plan_digest"]
        headgate(server, "stack", "update", "plan", *files.template(template_with(a="3")), "--wait")
        output = headgate(server, *update, "--plan", looked, "--wait", code=1)
        assert "the plan has changed since the dry run" in output and "--dry-run" in output
        assert api.outputs("plan") == {"a": "3"}
        fresh = headgate_json(server, *update, "--dry-run")["plan_digest"]
        headgate(server, *update, "--plan", fresh, "--wait")
        assert api.outputs("plan") == {"a": "2"}


class TestPartsAndMoves:
    def test_a_partial_update_changes_selected_resources_only(
        self, server: ServerProcess, api: DirectApi, files: Files
    ) -> None:
        api.create("part", template_with(a="1", b="1", c="1"))
        update = ("stack", "update", "part", *files.template(template_with(a="2", b="2", c="2")))
        headgate(server, *update, "--only", "[ab]", "--except", "b", "--wait")
        assert api.outputs("part") == {"a": "2", "b": "1", "c": "1"}
        assert "b, c" in headgate(server, "stack", "history", "part")
        output = headgate(server, *update, "--only", "aa", code=1)
        assert 'only: "aa" matches no resource. Did you mean "a"?' in output
        assert "except" in headgate(server, *update, "--except", "zz", code=1)
        headgate(server, "stack", "update", "part", "--existing", "--wait")
        assert api.outputs("part") == {"a": "2", "b": "2", "c": "2"}

    def test_a_resource_is_renamed_and_moved_to_another_stack(
        self, server: ServerProcess, api: DirectApi, files: Files
    ) -> None:
        api.create("here", template_without_outputs(a="1", rest="1"))
        api.create("there", template_without_outputs(x="1"))
        real = api.physical_ids("here")["a"]
        rename = (
            "stack",
            "update",
            "here",
            *files.template(template_without_outputs(b="1", rest="1")),
            "--moved",
        )
        output = headgate(server, *rename, "nope=b", code=1)
        assert 'there is no resource "nope"' in output
        assert "FROM=TO" in headgate(server, *rename, "a", code=2)
        headgate(server, *rename, "a=b", "--wait")
        take = (
            "stack",
            "update",
            "there",
            *files.template(template_without_outputs(x="1", c="1")),
            "--moved",
            "here:b=c",
        )
        assert "there: 2 unchanged" in headgate(server, *take, "--dry-run")
        headgate(server, *take, "--wait")
        assert set(api.physical_ids("here")) == {"rest"}
        assert api.physical_ids("there")["c"] == real

    def test_a_protected_resource_is_not_deleted(
        self, server: ServerProcess, api: DirectApi, files: Files
    ) -> None:
        api.create("safe", template_with(a="1", b="1"))
        assert headgate_json(server, "resource", "protect", "safe", "a")["protected"] is True
        output = headgate(server, "stack", "delete", "safe", "--yes", code=1)
        assert '"a" is protected' in output and "headgate resource unprotect" in output
        assert "is protected" in headgate(
            server,
            "stack",
            "update",
            "safe",
            *files.template(template_with(b="1")),
            "--dry-run",
            code=1,
        )
        assert "could not be found" in headgate(server, "resource", "protect", "safe", "x", code=1)
        headgate(server, "resource", "unprotect", "safe", "a")
        headgate(server, "stack", "delete", "safe", "--yes")

    def test_an_unhealthy_resource_is_replaced(
        self, server: ServerProcess, api: DirectApi, files: Files
    ) -> None:
        api.create("ill", template_with(a="1", b="1"))
        listed = headgate_json(server, "resource", "list", "ill")
        real = {one["resource_name"]: one["physical_resource_id"] for one in listed}["a"]
        marked = headgate_json(
            server, "resource", "mark-unhealthy", "ill", real, "--yes", "--reason", "smells"
        )
        assert marked["resource_name"] == "a"
        assert (marked["resource_status"], marked["resource_status_reason"]) == (
            "CHECK_FAILED", "smells",
        )  # fmt: skip
        reset = headgate_json(server, "resource", "mark-unhealthy", "ill", "a", "--reset")
        assert reset["resource_status"] == "CHECK_COMPLETE"


class TestUndo:
    def test_wait_includes_the_rollback_of_a_failure(
        self, server: ServerProcess, api: DirectApi, files: Files
    ) -> None:
        api.create("back", template_with(a="1"))
        failing = template({"a": resource("2"), "b": resource("1", depends_on="a")})
        failing["resources"]["b"]["properties"]["fail"] = True
        update = ("stack", "update", "back", "-t", files.file("bad.yaml", failing))
        stack = headgate_json(server, *update, "--rollback", "--wait", code=3)
        assert stack["stack_status"] == "ROLLBACK_COMPLETE" and stack["disable_rollback"] is False
        assert api.outputs("back") == {"a": "1"}
        stack = headgate_json(server, *update, "--no-rollback", "--wait", code=3)
        assert stack["stack_status"] == "UPDATE_FAILED"
        traversals = headgate_json(server, "stack", "history", "back")["traversals"]
        assert [one["action"] for one in traversals] == ["UPDATE", "ROLLBACK", "UPDATE", "CREATE"]
        output = headgate(server, "stack", "history", "back")
        assert "current" in output and "reached" in output

    def test_an_update_is_cancelled(
        self, server: ServerProcess, api: DirectApi, files: Files
    ) -> None:
        api.create("cut", template_with(a="1", b="1"))
        update = (
            "stack",
            "update",
            "cut",
            *files.template(template_with(a="2", b="2")),
            *files.hook_options(),
        )
        headgate(server, *update, "--until-waiting", code=5)
        output = headgate(server, "stack", "cancel", "cut", "--no-rollback", "--wait", code=2)
        assert "--wait has no effect" in output
        stack = headgate_json(server, "stack", "cancel", "cut", "--yes", "--wait")
        assert stack["stack_status"] == "ROLLBACK_COMPLETE"
        assert api.outputs("cut") == {"a": "1", "b": "1"}
        headgate(server, *update, "--until-waiting", code=5)
        stack = headgate_json(server, "stack", "cancel", "cut", "--no-rollback")
        assert stack["stack_status"] == "UPDATE_FAILED"
        output = headgate(server, "stack", "cancel", "cut", "--yes", code=1)
        assert "when stack is UPDATE_FAILED is not supported" in output

    def test_a_create_can_be_cancelled_without_rollback_only(
        self, server: ServerProcess, api: DirectApi, files: Files
    ) -> None:
        hook_options = {"hooks": [{"at": "a", "on": "pre-create"}]}
        create = ("stack", "create", "fresh", *files.template(template_with(a="1")))
        environment = ("-e", files.file("gate.yaml", hook_options))
        headgate(server, *create, *environment, "--until-waiting", code=5)
        output = headgate(server, "stack", "cancel", "fresh", "--yes", code=1)
        assert "when stack is CREATE_IN_PROGRESS" in output and "--no-rollback" in output
        assert "in progress" in headgate(server, "stack", "snapshot", "create", "fresh", code=1)
        assert "in progress" in headgate(server, "stack", "suspend", "fresh", code=1)
        stack = headgate_json(server, "stack", "stop", "fresh")
        assert stack["stack_status"] == "CREATE_STOPPED"
        assert "Only an action in progress" in headgate(server, "stack", "stop", "fresh", code=1)
        resumed = headgate_json(server, "stack", "resume", "fresh", "--clear", "*", "--wait")
        assert resumed["stack_status"] == "UPDATE_COMPLETE"

    def test_a_stack_is_suspended_and_resumed(
        self, server: ServerProcess, api: DirectApi, files: Files
    ) -> None:
        api.create("rest", template_with(a="1"))
        for action in ("check", "suspend"):
            stack = headgate_json(server, "stack", action, "rest", "--wait")
            assert stack["stack_status"] == f"{action.upper()}_COMPLETE"
        output = headgate(server, "stack", "resume", "rest", "--clear", "*", code=1)
        assert "headgate stack update --existing" in output
        stack = headgate_json(server, "stack", "resume", "rest", "--wait")
        assert stack["stack_status"] == "RESUME_COMPLETE"

    def test_a_snapshot_is_restored(
        self, server: ServerProcess, api: DirectApi, files: Files
    ) -> None:
        api.create("snap", template_with(a="1"))
        create = ("stack", "snapshot", "create", "snap")
        kept = headgate_json(server, *create, "--name", "good", "--wait")
        assert (kept["name"], kept["status"]) == ("good", "COMPLETE")
        headgate(
            server,
            "stack",
            "update",
            "snap",
            *files.template(template_with(a="2", b="2")),
            "--wait",
        )
        assert "good" in headgate(server, "stack", "snapshot", "list", "snap")
        back = headgate_json(
            server, "stack", "snapshot", "restore", "snap", "good", "--yes", "--wait"
        )
        assert back["stack_status"] == "RESTORE_COMPLETE"
        assert api.outputs("snap") == {"a": "1"}
        result = headgate_json(server, "stack", "snapshot", "show", "snap", kept["id"][:8])
        assert set(result["data"]["template"]["resources"]) == {"a"}
        output = headgate(server, "stack", "snapshot", "restore", "snap", "bad", "--yes", code=1)
        assert "no snapshot" in output and "headgate stack snapshot list" in output
        headgate(server, *create, "--name", "good", "--wait")
        output = headgate(server, "stack", "snapshot", "delete", "snap", "good", "--yes", code=1)
        assert "matches 2 snapshots" in output
        assert (
            headgate_json(server, "stack", "snapshot", "delete", "snap", kept["id"], "--yes")[
                "deleted"
            ]
            is True
        )
        (left,) = api.get(f"snap/{back['id']}/snapshots")["snapshots"]
        assert left["name"] == "good" and left["id"] != kept["id"]

    def test_versions_of_a_template_are_printed(
        self, server: ServerProcess, api: DirectApi, files: Files
    ) -> None:
        api.create("old", template_with(a="1"))
        headgate(server, "stack", "update", "old", *files.template(template_with(a="2")), "--wait")
        for version, value in (("2", "2"), ("1", "1")):
            text = headgate(server, "stack", "template", "old", "--version", version)
            assert yaml.safe_load(text)["resources"]["a"]["properties"] == {"value": value}
        assert headgate_json(server, "stack", "template", "old", "--version", "1")["version"] == 1
        output = headgate(server, "stack", "template", "old", "--version", "9", code=1)
        assert "there is no version 9" in output


class TestExport:
    def test_a_stack_is_exported_abandoned_and_adopted(
        self, server: ServerProcess, api: DirectApi, files: Files, tmp_path: Path
    ) -> None:
        api.create("from", template_with(a="1", b="1"))
        real = api.physical_ids("from")
        parcel = tmp_path / "parcel.json"
        assert set(headgate_json(server, "stack", "export", "from")["resources"]) == {"a", "b"}
        output = headgate(server, "stack", "abandon", "from", "-o", str(parcel), code=1)
        assert "nothing was changed: standard input is not a terminal" in output
        assert not parcel.exists()
        parcel.write_text("mine")
        output = headgate(server, "stack", "abandon", "from", "--yes", "-o", str(parcel), code=1)
        assert "File exists; nothing was changed" in output and parcel.read_text() == "mine"
        assert api.status("from") == "CREATE_COMPLETE"
        parcel.unlink()
        assert "written to" in headgate(
            server, "stack", "abandon", "from", "--yes", "-o", str(parcel)
        )
        assert stat.S_IMODE(parcel.stat().st_mode) == 0o600
        assert api.get("from") is None
        stack = headgate_json(server, "stack", "adopt", "to", "-f", str(parcel), "--wait")
        assert stack["stack_status"] == "ADOPT_COMPLETE"
        assert api.physical_ids("to") == real
        output = headgate(server, "stack", "adopt", "to", "-f", str(parcel), code=1)
        assert "already exists" in output and parcel.exists()

    def test_a_busy_stack_is_not_abandoned(
        self, server: ServerProcess, api: DirectApi, files: Files, tmp_path: Path
    ) -> None:
        api.create("busy", template_with(b="1"))
        update = (
            "stack",
            "update",
            "busy",
            *files.template(template_with(b="2")),
            *files.hook_options(),
        )
        headgate(server, *update, "--until-waiting", code=5)
        parcel = tmp_path / "busy.json"
        output = headgate(server, "stack", "abandon", "busy", "-y", "-o", str(parcel), code=1)
        assert "in progress" in output and not parcel.exists()
        assert api.status("busy") == "UPDATE_IN_PROGRESS"

    @pytest.mark.parametrize(
        ("document", "message"),
        [
            ({"nothing": 1}, "is not an exported stack"),
            ({"resources": {}}, "template"),
            ({"resources": {"a": 5}}, "adopt_stack_data.resources.a: is not a map"),
            (
                {"resources": {}, "template": template({"a": resource()})},
                "Resource ID was not provided.",
            ),
        ],
    )
    def test_a_file_that_is_not_an_export_is_not_adopted(
        self, server: ServerProcess, api: DirectApi, files: Files, document: Any, message: str
    ) -> None:
        adopt = ("stack", "adopt", "none", "-f", files.file("bad.json", document))
        assert message in headgate(server, *adopt, code=1)
        assert api.get("none") is None
