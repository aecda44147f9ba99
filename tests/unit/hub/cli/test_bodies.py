"""Options of the command line, as they stand in a request."""

from typing import Any

import pytest
import typer

from hub.cli import bodies


@pytest.mark.parametrize(
    ("text", "move"),
    [
        ("a=b", {"from": "a", "to": "b"}),
        ("a=b=c", {"from": "a", "to": "b=c"}),
        ("web:a=b", {"from": {"stack": "web", "resource": "a"}, "to": "b"}),
        ("a=b:c", {"from": "a", "to": "b:c"}),
        ("web:a:x=b", {"from": {"stack": "web", "resource": "a:x"}, "to": "b"}),
    ],
)
def test_a_move(text: str, move: Any) -> None:
    assert bodies.move(text) == move


@pytest.mark.parametrize("text", ["", "a", "=b", "a=", ":a=b", "web:=b", "="])
def test_what_is_no_move_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="FROM=TO or STACK:FROM=TO"):
        bodies.move(text)


def test_what_is_not_said_is_not_sent() -> None:
    assert bodies.options([], None) == bodies.hooks([], []) == bodies.plan("") == {}
    assert bodies.partial([], [], []) == {}


def test_what_is_said_is_sent() -> None:
    assert bodies.options(["a", "b"], 5, True) == {
        "tags": "a,b", "timeout_mins": 5, "disable_rollback": False,
    }  # fmt: skip
    assert bodies.options([], None, False) == {"disable_rollback": True}
    assert bodies.partial(["a*"], ["ab"], ["x=y"]) == {
        "only": ["a*"], "except": ["ab"], "moved": [{"from": "x", "to": "y"}],
    }  # fmt: skip
    assert bodies.plan("d1") == {"plan_digest": "d1"}


@pytest.mark.parametrize(
    ("place", "sent"),
    [
        ("db:pre-create", ["db:pre-create"]),
        ("a:b:pre-create", ["a:b:pre-create"]),
        ("pre-stack-create", ["pre-stack-create"]),
        ("db*", ["db*:pre-create", "db*:pre-update", "db*:pre-replace", "db*:pre-delete"]),
        ("db:pre-crate", ["db:pre-crate"]),
    ],
)
def test_a_breakpoint_without_a_point_is_before_anything_is_done(
    place: str, sent: list[str]
) -> None:
    assert bodies.hooks((), [place]) == {"hooks": {"clear": [], "add": sent}}


def test_without_breakpoints_nothing_is_said_of_hooks() -> None:
    assert bodies.hooks((), ()) == {}
