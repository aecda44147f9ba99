"""Exit codes, and that help and documentation agree about them."""

import pytest

from hub.cli.commands.stack_change import end_of_action, only_hooks_left
from hub.cli.exit_codes import MEANING, ExitCode, epilog, of_status


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("CREATE_COMPLETE", ExitCode.COMPLETE),
        ("UPDATE_FAILED", ExitCode.FAILED),
        ("DELETE_STOPPED", ExitCode.STOPPED),
        ("CREATE_IN_PROGRESS", None),
        ("", None),
    ],
)
def test_the_code_of_a_status(status: str, code: ExitCode | None) -> None:
    assert of_status(status) is code


def test_exit_codes_do_not_change() -> None:
    assert {code.name: code.value for code in ExitCode} == {
        "COMPLETE": 0, "ERROR": 1, "USAGE": 2, "FAILED": 3, "STOPPED": 4, "WAITING": 5,
        "TIMED_OUT": 6, "INTERRUPTED": 130, "BROKEN_PIPE": 141, "TERMINATED": 143,
    }  # fmt: skip
    assert set(MEANING) == set(ExitCode)
    assert all(f"{code.value} {MEANING[code]}" in epilog() for code in ExitCode)


@pytest.mark.parametrize(
    ("status", "action", "code"),
    [
        ("CREATE_IN_PROGRESS", "CREATE", None),
        ("CREATE_COMPLETE", "CREATE", ExitCode.COMPLETE),
        ("UPDATE_COMPLETE", "CREATE", ExitCode.COMPLETE),
        ("UPDATE_IN_PROGRESS", "CREATE", None),
        ("DELETE_COMPLETE", "DELETE", ExitCode.COMPLETE),
        ("DELETE_COMPLETE", "CREATE", ExitCode.FAILED),
        ("DELETE_IN_PROGRESS", "UPDATE", ExitCode.FAILED),
        ("UPDATE_COMPLETE", "DELETE", ExitCode.FAILED),
        ("UPDATE_IN_PROGRESS", "SUSPEND", ExitCode.FAILED),
        ("UPDATE_COMPLETE", "RESTORE", ExitCode.FAILED),
        ("UPDATE_COMPLETE", "ADOPT", ExitCode.COMPLETE),
        ("UPDATE_FAILED", "ROLLBACK", ExitCode.FAILED),
        ("ROLLBACK_IN_PROGRESS", "UPDATE", None),
        ("ROLLBACK_COMPLETE", "UPDATE", ExitCode.FAILED),
        ("ROLLBACK_FAILED", "UPDATE", ExitCode.FAILED),
        ("ROLLBACK_COMPLETE", "ROLLBACK", ExitCode.COMPLETE),
    ],
)
def test_the_exit_code_depends_on_the_requested_action(
    status: str, action: str, code: ExitCode | None
) -> None:
    outcome = end_of_action({"stack_status": status}, action)
    assert (outcome.code if outcome else None) is code
    if code is ExitCode.FAILED:
        what = "the stack was rolled back" if "ROLLBACK_" in status else "superseded this one"
        assert outcome is not None and what in outcome.message


@pytest.mark.parametrize(
    ("states", "hooks", "left"),
    [
        (["done", "parked"], 1, True),
        (["waiting", "parked", "parked"], 2, True),
        (["running", "parked"], 1, False),
        (["ready", "parked"], 1, False),
        (["parked", "parked"], 1, False),  # the other node waits inside its operation
        (["done"], 0, False),
        ([], 0, False),
    ],
)
def test_only_hooks_are_left_when_all_other_nodes_have_ended(
    states: list[str], hooks: int, left: bool
) -> None:
    assert only_hooks_left([{"state": state} for state in states], [{}] * hooks) is left


def test_a_hook_about_drift_is_not_what_a_parked_node_waits_for() -> None:
    parked = [{"state": "parked"}]
    assert only_hooks_left(parked, [{"point": "pre-create"}, {"point": "drift"}])
    assert not only_hooks_left(parked, [{"point": "drift"}])
