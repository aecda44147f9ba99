"""Which resources a pattern matches, and findings for patterns that match none."""

from dataclasses import replace

import pytest

from engine.errors import BODY, Findings
from engine.hooks.rule_patterns import (
    LEAF,
    MAX_WARNINGS,
    Tree,
    check_cleared,
    check_patterns,
    cleared_inside,
    nearest_place,
)
from tests.unit.hooks.test_precedence import declared


@pytest.mark.parametrize(
    ("pattern", "short", "refused", "warned"),
    [
        ("", False, False, False),
        ("db", False, False, False),
        ("d*", True, False, False),
        ("x*", False, True, False),
        ("x*", True, False, True),
        ("nested/db", True, False, True),
        ("nested/db", False, True, False),
        ("web/db", False, True, False),  # no nested stack
        ("group/db", False, False, False),  # unknown until the template is evaluated
        ("group/0/db", False, False, False),
        ("inner/server", False, False, False),
        ("inner/serve?", False, False, False),
        ("in*/*", False, False, False),
        ("inner/serber", False, True, False),
        ("inner/serber", True, False, True),
        ("inner/server/x", False, True, False),
        ("[ig]*/0", False, False, False),
    ],
)
def test_patterns_that_match_nothing(
    pattern: str, short: bool, refused: bool, warned: bool
) -> None:
    findings = Findings()
    known = {"db": LEAF, "web": LEAF, "inner": {"server": LEAF}, "group": None}
    here = declared(pattern, short=short)
    other_place = replace(here, place="hooks.add[1]")
    warnings = check_patterns([here, here, other_place], known, findings)
    assert [one.place for one in findings.all] == (["", "hooks.add[1]"] if refused else [])
    assert len(warnings) == (2 if warned else 0)
    assert all(one.code == "InvalidBreakPointHook" and one.remedy for one in findings.all)


@pytest.mark.parametrize(
    ("cleared", "inside", "deeper"),
    [
        ("*", "*", "*"),
        ("web/*", "*:*", None),
        ("w*/db:pre-*", "db:pre-*", None),
        ("web/*/x", "*/x", "x"),
        ("web", None, None),
        ("app/db", None, None),
        ("web/:pre-stack-create", ":pre-stack-create", None),
    ],
)
def test_cleared_rules_of_nested_resources(
    cleared: str, inside: str | None, deeper: str | None
) -> None:
    found = cleared_inside([cleared], "web")
    assert found == ([] if inside is None else [inside])
    assert cleared_inside(found, "db") == ([] if deeper is None else [deeper])


@pytest.mark.parametrize(
    ("pattern", "place"),
    [
        ("wbe", 'Did you mean "web"?'),
        ("web/dc", 'Did you mean "web/db"?'),
        ("w*/db/dsk", 'Did you mean "web/db/disk"?'),
        ("nothing", "Resources are: app, web."),
        ("web/nothing", "Resources are: web/cache, web/db."),
    ],
)
def test_the_nearest_path_of_a_pattern(pattern: str, place: str) -> None:
    known: Tree = {"web": {"db": {"disk": LEAF}, "cache": None}, "app": LEAF}
    assert nearest_place(pattern, known) == place


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ("*", False),
        ("*:pre-update", False),
        ("db", False),
        ("db:pre-create", False),
        ("d*:pre-*", False),
        ("inner/server:pre-create", False),
        ("group/0/db:pre-create", False),  # unknown until the template is evaluated
        ("pre-stack-create", False),
        ("bd:pre-create", True),
        ("bd", True),
        ("inner/serber:pre-create", True),
        ("x*:*", True),
    ],
)
def test_a_breakpoint_to_skip_is_at_a_resource(text: str, warned: bool) -> None:
    known = {"db": LEAF, "inner": {"server": LEAF}, "group": None}
    found = check_cleared([text], known)
    assert [(one.file, one.place) for one in found] == (
        [(BODY, "hooks.clear[0]")] if warned else []
    )


def test_of_many_breakpoints_to_skip_the_first_are_checked() -> None:
    (one, *others) = check_cleared(["daba:pre-create"] * 1000, {"data": LEAF})
    assert (one.remedy, len(others)) == ('Did you mean "data"?', MAX_WARNINGS - 1)


def test_all_breakpoints_can_be_skipped_without_resources() -> None:
    assert check_cleared(["*"], {}) == []
