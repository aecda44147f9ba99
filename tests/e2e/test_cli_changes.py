"""Changing a stack safely, undoing and carrying it elsewhere, with the real command line."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import headgate, spoken
from tests.support.past import Past
from tests.support.program import ServerProcess, resource, template

HELD = {"hooks": [{"at": "b", "on": "pre-update", "timeout": "2h"}]}


def holding(**values: str) -> Any:
    """A template of test resources that hold these, and give them out."""
    outputs = {name: {"value": {"get_attr": [name, "output"]}} for name in values}
    return template({name: resource(value) for name, value in values.items()}, outputs=outputs)


def silent(**values: str) -> Any:
    """The same without outputs."""
    return template({name: resource(value) for name, value in values.items()})


class Files:
    """Templates and environments in a folder, as people have them; options that name them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made = 0

    def template(self, document: Any) -> tuple[str, str]:
        self._made += 1
        return "-t", self.file(f"{self._made}.yaml", document)

    def held(self) -> tuple[str, str]:
        return "-e", self.file("held.yaml", HELD)

    def file(self, name: str, document: Any) -> str:
        path = self._folder / name
        path.write_text(json.dumps(document))
        return str(path)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def past(server: ServerProcess) -> Past:
    return Past(server)


class TestDryRun:
    def test_a_plan_is_readable_and_nothing_happens(
        self, server: ServerProcess, past: Past, files: Files
    ) -> None:
        before, after = (
            files.template(holding(a="1", b="1", old="1")),
            files.template(holding(a="1", b="2", c="3")),
        )
        first = headgate(server, "stack", "create", "dry", *before, "--dry-run")
        assert "dry: 3 added" in first and "No breakpoints." in first
        assert past.read("dry") is None
        past.make("dry", holding(a="1", b="1", old="1"))
        said = headgate(server, "stack", "update", "dry", *after, *files.held(), "--dry-run")
        lines = said.splitlines()
        assert "+   c    OS::Heat::TestResource" in lines
        assert (
            lines[lines.index("~   b    OS::Heat::TestResource") + 1] == '      value: "1" -> "2"'
        )
        assert "-   old  OS::Heat::TestResource" in lines
        assert "dry: 1 added, 1 updated, 1 deleted, 1 unchanged" in lines
        assert "  1. b at pre-update: anyone in the project may answer for 2h, then: stop" in lines
        assert lines[-1].startswith("Plan: ")
        assert past.status("dry") == "CREATE_COMPLETE"
        assert past.values("dry") == {"a": "1", "b": "1", "old": "1"}

    def test_just_the_plan_that_was_looked_at(
        self, server: ServerProcess, past: Past, files: Files
    ) -> None:
        wanted = files.template(holding(a="2"))
        create = ("stack", "create", "plan", *files.template(holding(a="1")))
        digest = spoken(server, *create, "--dry-run")["stack"]["plan_digest"]
        told = headgate(server, *create, "--plan", digest[::-1], code=1)
        assert "the plan has changed since the dry run" in told
        assert past.read("plan") is None
        assert spoken(server, *create, "--plan", digest, "--wait")
        update = ("stack", "update", "plan", *wanted)
        looked = spoken(server, *update, "--dry-run")["plan_digest"]
        headgate(server, "stack", "update", "plan", *files.template(holding(a="3")), "--wait")
        told = headgate(server, *update, "--plan", looked, "--wait", code=1)
        assert "the plan has changed since the dry run" in told and "--dry-run" in told
        assert past.values("plan") == {"a": "3"}
        fresh = spoken(server, *update, "--dry-run")["plan_digest"]
        headgate(server, *update, "--plan", fresh, "--wait")
        assert past.values("plan") == {"a": "2"}


