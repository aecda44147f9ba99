"""Regular expressions have the meaning of Python's, with a limit on their cost."""

import re

import pytest

from engine.hot.functions.cost_budget import CostBudget
from engine.hot.patterns import pattern as patterns
from engine.hot.patterns.pattern import InvalidPattern, read_pattern
from engine.hot.syntax.globs import MAX_GLOB_LENGTH, glob_problem, matches_glob


def _spans(found: object) -> list[tuple[int, int]]:
    return [(one.start(), one.end()) for one in found]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("(?:.{0,2}?)*+", "éaacc"),
        ("(?:a??){0,3}b?", "aab"),
        ("(?:(?:a|b)*?)+?c", "abc"),
        (r"(?:(?:\B|\d)++)*+", "é1 11"),
        ("(?:a*)*", "aab"),
        ("(?:(?:a?)*?)*b", "aab"),
    ],
)
def test_a_repetition_ends_after_an_empty_match(
    text: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "MAX_PYTHON_PATHS", -1)
    pattern, known = read_pattern(text, CostBudget()), re.compile(text)
    assert pattern.fullmatch(where, CostBudget()) == bool(known.fullmatch(where))
    assert _spans(pattern.find_all(where, CostBudget())) == _spans(known.finditer(where))


def test_groups_and_replacement_templates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MAX_PYTHON_PATHS", -1)
    pattern = read_pattern(r"(?P<key>\w+)(=(\d+))?;", CostBudget())
    first, second = pattern.find_all("ab=12;c;", CostBudget())
    assert (first.groups(), second.groups()) == (("ab", "=12", "12"), ("c", None, None))
    assert first.expand(r"<\g<key>\\\3\n\g<0>>") == "<ab\\12\nab=12;>"
    assert second.expand(r"\1\3") == "c" and second.group() == "c;"


@pytest.mark.parametrize("text", ["(", "a**", "(?<=a+)b", "x" * 10_001, "(" * 2_000 + ")" * 2_000])
def test_an_invalid_pattern_is_reported(text: str) -> None:
    with pytest.raises(InvalidPattern):
        read_pattern(text, CostBudget())


def test_globs_that_take_long_are_refused() -> None:
    assert not glob_problem("web-*[0-9]?") and "1000" in glob_problem("*" * (MAX_GLOB_LENGTH + 1))
    assert "beyond" in glob_problem("[a-￾]")
    assert not matches_glob("a" * 5_000, "*a" * 400 + "b")
