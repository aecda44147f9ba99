"""Arbitrary declarations lead to one rule for each point."""

from hypothesis import given
from hypothesis import strategies as st

from engine.hooks.rule import in_order
from engine.hooks.rule_reader import POINTS, Declaration
from engine.words import STACK_POINTS, Mode
from tests.unit.hooks.test_precedence import SOURCES, breakpoints, declared


@given(
    st.dictionaries(
        st.sampled_from(SOURCES),
        st.lists(
            st.builds(
                declared,
                st.sampled_from(["*", "a", "b", "a*", "?b", "[ab]", ""]),
                st.sampled_from([*POINTS[:3], STACK_POINTS[0], "confirm-x"]),
                mode=st.sampled_from(Mode),
                approvals=st.integers(1, 9),
            ),
            max_size=4,
        ),
    ),
    st.sampled_from(["a", "b", "ab", ""]),
)
def test_one_rule_for_each_point_the_last_of_the_strongest_source(
    declarations: dict[str, list[Declaration]], name: str
) -> None:
    stored = declarations.pop("stored", [])
    asking = breakpoints(declarations)
    matches = {
        "a": ("*", "a", "a*", "[ab]"), "b": ("*", "b", "[ab]"), "ab": ("*", "a*", "?b"), "": ("",),
    }[name]  # fmt: skip
    expected = {one.rule.point: one.rule for one in stored}
    for source in reversed(SOURCES[:-1]):
        for one in declarations.get(source, []):
            if one.pattern in matches:
                expected[one.rule.point] = one.rule
    kept = [one.rule for one in stored]
    found = asking.find_rules(name, kept) if name else asking.find_stack_rules(kept)
    assert found == tuple(expected[point] for point in in_order(expected))