class TestPartsAndMoves:
    def test_only_what_is_chosen_changes(
        self, server: ServerProcess, past: Past, files: Files
    ) -> None:
        past.make("part", holding(a="1", b="1", c="1"))
        update = ("stack", "update", "part", *files.template(holding(a="2", b="2", c="2")))
        headgate(server, *update, "--only", "[ab]", "--except", "b", "--wait")
        assert past.values("part") == {"a": "2", "b": "1", "c": "1"}
        assert "b, c" in headgate(server, "stack", "history", "part")
        told = headgate(server, *update, "--only", "aa", code=1)
        assert 'only: "aa" matches no resource. Did you mean "a"?' in told
        assert "except" in headgate(server, *update, "--except", "zz", code=1)
        headgate(server, "stack", "update", "part", "--existing", "--wait")
        assert past.values("part") == {"a": "2", "b": "2", "c": "2"}

    def test_a_resource_is_renamed_and_moved_to_another_stack(
        self, server: ServerProcess, past: Past, files: Files
    ) -> None:
        past.make("here", silent(a="1", rest="1"))
        past.make("there", silent(x="1"))
        real = past.physical("here")["a"]
        rename = ("stack", "update", "here", *files.template(silent(b="1", rest="1")), "--moved")
        told = headgate(server, *rename, "nope=b", code=1)
        assert 'there is no resource "nope"' in told
        assert "FROM=TO" in headgate(server, *rename, "a", code=2)
        headgate(server, *rename, "a=b", "--wait")
        take = (
            "stack",
            "update",
            "there",
            *files.template(silent(x="1", c="1")),
            "--moved",
            "here:b=c",
        )
        assert "there: 2 unchanged" in headgate(server, *take, "--dry-run")
        headgate(server, *take, "--wait")
        assert set(past.physical("here")) == {"rest"}
        assert past.physical("there")["c"] == real

    def test_what_is_protected_stays(self, server: ServerProcess, past: Past, files: Files) -> None:
        past.make("safe", holding(a="1", b="1"))
        assert spoken(server, "resource", "protect", "safe", "a")["protected"] is True
        told = headgate(server, "stack", "delete", "safe", code=1)
        assert '"a" is protected' in told and "headgate resource unprotect" in told
        assert "is protected" in headgate(
            server, "stack", "update", "safe", *files.template(holding(b="1")), "--dry-run", code=1
        )
        assert "could not be found" in headgate(server, "resource", "protect", "safe", "x", code=1)
        headgate(server, "resource", "unprotect", "safe", "a")
        headgate(server, "stack", "delete", "safe")

    def test_what_is_marked_unhealthy_is_checked_again(
        self, server: ServerProcess, past: Past, files: Files
    ) -> None:
        past.make("ill", holding(a="1", b="1"))
        listed = spoken(server, "resource", "list", "ill")
        real = {one["resource_name"]: one["physical_resource_id"] for one in listed}["a"]
        marked = spoken(server, "resource", "mark-unhealthy", "ill", real, "--reason", "smells")
        assert marked["resource_name"] == "a"
        assert (marked["resource_status"], marked["resource_status_reason"]) == (
            "CHECK_FAILED", "smells",
        )  # fmt: skip
        reset = spoken(server, "resource", "mark-unhealthy", "ill", "a", "--reset")
        assert reset["resource_status"] == "CHECK_COMPLETE"


