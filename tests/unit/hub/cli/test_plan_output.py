"""The plan of a dry run as text."""

from typing import Any

import pytest

from hub.cli.printing import plan_output

Json = Any


def change(name: str, certain: bool = True, **changes: Json) -> Json:
    return {"path": name, "resource_type": "T", "changes": changes, "certain": certain}


def preview(*stops: Json, out_of_date: Any = (), **kinds: Json) -> Json:
    changes: dict[str, Json] = {kind: [] for kind in (*plan_output.MARKS, "unchanged")}
    return {"resource_changes": changes | kinds, "stops": stops, "out_of_date": out_of_date,
            "plan_digest": "d1"}  # fmt: skip


def stop(**more: Json) -> Json:
    usual = {"path": "a", "point": "pre-update", "mode": "wait", "certain": True}
    answering = {"timeout_seconds": 7200.0, "on_timeout": "stop", "answer_by": ["ann"],
                 "approvals": 1}  # fmt: skip
    return usual | answering | more


def lines(document: Json) -> list[str]:
    return plan_output.render("web", document).plain.splitlines()


def test_outputs_of_a_new_stack_are_shown_with_unknown_ones() -> None:
    known = {"output_key": "a", "output_value": {"x": None}, "unknown": False}
    late = {"output_key": "b", "output_value": None, "unknown": True}
    shown = lines(preview() | {"outputs": [known, late]})
    assert shown[1:4] == ["Its outputs:", '      a: {"x":null}', "      b: (unknown until created)"]
    assert "Its outputs:" not in lines(preview())


def test_each_kind_of_change_has_a_symbol_and_a_count() -> None:
    shown = lines(preview(
        added=[change("new")], updated=[change("a", size={"from": 1, "to": 2})],
        replaced=[change("b")], deleted=[change("old")], unchanged=[change("c"), change("d")],
    ))  # fmt: skip
    assert shown == [
        "+   new  T",
        "~   a    T",
        "      size: 1 -> 2",
        "-/+ b    T",
        "-   old  T",
        "web: 1 added, 1 updated, 1 replaced, 1 deleted, 2 unchanged",
        "No breakpoints.",
        "Plan: d1",
    ]


def test_adopted_values_are_shown_with_the_value_of_the_template() -> None:
    at = "2026-12-01T10:00:00Z"
    one = {"path": "$.size", "value": 5, "template": 3, "adopted_by": "ann", "adopted_at": at}
    shown = lines(preview(unchanged=[change("web") | {"adopted": [one]}]))
    assert shown[0] == ("web.size: 5 (adopted by ann on 2026-12-01 10:00 UTC; the template says 3)")
    hostile = one | {"adopted_by": "ann\x1b[31m"}
    assert "\x1b" not in lines(preview(unchanged=[change("web") | {"adopted": [hostile]}]))[0]


def test_unknown_values_are_marked() -> None:
    shown = lines(preview(
        updated=[change("a", certain=False, size={"from": "x"})],
        replaced=[change("b", certain=False)],
    ))  # fmt: skip
    assert shown[0] == "~   a  T  (may be replaced or unchanged)"
    assert shown[1] == '      size: "x" -> (unknown until created)'
    assert shown[2] == "-/+ b  T  (may be replaced or updated in place)"


def test_resources_that_unknown_values_may_change_are_named_and_counted_apart() -> None:
    moved = change("new", certain=False) | {"moved_from": "old"}
    shown = lines(preview(
        updated=[change("net")], unchanged=[change("a"), change("app", certain=False), moved],
    ))  # fmt: skip
    assert shown[:4] == [
        "~   net  T",
        "?   app  T  (may be changed or replaced)",
        "?   new  T  (moved from old)  (may be changed or replaced)",
        "web: 1 updated, 2 may change, 1 unchanged",
    ]


def test_a_new_property_shows_its_new_value_only() -> None:
    new = {"a": {"to": 0}, "b": {"to": ""}, "c": {"to": None}, "d": {}, "e": {"to": False}}
    assert list(plan_output.properties(new)) == ["a: 0", "d: (unknown until created)", "e: false"]
    assert list(plan_output.properties({"b": {"from": 1, "to": ""}})) == ['b: 1 -> ""']


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (stop(), "  1. a at pre-update: ann may answer for 2h, then: stop"),
        (stop(certain=False), "  1. a at pre-update, perhaps: ann may answer for 2h, then: stop"),
        (stop(timeout_seconds=None), "  1. a at pre-update: ann may answer, then: stop"),
        (stop(mode="stop", answer_by=[]), "  1. a at pre-update: stops the stack"),
        (stop(answer_by=["ann", "bob"], on_timeout="reject"),
         "  1. a at pre-update: ann, bob may answer for 2h, then: reject"),
        (stop(approvals=2, answer_by=["role:dba"]),
         "  1. a at pre-update: role:dba may answer, and 2 must approve for 2h, then: stop"),
        (stop(path=None, point="pre-stack-create"),
         "  1. (stack) at pre-stack-create: ann may answer for 2h, then: stop"),
    ],
)  # fmt: skip
def test_breakpoints_show_who_may_answer(one: Json, text: str) -> None:
    assert lines(preview(one))[1:3] == ["Breakpoints, in this order:", text]


def test_breakpoints_are_in_order_and_out_of_date_resources_are_named() -> None:
    shown = lines(preview(stop(), stop(path="b"), out_of_date=["x", "y"]))
    assert [line[:6] for line in shown[2:4]] == ["  1. a", "  2. b"]
    assert shown[4].endswith("not changed: x, y")


def test_an_empty_plan_is_reported() -> None:
    assert lines(preview())[0] == "web: nothing to do"


def test_control_characters_are_not_printed() -> None:
    bad = "a\x1b[2J"
    document = preview(stop(path=bad, answer_by=[bad]), out_of_date=[bad],
                   added=[change(bad, True, **{bad: {"to": bad}})])  # fmt: skip
    assert "\x1b" not in plan_output.render(bad, document).plain
