"""Request bodies from options."""

from typing import Any

import pytest
import typer

from hub.cli.inputs import request_bodies


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
def test_a_move_is_parsed(text: str, move: Any) -> None:
    assert request_bodies.move(text) == move


@pytest.mark.parametrize("text", ["", "a", "=b", "a=", ":a=b", "web:=b", "="])
def test_an_invalid_move_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="FROM=TO or STACK:FROM=TO"):
        request_bodies.move(text)


def test_absent_options_are_not_sent() -> None:
    assert request_bodies.stack_options([], None) == {}
    assert request_bodies.hook_changes([], []) == request_bodies.plan_digest("") == {}
    assert request_bodies.partial_update([], [], []) == {}


def test_given_options_are_sent() -> None:
    assert request_bodies.stack_options(["a", "b"], 5, True) == {
        "tags": "a,b", "timeout_mins": 5, "disable_rollback": False,
    }  # fmt: skip
    assert request_bodies.stack_options([], None, False) == {"disable_rollback": True}
    assert request_bodies.partial_update(["a*"], ["ab"], ["x=y"]) == {
        "only": ["a*"], "except": ["ab"], "moved": [{"from": "x", "to": "y"}],
    }  # fmt: skip
    assert request_bodies.plan_digest("d1") == {"plan_digest": "d1"}


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
def test_a_breakpoint_without_a_point_means_before_every_operation(
    place: str, sent: list[str]
) -> None:
    assert request_bodies.hook_changes((), [place]) == {"hooks": {"clear": [], "add": sent}}


def test_without_breakpoints_no_hooks_are_sent() -> None:
    assert request_bodies.hook_changes((), ()) == {}
