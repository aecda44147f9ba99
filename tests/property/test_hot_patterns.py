"""Regular expressions and globs, compared with those of Python."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.hot.functions.cost_budget import CostBudget
from engine.hot.patterns import pattern as patterns
from engine.hot.patterns.pattern import read_pattern
from engine.hot.syntax.globs import matches_glob
from tests.unit.hot.test_hot_patterns import _spans

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


@given(st.text("ab*?[]!-é/", max_size=12), st.text("abé-/]", max_size=10))
@settings(deadline=None)
def test_globs_are_those_of_fnmatch(glob: str, name: str) -> None:
    from fnmatch import fnmatchcase

    assert matches_glob(name, glob) == fnmatchcase(name, glob)
