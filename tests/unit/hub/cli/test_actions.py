"""What each action asks of the server."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from typer.testing import CliRunner, Result

from hub.cli.main import app
from tests.unit.hub.cli.stub import Handler, Seen, serving


def being(status: str) -> Handler:
    """A stack of this status with a resource, whatever is asked of it."""

    async def handler(_: web.Request) -> web.StreamResponse:
        stack = {"id": "1", "stack_name": "web", "stack_status": status}
        return web.json_response({"stack": stack, "resource": {"resource_name": "a"}})

    return handler


async def asked(status: str, *words: str) -> tuple[Result, list[Seen]]:
    """How the command ended, and what it asked the server to change."""
    async with serving(being(status)) as stub:
        run = CliRunner(env={"NO_COLOR": "1", "TERMINAL_WIDTH": "200"}).invoke
        done = await asyncio.to_thread(run, app, [*words, "--url", stub.url])
        return done, [one for one in stub.seen if one.method != "GET"]


def told(seen: Seen) -> tuple[str, str, Any]:
    return seen.method, seen.path.removeprefix("/v1/default/stacks/web/1"), json.loads(seen.body)


@pytest.mark.parametrize(
    "status", ["SUSPEND_COMPLETE", "SUSPEND_FAILED", "SUSPEND_STOPPED", "RESUME_FAILED"]
)
async def test_what_rests_is_woken_up(status: str) -> None:
    done, (one,) = await asked(status, "stack", "resume", "web")
    assert (done.exit_code, told(one)) == (0, ("POST", "/actions", {"resume": None}))


@pytest.mark.parametrize("status", ["UPDATE_STOPPED", "CREATE_FAILED", "CHECK_COMPLETE"])
async def test_anything_else_is_updated_to_what_it_should_be(status: str) -> None:
    done, (one,) = await asked(status, "stack", "resume", "web", "--clear", "*")
    assert done.exit_code == 0
    assert told(one) == ("PATCH", "", {"hooks": {"clear": ["*"], "add": []}})


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("DELETE_STOPPED", "headgate stack delete"),
        ("DELETE_FAILED", "headgate stack delete"),
        ("SUSPEND_COMPLETE", "headgate stack update --existing"),
    ],
)
async def test_what_resume_cannot_do_it_says_and_leaves(status: str, said: str) -> None:
    done, changes = await asked(status, "stack", "resume", "web", "--add", "a:pre-update")
    assert done.exit_code == 1 and said in done.stderr and changes == []


@pytest.mark.parametrize(
    ("words", "action"),
    [
        (["cancel"], "cancel_update"),
        (["cancel", "--no-rollback"], "cancel_without_rollback"),
        (["stop"], "stop"),
        (["check"], "check"),
        (["suspend"], "suspend"),
    ],
)
async def test_an_action_is_asked_for_by_its_name(words: list[str], action: str) -> None:
    done, (one,) = await asked("UPDATE_IN_PROGRESS", "stack", words[0], "web", *words[1:])
    assert (done.exit_code, told(one)) == (0, ("POST", "/actions", {action: None}))


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["cancel", "--wait"], "ROLLBACK_COMPLETE", 0),
        (["cancel", "--wait"], "ROLLBACK_FAILED", 3),
        (["cancel", "--until-waiting"], "ROLLBACK_STOPPED", 4),
        (["check", "--wait"], "CHECK_FAILED", 3),
        (["suspend", "--wait"], "SUSPEND_STOPPED", 4),
        (["suspend", "--wait"], "DELETE_IN_PROGRESS", 3),
        (["stop"], "UPDATE_STOPPED", 0),
        (["cancel", "--no-rollback"], "UPDATE_FAILED", 0),
        (["check", "--wait", "--timeout", "1s"], "CHECK_IN_PROGRESS", 6),
    ],
)
async def test_the_exit_code_tells_the_end(words: list[str], status: str, code: int) -> None:
    done, _ = await asked(status, "stack", words[0], "web", *words[1:])
    assert done.exit_code == code, done.output


async def test_a_signal_is_sent_as_options_or_a_file_say_it(tmp_path: Path) -> None:
    file = tmp_path / "said.yaml"
    file.write_text("status: FAILURE\ndata: [1, 2]\n")
    for words, body in (
        ([], {}),
        (["--data", "status=SUCCESS", "--data", "data={n: 1}"],
         {"status": "SUCCESS", "data": {"n": 1}}),
        (["--data-file", str(file)], {"status": "FAILURE", "data": [1, 2]}),
    ):  # fmt: skip
        done, (one,) = await asked("CREATE_IN_PROGRESS", "resource", "signal", "web", "a", *words)
        assert (done.exit_code, told(one)) == (0, ("POST", "/resources/a/signal", body))
    both = ["--data", "a=1", "--data-file", str(file)]
    done, seen = await asked("CREATE_IN_PROGRESS", "resource", "signal", "web", "a", *both)
    assert (done.exit_code, seen) == (2, [])
