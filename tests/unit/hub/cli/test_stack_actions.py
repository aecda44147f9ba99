"""Actions of stacks: requests and messages."""

import asyncio
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from rich.console import Console
from typer.testing import CliRunner, Result

from hub.cli.commands.stack import render_history
from hub.cli.main import app
from tests.unit.hub.cli.stub import Handler, SentRequest, running_stub


def stack_with_status(status: str) -> Handler:
    """A stack with this status and a resource, for every request."""

    async def handler(_: web.Request) -> web.StreamResponse:
        stack = {"id": "1", "stack_name": "web", "stack_status": status}
        return web.json_response({"stack": stack, "resource": {"resource_name": "a"}, "hooks": []})

    return handler


async def run_resume(status: str, *words: str) -> tuple[Result, list[SentRequest]]:
    """Exit code and output of the command, and the request that it sent."""
    async with running_stub(stack_with_status(status)) as stub:
        run = CliRunner(env={"NO_COLOR": "1", "TERMINAL_WIDTH": "200"}).invoke
        done = await asyncio.to_thread(run, app, [*words, "--url", stub.url])
        return done, [one for one in stub.seen if one.method != "GET"]


def summary(seen: SentRequest) -> tuple[str, str, Any]:
    return seen.method, seen.path.removeprefix("/v1/default/stacks/web/1"), json.loads(seen.body)


@pytest.mark.parametrize(
    "status", ["SUSPEND_COMPLETE", "SUSPEND_FAILED", "SUSPEND_STOPPED", "RESUME_FAILED"]
)
async def test_resume_of_a_suspended_stack_is_an_action(status: str) -> None:
    done, (one,) = await run_resume(status, "stack", "resume", "web")
    assert (done.exit_code, summary(one)) == (0, ("POST", "/actions", {"resume": None}))


@pytest.mark.parametrize("status", ["UPDATE_STOPPED", "CREATE_FAILED", "CHECK_COMPLETE"])
async def test_resume_of_a_stopped_or_failed_stack_is_an_update(status: str) -> None:
    done, (one,) = await run_resume(status, "stack", "resume", "web", "--clear", "*")
    assert done.exit_code == 0
    assert summary(one) == ("PATCH", "", {"hooks": {"clear": ["*"], "add": []}})


async def test_former_names_of_options_are_valid_and_not_in_help() -> None:
    added = ("--break-at", "a:pre-update", "--add", "b:pre-update", "--add-hook", "c:pre-update")
    cleared = ("--clear-hook", "d:pre-update", "--clear", "e:pre-update")
    _, (one,) = await run_resume("UPDATE_STOPPED", "stack", "resume", "web", *added, *cleared)
    assert summary(one)[2]["hooks"] == {
        "clear": ["d:pre-update", "e:pre-update"],
        "add": ["a:pre-update", "b:pre-update", "c:pre-update"],
    }
    for command in ("create", "update", "resume"):
        shown = CliRunner().invoke(app, ["stack", command, "--help"]).output
        assert "--break-at BREAKPOINT" in shown
        assert not {"--add", "--add-hook", "--clear"}.intersection(shown.split())


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("DELETE_STOPPED", "headgate stack delete"),
        ("DELETE_FAILED", "headgate stack delete"),
        ("SUSPEND_COMPLETE", "headgate stack update --existing"),
    ],
)
async def test_resume_of_other_stacks_is_refused(status: str, message: str) -> None:
    done, changes = await run_resume(status, "stack", "resume", "web", "--add", "a:pre-update")
    assert done.exit_code == 1 and message in done.stderr and changes == []


