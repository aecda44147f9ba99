"""Plans as people read them."""

from typing import Any

import pytest

from hub.cli import plans

Json = Any


def change(name: str, certain: bool = True, **changes: Json) -> Json:
    return {"path": name, "resource_type": "T", "changes": changes, "certain": certain}


def preview(*stops: Json, stale: Any = (), **kinds: Json) -> Json:
    changes: dict[str, Json] = {kind: [] for kind in (*plans.MARKS, "unchanged")}
    return {"resource_changes": changes | kinds, "stops": stops, "stale": stale,
            "plan_digest": "d1"}  # fmt: skip


def stop(**more: Json) -> Json:
    usual = {"path": "a", "point": "pre-update", "mode": "wait", "certain": True}
    answering = {"timeout_seconds": 7200.0, "on_timeout": "stop", "answer_by": ["ann"],
                 "approvals": 1}  # fmt: skip
    return usual | answering | more


def lines(said: Json) -> list[str]:
    return plans.picture("web", said).plain.splitlines()


def test_outputs_of_a_stack_to_be_are_shown_with_those_that_nobody_knows() -> None:
    known = {"output_key": "a", "output_value": {"x": None}, "unknown": False}
    late = {"output_key": "b", "output_value": None, "unknown": True}
    said = lines(preview() | {"outputs": [known, late]})
    assert said[1:4] == ["Its outputs:", '      a: {"x":null}', "      b: (unknown until created)"]
    assert "Its outputs:" not in lines(preview())


def test_each_kind_of_change_has_its_mark_and_is_counted() -> None:
    said = lines(preview(
        added=[change("new")], updated=[change("a", size={"from": 1, "to": 2})],
        replaced=[change("b")], deleted=[change("old")], unchanged=[change("c"), change("d")],
    ))  # fmt: skip
    assert said == [
        "+   new  T",
        "~   a    T",
        "      size: 1 -> 2",
        "-/+ b    T",
        "-   old  T",
        "web: 1 added, 1 updated, 1 replaced, 1 deleted, 2 unchanged",
        "No breakpoints.",
        "Plan: d1",
    ]


def test_what_nobody_knows_yet_is_called_so() -> None:
    said = lines(preview(
        updated=[change("a", certain=False, size={"from": "x"})],
        replaced=[change("b", certain=False)],
    ))  # fmt: skip
    assert said[0] == "~   a  T  (may be replaced or unchanged)"
    assert said[1] == '      size: "x" -> (unknown until created)'
    assert said[2] == "-/+ b  T  (may be replaced or updated in place)"


def test_of_what_is_new_only_what_it_will_be() -> None:
    new = {"a": {"to": 0}, "b": {"to": ""}, "c": {"to": None}, "d": {}, "e": {"to": False}}
    assert list(plans.properties(new)) == ["a: 0", "d: (unknown until created)", "e: false"]
    assert list(plans.properties({"b": {"from": 1, "to": ""}})) == ['b: 1 -> ""']


@pytest.mark.parametrize(
    ("one", "told"),
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
def test_hooks_are_told_with_who_would_answer(one: Json, told: str) -> None:
    assert lines(preview(one))[1:3] == ["Breakpoints, in this order:", told]


def test_hooks_stand_in_their_order_and_what_is_stale_is_named() -> None:
    said = lines(preview(stop(), stop(path="b"), stale=["x", "y"]))
    assert [line[:6] for line in said[2:4]] == ["  1. a", "  2. b"]
    assert said[4].endswith("not changed: x, y")


def test_nothing_to_do_is_said() -> None:
    assert lines(preview())[0] == "web: nothing to do"


def test_what_would_steer_the_terminal_is_not_printed() -> None:
    bad = "a\x1b[2J"
    said = preview(stop(path=bad, answer_by=[bad]), stale=[bad],
                   added=[change(bad, True, **{bad: {"to": bad}})])  # fmt: skip
    assert "\x1b" not in plans.picture(bad, said).plain
