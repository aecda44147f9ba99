"""Headgate::Command with real programs: their order, environment and results."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from engine.types.command import AllowedProgram, Command, CommandSettings, RunAs
from engine.types.contract import Call, Done, Failed, Replace, Wait
from engine.types.successor import Successor
from engine.words import Json, ResourceId, StackId
from tests.unit.types.calls import KEY, NOW, ON, PYTHON, STACK, a_call, ended, findings_of, run

TYPE = Command(ON)


def allow_only(path: str, **more: tuple[str, ...]) -> CommandSettings:
    """One allowed program, by default with any arguments."""
    settings: dict[str, Any] = {"projects": ("*",), "arguments": ("**",), "folders": ("/",)}
    return replace(ON, programs=(AllowedProgram(path, **(settings | more)),))


def py(code: str) -> list[str]:
    return [PYTHON, "-c", code]


def sh(code: str) -> list[str]:
    return ["/bin/sh", "-c", code]


def command_properties(**properties: Json) -> dict[str, Json]:
    return {"create": sh("true"), "timeout": 20} | properties


async def done(operation: str, call: Call, type_: Command = TYPE) -> Done:
    outcome = await ended(type_, operation, call)
    assert isinstance(outcome, Done), outcome
    return outcome


async def failed(operation: str, call: Call, type_: Command = TYPE) -> Failed:
    outcome = await ended(type_, operation, call)
    assert isinstance(outcome, Failed), outcome
    return outcome


async def changed(before: Done, properties: Mapping[str, Json], *names: str) -> Done:
    return await done("update", update_of(before, properties, *names))


def update_of(before: Done | Failed, properties: Mapping[str, Json], *names: str) -> Call:
    return a_call(
        TYPE,
        properties,
        previous={},
        changed=frozenset(names),
        physical_id=before.physical_id,
        data=before.data,
        operation_key=UUID(int=9),
    )


async def test_a_json_object_on_standard_output_is_the_outputs() -> None:
    create = py("""print('{"id": "db-7", "url": "http://x", "ports": [1, 2]}')""")
    created = await done("create", a_call(TYPE, command_properties(create=create)))
    assert created.physical_id == "db-7"
    assert created.attributes["outputs"] == {"id": "db-7", "url": "http://x", "ports": [1, 2]}
    assert created.attributes["exit_code"] == 0


@pytest.mark.parametrize("text", ["plain text", "[1, 2]", '{"id": ', "", '{"a": 1} trailing'])
async def test_other_standard_output_is_text(text: str) -> None:
    create = sh(f"printf '%s' '{text}'; echo aside >&2")
    created = await done("create", a_call(TYPE, command_properties(create=create)))
    assert created.attributes["outputs"] == {}
    assert created.attributes["stdout"] == text
    assert created.attributes["stderr"] == "aside\n"
    assert created.physical_id == f"s-r-{KEY.hex[:12]}"


async def test_nul_characters_are_replaced() -> None:
    create = py(r"""print('{"a\\u0000": ["\\u0000b"], "id": "x\\u0000"}')""")
    created = await done("create", a_call(TYPE, command_properties(create=create)))
    assert created.attributes["outputs"]["a\ufffd"] == ["\ufffdb"]
    assert created.physical_id == "x\ufffd"
    raw = await done("create", a_call(TYPE, command_properties(create=py(r"print('a\0b\xff')"))))
    assert "\0" not in raw.attributes["stdout"]


async def test_commands_get_their_variables_and_none_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SERVER_PASSWORD", "leak")
    monkeypatch.setenv("LANG", "C.UTF-8")
    show = py("import json, os; print(json.dumps(dict(os.environ)))")
    variables = {"A": "text", "B": 3, "C": {"x": [1]}, "NONE": None, "HEADGATE_STACK_ID": "forged"}
    created = await done(
        "create", a_call(TYPE, command_properties(create=show, environment=variables))
    )
    seen = created.attributes["outputs"]
    seen.pop("LC_CTYPE", None)  # Python's own
    assert seen == {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "LANG": "C.UTF-8",
        "A": "text",
        "B": "3",
        "C": '{"x":[1]}',
        "HEADGATE_STACK_NAME": "s",
        "HEADGATE_STACK_ID": str(STACK),
        "HEADGATE_RESOURCE": "r",
        "HEADGATE_OPERATION": "create",
        "HEADGATE_OPERATION_KEY": str(KEY),
        "HEADGATE_PHYSICAL_ID": "",
        "HEADGATE_PREVIOUS": "{}",
        "HEADGATE_SNAPSHOT": "{}",
    }


async def test_later_commands_get_the_output_of_create(tmp_path: Path) -> None:
    note = sh('echo "$HEADGATE_OPERATION $HEADGATE_PHYSICAL_ID $HEADGATE_PREVIOUS" >> seen')
    properties = command_properties(
        create=sh("""echo '{"id": "a", "n": 1}'"""),
        update=note,
        check=note,
        delete=note,
        cwd=str(tmp_path),
    )
    created = await done("create", a_call(TYPE, properties))
    await changed(created, properties, "triggers")
    await done("delete", replace(update_of(created, properties), changed=frozenset()))
    arguments = ' a {"id":"a","n":1}'
    lines = (tmp_path / "seen").read_text().splitlines()
    assert lines == [name + arguments for name in ("check", "update", "check", "delete")]


async def test_outputs_that_are_too_large_are_not_passed_to_later_commands() -> None:
    type_ = Command(replace(ON, max_output=1_000_000))
    create = py("""print('{"big": "' + 'x' * 200_000 + '"}')""")
    delete = sh('test "$HEADGATE_PREVIOUS" = "{}"')
    properties = command_properties(create=create, delete=delete)
    created = await done("create", a_call(TYPE, properties), type_)
    assert len(created.attributes["outputs"]["big"]) == 200_000
    await done("delete", a_call(TYPE, properties, physical_id="x", data=created.data), type_)


async def test_a_failure_reason_has_the_end_of_the_error_output() -> None:
    create = sh("yes first | head -n 1000 >&2; echo the reason >&2; exit 3")
    outcome = await failed("create", a_call(TYPE, command_properties(create=create)))
    assert outcome.reason.startswith("create exited with 3: ")
    assert outcome.reason.endswith("the reason")
    assert len(outcome.reason) < 600
    assert (
        outcome.physical_id == f"s-r-{KEY.hex[:12]}"
    )  # a failed create may have created something


async def test_a_failure_reason_has_no_variables_of_the_command() -> None:
    properties = command_properties(
        create=sh("set -x; : $PASSWORD; exit 1"), environment={"PASSWORD": "hunter2-x"}
    )
    outcome = await failed("create", a_call(TYPE, properties))
    assert "hunter2" not in outcome.reason
    assert "******" in outcome.reason


async def test_a_command_ended_by_a_signal_is_a_failure() -> None:
    outcome = await failed("create", a_call(TYPE, command_properties(create=sh("kill -9 $$"))))
    assert "was terminated by signal 9" in outcome.reason


async def test_a_command_that_cannot_start_is_a_failure(tmp_path: Path) -> None:
    nowhere = command_properties(cwd=str(tmp_path / "nowhere"))
    outcome = await failed("create", a_call(TYPE, nowhere))
    assert "could not be started" in outcome.reason
    assert outcome.physical_id is None


# -- update ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["update", "delete", "check", "timeout"])
async def test_a_change_of_later_commands_runs_nothing(name: str) -> None:
    properties = command_properties(create=sh("exit 1"), update=sh("exit 1"), check=sh("exit 1"))
    before = Done("id", {"outputs": {"a": 1}}, {"attributes": {"outputs": {"a": 1}}})
    call = update_of(before, properties, name)
    assert not TYPE.needs_replace(call)
    after = await done("update", call)
    assert (after.physical_id, after.attributes) == ("id", {"outputs": {"a": 1}})
    assert after.data == before.data


@pytest.mark.parametrize("name", ["create", "cwd", "environment", "triggers", "shell"])
async def test_any_other_change_runs_update_or_replaces(name: str) -> None:
    before = Done("id", {}, {"attributes": {"outputs": {"a": 1}}})
    updated = command_properties(update=sh("""echo '{"a": 2}'"""))
    assert not TYPE.needs_replace(update_of(before, updated, name, "delete"))
    after = await changed(before, updated, name, "delete")
    assert (after.physical_id, after.attributes["outputs"]) == ("id", {"a": 2})
    without = update_of(before, command_properties(), name)
    assert TYPE.needs_replace(without)
    assert await run(TYPE, "update", without) == Replace()


async def test_an_update_that_prints_no_object_keeps_the_outputs() -> None:
    before = Done("id", {}, {"attributes": {"outputs": {"a": 1}}})
    after = await changed(before, command_properties(update=sh("echo fine")), "triggers")
    assert after.attributes["outputs"] == {"a": 1}
    assert after.attributes["stdout"] == "fine\n"


async def test_after_a_failed_update_the_next_update_always_runs() -> None:
    before = Done("id", {}, {"attributes": {"outputs": {"a": 1}}})
    failing = await failed(
        "update", update_of(before, command_properties(update=sh("exit 1")), "triggers")
    )
    left = Failed("", failing.physical_id, {**before.data, **failing.data})
    assert left.physical_id == "id"
    mended = command_properties(update=sh("""echo '{"a": 2}'"""))
    for names in ((), ("timeout",)):  # no change since before the failure, or only this one
        call = update_of(left, mended, *names)
        assert not TYPE.needs_replace(call)
        assert (await done("update", call)).attributes["outputs"] == {"a": 2}
        assert TYPE.needs_replace(update_of(left, command_properties(), *names))
    healed = await done("update", update_of(left, mended))
    call = update_of(healed, command_properties(update=sh("exit 1")), "timeout")
    assert isinstance(await run(TYPE, "update", call), Done)


@pytest.mark.parametrize(
    ("check", "state", "reason"),
    [
        ("true", "present", ""),
        ("echo down >&2; exit 3", "degraded", "check exited with 3: down"),
        ("echo busy >&2; exit 75", "unknown", "check exited with 75: busy"),
        ("kill -9 $$", "unknown", "check was terminated by signal 9"),
        ("sleep 60", "unknown", "check did not end within 0.2 s and was terminated"),
    ],
)
async def test_its_check_observes_a_resource(check: str, state: str, reason: str) -> None:
    timeout = 0.2 if check.startswith("sleep") else 20
    properties = command_properties(check=sh(check), timeout=timeout)
    call = a_call(TYPE, properties, physical_id="x")
    assert TYPE.observation_key(call) == str(call.resource_id)
    assert TYPE.observation_endpoint(call) == "/bin/sh"
    (found,) = (await TYPE.observe([call])).values()
    assert (found.state, found.reason) == (state, reason)


async def test_a_degraded_resource_without_update_is_checked_again_and_never_replaced() -> None:
    """Its row is then UPDATE_FAILED, with the data of the last successful command."""
    before = Done("id", {}, {"attributes": {"outputs": {"a": 1}}})
    down, up = (command_properties(check=sh(f"exit {code}")) for code in (1, 0))
    for call in (update_of(before, down), update_of(before, up)):
        assert not TYPE.needs_replace(call)
    found = await failed("update", update_of(before, down))
    assert (found.physical_id, found.data) == ("id", before.data)
    assert found.reason == "check exited with 1"
    healed = await done("update", update_of(before, up))
    assert (healed.physical_id, healed.data) == ("id", before.data)
    # A change, a restore and a failed command replace it.
    restored = replace(update_of(before, up), kept={"outputs": {}})
    unfinished = update_of(Done("id", {}, {"unfinished": True}), up)
    for call in (update_of(before, up, "triggers"), restored, unfinished):
        assert TYPE.needs_replace(call)
        assert await run(TYPE, "update", call) == Replace()


async def test_a_check_that_reads_the_credential_cannot_be_observed() -> None:
    """An observation has none, so the check would fail."""
    checked = command_properties(check=sh('test -n "$HEADGATE_CREDENTIAL"'))
    assert TYPE.observation_key(a_call(TYPE, checked, physical_id="x")) is None


async def test_a_resource_without_a_check_cannot_be_observed() -> None:
    assert TYPE.observation_key(a_call(TYPE, command_properties(), physical_id="x")) is None
    off = Command(replace(ON, enabled=False))
    checked = command_properties(check=sh("true"))
    assert off.observation_key(a_call(off, checked, physical_id="x")) is None


async def test_delete_without_a_command_deletes_the_resource_only() -> None:
    assert await done("delete", a_call(TYPE, command_properties(), physical_id="x")) == Done(None)


@pytest.mark.parametrize(
    ("more", "stays"),
    [({}, True), ({"cwd": "/usr"}, False), ({"environment": {"A": "b"}}, False)],
    ids=["same command", "other folder", "other environment"],
)
async def test_the_object_of_a_replacement_with_the_same_id_stays(
    tmp_path: Path, more: Json, stays: bool
) -> None:
    """The delete command of the replaced resource would delete it."""
    file = tmp_path / "object"
    file.touch()
    properties = command_properties(delete=sh(f"rm {file}"), cwd="/")
    type_ = Command(ON)
    replaced = a_call(type_, properties, physical_id="x")
    type_.successors = Replaced(Successor({**replaced.properties, "create": sh("id"), **more}, {}))
    await done("delete", replaced, type_)
    assert file.exists() is stays


class Replaced:
    """A replacement of each resource."""

    def __init__(self, successor: Successor) -> None:
        self._successor = successor

    async def read(self, stack_id: StackId, resource_id: ResourceId) -> Successor | None:
        return self._successor


async def test_a_failed_delete_keeps_the_attributes() -> None:
    data = {"id": "x", "attributes": {"outputs": {"a": 1}}}
    call = a_call(TYPE, command_properties(delete=sh("exit 1")), physical_id="x", data=data)
    outcome = await failed("delete", call)
    assert outcome.physical_id == "x"
    assert outcome.data["attributes"] == data["attributes"]


# -- check ----------------------------------------------------------------------------------------


async def test_create_completes_only_after_a_successful_check(tmp_path: Path) -> None:
    """The third check succeeds; create runs once and is saved before the first check."""
    properties = command_properties(
        create=sh("""echo c >> ran; echo '{"id": "a"}'"""),
        check=sh('echo x >> ran; test "$(grep -c x ran)" -ge 3'),
        cwd=str(tmp_path),
    )
    call = a_call(TYPE, properties)
    waits = []
    outcome = await run(TYPE, "create", call)
    assert (tmp_path / "ran").read_text() == "c\n"
    while isinstance(outcome, Wait):
        json.dumps(outcome.progress)  # can be stored
        assert outcome.until is not None
        waits.append((outcome.until - call.now).total_seconds())
        call = replace(call, now=outcome.until, progress=outcome.progress)
        outcome = await run(TYPE, "create", call)
    assert isinstance(outcome, Done)
    assert (outcome.physical_id, outcome.attributes["outputs"]) == ("a", {"id": "a"})
    assert (tmp_path / "ran").read_text().split() == ["c", "x", "x", "x"]
    assert waits[0] == 0
    assert all(0 < wait <= 2 for wait in waits[1:])


async def test_a_check_has_its_own_time(tmp_path: Path) -> None:
    """The time of check starts when create has ended, and ends after `timeout`."""
    properties = command_properties(check=sh("echo not yet >&2; exit 1"), timeout=2)
    first = await run(TYPE, "create", a_call(TYPE, properties))
    assert isinstance(first, Wait)
    late = NOW + timedelta(seconds=100)
    call = a_call(TYPE, properties, now=late, progress=first.progress)
    second = await run(TYPE, "create", call)
    assert isinstance(second, Wait)
    assert second.until is not None
    assert second.until <= late + timedelta(seconds=2)
    over = replace(call, now=late + timedelta(seconds=2), progress=second.progress)
    outcome = await run(TYPE, "create", over)
    assert isinstance(outcome, Failed)
    assert "check did not succeed in 2 s" in outcome.reason
    assert "not yet" in outcome.reason
    assert outcome.physical_id == f"s-r-{KEY.hex[:12]}"


# -- allow list -----------------------------------------------------------------------------------


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with many links to one program, as on small systems, and a link to the folder."""
    (tmp_path / "bin").mkdir()
    many = tmp_path / "bin" / "many"
    many.write_text('#!/bin/sh\necho "$0"\n')
    many.chmod(0o755)
    for name in ("cat", "rm"):
        (tmp_path / "bin" / name).symlink_to(many)
    (tmp_path / "link").symlink_to(tmp_path / "bin")
    (tmp_path / "mine").symlink_to(many)
    return tmp_path


