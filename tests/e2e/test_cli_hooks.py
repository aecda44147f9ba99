"""Hooks on the command line: debugging a running stack, and approvals."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import completed, headgate, headgate_json
from tests.support.program import PATIENCE, ServerProcess
from tests.support.terminal import terminal

CHAIN = """
heat_template_version: 2018-08-31
resources:
  a: {type: OS::Heat::TestResource, properties: {value: first}}
  b: {type: OS::Heat::TestResource, depends_on: a}
  c: {type: OS::Heat::TestResource, depends_on: b}
outputs: {a: {value: {get_attr: [a, output]}}}
"""


@pytest.fixture
def chain(tmp_path: Path) -> str:
    """A template of three resources, each of which depends on the one before."""
    (tmp_path / "chain.yaml").write_text(CHAIN)
    return str(tmp_path / "chain.yaml")


def environment_with(tmp_path: Path, rules: str) -> str:
    """An environment with rules."""
    (tmp_path / "env.yaml").write_text(f"hooks: {rules}")
    return str(tmp_path / "env.yaml")


def waits_at(server: ServerProcess, stack: str, path: str, point: str = "pre-create") -> Any:
    """Wait for the only hook of a stack at this path and point."""
    deadline = time.monotonic() + PATIENCE
    while True:
        hooks = headgate_json(server, "hook", "list", "--stack", stack)
        if [(hook["path"], hook["point"]) for hook in hooks] == [(path, point)]:
            return hooks[0]
        assert time.monotonic() < deadline, hooks


def decisions_of(server: ServerProcess, stack: str) -> list[tuple[str, str]]:
    """User and decision of each entry in the audit log of the stack."""
    entries = headgate_json(server, "stack", "decisions", stack)
    assert [entry["number"] for entry in entries] == list(range(1, len(entries) + 1))
    return [(entry["by"], entry["kind"]) for entry in entries]


def test_an_answered_hook_is_found_by_the_beginning_of_its_id(
    server: ServerProcess, chain: str
) -> None:
    create = ("stack", "create", "found", "-t", chain, "--break-at", "a:pre-create")
    headgate(server, *create, "--until-waiting", "--user", "ann", code=5)
    hook = waits_at(server, "found", "a")
    headgate(server, "hook", "continue", hook["id"][:8], "--user", "ann")
    shown = headgate_json(server, "hook", "show", hook["id"][:10])
    assert (shown["id"], shown["state"]) == (hook["id"], "answered")
    assert "ann" in headgate(server, "hook", "history", hook["id"][:9].upper())
    refused = headgate(server, "hook", "show", hook["id"][:3], code=1)
    assert "the first 4 or more characters" in refused


def test_hooks_of_all_projects_are_listed(server: ServerProcess, chain: str) -> None:
    create = ("stack", "create", "everywhere", "-t", chain, "--break-at", "b:pre-create")
    for project in ("north", "south"):
        headgate(server, *create, "--until-waiting", "--project", project, code=5)
    selected = ("hook", "list", "--all-projects", "--at", "b")

    def listed(*options: str) -> list[Any]:
        """Without the hooks of other tests."""
        found = headgate_json(server, *selected, *options)
        return [one for one in found if one["stack_name"] == "everywhere"]

    hooks = listed("--project", "south")
    assert [(one["project"], one["stack_name"]) for one in hooks] == [
        ("north", "everywhere"), ("south", "everywhere"),
    ]  # fmt: skip
    assert len(headgate_json(server, *selected, "--limit", "1")) == 1
    table = headgate(server, *selected)
    assert "PROJECT" in table and "north" in table and "south" in table
    headgate(server, "hook", "continue", hooks[0]["id"], "--project", "north")
    assert listed() == hooks[1:]
    refused = headgate(server, *selected, "--stack", "x", code=2)
    assert "use either --stack or --all-projects" in refused


def test_a_stack_is_stepped_through(server: ServerProcess, chain: str) -> None:
    create = ("stack", "create", "steps", "-t", chain, "--break-at", "a:pre-create")
    headgate(server, *create, "--until-waiting", "--user", "ann", code=5)
    headgate(server, "hook", "step", "steps:a", "--user", "ann")
    waits_at(server, "steps", "b")
    assert "b has waited at pre-create since" in headgate(server, "why", "steps")
    headgate(server, "hook", "step", "steps:b:pre-create", "--user", "ann", "--reason", "and on")
    last = waits_at(server, "steps", "c")
    assert "answered" in headgate(server, "hook", "run", last["id"], "--user", "bob")
    assert headgate(server, "watch", "steps")
    assert decisions_of(server, "steps") == [("ann", "step"), ("ann", "step"), ("bob", "run")]
    table = headgate(server, "stack", "decisions", "steps")
    assert "and on" in table and last["id"] in table


def test_a_breakpoint_of_a_create_holds_in_that_change_only(
    server: ServerProcess, chain: str
) -> None:
    create = ("stack", "create", "once", "-t", chain, "--break-at", "c")
    headgate(server, *create, "--until-waiting", code=5)
    headgate(server, "hook", "continue", "once:c:pre-create")
    assert headgate(server, "watch", "once")
    headgate(server, "stack", "delete", "once", "--yes", "--wait")


def test_run_to_a_resource_skips_breakpoints_before_it(server: ServerProcess, chain: str) -> None:
    create = ("stack", "create", "runs", "-t", chain, "--break-at", "a:pre-create")
    headgate(server, *create, "--until-waiting", code=5)
    add = ("stack", "breakpoints", "add", "runs", "b:post-create", "a", "--user", "ann")
    done = headgate_json(server, *add)
    late = [(one["resource_name"], one["point"], one["reason"]) for one in done["too_late"]]
    assert late == [("a", "pre-create", "it waits there now")]
    assert [one["created_by"] for one in done["breakpoints"]] == ["ann"] * 5
    repeated = headgate(server, *add)
    assert "too late for a at pre-create: it waits there now" in repeated
    assert "continuing; stops at c" in headgate(server, "stack", "run-to", "runs", "c")
    waits_at(server, "runs", "b", "post-create")
    headgate(server, "hook", "continue", "runs:b")
    waits_at(server, "runs", "c")
    found = headgate_json(server, "stack", "breakpoints", "list", "runs")
    assert len(found) == 10
    first, last = found[0], found[-1]
    headgate(server, "stack", "breakpoints", "remove", "runs", first["id"], last["id"])
    assert last["id"] not in headgate(server, "stack", "breakpoints", "list", "runs")
    assert len(headgate_json(server, "stack", "breakpoints", "remove", "runs", "--all")) == 8
    assert headgate_json(server, "stack", "breakpoints", "list", "runs") == []
    headgate(server, "hook", "continue", "runs:c")
    assert headgate(server, "watch", "runs")
    kinds = [kind for _, kind in decisions_of(server, "runs")]
    assert kinds.count("breakpoint-added") == kinds.count("breakpoint-removed") == 10
    response = headgate(server, "stack", "run-to", "runs", "c", code=1)
    assert "is not supported" in response


def test_a_breakpoint_without_a_matching_resource_is_refused(
    server: ServerProcess, chain: str
) -> None:
    create = ("stack", "create", "typo", "-t", chain, "--break-at", "aa:pre-create")
    assert "breakpoint" in headgate(server, *create, code=1)
    create = ("stack", "create", "typo", "-t", chain, "--break-at", "a:pre-crate")
    assert "pre-create" in headgate(server, *create, code=1)


def test_two_users_approve_and_others_are_refused(
    server: ServerProcess, chain: str, tmp_path: Path
) -> None:
    rule = "{at: a, on: pre-create, approvals: 2, answer_by: ['role:dba'], exclude: requester}"
    create = ("stack", "create", "pair", "-t", chain, "-e", environment_with(tmp_path, f"[{rule}]"))
    planned = headgate(server, *create, "--dry-run")
    assert "role:dba, except the requester of the change may answer, and 2 must approve" in planned
    headgate(server, *create, "--until-waiting", "--user", "joe", code=5)
    answer = ("hook", "continue", "pair:a", "--user")
    assert "another principal must answer" in headgate(server, *answer, "joe", code=1, roles="dba")
    assert "role:dba may answer" in headgate(server, *answer, "ann", code=1)
    mine = ("hook", "list", "--mine", "--stack", "pair", "--user")
    assert (
        headgate_json(server, *mine, "joe", roles="dba")
        == headgate_json(server, *mine, "ann")
        == []
    )
    assert "role:dba, not joe" in headgate(server, *mine, "ann", roles="dba")
    once = headgate_json(server, *answer, "ann", "--reason", "looks good", roles="dba")
    assert (once["state"], once["approvals"]["by"]) == ("waiting", ["ann"])
    assert headgate_json(server, *mine, "ann", roles="dba") == []
    assert "1/2" in headgate(server, *mine, "bob", roles="dba")
    assert "answered" in headgate(server, *answer, "bob", roles="dba")
    assert headgate(server, "watch", "pair")
    history = headgate(server, "hook", "history", once["id"])
    lines = [line.split()[1:4:2] for line in history.splitlines() if line.startswith("20")]
    assert lines == [
        ["joe", "refused"],
        ["ann", "refused"],
        ["ann", "continue"],
        ["bob", "continue"],
    ]
    assert "looks good" in history


def test_an_answer_patches_properties(server: ServerProcess, chain: str, tmp_path: Path) -> None:
    env = environment_with(tmp_path, "[{at: a, on: pre-create, patch: [value]}]")
    headgate(server, "stack", "create", "other", "-t", chain, "-e", env, "--until-waiting", code=5)
    error = headgate(server, "hook", "patch", "other:a", "--set", "fail=true", code=1)
    assert "may not be changed by an answer" in error
    headgate(server, "hook", "patch", "other:a", "--set", "value='another one'")
    assert headgate(server, "watch", "other")
    (output,) = headgate_json(server, "stack", "show", "other")["outputs"]
    assert output["output_value"] == "another one"


def test_a_hook_requires_answer_data(server: ServerProcess, chain: str, tmp_path: Path) -> None:
    schema = "{type: object, properties: {ticket: {type: integer}}, required: [ticket]}"
    env = environment_with(tmp_path, f"[{{at: a, on: pre-create, ask: {{schema: {schema}}}}}]")
    headgate(server, "stack", "create", "asks", "-t", chain, "-e", env, "--until-waiting", code=5)
    assert "data" in headgate(server, "hook", "continue", "asks:a", code=1)
    refused = headgate(server, "hook", "continue", "asks:a", "--data", "ticket='12'", code=1)
    assert "data.ticket" in refused
    hook = headgate_json(server, "hook", "continue", "asks:a", "--data", "ticket=12")
    assert hook["state"] == "answered"
    (entry,) = headgate_json(server, "hook", "history", hook["id"])
    assert entry["data"] == {"ticket": 12}


def test_the_deadline_is_extended_and_the_hook_handed_over(
    server: ServerProcess, chain: str, tmp_path: Path
) -> None:
    env = environment_with(
        tmp_path, "[{at: a, on: pre-create, timeout: 10m, answer_by: ['user:ann']}]"
    )
    headgate(server, "stack", "create", "over", "-t", chain, "-e", env, "--until-waiting", code=5)
    before = headgate_json(server, "hook", "show", "over:a")["deadline"]
    longer = ("hook", "progress", "over:a", "--extend", "2h", "--reason", "on it", "--user", "ann")
    assert headgate_json(server, *longer)["deadline"] > before
    over = ("hook", "hand-over", "over:a", "user:bob", "--user")
    assert "user:ann may answer" in headgate(server, *over, "bob", code=1)
    assert "user:bob, user:ann" in headgate(server, *over, "ann", "--note", "lunch")
    hook = headgate_json(server, "hook", "show", "over:a")
    assert hook["assigned"] == "user:bob"
    headgate(server, "hook", "reject", "over:a", "--user", "bob")
    assert headgate(server, "watch", "over", code=3)
    history = headgate(server, "hook", "history", hook["id"])
    for text in ("on it", "handed-over to user:bob", "lunch", "reject"):
        assert text in history


def test_a_stack_waits_at_a_stack_hook(server: ServerProcess, chain: str, tmp_path: Path) -> None:
    env = environment_with(tmp_path, "[{on: [pre-stack-create, post-stack-create]}]")
    create = ("stack", "create", "gate", "-t", chain, "-e", env)
    assert "1. (stack) at pre-stack-create" in headgate(server, *create, "--dry-run")
    headgate(server, *create, "--until-waiting", code=5)
    waits_at(server, "gate", "", "pre-stack-create")
    assert "(stack)" in headgate(server, "hook", "list", "--stack", "gate")
    assert "(stack)" in headgate(server, "graph", "gate")
    why = headgate(server, "why", "gate")
    assert "the stack has waited at pre-stack-create since" in why
    assert "a (create) waits for the stack." in why and "the stack (finish) waits for c." in why
    headgate(server, "hook", "continue", "gate:pre-stack-create")
    waits_at(server, "gate", "", "post-stack-create")
    headgate(server, "hook", "continue", "gate:post-stack-create")
    assert headgate(server, "watch", "gate")


def test_the_list_of_hooks_is_filtered(server: ServerProcess, chain: str) -> None:
    create = ("stack", "create", "inbox", "-t", chain, "--break-at", "a:pre-create")
    headgate(server, *create, "--until-waiting", code=5)
    listing = ("hook", "list", "--stack", "inbox")
    assert len(headgate_json(server, *listing, "--point", "pre-*", "--no-dry")) == 1
    for words in (["--point", "post-*"], ["--older", "1d"], ["--dry"], ["--state", "expired"]):
        assert headgate_json(server, *listing, *words) == []


def test_the_audit_log_of_a_running_server_is_verified(server: ServerProcess, chain: str) -> None:
    create = ("stack", "create", "trail", "-t", chain, "--break-at", "a:pre-create")
    stack = headgate_json(server, *create, "--until-waiting", code=5)
    headgate(server, "hook", "continue", "trail:a")
    (entry,) = headgate_json(server, "stack", "decisions", "trail")
    verify = ("admin", "verify-audit", "--data-dir", str(server.folder / "data"))
    done = completed(*verify)
    line = f"{stack['id']}  ok 1 entry, last {entry['hash']}"
    assert done.returncode == 0 and line in done.stdout.splitlines(), done.stdout + done.stderr
    for number, code in ((1, 0), (2, 1)):
        expect = (stack["id"], "--expect", f"{number}:{entry['hash']}", "--json")
        done = completed(*verify, *expect)
        assert done.returncode == code, done.stdout + done.stderr
    assert "entry 2 is missing" in done.stdout


PARALLEL = """
heat_template_version: 2018-08-31
resources:
  mon_a: {type: OS::Heat::TestResource}
  mon_b: {type: OS::Heat::TestResource}
  other: {type: OS::Heat::TestResource}
