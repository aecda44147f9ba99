"""Operator rules that overlap, and points at which no rule blocks."""

from typing import Any

import pytest

from engine.hooks.operator import OperatorRule, gaps, overlaps
from engine.hot.syntax.globs import globs_overlap


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("*", "prod-*", True), ("prod-*", "*-db", True), ("a*c", "ab*", True), ("a?", "ab", True),
        ("[ab]x", "?x", True), ("", "*", True), ("a", "a", True), ("*", "*", True),
        ("prod-*", "test-*", False), ("a", "b", False), ("a?", "a", False), ("*a", "*b", False),
        ("", "?", False), ("a*c", "b*c", False),
    ],
)  # fmt: skip
def test_globs_that_can_match_the_same_name(first: str, second: str, expected: bool) -> None:
    assert globs_overlap(first, second) is globs_overlap(second, first) is expected


def rule(position: str, on: str, at: str = "", **more: Any) -> OperatorRule:
    item = {"on": on.split(), "mode": more.get("mode", "wait")}
    projects, types = more.get("projects", ("*",)), more.get("types", ())
    return OperatorRule(projects, at, types, item, position, more.get("dry", False))


STACK, AT = rule("1", "pre-stack-create pre-stack-update"), rule("1", "pre-create", "web/db*")


@pytest.mark.parametrize(
    ("first", "second", "points"),
    [
        (STACK, rule("2", "pre-stack-update post-stack-create"), ["pre-stack-update"]),
        (STACK, rule("2", "pre-stack-update", mode="stop"), ["pre-stack-update"]),
        (STACK, rule("2", "pre-stack-update", mode="notify"), None),
        (STACK, rule("2", "pre-stack-update", dry=True), None),
        (STACK, rule("2", "pre-stack-delete"), None),
        (rule("1", "pre-stack-update", projects=("a*",)),
         rule("2", "pre-stack-update", projects=("b", "*c")), ["pre-stack-update"]),
        (rule("1", "pre-stack-update", projects=("a",)),
         rule("2", "pre-stack-update", projects=("b",)), None),
        (AT, rule("2", "pre-create", "*"), ["pre-create"]),
        (AT, rule("2", "pre-create", "db1"), ["pre-create"]),
        (AT, rule("2", "pre-create", "*/db1"), ["pre-create"]),
        (AT, rule("2", "pre-create", "web"), None),
        (AT, rule("2", "pre-create", "a/web/db"), None),
        (rule("1", "pre-create", "*", types=("OS::Nova::*",)),
         rule("2", "pre-create", "*", types=("*::Server",)), ["pre-create"]),
        (rule("1", "pre-create", "*", types=("OS::Nova::*",)),
         rule("2", "pre-create", "*", types=("OS::Heat::*",)), None),
    ],
)  # fmt: skip
def test_rules_that_block_at_the_same_point(
    first: OperatorRule, second: OperatorRule, points: list[str] | None
) -> None:
    found = [(one.ignored, one.applied, list(one.points)) for one in overlaps([first, second])]
    assert found == ([("1", "2", points)] if points else [])


RESTORE, ROLLBACK = "pre-stack-restore", "pre-stack-rollback"


@pytest.mark.parametrize(
    ("rules", "missing"),
    [
        ([STACK], [RESTORE, ROLLBACK]),
        ([rule("1", f"pre-stack-update {RESTORE}")], [ROLLBACK]),
        ([rule("1", f"pre-stack-update {RESTORE} {ROLLBACK}")], []),
        ([STACK, rule("2", f"{RESTORE} {ROLLBACK}", projects=("prod-*",))], []),
        ([rule("1", "pre-stack-update", projects=("a",)),
          rule("2", f"{RESTORE} {ROLLBACK}", projects=("b",))], [RESTORE, ROLLBACK]),
        ([STACK, rule("2", f"{RESTORE} {ROLLBACK}", mode="notify")], [RESTORE, ROLLBACK]),
        ([rule("1", "pre-stack-update", dry=True)], []),
        ([rule("1", "pre-update", "*")], []),
    ],
)  # fmt: skip
def test_rules_of_updates_without_restores_or_rollbacks(
    rules: list[OperatorRule], missing: list[str]
) -> None:
    assert [(one.rule, list(one.points)) for one in gaps(rules)] == (
        [("1", missing)] if missing else []
    )
