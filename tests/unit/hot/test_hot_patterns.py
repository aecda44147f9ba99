"""Regular expressions: Python's meaning, and a bound on what they take."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.hot.functions.cost_budget import CostBudget
from engine.hot.functions.function import FunctionError
from engine.hot.patterns import pattern as patterns
from engine.hot.patterns.pattern import InvalidPattern, read_pattern
from engine.hot.schema.constraints import find_violation
from engine.hot.schema.type_schema import Constraint
from engine.hot.syntax.globs import MAX_GLOB_LENGTH, glob_problem, matches_glob
from tests.unit.hot.hot_support import faults

ATOMS = (
    "a", "b", "A", "é", ".", "[ab]", "[^a]", r"\w", r"\s", r"[\w-]", "^", "$", r"\b", r"\B", r"\A",
    r"\Z", "\n",
)  # fmt: skip
REPEATS = ("*", "+", "?", "{1,3}", "*?", "+?", "??", "{2}", "{0,2}?", "*+", "++", "{2,}")
AROUND = ("(?=%s)", "(?!%s)", "(?>%s)", "(?i:%s)", "(?:%s)", "(%s)")


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("(?:{}){}".format, inner, st.sampled_from(REPEATS)),
        st.builds("{}{}".format, inner, inner),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds(lambda form, one: form % one, st.sampled_from(AROUND), inner),
    )


ANY = st.recursive(st.sampled_from(ATOMS), _grown, max_leaves=7)
WITH_GROUPS = st.one_of(
    ANY,
    st.builds(r"({}){}\1".format, ANY, ANY),
    st.builds("(a)?{}(?(1)b|{})".format, ANY, st.sampled_from(ATOMS)),
    st.builds("(?<={}){}".format, st.sampled_from(ATOMS), ANY),
)
FLAGS = st.sampled_from([0, re.IGNORECASE, re.MULTILINE, re.DOTALL, re.ASCII])


def _spans(found: object) -> list[tuple[int, int]]:
    return [(one.start(), one.end()) for one in found]  # type: ignore[attr-defined]


@given(WITH_GROUPS, st.text("aabAé \n", max_size=8), FLAGS)
@settings(max_examples=400, deadline=None)
def test_it_matches_what_pythons_engine_matches(text: str, where: str, flags: int) -> None:
    try:
        known = re.compile(text, flags)
        whole, spans = known.fullmatch(where) is not None, _spans(known.finditer(where))
    except (re.error, SystemError):  # Python's engine loses count of groups now and then
        return
    pattern = read_pattern(text, CostBudget(), flags)
    for few in (patterns.MAX_PYTHON_PATHS, -1):  # as it chooses, and always our own walk
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(patterns, "MAX_PYTHON_PATHS", few)
            assert pattern.fullmatch(where, CostBudget()) == whole
            assert _spans(pattern.find_all(where, CostBudget())) == spans


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
def test_after_an_empty_round_there_is_no_other(
    text: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "MAX_PYTHON_PATHS", -1)
    pattern, known = read_pattern(text, CostBudget()), re.compile(text)
    assert pattern.fullmatch(where, CostBudget()) == bool(known.fullmatch(where))
    assert _spans(pattern.find_all(where, CostBudget())) == _spans(known.finditer(where))


def test_groups_and_templates_of_our_own_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MAX_PYTHON_PATHS", -1)
    pattern = read_pattern(r"(?P<key>\w+)(=(\d+))?;", CostBudget())
    first, second = pattern.find_all("ab=12;c;", CostBudget())
    assert (first.groups(), second.groups()) == (("ab", "=12", "12"), ("c", None, None))
    assert first.expand(r"<\g<key>\\\3\n\g<0>>") == "<ab\\12\nab=12;>"
    assert second.expand(r"\1\3") == "c" and second.group() == "c;"


COSTLY = [
    ("(a+)+$", "a" * 5_000 + "b"),
    ("(a|aa)+$", "a" * 3_000 + "b"),
    (r"^(\w+\s?)*$", "word " * 500 + "!"),
    (r"(.*)(.*)(.*)(.*)(.*)x", "a" * 2_000),
    (r"((a*)*)*b", "a" * 3_000),
    (r"(?=(a+)+$)b", "a" * 3_000 + "b"),
    (r"(.*)\1(.*)\2x", "ab" * 1_000),
    (r"(?:a?){500}a{500}", "a" * 500),
    (r"(?:(?:a{1,50}){1,50}){1,50}$", "a" * 60 + "b"),
    ("[a-￾]" * 1_500, "a"),
    ("(?:" * 300 + "a" + ")*" * 300, "a" * 100 + "b"),
    ("(?:.{1,900}){1,900}x", "a" * 900),
]


@pytest.mark.parametrize(("text", "value"), COSTLY, ids=range(len(COSTLY)))
def test_a_costly_pattern_ends(text: str, value: str) -> None:
    assert find_violation(Constraint("allowed_pattern", pattern=text), value)


@pytest.mark.parametrize("text", ["(", "a**", "(?<=a+)b", "x" * 10_001, "(" * 2_000 + ")" * 2_000])
def test_what_is_no_pattern_is_told(text: str) -> None:
    with pytest.raises(InvalidPattern):
        read_pattern(text, CostBudget())


def test_all_patterns_of_a_template_share_their_steps() -> None:
    rule = [{"allowed_pattern": "(a|aa)+$"}]
    parameters = {
        f"p{n}": {"type": "string", "default": "a" * 3_000 + "b", "constraints": rule}
        for n in range(90)
    }
    told = faults({"parameters": parameters})
    assert "does not match pattern" in told[0].reason
    assert any("more steps than are allowed" in one.reason for one in told)


@given(st.text("ab*?[]!-é/", max_size=12), st.text("abé-/]", max_size=10))
@settings(deadline=None)
def test_globs_are_those_of_fnmatch(glob: str, name: str) -> None:
    from fnmatch import fnmatchcase

    assert matches_glob(name, glob) == fnmatchcase(name, glob)


def test_globs_that_take_long_are_refused() -> None:
    assert not glob_problem("web-*[0-9]?") and "1000" in glob_problem("*" * (MAX_GLOB_LENGTH + 1))
    assert "beyond" in glob_problem("[a-￾]")
    assert not matches_glob("a" * 5_000, "*a" * 400 + "b")


def test_a_pattern_too_costly_for_one_value_is_told() -> None:
    with pytest.raises(FunctionError), CostBudget(steps=100_000).sub_budget() as share:
        read_pattern("(a|aa)+$", share).fullmatch("a" * 100_000 + "b", share)
