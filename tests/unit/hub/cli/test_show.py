"""Tables and lines for people."""

import io
from typing import Any

import pytest
from rich.console import Console, RenderableType

from hub.cli import show


def printed(what: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=240, highlight=False)
    console.print(what, markup=False)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {
        "type": f"headgate.{kind}",
        "time": "2026-11-20T20:16:36.123456Z",
        "subject": "db",
        "data": {"stack": {"name": "web"}, **data},
    }


HOOK = {"id": "1", "point": "pre-create", "deadline": "2026-11-21T20:16:36Z", "on_timeout": "stop"}

THEIRS = {"id": "2", "channel": "webhook", "target": "https://a.test"}


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (event("resource.create.started", resource={"reason": "state changed"}), ["db"]),
        (event("resource.create.failed", resource={"reason": "no disk"}), ["db", "no disk"]),
        (event("stack.create.stopped", stack={"name": "web", "reason": "why"}), ["why"]),
        (event("hook.waiting", hook=HOOK), ["pre-create until 2026-11-21T20:16:36Z, then: stop"]),
        (
            event("hook.answered", hook=HOOK | {"decision": "reject", "decided_by": "ann",
                                                "reason": "not today"}),
            ["pre-create reject by ann: not today"],
        ),
        (event("hook.expired", hook=HOOK), ["pre-create expired"]),
        (event("hook.approved", hook=HOOK, said={"by": "ann", "missing": 1,
                                                 "reason": "ann approved; 1 more to go"}),
         ["ann approved; 1 more to go"]),
        (event("hook.escalated", hook=HOOK, said={"reason": ""}), ["pre-create"]),
        (event("hook.undeliverable", hook=HOOK, said={"reason": "nobody could be told"}),
         ["nobody could be told"]),
        (event("delivery.dead", subscription=THEIRS, delivery={"error": "it answered 500"},
               event={"type": "headgate.hook.waiting"}),
         ["headgate.hook.waiting to https://a.test: it answered 500"]),
        (event("delivery.delivered", subscription=THEIRS, delivery={"error": ""},
               event={"type": "headgate.hook.waiting"}), ["to https://a.test"]),
        (event("subscription.disabled", subscription=THEIRS, reason="it is gone"),
         ["https://a.test: it is gone"]),
    ],
)  # fmt: skip
def test_an_event_is_one_line(document: dict[str, Any], told: list[str]) -> None:
    line = show.event_line(document)
    assert line.startswith("20:16:36  ") and "\n" not in line
    assert document["type"].removeprefix("headgate.") in line
    assert all(text in line for text in told)


def test_only_what_went_wrong_gives_its_reason() -> None:
    line = show.event_line(event("resource.create.completed", resource={"reason": "changed"}))
    assert "changed" not in line


def test_what_would_steer_the_terminal_is_not_printed() -> None:
    bad = "a\x1b[2Jb\x07"
    assert "\x1b" not in show.plain(bad) and "\x07" not in show.plain(bad)
    assert "\x1b" not in show.event_line(event("resource.create.failed", resource={"reason": bad}))
    assert "\x1b" not in printed(show.table([{"a": bad}], {"a": "A"}))
    assert show.plain("línea\n\tdos") == "línea\n\tdos"


def test_markup_of_others_is_text() -> None:
    assert "[bold]x[/bold]" in printed(show.table([{"a": "[bold]x[/bold]"}], {"a": "A"}))
    assert "[red]" in printed(show.fields({"reason": "[red]"}, ("reason",)))


def test_a_table_shows_lists_maps_and_what_is_missing() -> None:
    rows = [{"a": ["x", "y"], "b": {"k": 1}, "c": None}]
    head, row = printed(show.table(rows, {"a": "A", "b": "B", "c": "C", "d": "D"})).splitlines()
    assert head.split() == ["A", "B", "C", "D"]
    assert row.split() == ["x,", "y", "k=1"]


def test_fields_leave_out_what_is_empty() -> None:
    said = printed(show.fields({"a_b": "1", "c": "", "d": [], "e": 0}, ("a_b", "c", "d", "e", "f")))
    assert said.split() == ["a", "b", "1", "e", "0"]


def test_sentences_begin_with_the_stack() -> None:
    stack = {"name": "web", "status": "CREATE_STOPPED", "reason": "db"}
    lines = show.sentences({"stack": stack, "nodes": [{"sentence": "db waits."}]})
    assert lines == ["web: CREATE_STOPPED (db)", "  db waits."]


@pytest.mark.parametrize(
    ("kind", "data", "what"),
    [
        ("continue", {"size": 1}, "continue"),
        ("handed-over", {"to": "role:dba"}, "handed-over to role:dba"),
        ("progress", {"deadline": "2026-11-21"}, "progress until 2026-11-21"),
        ("breakpoint-added", {"id": "1", "at": "db", "rule": {"point": "pre-create"}},
         "breakpoint-added db:pre-create"),
        ("breakpoint-removed", {"id": "1", "at": "", "rule": {"point": "pre-stack-update"}},
         "breakpoint-removed pre-stack-update"),
        ("refused", {"decision": "continue"}, "refused continue"),
        ("expired", None, "expired"),
    ],
)  # fmt: skip
def test_an_entry_of_the_trail_says_what_was_done_to_what(kind: str, data: Any, what: str) -> None:
    assert show.entry_row({"kind": kind, "data": data})["what"] == what


@pytest.mark.parametrize(
    ("more", "who"),
    [
        ({}, "anyone"),
        ({"exclude": "requester"}, "anyone, not joe"),
        ({"answer_by": ["role:dba", "user:ann"]}, "role:dba, user:ann"),
        ({"answer_by": ["role:dba"], "assigned": "user:bob"}, "user:bob, role:dba"),
        ({"state": "answered"}, ""),
        ({"mode": "notify"}, ""),
    ],
)
def test_who_may_answer_is_told_of_what_waits(more: dict[str, Any], who: str) -> None:
    hook: Any = {"state": "waiting", "mode": "wait", "answer_by": [], "assigned": None,
                 "exclude": "", "requested_by": "joe"}  # fmt: skip
    assert show.may_answer(hook | more) == who
