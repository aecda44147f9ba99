"""The view of headgate watch, as events change it."""

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from hub.cli.commands.watch import MAX_NODES, WatchedStack, bar
from hub.cli.exit_codes import ExitCode
from hub.cli.printing import tables

NOW = datetime(2026, 11, 20, 20, 0, 0, tzinfo=UTC)


def node(name: str, state: str, **more: Any) -> dict[str, Any]:
    base = {"id": name, "resource_name": name, "path": name, "state": state, "phase": "execute"}
    return base | {"operation": "create", "direction": "forward", "reason": ""} | more


def view_of(*nodes: dict[str, Any], number: int = 3, state: str = "running") -> WatchedStack:
    traversal = {"number": number, "action": "CREATE", "state": state}
    return WatchedStack("web", "1", "", {"nodes": list(nodes), "edges": [], "traversal": traversal})


def stack_event(kind: str, traversal: int, status: str, stack_id: str = "1") -> dict[str, Any]:
    stack = {"id": stack_id, "action": "CREATE", "status": status}
    return {"type": f"headgate.stack.{kind}", "data": {"stack": stack, "traversal": traversal}}


def hook_event(kind: str, hook_id: str = "h1", **more: Any) -> dict[str, Any]:
    hook = {"id": hook_id, "path": "db", "point": "pre-create",
            "state": kind if kind == "answered" else "waiting",
            "approvals": {"needed": 1, "given": 0, "by": []},
            "deadline": "2026-11-20T21:02:03.000000Z"} | more  # fmt: skip
    return {"type": f"headgate.hook.{kind}", "subject": hook["path"], "data": {"hook": hook}}


def render(view: WatchedStack) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(view.render(NOW))
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("create.completed", "COMPLETE", ExitCode.COMPLETE),
        ("create.failed", "FAILED", ExitCode.FAILED),
        ("create.stopped", "STOPPED", ExitCode.STOPPED),
        ("create.started", "IN_PROGRESS", None),
    ],
)
def test_the_closing_event_ends_the_watch(kind: str, status: str, code: ExitCode | None) -> None:
    view = view_of()
    view.apply(stack_event(kind, 3, status))
    assert view.exit_code is code and view.status == f"CREATE_{status}"


def test_the_end_of_an_earlier_action_does_not_end_the_watch() -> None:
    view = view_of(number=3)
    view.apply(stack_event("create.failed", 2, "FAILED"))
    assert view.exit_code is None


def test_the_title_is_the_status_of_the_latest_event_or_graph() -> None:
    view = view_of()
    assert view.title == "CREATE_IN_PROGRESS"
    view.apply(stack_event("create.started", 3, "IN_PROGRESS"))
    view.graph = view_of(state="complete").graph  # the graph was fetched before the closing event
    assert view.title == "CREATE_COMPLETE" and "CREATE_COMPLETE" in render(view)
    late = view_of()
    late.apply(stack_event("create.stopped", 3, "STOPPED"))
    assert late.title == "CREATE_STOPPED"


def test_an_ended_stack_is_recognized_by_its_graph() -> None:
    assert view_of(state="complete").exit_code is ExitCode.COMPLETE
    assert view_of(state="stopped").exit_code is ExitCode.STOPPED
    assert view_of(state="ending").exit_code is None


def test_a_waiting_hook_counts_down_until_it_is_answered() -> None:
    view = view_of(node("db", "parked"))
    view.apply(hook_event("waiting"))
    assert "waits at pre-create, 1h2m left" in render(view)
    view.apply(hook_event("answered", "another"))
    assert "1h2m left" in render(view)
    view.apply(hook_event("answered"))
    assert "waits at" not in render(view)


@pytest.mark.parametrize("kind", ["approved", "progress", "handed-over", "reminder", "escalated"])
def test_an_entry_that_is_no_decision_leaves_the_hook_waiting(kind: str) -> None:
    view = view_of(node("db", "parked"))
    view.apply(hook_event("waiting"))
    approvals = {"needed": 3, "given": 1, "by": ["ann"]}
    view.apply(hook_event(kind, deadline="2026-11-20T20:00:07.000000Z", approvals=approvals))
    assert "waits at pre-create, 1/3 approved, 7s left" in render(view)


