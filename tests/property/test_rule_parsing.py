"""Every rule is parsed, or refused with its place."""

from hypothesis import given
from hypothesis import strategies as st

from engine.hooks.rule import decode_rule, encode_rule
from engine.hooks.rule_reader import (
    KEYS,
    POINTS,
)
from engine.words import Json, Mode
from tests.unit.hooks.test_rule_parsing import conditions, parse

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


NEARLY = st.sampled_from([
    "wait", "notify", "1h", "999999999d", "requester", "token", "role:a", ["user:a", "token"],
    {"after": "1h"}, {"after": "1h", "to": ["token"]}, {"schema": {"type": "object"}}, 2, True,
])  # fmt: skip


@given(
    st.dictionaries(st.sampled_from(KEYS) | st.text(), JSON | NEARLY), st.sampled_from(["", "db"])
)
def test_any_document_is_parsed_or_refused_with_its_place(item: Json, pattern: str) -> None:
    rules, wrong = parse(item, pattern=pattern, decide=conditions())
    assert all(one.place.startswith("hooks[0]") and one.reason for one in wrong)
    for one in rules:
        assert decode_rule(encode_rule(one.rule)) == one.rule


@given(
    st.fixed_dictionaries(
        {"on": st.sampled_from(POINTS)}, optional={key: JSON | NEARLY for key in KEYS[1:]}
    )
)
def test_a_nearly_valid_rule_is_parsed_or_refused(item: Json) -> None:
    rules, wrong = parse(item, decide=conditions())
    if rules:
        assert not wrong
        assert rules[0].rule.mode is Mode.WAIT or not (rules[0].rule.ask or rules[0].rule.answer_by)
