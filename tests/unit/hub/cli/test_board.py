"""The picture that `watch` shows, as events change it."""

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from hub.cli.exit_codes import Exit
from hub.cli.watch_view import MOST, Board, bar, clock

NOW = datetime(2026, 11, 20, 20, 0, 0, tzinfo=UTC)


def node(name: str, state: str, **more: Any) -> dict[str, Any]:
    base = {"id": name, "resource_name": name, "path": name, "state": state, "phase": "act"}
    return base | {"operation": "create", "direction": "forward", "reason": ""} | more


def board(*nodes: dict[str, Any], number: int = 3, state: str = "running") -> Board:
    traversal = {"number": number, "action": "CREATE", "state": state}
    return Board("web", "1", "", {"nodes": list(nodes), "edges": [], "traversal": traversal})


def stack_event(kind: str, traversal: int, status: str, stack_id: str = "1") -> dict[str, Any]:
    stack = {"id": stack_id, "action": "CREATE", "status": status}
    return {"type": f"headgate.stack.{kind}", "data": {"stack": stack, "traversal": traversal}}


def hook_event(kind: str, hook_id: str = "h1", **more: Any) -> dict[str, Any]:
    hook = {"id": hook_id, "path": "db", "point": "pre-create",
            "state": kind if kind == "answered" else "waiting",
            "approvals": {"needed": 1, "given": 0, "by": []},
            "deadline": "2026-11-20T21:02:03.000000Z"} | more  # fmt: skip
    return {"type": f"headgate.hook.{kind}", "subject": hook["path"], "data": {"hook": hook}}


def drawn(one: Board) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(one.picture(NOW))
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("create.completed", "COMPLETE", Exit.COMPLETE),
        ("create.failed", "FAILED", Exit.FAILED),
        ("create.stopped", "STOPPED", Exit.STOPPED),
        ("create.started", "IN_PROGRESS", None),
    ],
)
def test_the_closing_event_ends_the_watch(kind: str, status: str, code: Exit | None) -> None:
    one = board()
    one.take(stack_event(kind, 3, status))
    assert one.ended is code and one.status == f"CREATE_{status}"


def test_the_end_of_an_earlier_action_ends_nothing() -> None:
    one = board(number=3)
    one.take(stack_event("create.failed", 2, "FAILED"))
    assert one.ended is None


def test_the_title_is_the_status_by_event_or_by_graph() -> None:
    one = board()
    assert one.title == "CREATE_IN_PROGRESS"
    one.take(stack_event("create.started", 3, "IN_PROGRESS"))
    one.graph = board(state="complete").graph  # read before the closing event came
    assert one.title == "CREATE_COMPLETE" and "CREATE_COMPLETE" in drawn(one)
    late = board()
    late.take(stack_event("create.stopped", 3, "STOPPED"))
    assert late.title == "CREATE_STOPPED"


def test_a_stack_that_ended_before_is_known_by_its_graph() -> None:
    assert board(state="complete").ended is Exit.COMPLETE
    assert board(state="stopped").ended is Exit.STOPPED
    assert board(state="ending").ended is None


def test_a_waiting_hook_counts_down_until_it_is_answered() -> None:
    one = board(node("db", "parked"))
    one.take(hook_event("waiting"))
    assert "waits at pre-create, 1:02:03 left" in drawn(one)
    one.take(hook_event("answered", "another"))
    assert "1:02:03" in drawn(one)
    one.take(hook_event("answered"))
    assert "waits at" not in drawn(one)


@pytest.mark.parametrize("kind", ["approved", "progress", "handed-over", "reminder", "escalated"])
def test_what_does_not_decide_a_hook_leaves_it_waiting(kind: str) -> None:
    one = board(node("db", "parked"))
    one.take(hook_event("waiting"))
    approvals = {"needed": 3, "given": 1, "by": ["ann"]}
    one.take(hook_event(kind, deadline="2026-11-20T20:00:07.000000Z", approvals=approvals))
    assert "waits at pre-create, 1/3 approved, 0:00:07 left" in drawn(one)


def test_a_hook_of_the_whole_stack_is_shown_where_it_waits() -> None:
    one = board(node("", "parked"), node("db", "waiting"))
    one.take(hook_event("waiting", path="", point="pre-stack-create"))
    assert "(stack)  create  waits at pre-stack-create" in drawn(one)


def test_every_event_asks_for_the_graph_again() -> None:
    one = board()
    one.take({"type": "headgate.resource.create.started", "data": {}})
    assert one.changed


def test_the_picture_has_states_reasons_and_progress() -> None:
    said = drawn(
        board(
            node("net", "done"),
            node("db", "failed", reason="no \x1b[2Jdisk"),
            node("app", "running"),
            node("old", "waiting", direction="cleanup"),
        )
    )
    assert "✔ net" in said and "✘ db" in said and "▶ app  create  act" in said
    assert "no " in said and "\x1b[2J" not in said
    assert "1 of 4 nodes done" in said and "old" not in said


def test_of_many_nodes_those_that_need_attention_are_shown() -> None:
    nodes = [node(f"n{i}", "done") for i in range(MOST)]
    said = drawn(board(*nodes, node("held", "parked"), node("bad", "failed")))
    assert "held" in said and "bad" in said and "and 2 more" in said


def test_the_bar_is_full_when_all_is_done() -> None:
    assert bar(0, 0).spans[0].end == bar(3, 3).spans[0].end == 40
    assert bar(1, 4).spans[0].end == 10


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0:00:00"), (-5, "0:00:00"), (59.9, "0:00:59"), (90061, "25:01:01")]
)
def test_time_left_reads_like_a_clock(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


def test_what_ends_inside_does_not_end_the_watch() -> None:
    one = board(node("web", "parked"))
    one.take(stack_event("create.completed", 3, "COMPLETE", stack_id="2"))
    assert one.ended is None and one.changed


def test_what_waits_inside_is_drawn_below_what_holds_it() -> None:
    one = board(node("web", "parked"), node("website", "running"))
    inside = hook_event("waiting", path="server")
    one.take(inside | {"subject": "web/0/server", "stackpath": "web/0"})
    one.take(hook_event("waiting", "h2", path="website") | {"subject": "website"})
    lines = drawn(one).splitlines()
    assert "web  create" in lines[1] and "waits" not in lines[1]
    assert "web/0/server  waits at pre-create, 1:02:03 left" in lines[2]
    one.take(hook_event("answered", path="server") | {"subject": "web/0/server"})
    assert "web/0/server" not in drawn(one)


def test_one_inside_is_watched_from_where_it_is() -> None:
    one = Board("s-web-1", "2", "web/0", board(node("server", "parked")).graph)
    one.take(hook_event("waiting", path="server") | {"subject": "web/0/server"})
    assert one.hooks.keys() == {"server"}
    assert (one.place("web/0"), one.place("web/01"), one.place("server")) == (
        "", "web/01", "server",
    )  # fmt: skip
    assert "waits at pre-create" in drawn(one)
    one.take(stack_event("create.completed", 3, "COMPLETE", stack_id="2"))
    assert one.ended is Exit.COMPLETE