def test_a_stack_hook_is_shown() -> None:
    view = view_of(node("", "parked"), node("db", "waiting"))
    view.apply(hook_event("waiting", path="", point="pre-stack-create"))
    assert "(stack)  create  waits at pre-stack-create" in render(view)


def test_every_event_causes_a_new_fetch_of_the_graph() -> None:
    view = view_of()
    view.apply({"type": "headgate.resource.create.started", "data": {}})
    assert view.changed


def test_the_view_has_states_reasons_and_progress() -> None:
    text = render(
        view_of(
            node("net", "done"),
            node("db", "failed", reason="no \x1b[2Jdisk"),
            node("app", "running"),
            node("old", "waiting", direction="cleanup"),
        )
    )
    assert "✔ net" in text and "✘ db" in text and "▶ app  create  running" in text
    assert "no " in text and "\x1b[2J" not in text
    assert "1 of 4 nodes done" in text and "old" not in text


def test_of_many_nodes_waiting_and_failed_ones_are_shown() -> None:
    nodes = [node(f"n{i}", "done") for i in range(MAX_NODES)]
    text = render(view_of(*nodes, node("held", "parked"), node("bad", "failed")))
    assert "held" in text and "bad" in text and "and 2 more" in text


def test_the_progress_bar_is_full_at_the_end() -> None:
    assert bar(0, 0).spans[0].end == bar(3, 3).spans[0].end == 40
    assert bar(1, 4).spans[0].end == 10


@pytest.mark.parametrize(
    ("deadline", "shown"),
    [
        ("2026-11-20T20:00:00Z", "overdue"),
        ("2026-11-20T20:00:59.900000Z", "59s left"),
        ("2026-11-21T19:59:59Z", "23h59m left"),
        ("2026-11-21T21:01:01Z", "1d1h left"),
    ],
)
def test_the_remaining_time_is_the_one_of_tables(deadline: str, shown: str) -> None:
    view = view_of(node("db", "parked"))
    view.apply(hook_event("progress", deadline=deadline))
    text = render(view)
    assert f"waits at pre-create, {shown}\n" in text
    assert tables.time_left(deadline, NOW) == shown


def test_the_end_of_a_nested_stack_does_not_end_the_watch() -> None:
    view = view_of(node("web", "parked"))
    view.apply(stack_event("create.completed", 3, "COMPLETE", stack_id="2"))
    assert view.exit_code is None and view.changed


def test_nested_nodes_are_drawn_below_their_parent() -> None:
    view = view_of(node("web", "parked"), node("website", "running"))
    inside = hook_event("waiting", path="server")
    view.apply(inside | {"subject": "web/0/server", "stackpath": "web/0"})
    view.apply(hook_event("waiting", "h2", path="website") | {"subject": "website"})
    lines = render(view).splitlines()
    assert "web  create" in lines[1] and "waits" not in lines[1]
    assert "web/0/server  waits at pre-create, 1h2m left" in lines[2]
    view.apply(hook_event("answered", path="server") | {"subject": "web/0/server"})
    assert "web/0/server" not in render(view)


def test_a_hook_about_drift_hides_no_hook_of_the_change() -> None:
    view = view_of(node("db", "parked"))
    view.apply(hook_event("waiting"))
    drift = hook_event("waiting", "h2")
    drift["data"]["hook"] |= {"point": "drift", "deadline": None}
    view.apply(drift)
    assert "waits at pre-create" in render(view)
    view.set_hooks([view.hooks["db"], drift["data"]["hook"]])
    assert [one["point"] for one in view.hooks.values()] == ["pre-create"]


def test_paths_of_a_watched_nested_stack_are_relative_to_it() -> None:
    view = WatchedStack("s-web-1", "2", "web/0", view_of(node("server", "parked")).graph)
    view.apply(hook_event("waiting", path="server") | {"subject": "web/0/server"})
    assert view.hooks.keys() == {"server"}
    assert (view.place("web/0"), view.place("web/01"), view.place("server")) == (
        "", "web/01", "server",
    )  # fmt: skip
    assert "waits at pre-create" in render(view)
    view.apply(stack_event("create.completed", 3, "COMPLETE", stack_id="2"))
    assert view.exit_code is ExitCode.COMPLETE
