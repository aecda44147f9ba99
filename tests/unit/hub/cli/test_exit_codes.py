"""Exit codes: what they are for each end, and that everybody says the same about them."""

import pytest

from hub.cli.exit_codes import MEANING, Exit, epilog, of_status
from hub.cli.waiting import judge, only_hooks_left


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("CREATE_COMPLETE", Exit.COMPLETE),
        ("UPDATE_FAILED", Exit.FAILED),
        ("DELETE_STOPPED", Exit.STOPPED),
        ("CREATE_IN_PROGRESS", None),
        ("", None),
    ],
)
def test_the_code_of_a_status(status: str, code: Exit | None) -> None:
    assert of_status(status) is code


def test_codes_are_a_promise_to_scripts() -> None:
    assert {code.name: code.value for code in Exit} == {
        "COMPLETE": 0, "ERROR": 1, "USAGE": 2, "FAILED": 3, "STOPPED": 4, "WAITING": 5,
        "TIMED_OUT": 6,
    }  # fmt: skip
    assert set(MEANING) == set(Exit)
    assert all(f"{code.value} {MEANING[code]}" in epilog() for code in Exit)


@pytest.mark.parametrize(
    ("status", "action", "code"),
    [
        ("CREATE_IN_PROGRESS", "CREATE", None),
        ("CREATE_COMPLETE", "CREATE", Exit.COMPLETE),
        ("UPDATE_COMPLETE", "CREATE", Exit.COMPLETE),
        ("UPDATE_IN_PROGRESS", "CREATE", None),
        ("DELETE_COMPLETE", "DELETE", Exit.COMPLETE),
        ("DELETE_COMPLETE", "CREATE", Exit.FAILED),
        ("DELETE_IN_PROGRESS", "UPDATE", Exit.FAILED),
        ("UPDATE_COMPLETE", "DELETE", Exit.FAILED),
        ("UPDATE_IN_PROGRESS", "SUSPEND", Exit.FAILED),
        ("UPDATE_COMPLETE", "RESTORE", Exit.FAILED),
        ("UPDATE_COMPLETE", "ADOPT", Exit.COMPLETE),
        ("UPDATE_FAILED", "ROLLBACK", Exit.FAILED),
        ("ROLLBACK_IN_PROGRESS", "UPDATE", None),
        ("ROLLBACK_COMPLETE", "UPDATE", Exit.FAILED),
        ("ROLLBACK_FAILED", "UPDATE", Exit.FAILED),
        ("ROLLBACK_COMPLETE", "ROLLBACK", Exit.COMPLETE),
    ],
)
def test_an_end_is_judged_by_what_was_asked_for(
    status: str, action: str, code: Exit | None
) -> None:
    outcome = judge({"stack_status": status}, action)
    assert (outcome.code if outcome else None) is code
    if code is Exit.FAILED:
        assert outcome is not None and "superseded it" in outcome.said


@pytest.mark.parametrize(
    ("states", "hooks", "left"),
    [
        (["done", "parked"], 1, True),
        (["waiting", "parked", "parked"], 2, True),
        (["running", "parked"], 1, False),
        (["ready", "parked"], 1, False),
        (["parked", "parked"], 1, False),  # the other one waits inside its operation
        (["done"], 0, False),
        ([], 0, False),
    ],
)
def test_only_hooks_are_left_when_all_else_has_run(
    states: list[str], hooks: int, left: bool
) -> None:
    assert only_hooks_left([{"state": state} for state in states], [{}] * hooks) is left