@pytest.mark.parametrize(
    ("listed", "command", "allowed"),
    [
        ("bin/cat", "bin/cat", True),
        ("bin/cat", "link/cat", True),
        ("link/cat", "bin/cat", True),
        ("bin/cat", "bin/../bin/cat", True),
        ("bin/many", "mine", True),
        ("bin/cat", "bin/rm", False),
        ("bin/cat", "bin/many", False),
        ("bin/cat", "mine", False),
        ("bin/cat", "bin/cat/../rm", False),
        ("bin", "bin/cat", False),
    ],
)
async def test_only_programs_on_the_allow_list_run(
    tools: Path, listed: str, command: str, allowed: bool
) -> None:
    type_ = Command(allow_only(str(tools / listed)))
    properties = command_properties(create=[f"{tools}/{command}"])
    outcome = await run(type_, "create", a_call(type_, properties))
    found = findings_of(type_, properties)
    if allowed:
        assert isinstance(outcome, Done), outcome
        assert found == []
        return
    assert isinstance(outcome, Failed)
    assert "[[resource_types.command.programs]]" in outcome.reason
    assert [one.place for one in found] == ["resources.r.properties.create"]
    assert "[[resource_types.command.programs]]" in found[0].remedy


@pytest.mark.parametrize(
    ("properties", "place"),
    [
        ({"create": ["sh", "-c", "true"]}, "create"),
        ({"create": ["/usr/bin/env", "sh"]}, "create"),
        ({"create": []}, "create"),
        ({"create": {"a": 1}}, "create"),
        ({"create": [["/bin/sh"]]}, "create"),
        ({"create": "true"}, "create"),
        ({"delete": ["/usr/bin/env"]}, "delete"),
        ({"check": "true"}, "check"),
        ({"update": "true"}, "update"),
        ({"cwd": "relative"}, "cwd"),
        ({"environment": {"LD_PRELOAD": "/tmp/x.so"}}, "environment.LD_PRELOAD"),
        ({"environment": {"A=B": "x"}}, "environment"),
        ({"environment": {"BASH_ENV": "$(id)"}}, "environment.BASH_ENV"),
        ({"environment": {"BASH_FUNC_echo%%": "() { id; }"}}, "environment.BASH_FUNC_echo%%"),
        ({"environment": {"PYTHONWARNINGS": "all:0:x.y:0:0"}}, "environment.PYTHONWARNINGS"),
        ({"environment": {"PATH": "/tmp"}}, "environment.PATH"),
        ({"environment": {"a": "x"}}, "environment.a"),
        ({"timeout": 61}, "timeout"),
    ],
)
def test_invalid_properties_are_found_by_validation(
    properties: dict[str, Json], place: str
) -> None:
    (finding,) = findings_of(TYPE, command_properties(**properties))
    assert finding.place == f"resources.r.properties.{place}"
    assert finding.remedy


