"""`headgate stack drift`: rows and sentences."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from hub.cli.commands.stack_drift import (
    _render,
    adopted_lines,
    listed_resources,
    round_lines,
    rows_of,
    summary,
)
from hub.cli.main import app
from hub.cli.options import wait_seconds

RESOURCE: dict[str, Any] = {
    "path": "group/a", "state": "changed", "reason": "", "since": "s", "unrepaired": None,
    "observed_at": "o", "found_by": "policy", "last_known": None,
    "differences": [
        {"path": "$.size", "desired": 1, "observed": 7},
        {"path": "$.tag", "desired": "x", "observed": None},
    ],
}  # fmt: skip
UNKNOWN = RESOURCE | {"state": "unknown", "differences": []}
DRIFT: dict[str, Any] = {
    "observing": False, "observed_at": "t", "observable_resources": 3, "unobservable_resources": 1,
    "policy": None, "next_observation_at": None, "resources": [RESOURCE], "nested": [],
}  # fmt: skip


def test_each_difference_is_a_row() -> None:
    first, second = rows_of(RESOURCE)
    assert (first["resource"], first["path"], first["observed"]) == ("group/a", "$.size", "7")
    assert second["path"] == "$.tag"
    (missing,) = rows_of(RESOURCE | {"differences": [], "reason": "it is gone"})
    assert (missing["path"], missing["reason"]) == ("", "it is gone")


def test_what_was_known_before_a_state_became_unknown_follows_it() -> None:
    known = {key: RESOURCE[key] for key in ("state", "differences", "reason", "since")}
    unknown = RESOURCE | {"state": "unknown", "reason": "no answer", "since": "u",
                          "differences": [], "last_known": known}  # fmt: skip
    first, *others = rows_of(unknown)
    shown = ("state", "reason", "since", "observed_at")
    assert [first[key] for key in shown] == ["unknown", "no answer", "u", "o"]
    assert [[one[key] for key in shown] for one in others] == [
        ["last known: changed", "", "s", None]
    ] * 2
    assert [one["path"] for one in others] == ["$.size", "$.tag"]
    # A server of an earlier release.
    assert len(rows_of({key: one for key, one in RESOURCE.items() if key != "last_known"})) == 2


def test_owners_of_nested_stacks_are_rows_before_what_is_inside() -> None:
    """They do not count as resources that differ."""
    reason = "1 of 3 members differs: a (changed)"
    group = {"path": "group", "state": "degraded", "reason": reason, "since": "s",
             "observed_at": "o"}  # fmt: skip
    drift = DRIFT | {"nested": [group], "paused": [], "adopted": [], "converge": None}
    assert [one["path"] for one in listed_resources(drift)] == ["group", "group/a"]
    (row,) = rows_of(listed_resources(drift)[0])
    assert (row["resource"], row["state"], row["reason"]) == ("group", "degraded", reason)
    assert summary(drift, "web").startswith("1 of 3 observed resources differ, at t.")
    # A server of an earlier release.
    del drift["nested"]
    assert listed_resources(drift) == [RESOURCE]


def test_paused_observations_are_lines() -> None:
    paused = [{"sentence": "The observation of 3 resources is paused."}]
    drift = DRIFT | {"paused": paused, "adopted": [], "converge": None}
    console = Console(width=200, file=StringIO())
    console.print(_render("web", drift))
    lines = [line.strip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert lines[-2] == "The observation of 3 resources is paused."
    assert lines[-1].startswith("1 of 3 observed resources differ")


def test_the_reason_says_why_drift_is_not_repaired() -> None:
    first, _ = rows_of(RESOURCE | {"unrepaired": "the limit is reached"})
    assert first["reason"] == "not repaired: the limit is reached"


def test_adopted_values_are_lines() -> None:
    at = "2026-12-01T10:00:00Z"
    one = {"resource_path": "group/a", "path": "size", "value": "x", "template": None,
           "adopted_by": "ann", "adopted_at": at}  # fmt: skip
    assert adopted_lines([one]) == [
        'group/a.size: "x" (adopted by ann on 2026-12-01 10:00 UTC; the template says null)'
    ]


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"observing": True}, "The stack is being observed."),
        ({"observed_at": None}, "The stack has not been observed. Observe it with"),
        ({}, "1 of 3 observed resources differ, at t. 1 have a type that cannot be observed."),
        ({"resources": [UNKNOWN, RESOURCE, UNKNOWN]},
         "1 of 3 observed resources differ, 2 are unknown, at t."),
        ({"resources": [UNKNOWN]}, "0 of 3 observed resources differ, 1 is unknown, at t."),
        ({"policy": {"observe": "never"}}, "cannot be observed."),
        ({"policy": {"observe": {"every": "1h"}}}, " It is observed every 1h."),
        ({"policy": {"observe": {"every": "1h"}}, "next_observation_at": "u"},
         " It is observed every 1h, next at u."),
        ({"policy": {"observe": {"every": "1h"}}, "next_observation_at": "u", "observed_at": None},
         " It is observed every 1h, next at u."),
    ],
)  # fmt: skip
def test_the_summary_says_what_was_observed_when(more: dict[str, Any], text: str) -> None:
    found = summary(DRIFT | more, "web")
    assert found.startswith(text) or found.endswith(text)


def test_a_stack_that_was_not_observed_is_named_in_the_command() -> None:
    never = DRIFT | {"observed_at": None, "policy": {"observe": "never"}}
    text = summary(never, "my web")
    assert text.endswith(" Observe it with `headgate stack observe 'my web' --wait`.")


def test_the_rounds_of_a_converge_are_a_line() -> None:
    one = {"round": 2, "rounds": 3, "state": "observing", "reason": ""}
    assert round_lines(None) == []
    assert round_lines(one) == ["The converge is observing, round 2 of 3."]
    ended = one | {"state": "incomplete", "reason": "a differs"}
    assert round_lines(ended) == ["The converge is incomplete, round 2 of 3: a differs."]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--rounds", "2", "--wait", "--plan", "0" * 64), "--plan is of one round"),
        (("--rounds", "11", "--wait"), "11 is not in the range 1<=x<=10"),
    ],
)
def test_rounds_are_limited_and_have_no_plan(words: tuple[str, ...], text: str) -> None:
    run = CliRunner(env={"NO_COLOR": "1", "TERMINAL_WIDTH": "200"}).invoke
    done = run(app, ["stack", "converge", "web", *words])
    assert done.exit_code == 2 and text in done.output, done.output


@pytest.mark.parametrize(
    ("text", "seconds"), [("20s", 20), ("2m", 120), ("1h", 3600), ("90", 90), ("1.5", 1.5)]
)
def test_the_longest_wait_is_a_duration_or_a_number_of_seconds(text: str, seconds: float) -> None:
    assert wait_seconds(text) == seconds


@pytest.mark.parametrize("text", ["0", "0.5", "-3", "nan", "inf", "0s", "soon", ""])
def test_a_longest_wait_that_is_none_is_refused(text: str) -> None:
    run = CliRunner(env={"NO_COLOR": "1", "TERMINAL_WIDTH": "200"}).invoke
    done = run(app, ["stack", "observe", "web", "--wait", f"--timeout={text}"])
    assert done.exit_code == 2 and "write 90s, 30m or 2h" in done.output, done.output