class TestUndo:
    def test_a_failure_is_rolled_back_and_waited_for(
        self, server: ServerProcess, past: Past, files: Files
    ) -> None:
        past.make("back", holding(a="1"))
        bad = template({"a": resource("2"), "b": resource("1", depends_on="a")})
        bad["resources"]["b"]["properties"]["fail"] = True
        update = ("stack", "update", "back", "-t", files.file("bad.yaml", bad))
        stack = spoken(server, *update, "--rollback", "--wait", code=3)
        assert stack["stack_status"] == "ROLLBACK_COMPLETE" and stack["disable_rollback"] is False
        assert past.values("back") == {"a": "1"}
        stack = spoken(server, *update, "--no-rollback", "--wait", code=3)
        assert stack["stack_status"] == "UPDATE_FAILED"
        walks = spoken(server, "stack", "history", "back")["traversals"]
        assert [one["action"] for one in walks] == ["UPDATE", "ROLLBACK", "UPDATE", "CREATE"]
        shown = headgate(server, "stack", "history", "back")
        assert "current" in shown and "reached" in shown

    def test_an_update_is_cancelled(self, server: ServerProcess, past: Past, files: Files) -> None:
        past.make("cut", holding(a="1", b="1"))
        update = ("stack", "update", "cut", *files.template(holding(a="2", b="2")), *files.held())
        headgate(server, *update, "--until-waiting", code=5)
        told = headgate(server, "stack", "cancel", "cut", "--no-rollback", "--wait", code=2)
        assert "--wait has no effect" in told
        stack = spoken(server, "stack", "cancel", "cut", "--wait")
        assert stack["stack_status"] == "ROLLBACK_COMPLETE"
        assert past.values("cut") == {"a": "1", "b": "1"}
        headgate(server, *update, "--until-waiting", code=5)
        stack = spoken(server, "stack", "cancel", "cut", "--no-rollback")
        assert stack["stack_status"] == "UPDATE_FAILED"
        told = headgate(server, "stack", "cancel", "cut", code=1)
        assert "when stack is UPDATE_FAILED is not supported" in told

    def test_a_create_can_be_cancelled_without_rollback_only(
        self, server: ServerProcess, past: Past, files: Files
    ) -> None:
        held = {"hooks": [{"at": "a", "on": "pre-create"}]}
        create = ("stack", "create", "fresh", *files.template(holding(a="1")))
        environment = ("-e", files.file("gate.yaml", held))
        headgate(server, *create, *environment, "--until-waiting", code=5)
        told = headgate(server, "stack", "cancel", "fresh", code=1)
        assert "when stack is CREATE_IN_PROGRESS" in told and "without rollback" in told
        assert "in progress" in headgate(server, "stack", "snapshot", "create", "fresh", code=1)
        assert "in progress" in headgate(server, "stack", "suspend", "fresh", code=1)
        stack = spoken(server, "stack", "stop", "fresh")
        assert stack["stack_status"] == "CREATE_STOPPED"
        assert "Only an action in progress" in headgate(server, "stack", "stop", "fresh", code=1)
        resumed = spoken(server, "stack", "resume", "fresh", "--clear", "*", "--wait")
        assert resumed["stack_status"] == "UPDATE_COMPLETE"

    def test_a_stack_rests_and_wakes_up(
        self, server: ServerProcess, past: Past, files: Files
    ) -> None:
        past.make("rest", holding(a="1"))
        for action in ("check", "suspend"):
            stack = spoken(server, "stack", action, "rest", "--wait")
            assert stack["stack_status"] == f"{action.upper()}_COMPLETE"
        told = headgate(server, "stack", "resume", "rest", "--clear", "*", code=1)
        assert "headgate stack update --existing" in told
        stack = spoken(server, "stack", "resume", "rest", "--wait")
        assert stack["stack_status"] == "RESUME_COMPLETE"

    def test_a_snapshot_is_gone_back_to(
        self, server: ServerProcess, past: Past, files: Files
    ) -> None:
        past.make("snap", holding(a="1"))
        create = ("stack", "snapshot", "create", "snap")
        kept = spoken(server, *create, "--name", "good", "--wait")
        assert (kept["name"], kept["status"]) == ("good", "COMPLETE")
        headgate(
            server, "stack", "update", "snap", *files.template(holding(a="2", b="2")), "--wait"
        )
        assert "good" in headgate(server, "stack", "snapshot", "list", "snap")
        back = spoken(server, "stack", "snapshot", "restore", "snap", "good", "--wait")
        assert back["stack_status"] == "RESTORE_COMPLETE"
        assert past.values("snap") == {"a": "1"}
        shown = spoken(server, "stack", "snapshot", "show", "snap", kept["id"][:8])
        assert set(shown["data"]["template"]["resources"]) == {"a"}
        told = headgate(server, "stack", "snapshot", "restore", "snap", "bad", code=1)
        assert "no snapshot" in told and "headgate stack snapshot list" in told
        headgate(server, *create, "--name", "good", "--wait")
        told = headgate(server, "stack", "snapshot", "delete", "snap", "good", code=1)
        assert "means 2 snapshots" in told
        assert spoken(server, "stack", "snapshot", "delete", "snap", kept["id"])["deleted"] is True
        (left,) = past.read(f"snap/{back['id']}/snapshots")["snapshots"]
        assert left["name"] == "good" and left["id"] != kept["id"]

    def test_versions_of_a_template_are_printed(
        self, server: ServerProcess, past: Past, files: Files
    ) -> None:
        past.make("old", holding(a="1"))
        headgate(server, "stack", "update", "old", *files.template(holding(a="2")), "--wait")
        assert "value: '2'" in headgate(server, "stack", "template", "old")
        assert "value: '1'" in headgate(server, "stack", "template", "old", "--version", "1")
        assert spoken(server, "stack", "template", "old", "--version", "1")["version"] == 1
        told = headgate(server, "stack", "template", "old", "--version", "9", code=1)
        assert "there is no version 9" in told