@pytest.mark.parametrize(
    "properties",
    [
        {"cwd": "tmp"},
        {"environment": {"LD_PRELOAD": "/tmp/x.so"}},
        {"environment": {"BASH_ENV": "$(touch made)"}},
        {"environment": {"PATH": "/tmp"}},
        {"create": "touch made"},
        {"create": ["sh", "-c", "touch made"]},
    ],
)
async def test_invalid_properties_that_are_known_at_run_time_are_refused(
    properties: dict[str, Json],
) -> None:
    outcome = await run(TYPE, "create", a_call(TYPE, command_properties(**properties)))
    assert isinstance(outcome, Failed)
    assert outcome.physical_id is None


async def test_a_shell_runs_only_if_requested_and_allowed() -> None:
    properties = command_properties(create="echo a | tr a b", shell=True)
    assert findings_of(TYPE, properties) == []
    created = await done("create", a_call(TYPE, properties))
    assert created.attributes["stdout"] == "b\n"
    type_ = Command(allow_only(PYTHON))
    assert [one.place for one in findings_of(type_, properties)] == [
        "resources.r.properties.create"
    ]
    await failed("create", a_call(type_, properties), type_)


async def test_a_list_is_never_passed_to_a_shell() -> None:
    create = [*py("import sys; print(sys.argv[1:])"), "$HOME; `id`", 3, None]
    created = await done("create", a_call(TYPE, command_properties(create=create)))
    assert created.attributes["stdout"] == "['$HOME; `id`', '3', 'null']\n"


