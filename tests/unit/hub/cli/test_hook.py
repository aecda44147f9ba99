"""Hooks on the command line: selection, answers and output."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from typer.testing import CliRunner, Result

from headgate.errors import RequestError
from hub.cli.commands.hook import bulk_question, select_hook
from hub.cli.inputs.files import InputError
from hub.cli.main import app
from tests.unit.hub.cli.stub import Handler, SentRequest, running_stub

HOOKS = [
    {"id": "aa11-0", "root_stack_name": "web", "path": "db", "point": "pre-create"},
    {"id": "aa22-0", "root_stack_name": "web", "path": "app", "point": "pre-create"},
    {"id": "bb33-0", "root_stack_name": "web", "path": "db", "point": "post-create"},
    {"id": "cc44-0", "root_stack_name": "old", "path": "a:b", "point": "pre-delete"},
    {"id": "dd55-0", "root_stack_name": "web", "path": "", "point": "pre-stack-update"},
]


@pytest.mark.parametrize(
    ("which", "found"),
    [
        ("web:app", "aa22-0"),
        ("web:db:post-create", "bb33-0"),
        ("old:a:b", "cc44-0"),
        ("old:a:b:pre-delete", "cc44-0"),
        ("web:pre-stack-update", "dd55-0"),
    ],
)
def test_a_waiting_hook_is_found_by_its_place(which: str, found: str) -> None:
    assert select_hook(HOOKS, which)["id"] == found


def test_an_ambiguous_selection_is_refused_with_the_matches() -> None:
    with pytest.raises(InputError, match="matches 2 waiting hooks: web:db:pre-create"):
        select_hook(HOOKS, "web:db")


@pytest.mark.parametrize(
    "which",
    [
        "",
        "zz",
        "aa1",
        "web",
        "web:",
        "web::",
        "web:d",
        "web:db:pre",
        "old:a",
        "web::pre-stack-update",
    ],
)
def test_a_selection_without_a_match_is_refused(which: str) -> None:
    with pytest.raises(RequestError, match="headgate hook list"):
        select_hook(HOOKS, which)


@pytest.mark.parametrize(
    ("which", "near"),
    [("wbe:db", "web:db"), ("web:dbb:pre-create", "web:db:pre-create"), ("nothing:alike", "")],
)
def test_a_misspelled_place_has_a_suggestion(which: str, near: str) -> None:
    with pytest.raises(RequestError) as error:
        select_hook(HOOKS, which)
    assert (f'matches "{which}". Did you mean "{near}"? ' in str(error.value)) == bool(near)
    assert ("Did you mean" in str(error.value)) == bool(near)
    assert str(error.value).count("; see") == 0


@pytest.mark.parametrize(
    ("decision", "question"),
    [
        ("continue", "Continue 2 hooks?"),
        ("reject", "Reject 2 hooks?"),
        ("step", "Step 2 hooks?"),
        ("ignore", "Ignore the drift of 2 hooks for a time?"),
    ],
)
def test_the_question_about_several_hooks_names_the_answer(decision: str, question: str) -> None:
    assert bulk_question(decision, "2 hooks") == question


FULL: dict[str, Any] = {
    "id": "11111111-2222-3333-4444-555555555555", "stack_name": "web", "root_stack_name": "web",
    "resource_name": None,
    "path": "", "point": "pre-stack-create", "mode": "wait", "state": "waiting",
    "deadline": "2026-11-21T20:16:36Z", "approvals": {"needed": 2, "given": 1, "by": ["ann"]},
    "answer_by": ["role:dba"], "exclude": "requester", "requested_by": "joe", "assigned": None,
}  # fmt: skip
ENTRY = {"number": 1, "kind": "handed-over", "by": "ann", "channel": "api", "address": "::1",
         "at": "2026-11-20T20:16:36Z", "reason": "your turn", "data": {"to": "user:bob"},
         "hook_id": FULL["id"], "hash": "h"}  # fmt: skip


async def server(request: web.Request) -> web.StreamResponse:
    """One waiting hook of a whole stack, with a hand-over in its audit log."""
    if request.path.endswith("/hooks"):
        return web.json_response({"hooks": [FULL], "next": None})
    if request.path.endswith("/decisions"):
        return web.json_response({"decisions": [ENTRY]})
    return web.json_response(FULL)


async def run_command(
    *arguments: str, handler: Handler = server, **environment: str
) -> tuple[Result, list[SentRequest]]:
    async with running_stub(handler) as stub:
        runner = CliRunner(env={"NO_COLOR": "1", "TERMINAL_WIDTH": "200", **environment})
        done = await asyncio.to_thread(runner.invoke, app, ["hook", *arguments, "--url", stub.url])
        return done, stub.seen


async def sent_by(*arguments: str) -> tuple[str, Any]:
    """Path below the hook, and body, of the last request."""
    done, seen = await run_command(*arguments)
    assert done.exit_code == 0, done.output
    return seen[-1].path.rpartition(FULL["id"])[2], json.loads(seen[-1].body)


def answer(decision: str, **more: Any) -> tuple[str, Any]:
    return "/signal", {"decision": decision, "reason": "", "digest": "", **more}


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        (["continue"], answer("continue")),
        (["step", "--reason", "why", "--digest", "d"], answer("step", reason="why", digest="d")),
        (["step", "--into"], answer("step", how="into")),
        (["step", "--out"], answer("step", how="out")),
        (["run", "--data", "a=1", "--data", "b=[x, {c: no}]", "--data", "d="],
         answer("run", data={"a": 1, "b": ["x", {"c": False}], "d": None})),
        (["continue", "--data", "on=2026-01-02", "--data", "e=a=b"],
         answer("continue", data={"on": "2026-01-02", "e": "a=b"})),
        (["patch", "--set", "size=20", "--set", "name='20'", "--data", "t=1"],
         answer("patch", properties={"size": 20, "name": "20"}, data={"t": 1})),
        (["progress"], answer("progress")),
        (["progress", "--extend", "30m"], answer("progress", extend="30m")),
        (["reject", "--reason", "no"], answer("reject", reason="no")),
        (["repair", "--reason", "yes"], answer("repair", reason="yes")),
        (["ignore", "--for", "2h"], answer("ignore", data={"for": "2h"})),
        (["adopt", "--reason", "wanted"], answer("adopt", reason="wanted")),
    ],
)  # fmt: skip
async def test_each_answer_is_sent_with_its_options(
    arguments: list[str], body: tuple[str, Any]
) -> None:
    assert await sent_by(arguments[0], "web:pre-stack-create", *arguments[1:]) == body


@pytest.mark.parametrize(
    ("text", "data"),
    [('{"a": [1]}', {"a": [1]}), ("a:\n  - 1\n", {"a": [1]}), ("[1, 2]", [1, 2]), ('"x"', "x")],
)
async def test_answer_data_can_be_in_a_file(tmp_path: Path, text: str, data: Any) -> None:
    (tmp_path / "f").write_text(text)
    _, body = await sent_by("continue", FULL["id"], "--data-file", str(tmp_path / "f"))
    assert body["data"] == data


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--data", "x"], 2, """Invalid value for '--data': "x": write it as KEY=VALUE"""),
        (["--data", "x=[1"], 2, "--data x:"),
        (["--data", "x=.inf"], 2, "--data x:"),
        (["--data", "x=1", "--data", "x=2"], 2, "--data x: is given twice"),
        (["--data-file", "/nope"], 1, "/nope: cannot be read"),
    ],
)
async def test_invalid_answer_data_is_refused_before_a_request(
    arguments: list[str], code: int, message: str
) -> None:
    done, seen = await run_command("continue", FULL["id"], *arguments)
    assert (done.exit_code, seen) == (code, [])
    assert message in done.output


async def test_a_hook_is_handed_over_with_a_note() -> None:
    request = await sent_by("hand-over", FULL["id"], "user:bob", "--note", "your turn")
    assert request == ("/hand-over", {"to": "user:bob", "note": "your turn"})


@pytest.mark.parametrize(
    ("arguments", "query"),
    [
        ([], {"state=waiting"}),
        (["--state", "all"], set()),
        (["--dry"], {"dry=true"}),
        (["--no-dry"], {"state=waiting", "dry=false"}),
        (["--dry", "--state", "answered"], {"state=answered", "dry=true"}),
        (["--mine", "--older", "30m", "--point", "pre-*", "--stack", "web"],
         {"state=waiting", "mine=true", "older=30m", "point=pre-*", "stack=web"}),
    ],
)  # fmt: skip
async def test_the_options_of_the_list_are_sent_as_filters(
    arguments: list[str], query: set[str]
) -> None:
    done, (seen,) = await run_command("list", *arguments)
    assert done.exit_code == 0
    assert set(seen.path.partition("?")[2].split("&")) == query | {"limit=1000"}


async def test_the_list_shows_approvers_and_approvals() -> None:
    done, _ = await run_command("list", "--json")
    assert json.loads(done.stdout) == [FULL]
    done, _ = await run_command("list", COLUMNS="240")
    assert "(stack)" in done.stdout and "1/2" in done.stdout
    assert "role:dba, not joe" in done.stdout


async def test_an_answered_hook_of_a_place_is_named_with_its_answer() -> None:
    """Only the list of waiting hooks lacks it."""
    answered = FULL | {"state": "answered", "decision": "reject", "decided_by": "ann",
                       "opened_at": "2026-11-21T18:16:36Z"}  # fmt: skip
    older = answered | {"decided_by": "joe", "opened_at": "2026-11-20T18:16:36Z"}

    async def past(request: web.Request) -> web.StreamResponse:
        hooks = [] if "state" in request.query else [answered, older]
        return web.json_response({"hooks": hooks, "next": None})

    done, seen = await run_command("continue", "web:pre-stack-create", handler=past)
    assert done.exit_code == 1
    assert "web:pre-stack-create no longer waits: ann answered with reject." in done.output
    assert "stack=web" in seen[-1].path and "point=pre-stack-create" in seen[-1].path
    done, seen = await run_command("continue", "web:db/disk:pre-create", handler=past)
    assert "path=db/disk" in seen[-1].path and "point=pre-create" in seen[-1].path
    done, _ = await run_command("continue", "web:other", handler=past)
    assert 'no waiting hook matches "web:other"' in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no waiting hook in the project shop; --state all lists hooks in every state"),
        (("--at", "UNKNOWN"), "no waiting hook matches these options; --state all lists"),
        (("--state", "expired"), "no expired hook in the project shop; --state all lists"),
        (("--state", "all"), "no hook in the project shop\n"),
    ],
)
async def test_an_empty_list_says_so_to_people(arguments: tuple[str, ...], message: str) -> None:
    async def none(_: web.Request) -> web.StreamResponse:
        return web.json_response({"hooks": [], "next": None})

    words = ("list", *arguments, "--project", "shop")
    done, _ = await run_command(*words, handler=none)
    assert (done.exit_code, message in done.stderr) == (0, True), done.stderr
    assert done.stdout.startswith("STACK")
    for form in ("json", "yaml", "name"):
        done, _ = await run_command(*words, "-o", form, handler=none)
        assert (done.exit_code, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("list", "--state", "waitin"), 'is not a state of a hook. Did you mean "waiting"?'),
        (("list", "--older", "soon"), "Invalid value for '--older'"),
        (("progress", "web:a", "--extend", "soon"), "Invalid value for '--extend'"),
        (("ignore", "web:a", "--for", "soon"), "Invalid value for '--for'"),
        (("reject", "web:a", "--ignore-for", "soon"), "Invalid value for '--ignore-for'"),
    ],
)  # fmt: skip
async def test_an_invalid_option_is_named(arguments: tuple[str, ...], message: str) -> None:
    done, seen = await run_command(*arguments, COLUMNS="200")
    assert (done.exit_code, seen) == (2, []) and message in done.output


async def test_the_entries_of_a_hook_are_shown_as_a_table() -> None:
    done, seen = await run_command("history", "web:pre-stack-create")
    assert seen[-1].path.endswith(f"/hooks/{FULL['id']}/decisions")
    for word in ("ann", "api", "handed-over to user:bob", "your turn"):
        assert word in done.stdout
    done, _ = await run_command("history", FULL["id"], "--json")
    assert json.loads(done.stdout) == [ENTRY]


async def test_user_and_roles_are_sent() -> None:
    _, (seen,) = await run_command("list", HEADGATE_USER="ann", HEADGATE_ROLES="dba,operator")
    assert (seen.headers["x-auth-user"], seen.headers["x-roles"]) == ("ann", "dba,operator")
    _, (seen,) = await run_command("list", "--user", "müller", HEADGATE_USER="ann")
    assert seen.headers["x-auth-user"].encode(errors="surrogateescape").decode() == "müller"
    assert "x-roles" not in seen.headers
    _, (seen,) = await run_command("list")
    assert "x-auth-user" not in seen.headers


async def test_roles_that_cannot_be_sent_are_refused_by_name() -> None:
    done, seen = await run_command("list", HEADGATE_ROLES="a\r\nX-Evil: 1")
    assert (done.exit_code, seen) == (2, []) and "HEADGATE_ROLES" in done.output
