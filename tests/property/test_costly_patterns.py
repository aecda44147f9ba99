"""Costly regular expressions end within their steps."""

import pytest

from engine.hot.functions.cost_budget import CostBudget
from engine.hot.functions.function import FunctionError
from engine.hot.patterns.pattern import read_pattern
from engine.hot.schema.constraints import find_violation
from engine.hot.schema.type_schema import Constraint
from tests.unit.hot.hot_support import faults

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


def test_all_patterns_of_a_template_share_their_steps() -> None:
    rule = [{"allowed_pattern": "(a|aa)+$"}]
    parameters = {
        f"p{n}": {"type": "string", "default": "a" * 3_000 + "b", "constraints": rule}
        for n in range(90)
    }
    findings = faults({"parameters": parameters})
    assert "does not match pattern" in findings[0].reason
    assert any("more steps than are allowed" in one.reason for one in findings)


def test_a_pattern_too_costly_for_one_value_is_reported() -> None:
    with pytest.raises(FunctionError), CostBudget(steps=100_000).sub_budget() as share:
        read_pattern("(a|aa)+$", share).fullmatch("a" * 100_000 + "b", share)