"""


def test_several_hooks_are_answered_with_one_confirmation(
    server: ServerProcess, tmp_path: Path
) -> None:
    (tmp_path / "t.yaml").write_text(PARALLEL)
    env = environment_with(tmp_path, "[{at: '*', on: pre-create}]")
    create = ("stack", "create", "many", "-t", str(tmp_path / "t.yaml"), "-e", env)
    headgate(server, *create, "--until-waiting", code=5)
    monitors = ("hook", "continue", "--stack", "many", "--at", "mon_*")
    refused = headgate(server, *monitors, code=1)
    assert "mon_a" in refused and "nothing was changed: standard input is not" in refused
    with terminal(*monitors, "--reason", "checked", server=server) as user:
        shown = user.read_until("Continue 2 hooks? [y/N]")
        assert "mon_a" in shown and "mon_b" in shown and "other" not in shown
        user.type("n\n")
        user.wait(1)
    assert len(headgate_json(server, "hook", "list", "--stack", "many")) == 3
    with terminal(*monitors, "--reason", "checked", server=server) as user:
        user.read_until("[y/N]")
        user.type("y\n")
        assert user.wait().count("answered") == 2
    (left,) = headgate_json(server, "hook", "list", "--stack", "many")
    assert left["path"] == "other"
    assert "no waiting hook matches" in headgate(server, *monitors, "--yes", code=1)
    answered = headgate_json(
        server, "hook", "reject", "--stack", "many", "--point", "pre-*", "--yes"
    )
    assert [(one["path"], one["decision"]) for one in answered] == [("other", "reject")]
    kinds = [kind for _, kind in decisions_of(server, "many")]
    assert sorted(kinds) == ["continue", "continue", "reject"]


def test_a_refused_answer_does_not_stop_the_others(server: ServerProcess, tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(PARALLEL)
    rules = "[{at: 'mon_*', on: pre-create, answer_by: ['role:dba']}, {at: other, on: pre-create}]"
    env = environment_with(tmp_path, rules)
    create = ("stack", "create", "mixed", "-t", str(tmp_path / "t.yaml"), "-e", env)
    headgate(server, *create, "--until-waiting", code=5)
    answer = ("hook", "continue", "--stack", "mixed", "--yes")
    assert "2 of 3 answers were refused" in headgate(server, *answer, code=1)
    (first, second) = headgate_json(server, "hook", "list", "--stack", "mixed")
    assert {first["path"], second["path"]} == {"mon_a", "mon_b"}
    headgate(server, *answer, roles="dba")
    assert headgate(server, "watch", "mixed")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name one hook, or select several with --stack, --at or --point"),
        (("web:a", "--stack", "web"), "name one hook, or select several"),
        (("--stack", "web", "--digest", "0" * 64), "--digest is of one hook"),
        (("--stack", "no-such-stack", "--yes"), "could not be found"),
    ],
)
def test_a_selection_that_is_unclear_is_refused(
    server: ServerProcess, words: tuple[str, ...], message: str
) -> None:
    code = 1 if "--yes" in words else 2
    assert message in headgate(server, "hook", "continue", *words, code=code)