@pytest.mark.parametrize(
    ("words", "action"),
    [
        (["cancel", "--yes"], "cancel_update"),
        (["cancel", "--no-rollback"], "cancel_without_rollback"),
        (["stop"], "stop"),
        (["check"], "check"),
        (["suspend"], "suspend"),
    ],
)
async def test_an_action_is_requested_by_its_name(words: list[str], action: str) -> None:
    done, (one,) = await run_resume("UPDATE_IN_PROGRESS", "stack", words[0], "web", *words[1:])
    assert (done.exit_code, summary(one)) == (0, ("POST", "/actions", {action: None}))


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["cancel", "--yes", "--wait"], "ROLLBACK_COMPLETE", 0),
        (["cancel", "--yes", "--wait"], "ROLLBACK_FAILED", 3),
        (["cancel", "--yes", "--until-waiting"], "ROLLBACK_STOPPED", 4),
        (["check", "--wait"], "CHECK_FAILED", 3),
        (["suspend", "--wait"], "SUSPEND_STOPPED", 4),
        (["suspend", "--wait"], "DELETE_IN_PROGRESS", 3),
        (["stop"], "UPDATE_STOPPED", 0),
        (["cancel", "--no-rollback"], "UPDATE_FAILED", 0),
        (["check", "--wait", "--timeout", "1s"], "CHECK_IN_PROGRESS", 6),
    ],
)
async def test_the_exit_code_is_that_of_the_end(words: list[str], status: str, code: int) -> None:
    done, _ = await run_resume(status, "stack", words[0], "web", *words[1:])
    assert done.exit_code == code, done.output


def test_the_history_on_a_terminal_shows_how_many_hooks_wait() -> None:
    found = stack_with_waiting_hooks()
    found["traversals"][0] |= {"requested_by": "anonymous", "reason": "Stack CREATE started"}
    screen = StringIO()
    console = Console(width=80, file=screen, force_terminal=True, no_color=True)
    console.print(render_history(found, 12))
    assert "  waiting for approval (12)  " in screen.getvalue()


async def test_a_signal_is_sent_from_options_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "signal.yaml"
    file.write_text("status: FAILURE\ndata: [1, 2]\n")
    for words, body in (
        ([], {}),
        (["--data", "status=SUCCESS", "--data", "data={n: 1}"],
         {"status": "SUCCESS", "data": {"n": 1}}),
        (["--data-file", str(file)], {"status": "FAILURE", "data": [1, 2]}),
    ):  # fmt: skip
        done, (one,) = await run_resume(
            "CREATE_IN_PROGRESS", "resource", "signal", "web", "a", *words
        )
        assert (done.exit_code, summary(one)) == (0, ("POST", "/resources/a/signal", body))
    both = ["--data", "a=1", "--data-file", str(file)]
    done, seen = await run_resume("CREATE_IN_PROGRESS", "resource", "signal", "web", "a", *both)
    assert (done.exit_code, seen) == (2, [])


def stack_with_waiting_hooks() -> dict[str, Any]:
    """The response to each request of `stack history`, `stack graph` and `stack pin`."""
    stack = {"id": "1", "stack_name": "web", "stack_status": "CREATE_IN_PROGRESS"}
    traversal = {"number": 2, "action": "CREATE", "worked_seconds": 1, "version": 1,
                 "reason": ""}  # fmt: skip
    hooks = [{"point": one, "path": "a", "state": "waiting"} for one in ("pre-create", "drift")]
    return {
        "stack": stack, "hooks": hooks, "versions": [], "nodes": [], "edges": [],
        "traversals": [traversal | {"state": "running"},
                       traversal | {"number": 1, "state": "complete"}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["graph", "web"], "web  CREATE_IN_PROGRESS, waiting for approval (2)\n"),
        (["stack", "history", "web"], "CREATE  1        running, waiting for approval (1)"),
        (["stack", "pin", "web"], "CREATE_IN_PROGRESS, waiting for approval (2)\n"),
    ],
    ids=["graph", "history", "pin"],
)
async def test_a_status_has_the_number_of_waiting_hooks(words: list[str], shown: str) -> None:
    async def handler(_: web.Request) -> web.StreamResponse:
        return web.json_response(stack_with_waiting_hooks())

    async with running_stub(handler) as stub:
        run = CliRunner(env={"NO_COLOR": "1", "TERMINAL_WIDTH": "200"}).invoke
        done = await asyncio.to_thread(run, app, [*words, "--url", stub.url])
    assert done.exit_code == 0 and shown in done.output, done.output
    assert done.output.count("waiting for approval") == 1
