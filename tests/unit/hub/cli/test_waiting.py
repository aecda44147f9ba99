"""Waiting for a stack, against a server that answers what the test says."""

from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web

from hub.cli.client import Client, Refused
from hub.cli.exit_codes import Exit
from hub.cli.waiting import Outcome, Patience, nodes_of_all, settle, waiting_hooks
from tests.unit.hub.cli.stub import Handler, saying, serving

STACK = {"id": "1", "stack_name": "web"}


def going(*statuses: str, nodes: Any = (), hooks: Any = ()) -> Handler:
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


async def settled(handler: Handler, patience: Patience, action: str = "CREATE") -> Outcome:
    async with serving(handler) as stub, Client(stub.url, "p") as client:
        return await settle(client, "1", action, patience)


async def test_without_patience_the_stack_is_shown_at_once() -> None:
    outcome = await settled(going("CREATE_FAILED"), Patience(False, False, 5))
    assert outcome.code is Exit.COMPLETE and outcome.stack["stack_status"] == "CREATE_FAILED"


@pytest.mark.parametrize(
    ("end", "code"),
    [("COMPLETE", Exit.COMPLETE), ("FAILED", Exit.FAILED), ("STOPPED", Exit.STOPPED)],
)
async def test_waiting_ends_with_the_action(end: str, code: Exit) -> None:
    handler = going("CREATE_IN_PROGRESS", "CREATE_IN_PROGRESS", f"CREATE_{end}")
    outcome = await settled(handler, Patience(True, False, 20))
    assert outcome.code is code and outcome.stack["stack_status"] == f"CREATE_{end}"


async def test_waiting_is_bounded_and_shows_the_stack_as_it_is() -> None:
    outcome = await settled(going("CREATE_IN_PROGRESS"), Patience(True, False, 0.01))
    assert outcome.code is Exit.TIMED_OUT and "--timeout" in outcome.said
    assert outcome.stack["stack_status"] == "CREATE_IN_PROGRESS"


def test_what_only_waits_for_a_stack_inside_is_not_counted() -> None:
    held = {"state": "parked", "phase": "pre"}
    holder = {"state": "parked", "phase": "act", "inside": "2"}
    busy = {"state": "running", "phase": "act"}
    inside = {"stack_id": "2", "nodes": [held]}
    assert nodes_of_all({"nodes": [holder, busy], "stacks": [inside]}) == [busy, held]
    # What waits for a timer, though it holds a stack, is no hook.
    assert nodes_of_all({"nodes": [holder], "stacks": []}) == [holder]


async def test_until_only_hooks_are_left() -> None:
    handler = going("CREATE_IN_PROGRESS", nodes=[{"state": "parked"}], hooks=[{"id": "h"}])
    assert (await settled(handler, Patience(False, True, 20))).code is Exit.WAITING
    assert (await settled(handler, Patience(True, False, 0.01))).code is Exit.TIMED_OUT


async def test_a_stack_purged_while_it_is_waited_for_is_deleted() -> None:
    gone = saying({"error": {"message": "not found"}}, 404)
    outcome = await settled(gone, Patience(True, False, 5), "DELETE")
    assert outcome.code is Exit.COMPLETE
    with pytest.raises(Refused):
        await settled(gone, Patience(True, False, 5), "CREATE")


async def test_all_pages_of_hooks_are_read() -> None:
    async def pages(request: web.Request) -> web.StreamResponse:
        if "marker" in request.query:
            return web.json_response({"hooks": [{"id": "3"}], "next": None})
        return web.json_response({"hooks": [{"id": "1"}, {"id": "2"}], "next": "2"})

    async with serving(pages) as stub, Client(stub.url, "p") as client:
        assert [hook["id"] for hook in await waiting_hooks(client, "web")] == ["1", "2", "3"]
    assert "marker=2" in stub.seen[1].path and "stack=web" in stub.seen[1].path
