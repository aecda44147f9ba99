"""Changing a stack safely, undoing and carrying it elsewhere, with the real command line."""

import json
import stat
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import headgate, spoken
from tests.support.program import ServerProcess, resource, template

HELD = {"hooks": [{"at": "b", "on": "pre-update", "timeout": "2h"}]}


class Files:
    """Templates and environments in a folder, as people have them; options that name them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def template(self, **values: str) -> tuple[str, str]:
        """A template of test resources that hold these, and give them out."""
        resources = {name: resource(value) for name, value in values.items()}
        outputs = {name: {"value": {"get_attr": [name, "output"]}} for name in values}
        name = "-".join(f"{name}{value}" for name, value in values.items())
        return "-t", self.file(name, template(resources, outputs=outputs))

    def silent(self, **values: str) -> tuple[str, str]:
        """The same without outputs."""
        name = "-".join(("silent", *values))
        return "-t", self.file(name, template({one: resource(of) for one, of in values.items()}))

    def held(self) -> tuple[str, str]:
        return "-e", self.file("held.yaml", HELD)

    def file(self, name: str, document: Any) -> str:
        path = self._folder / name
        path.write_text(json.dumps(document))
        return str(path)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def made(server: ServerProcess, name: str, *words: str) -> Any:
    return spoken(server, "stack", "create", name, *words, "--wait")


def read(server: ServerProcess, path: str) -> Any:
    """What is there, past the command line; None when nothing is."""
    try:
        with urllib.request.urlopen(f"{server.url}/v1/default/stacks/{path}", timeout=30) as said:
            return json.load(said)
    except urllib.error.HTTPError as error:
        assert error.code == 404
        return None


def values(server: ServerProcess, name: str) -> dict[str, str]:
    """Output -> value."""
    outputs = read(server, name)["stack"]["outputs"]
    return {one["output_key"]: one["output_value"] for one in outputs}


def physical(server: ServerProcess, name: str) -> dict[str, str]:
    """Resource -> physical id."""
    found = read(server, f"{name}/resources")["resources"]
    return {one["resource_name"]: one["physical_resource_id"] for one in found}


def status(server: ServerProcess, name: str) -> str:
    return str(read(server, name)["stack"]["stack_status"])


class TestDryRun:
    def test_a_plan_is_readable_and_nothing_happens(
        self, server: ServerProcess, files: Files
    ) -> None:
        before, after = files.template(a="1", b="1", old="1"), files.template(a="1", b="2", c="3")
        first = headgate(server, "stack", "create", "dry", *before, "--dry-run")
        assert "dry: 3 added" in first and "It would stop at no hook." in first
        assert read(server, "dry") is None
        made(server, "dry", *before)
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
        assert status(server, "dry") == "CREATE_COMPLETE"
        assert values(server, "dry") == {"a": "1", "b": "1", "old": "1"}

    def test_just_the_plan_that_was_looked_at(self, server: ServerProcess, files: Files) -> None:
        wanted = files.template(a="2")
        create = ("stack", "create", "plan", *files.template(a="1"))
        digest = spoken(server, *create, "--dry-run")["stack"]["plan_digest"]
        told = headgate(server, *create, "--plan", digest[::-1], code=1)
        assert "the plan is not the one that was looked at" in told
        assert read(server, "plan") is None
        assert spoken(server, *create, "--plan", digest, "--wait")
        update = ("stack", "update", "plan", *wanted)
        looked = spoken(server, *update, "--dry-run")["plan_digest"]
        headgate(server, "stack", "update", "plan", *files.template(a="3"), "--wait")
        told = headgate(server, *update, "--plan", looked, "--wait", code=1)
        assert "the plan is not the one that was looked at" in told and "--dry-run" in told
        assert values(server, "plan") == {"a": "3"}
        fresh = spoken(server, *update, "--dry-run")["plan_digest"]
        headgate(server, *update, "--plan", fresh, "--wait")
        assert values(server, "plan") == {"a": "2"}


class TestPartsAndMoves:
    def test_only_what_is_chosen_changes(self, server: ServerProcess, files: Files) -> None:
        made(server, "part", *files.template(a="1", b="1", c="1"))
        update = ("stack", "update", "part", *files.template(a="2", b="2", c="2"))
        headgate(server, *update, "--only", "[ab]", "--except", "b", "--wait")
        assert values(server, "part") == {"a": "2", "b": "1", "c": "1"}
        assert "b, c" in headgate(server, "stack", "history", "part")
        told = headgate(server, *update, "--only", "aa", code=1)
        assert 'only: "aa" matches no resource. Did you mean "a"?' in told
        assert "except" in headgate(server, *update, "--except", "zz", code=1)
        headgate(server, "stack", "update", "part", "--existing", "--wait")
        assert values(server, "part") == {"a": "2", "b": "2", "c": "2"}

    def test_a_resource_is_renamed_and_moved_to_another_stack(
        self, server: ServerProcess, files: Files
    ) -> None:
        made(server, "here", *files.silent(a="1", rest="1"))
        made(server, "there", *files.silent(x="1"))
        real = physical(server, "here")["a"]
        rename = ("stack", "update", "here", *files.silent(b="1", rest="1"), "--moved")
        told = headgate(server, *rename, "nope=b", code=1)
        assert 'there is no resource "nope"' in told
        assert "FROM=TO" in headgate(server, *rename, "a", code=2)
        headgate(server, *rename, "a=b", "--wait")
        take = ("stack", "update", "there", *files.silent(x="1", c="1"), "--moved", "here:b=c")
        assert "there: 2 unchanged" in headgate(server, *take, "--dry-run")
        headgate(server, *take, "--wait")
        assert set(physical(server, "here")) == {"rest"}
        assert physical(server, "there")["c"] == real

    def test_what_is_protected_stays(self, server: ServerProcess, files: Files) -> None:
        made(server, "safe", *files.template(a="1", b="1"))
        assert spoken(server, "resource", "protect", "safe", "a")["protected"] is True
        told = headgate(server, "stack", "delete", "safe", code=1)
        assert '"a" is protected' in told and "headgate resource unprotect" in told
        assert "is protected" in headgate(
            server, "stack", "update", "safe", *files.template(b="1"), "--dry-run", code=1
        )
        assert "could not be found" in headgate(server, "resource", "protect", "safe", "x", code=1)
        headgate(server, "resource", "unprotect", "safe", "a")
        headgate(server, "stack", "delete", "safe")

    def test_what_is_marked_unhealthy_is_checked_again(
        self, server: ServerProcess, files: Files
    ) -> None:
        made(server, "ill", *files.template(a="1", b="1"))
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
        self, server: ServerProcess, files: Files
    ) -> None:
        made(server, "back", *files.template(a="1"))
        bad = template({"a": resource("2"), "b": resource("1", depends_on="a")})
        bad["resources"]["b"]["properties"]["fail"] = True
        update = ("stack", "update", "back", "-t", files.file("bad.yaml", bad))
        stack = spoken(server, *update, "--rollback", "--wait", code=3)
        assert stack["stack_status"] == "ROLLBACK_COMPLETE" and stack["disable_rollback"] is False
        assert values(server, "back") == {"a": "1"}
        stack = spoken(server, *update, "--no-rollback", "--wait", code=3)
        assert stack["stack_status"] == "UPDATE_FAILED"
        walks = spoken(server, "stack", "history", "back")["traversals"]
        assert [one["action"] for one in walks] == ["UPDATE", "ROLLBACK", "UPDATE", "CREATE"]
        shown = headgate(server, "stack", "history", "back")
        assert "current" in shown and "reached" in shown

    def test_an_update_is_cancelled(self, server: ServerProcess, files: Files) -> None:
        made(server, "cut", *files.template(a="1", b="1"))
        update = ("stack", "update", "cut", *files.template(a="2", b="2"), *files.held())
        headgate(server, *update, "--until-waiting", code=5)
        told = headgate(server, "stack", "cancel", "cut", "--no-rollback", "--wait", code=2)
        assert "nothing to wait for" in told
        stack = spoken(server, "stack", "cancel", "cut", "--wait")
        assert stack["stack_status"] == "ROLLBACK_COMPLETE"
        assert values(server, "cut") == {"a": "1", "b": "1"}
        headgate(server, *update, "--until-waiting", code=5)
        stack = spoken(server, "stack", "cancel", "cut", "--no-rollback")
        assert stack["stack_status"] == "UPDATE_FAILED"
        told = headgate(server, "stack", "cancel", "cut", code=1)
        assert "when stack is UPDATE_FAILED is not supported" in told

    def test_a_create_can_be_cancelled_without_rollback_only(
        self, server: ServerProcess, files: Files
    ) -> None:
        held = {"hooks": [{"at": "a", "on": "pre-create"}]}
        create = ("stack", "create", "fresh", *files.template(a="1"))
        environment = ("-e", files.file("gate.yaml", held))
        headgate(server, *create, *environment, "--until-waiting", code=5)
        told = headgate(server, "stack", "cancel", "fresh", code=1)
        assert "when stack is CREATE_IN_PROGRESS" in told and "without rollback" in told
        assert "in progress" in headgate(server, "stack", "snapshot", "create", "fresh", code=1)
        assert "in progress" in headgate(server, "stack", "suspend", "fresh", code=1)
        stack = spoken(server, "stack", "stop", "fresh")
        assert stack["stack_status"] == "CREATE_STOPPED"
        assert "Only what is in progress" in headgate(server, "stack", "stop", "fresh", code=1)
        resumed = spoken(server, "stack", "resume", "fresh", "--clear", "*", "--wait")
        assert resumed["stack_status"] == "UPDATE_COMPLETE"

    def test_a_stack_rests_and_wakes_up(self, server: ServerProcess, files: Files) -> None:
        made(server, "rest", *files.template(a="1"))
        for action in ("check", "suspend"):
            stack = spoken(server, "stack", action, "rest", "--wait")
            assert stack["stack_status"] == f"{action.upper()}_COMPLETE"
        told = headgate(server, "stack", "resume", "rest", "--clear", "*", code=1)
        assert "headgate stack update --existing" in told
        stack = spoken(server, "stack", "resume", "rest", "--wait")
        assert stack["stack_status"] == "RESUME_COMPLETE"

    def test_a_snapshot_is_gone_back_to(self, server: ServerProcess, files: Files) -> None:
        made(server, "snap", *files.template(a="1"))
        create = ("stack", "snapshot", "create", "snap")
        kept = spoken(server, *create, "--name", "good", "--wait")
        assert (kept["name"], kept["status"]) == ("good", "COMPLETE")
        headgate(server, "stack", "update", "snap", *files.template(a="2", b="2"), "--wait")
        assert "good" in headgate(server, "stack", "snapshot", "list", "snap")
        back = spoken(server, "stack", "snapshot", "restore", "snap", "good", "--wait")
        assert back["stack_status"] == "RESTORE_COMPLETE"
        assert values(server, "snap") == {"a": "1"}
        shown = spoken(server, "stack", "snapshot", "show", "snap", kept["id"][:8])
        assert set(shown["data"]["template"]["resources"]) == {"a"}
        told = headgate(server, "stack", "snapshot", "restore", "snap", "bad", code=1)
        assert "no snapshot" in told and "headgate stack snapshot list" in told
        headgate(server, *create, "--name", "good", "--wait")
        told = headgate(server, "stack", "snapshot", "delete", "snap", "good", code=1)
        assert "means 2 snapshots" in told
        assert spoken(server, "stack", "snapshot", "delete", "snap", kept["id"])["deleted"] is True
        (left,) = read(server, f"snap/{back['id']}/snapshots")["snapshots"]
        assert left["name"] == "good" and left["id"] != kept["id"]

    def test_versions_of_a_template_are_printed(self, server: ServerProcess, files: Files) -> None:
        made(server, "old", *files.template(a="1"))
        headgate(server, "stack", "update", "old", *files.template(a="2"), "--wait")
        assert "value: '2'" in headgate(server, "stack", "template", "old")
        assert "value: '1'" in headgate(server, "stack", "template", "old", "--version", "1")
        assert spoken(server, "stack", "template", "old", "--version", "1")["version"] == 1
        told = headgate(server, "stack", "template", "old", "--version", "9", code=1)
        assert "there is no version 9" in told


class TestElsewhere:
    def test_a_stack_is_carried_elsewhere(
        self, server: ServerProcess, files: Files, tmp_path: Path
    ) -> None:
        made(server, "from", *files.template(a="1", b="1"))
        real = physical(server, "from")
        parcel = tmp_path / "parcel.json"
        assert set(spoken(server, "stack", "export", "from")["resources"]) == {"a", "b"}
        told = headgate(server, "stack", "abandon", "from", "-o", str(parcel), code=1)
        assert "Forget the stack from?" in told and "nothing was done" in told
        assert not parcel.exists()
        parcel.write_text("mine")
        told = headgate(server, "stack", "abandon", "from", "--yes", "-o", str(parcel), code=1)
        assert "File exists; nothing was done" in told and parcel.read_text() == "mine"
        assert status(server, "from") == "CREATE_COMPLETE"
        parcel.unlink()
        assert "written to" in headgate(
            server, "stack", "abandon", "from", "--yes", "-o", str(parcel)
        )
        assert stat.S_IMODE(parcel.stat().st_mode) == 0o600
        assert read(server, "from") is None
        stack = spoken(server, "stack", "adopt", "to", "-f", str(parcel), "--wait")
        assert stack["stack_status"] == "ADOPT_COMPLETE"
        assert physical(server, "to") == real
        told = headgate(server, "stack", "adopt", "to", "-f", str(parcel), code=1)
        assert "already exists" in told and parcel.exists()

    def test_a_busy_stack_is_not_abandoned(
        self, server: ServerProcess, files: Files, tmp_path: Path
    ) -> None:
        made(server, "busy", *files.template(b="1"))
        update = ("stack", "update", "busy", *files.template(b="2"), *files.held())
        headgate(server, *update, "--until-waiting", code=5)
        parcel = tmp_path / "busy.json"
        told = headgate(server, "stack", "abandon", "busy", "-y", "-o", str(parcel), code=1)
        assert "in progress" in told and not parcel.exists()
        assert status(server, "busy") == "UPDATE_IN_PROGRESS"

    @pytest.mark.parametrize(
        ("document", "told"),
        [
            ({"nothing": 1}, "is no exported stack"),
            ({"resources": {}}, "template"),
            ({"resources": {"a": 5}}, "adopt_stack_data.resources.a: is no map"),
            (
                {"resources": {}, "template": template({"a": resource()})},
                "Resource ID was not provided.",
            ),
        ],
    )
    def test_what_is_no_export_is_not_adopted(
        self, server: ServerProcess, files: Files, document: Any, told: str
    ) -> None:
        adopt = ("stack", "adopt", "bad", "-f", files.file("bad.json", document))
        assert told in headgate(server, *adopt, code=1)
        assert read(server, "bad") is None
