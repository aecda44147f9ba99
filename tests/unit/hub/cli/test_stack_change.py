"""Waiting for the end of an action, against a stub server."""

from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web

from headgate.errors import RequestError
from hub.cli.commands.stack_change import Outcome, nodes_of_tree, wait_for_action
from hub.cli.connection.client import ApiClient, list_waiting_hooks
from hub.cli.exit_codes import ExitCode
from hub.cli.options import WaitOptions
from tests.unit.hub.cli.stub import Handler, respond_with, running_stub

STACK = {"id": "1", "stack_name": "web"}


def stack_with_statuses(*statuses: str, nodes: Any = (), hooks: Any = ()) -> Handler:
    """A stack that has these statuses one after another, and keeps the last."""
    left: Iterator[str] = iter(statuses)
    status = ""

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal status
        if request.path.endswith("/graph"):
            return web.json_response({"nodes": nodes})
        if request.path.endswith("/hooks"):
            return web.json_response({"hooks": hooks, "next": None})
        status = next(left, status)
        return web.json_response({"stack": STACK | {"stack_status": status}})

    return handler


async def wait_for_end(handler: Handler, wait: WaitOptions, action: str = "CREATE") -> Outcome:
    async with running_stub(handler) as stub, ApiClient(stub.url, "p") as client:
        return await wait_for_action(client, "1", action, wait)


async def test_without_wait_the_stack_is_shown_at_once() -> None:
    outcome = await wait_for_end(stack_with_statuses("CREATE_FAILED"), WaitOptions(False, False, 5))
    assert outcome.code is ExitCode.COMPLETE and outcome.stack["stack_status"] == "CREATE_FAILED"


@pytest.mark.parametrize(
    ("end", "code"),
    [("COMPLETE", ExitCode.COMPLETE), ("FAILED", ExitCode.FAILED), ("STOPPED", ExitCode.STOPPED)],
)
async def test_wait_ends_with_the_action(end: str, code: ExitCode) -> None:
    handler = stack_with_statuses("CREATE_IN_PROGRESS", "CREATE_IN_PROGRESS", f"CREATE_{end}")
    outcome = await wait_for_end(handler, WaitOptions(True, False, 20))
    assert outcome.code is code and outcome.stack["stack_status"] == f"CREATE_{end}"


async def test_wait_has_a_timeout_and_shows_the_current_stack() -> None:
    outcome = await wait_for_end(
        stack_with_statuses("CREATE_IN_PROGRESS"), WaitOptions(True, False, 0.01)
    )
    assert outcome.code is ExitCode.TIMED_OUT
    assert outcome.message == (
        "--timeout has expired; the create continues on the server. `headgate watch web` follows"
        " it, `headgate stack stop web` stops it"
    )
    assert outcome.stack["stack_status"] == "CREATE_IN_PROGRESS"


def test_nodes_that_wait_for_nested_stacks_are_not_counted() -> None:
    held = {"state": "parked", "phase": "pre"}
    holder = {"state": "parked", "phase": "execute", "nested_stack_id": "2"}
    busy = {"state": "running", "phase": "execute"}
    inside = {"stack_id": "2", "nodes": [held]}
    assert nodes_of_tree({"nodes": [holder, busy], "stacks": [inside]}) == [busy, held]
    # A node that waits for a timer is not at a hook, although it parks the stack.
    assert nodes_of_tree({"nodes": [holder], "stacks": []}) == [holder]


async def test_wait_ends_when_only_hooks_are_left() -> None:
    handler = stack_with_statuses(
        "CREATE_IN_PROGRESS", nodes=[{"state": "parked"}], hooks=[{"id": "h"}]
    )
    assert (await wait_for_end(handler, WaitOptions(False, True, 20))).code is ExitCode.WAITING
    assert (await wait_for_end(handler, WaitOptions(True, False, 0.01))).code is ExitCode.TIMED_OUT


async def test_a_stack_purged_while_it_is_waited_for_is_deleted() -> None:
    gone = respond_with({"error": {"message": "not found"}}, 404)
    outcome = await wait_for_end(gone, WaitOptions(True, False, 5), "DELETE")
    assert outcome.code is ExitCode.COMPLETE
    with pytest.raises(RequestError):
        await wait_for_end(gone, WaitOptions(True, False, 5), "CREATE")


async def test_all_pages_of_hooks_are_read() -> None:
    async def pages(request: web.Request) -> web.StreamResponse:
        if "marker" in request.query:
            return web.json_response({"hooks": [{"id": "3"}], "next": None})
        return web.json_response({"hooks": [{"id": "1"}, {"id": "2"}], "next": "2"})

    async with running_stub(pages) as stub, ApiClient(stub.url, "p") as client:
        assert [hook["id"] for hook in await list_waiting_hooks(client, "web")] == ["1", "2", "3"]
    assert "marker=2" in stub.seen[1].path and "stack=web" in stub.seen[1].path