class TestElsewhere:
    def test_a_stack_is_carried_elsewhere(
        self, server: ServerProcess, past: Past, files: Files, tmp_path: Path
    ) -> None:
        past.make("from", holding(a="1", b="1"))
        real = past.physical("from")
        parcel = tmp_path / "parcel.json"
        assert set(spoken(server, "stack", "export", "from")["resources"]) == {"a", "b"}
        told = headgate(server, "stack", "abandon", "from", "-o", str(parcel), code=1)
        assert "Abandon the stack from?" in told and "nothing was changed" in told
        assert not parcel.exists()
        parcel.write_text("mine")
        told = headgate(server, "stack", "abandon", "from", "--yes", "-o", str(parcel), code=1)
        assert "File exists; nothing was changed" in told and parcel.read_text() == "mine"
        assert past.status("from") == "CREATE_COMPLETE"
        parcel.unlink()
        assert "written to" in headgate(
            server, "stack", "abandon", "from", "--yes", "-o", str(parcel)
        )
        assert stat.S_IMODE(parcel.stat().st_mode) == 0o600
        assert past.read("from") is None
        stack = spoken(server, "stack", "adopt", "to", "-f", str(parcel), "--wait")
        assert stack["stack_status"] == "ADOPT_COMPLETE"
        assert past.physical("to") == real
        told = headgate(server, "stack", "adopt", "to", "-f", str(parcel), code=1)
        assert "already exists" in told and parcel.exists()

    def test_a_busy_stack_is_not_abandoned(
        self, server: ServerProcess, past: Past, files: Files, tmp_path: Path
    ) -> None:
        past.make("busy", holding(b="1"))
        update = ("stack", "update", "busy", *files.template(holding(b="2")), *files.held())
        headgate(server, *update, "--until-waiting", code=5)
        parcel = tmp_path / "busy.json"
        told = headgate(server, "stack", "abandon", "busy", "-y", "-o", str(parcel), code=1)
        assert "in progress" in told and not parcel.exists()
        assert past.status("busy") == "UPDATE_IN_PROGRESS"

    @pytest.mark.parametrize(
        ("document", "told"),
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
    def test_what_is_no_export_is_not_adopted(
        self, server: ServerProcess, past: Past, files: Files, document: Any, told: str
    ) -> None:
        adopt = ("stack", "adopt", "none", "-f", files.file("bad.json", document))
        assert told in headgate(server, *adopt, code=1)
        assert past.read("none") is None