async def test_commands_are_disabled_by_default() -> None:
    type_ = Command(CommandSettings())
    (finding,) = findings_of(type_, command_properties())
    assert "[resource_types.command] enabled = true" in finding.remedy
    for operation in ("create", "update", "delete"):
        properties = command_properties(update=sh("true"), delete=sh("true"))
        outcome = await run(type_, operation, a_call(type_, properties))
        assert isinstance(outcome, Failed)
        assert "[resource_types.command] enabled = true" in outcome.reason


async def test_the_operators_maximum_timeout_holds() -> None:
    type_ = Command(replace(ON, max_timeout=timedelta(milliseconds=200)))
    outcome = await failed(
        "create", a_call(type_, command_properties(create=sh("sleep 60"))), type_
    )
    assert "did not end within 0.2 s and was terminated" in outcome.reason


# -- projects, arguments, folders and accounts ----------------------------------------------------


@pytest.mark.parametrize(
    ("allowed", "project", "arguments", "is_allowed"),
    [
        ({"projects": ("p",)}, "p", ["-c", "true"], True),
        ({"projects": ("team-*",)}, "team-a", ["-c", "true"], True),
        ({"projects": ("team-*",)}, "p", ["-c", "true"], False),
        ({"projects": ()}, "p", ["-c", "true"], False),
        ({"arguments": ()}, "p", ["-c", "true"], False),
        ({"arguments": ("-c",)}, "p", ["-c", "true"], False),
        ({"arguments": ("-c", "true", "*")}, "p", ["-c", "true"], False),
        ({"arguments": ("-c", "tr*")}, "p", ["-c", "true"], True),
        ({"arguments": ("-c", "false*")}, "p", ["-c", "true"], False),
        ({"arguments": ("-c", "**")}, "p", ["-c", "true", "more"], True),
        ({"arguments": ("-e", "**")}, "p", ["-c", "true"], False),
    ],
)
async def test_a_program_is_allowed_for_its_projects_and_arguments_only(
    allowed: dict[str, tuple[str, ...]], project: str, arguments: list[str], is_allowed: bool
) -> None:
    type_ = Command(allow_only("/bin/sh", **allowed))
    call = a_call(type_, command_properties(create=["/bin/sh", *arguments]), project=project)
    outcome = await run(type_, "create", call)
    assert isinstance(outcome, Done if is_allowed else Failed), outcome
    if isinstance(outcome, Failed):
        assert "[[resource_types.command.programs]]" in outcome.reason
        assert outcome.physical_id is None


