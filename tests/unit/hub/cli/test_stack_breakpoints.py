"""Breakpoints of a running stack, and its audit log: requests and output."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web
from typer.testing import CliRunner, Result

from headgate.errors import RequestError
from hub.cli.commands.stack_breakpoints import select_breakpoints
from hub.cli.inputs.files import InputError
from hub.cli.main import app
from tests.unit.hub.cli.stub import SentRequest, running_stub

BREAKPOINTS: list[dict[str, Any]] = [
    {"id": "aa11", "at": "db", "on": "pre-create", "rule": {}, "created_by": "ann"},
    {"id": "aa22", "at": "", "on": "pre-stack-update", "rule": {}, "created_by": "bob"},
    {"id": "bb33", "at": "db", "on": "pre-create", "rule": {"mode": "notify"}},
]
TOO_LATE = {
    "resource_name": None,
    "path": "",
    "point": "pre-stack-update",
    "reason": "it has already passed this point",
}
ENTRIES = [{"number": n, "kind": "continue", "by": "ann", "data": None} for n in (1, 2, 3)]


async def server(request: web.Request) -> web.StreamResponse:
    """A stack with breakpoints, one of which comes too late, and an audit log of two pages."""
    match request.path.rpartition("/")[2]:
        case "breakpoints" if request.method == "POST":
            return web.json_response(
                {"breakpoints": BREAKPOINTS[:2], "too_late": [TOO_LATE]}, status=201
            )
        case "breakpoints":
            return web.json_response({"breakpoints": BREAKPOINTS})
        case "run-to":
            late = [TOO_LATE] if "late" in (await request.json())["resource"] else []
            return web.json_response({"too_late": late}, status=202)
        case "decisions":
            if set(request.query) - {"limit", "after"}:
                return web.json_response({}, status=400)
            after = int(request.query.get("after", "0"))
            shown = ENTRIES[after : after + 2]
            return web.json_response({"decisions": shown, "next": 2 if after == 0 else None})
        case "web":
            stack = {"id": "1", "stack_name": "web", "stack_status": "UPDATE_IN_PROGRESS"}
            return web.json_response({"stack": stack})
        case _:
            return web.Response(status=204)


async def run_command(*words: str) -> tuple[Result, list[SentRequest]]:
    """The result of the command, and the requests about the stack."""
    async with running_stub(server) as stub:
        runner = CliRunner(env={"NO_COLOR": "1", "TERMINAL_WIDTH": "200"})
        done = await asyncio.to_thread(runner.invoke, app, ["stack", *words, "--url", stub.url])
        return done, stub.seen[1:]


async def test_breakpoints_are_set_and_passed_nodes_are_reported() -> None:
    done, (seen,) = await run_command(
        "breakpoints", "add", "web", "db:pre-create", "pre-stack-update"
    )
    assert done.exit_code == 0, done.output
    assert (seen.method, seen.path) == ("POST", "/v1/default/stacks/web/1/breakpoints")
    assert json.loads(seen.body) == {"breakpoints": ["db:pre-create", "pre-stack-update"]}
    late = "too late for (stack) at pre-stack-update: it has already passed this point"
    assert done.stdout.splitlines()[-1] == late
    assert "(stack)" in done.stdout.splitlines()[2]


async def test_a_resource_alone_means_before_every_operation() -> None:
    _, (seen,) = await run_command("breakpoints", "add", "web", "db")
    points = ("pre-create", "pre-update", "pre-replace", "pre-delete")
    assert json.loads(seen.body) == {"breakpoints": [f"db:{point}" for point in points]}


@pytest.mark.parametrize(
    ("words", "gone"),
    [
        (["aa11"], ["aa11"]),
        (["bb", "BB3"], ["bb33"]),
        (["pre-stack-update", "aa1"], ["aa22", "aa11"]),
        (["db:pre-create"], ["aa11", "bb33"]),
        (["--all"], ["aa11", "aa22", "bb33"]),
    ],
)
async def test_named_breakpoints_are_removed(words: list[str], gone: list[str]) -> None:
    done, (_, *seen) = await run_command("breakpoints", "remove", "web", *words)
    assert done.exit_code == 0, done.output
    assert [one.method for one in seen] == ["DELETE"] * len(gone)
    assert [one.path.rpartition("/breakpoints/")[2] for one in seen] == gone
    assert len(done.stdout.splitlines()) == len(gone)


def test_an_ambiguous_or_unknown_breakpoint_is_refused() -> None:
    with pytest.raises(InputError, match="matches 2 breakpoints: aa11, aa22"):
        select_breakpoints(BREAKPOINTS, ["aa"])
    for text in ("", "zz", "db", ":pre-stack-update"):
        with pytest.raises(RequestError, match="breakpoints list"):
            select_breakpoints(BREAKPOINTS, ["aa11", text])


async def test_no_breakpoint_is_removed_if_one_is_unknown() -> None:
    done, seen = await run_command("breakpoints", "remove", "web", "aa11", "zz")
    assert done.exit_code == 1 and [one.method for one in seen] == ["GET"]


async def test_run_to_reports_where_it_stops_or_cannot_stop() -> None:
    done, (seen,) = await run_command("run-to", "web", "db")
    assert (seen.method, seen.path) == ("POST", "/v1/default/stacks/web/1/run-to")
    assert json.loads(seen.body) == {"resource": "db"}
    assert done.stdout.strip() == "continuing; stops at db"
    done, _ = await run_command("run-to", "web", "too-late")
    assert "too late for (stack)" in done.stdout and "goes on" not in done.stdout


async def test_all_pages_of_the_audit_log_are_read() -> None:
    done, seen = await run_command("decisions", "web", "--json")
    assert json.loads(done.stdout) == ENTRIES
    assert [one.path.partition("?")[2] for one in seen] == ["limit=1000", "limit=1000&after=2"]