async def test_entries_of_the_same_program_are_independent() -> None:
    """The arguments of one project's entry are not allowed for another project."""
    entries = (
        AllowedProgram("/bin/sh", ("a",), ("-c", "true")),
        AllowedProgram("/bin/sh", ("b",), ("-c", "exit 0")),
    )
    type_ = Command(replace(ON, programs=entries))
    for project, code, is_allowed in (
        ("a", "true", True),
        ("b", "true", False),
        ("b", "exit 0", True),
    ):
        call = a_call(type_, command_properties(create=sh(code)), project=project)
        outcome = await run(type_, "create", call)
        assert isinstance(outcome, Done if is_allowed else Failed)


async def test_a_program_is_allowed_in_its_folders_only(tmp_path: Path) -> None:
    """A program may load code or settings from its working folder."""
    allowed, other = tmp_path / "allowed", tmp_path / "other"
    for folder in (allowed, other, allowed / "inside"):
        folder.mkdir()
    (allowed / "link").symlink_to(other)
    type_ = Command(allow_only("/bin/sh", folders=(str(allowed),)))
    for cwd, is_allowed in (
        (str(allowed), True),
        (str(allowed / "inside"), True),
        (str(other), False),
        (str(allowed / "link"), False),
        (f"{allowed}/../other", False),
        (f"{allowed}-more", False),
        ("", True),
    ):
        properties = command_properties(create=sh("pwd"), **({"cwd": cwd} if cwd else {}))
        outcome = await run(type_, "create", a_call(type_, properties))
        assert isinstance(outcome, Done if is_allowed else Failed), cwd
        if isinstance(outcome, Done) and not cwd:
            assert outcome.attributes["stdout"] == "/\n"


async def test_nothing_runs_without_an_account() -> None:
    type_ = Command(replace(ON, run_as=None))
    outcome = await failed("create", a_call(type_, command_properties()), type_)
    assert "[resource_types.command] run_as" in outcome.reason and outcome.physical_id is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts programs as another account")
async def test_programs_run_as_the_account_without_access_to_the_servers_files(
    tmp_path: Path,
) -> None:
    secret = tmp_path / "key"
    secret.write_text("secret")
    secret.chmod(0o600)
    run_as = RunAs("nobody", 65534, 65534, (65534,), "/nonexistent")
    type_ = Command(replace(ON, run_as=run_as))
    show = sh(f'id -u; id -g; id -G; echo "$HOME $USER"; cat {secret} || echo refused')
    created = await done("create", a_call(type_, command_properties(create=show)), type_)
    assert created.attributes["stdout"].split() == [
        "65534", "65534", "65534", "/nonexistent", "nobody", "refused",
    ]  # fmt: skip
