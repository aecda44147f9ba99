"""An expression with unknown parts is refused only if it would be refused with every value."""

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engine.hot.expressions.expression import FunctionCall
from engine.hot.functions.function import Function, FunctionError
from engine.hot.language.versions import VERSIONS
from engine.words import Json

HOLE = FunctionCall("get_attr", "2021-04-16", ["a", "b"])
FUNCTIONS = {
    name: entry
    for name, entry in VERSIONS["2021-04-16"].functions.items()
    if isinstance(entry, Function) and entry.with_placeholders is not None
}
KEYS = {
    "repeat": ["template", "for_each", "permutations"],
    "make_url": ["scheme", "host", "port", "path", "query", "username"],
    "str_replace": ["template", "params"],
    "str_replace_strict": ["template", "params"],
    "str_replace_vstrict": ["template", "params"],
}
PAIRS = ("contains", "digest", "filter", "map_replace")
WORDS = st.sampled_from(["", "a", "b", "a,b", "sha256", "keys", "0", "80"])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-1, 3), WORDS)


def nested(leaves: Any) -> Any:
    return st.recursive(
        leaves,
        lambda inside: st.one_of(
            st.lists(inside, max_size=3),
            st.dictionaries(st.sampled_from(["a", "b", "keys", "values"]), inside, max_size=2),
        ),
        max_leaves=5,
    )


#: What functions can work with, more often than not.
VALUES = st.one_of(
    WORDS,
    st.none(),
    st.lists(WORDS, max_size=2),
    st.dictionaries(st.sampled_from(["a", "b", "keys"]), WORDS, max_size=2),
    nested(SCALARS),
)
HOLED = st.one_of(st.just(HOLE), WORDS, nested(st.one_of(SCALARS, st.just(HOLE))))


def has_hole(value: Json) -> bool:
    if isinstance(value, dict):
        return any(map(has_hole, value.values()))
    return any(map(has_hole, value)) if isinstance(value, list) else value is HOLE


def filled(value: Json, fill: Any) -> Json:
    if value is HOLE:
        return fill()
    if isinstance(value, dict):
        return {key: filled(item, fill) for key, item in value.items()}
    return [filled(item, fill) for item in value] if isinstance(value, list) else value


def refusal(function: Function, args: Json) -> str | None:
    try:
        function.apply(args)
    except FunctionError as wrong:
        return str(wrong)
    return None


def arguments(name: str) -> Any:
    if name in KEYS:
        return st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS[name], HOLED))
    count = 2 if name in PAIRS else 3
    return st.lists(HOLED, min_size=min(count, 2), max_size=count)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@settings(max_examples=100, suppress_health_check=[HealthCheck.filter_too_much], deadline=None)
@given(st.data())
def test_a_possibly_valid_expression_is_not_refused(name: str, data: st.DataObject) -> None:
    function = FUNCTIONS[name]
    args = data.draw(arguments(name))
    assume(has_hole(args))
    try:
        function.shape(args)
    except FunctionError:
        assume(False)
    assert function.with_placeholders is not None
    known = function.with_placeholders(args)
    assert not has_hole(known)
    wrong = None if known is None else refusal(function, known)
    if wrong is not None:
        for _ in range(5):
            whole = filled(args, lambda: data.draw(VALUES))
            assert refusal(function, whole) is not None, (wrong, whole)


FOUND = [
    ("list_join", [5, HOLE], "delimiter"),
    ("list_join", [",", ["a", 5, HOLE]], "Items to join"),
    ("str_replace", {"template": 5, "params": {"a": HOLE}}, "template must be a string"),
    ("str_replace", {"template": "a", "params": {"": HOLE}}, "empty text"),
    ("str_replace_strict", {"template": "a", "params": {"b": HOLE}}, "not found"),
    (
        "str_replace_vstrict",
        {"template": "ab", "params": {"a": "", "b": HOLE}},
        "empty value for param a,",
    ),
    ("str_split", [HOLE, 5], "takes a delimiter"),
    ("digest", ["nope", HOLE], "Algorithm must be"),
    ("repeat", {"template": HOLE, "for_each": {}}, "non-empty map"),
    ("repeat", {"template": "x", "for_each": {"x": "text", "y": HOLE}}, "must be lists"),
    ("map_merge", [["a"], HOLE], "takes maps"),
    ("map_replace", [HOLE, {"kyes": {}}], "Incorrect arguments to"),
    ("filter", [HOLE, "text"], "only works with lists"),
    ("contains", [HOLE, 5], "should be a sequence"),
    ("list_concat", ["a", HOLE], "must be lists"),
    ("list_concat_unique", [{"a": HOLE}], "must be lists"),
    ("make_url", {"host": HOLE, "port": 0}, "1-65535"),
]


@pytest.mark.parametrize(("name", "args", "part"), FOUND)
def test_a_certainly_invalid_expression_is_refused(name: str, args: Json, part: str) -> None:
    function = FUNCTIONS[name]
    assert function.with_placeholders is not None
    assert part in str(refusal(function, function.with_placeholders(args)))


def test_every_function_has_examples() -> None:
    assert {name for name, _, _ in FOUND} == FUNCTIONS.keys()


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("str_replace_vstrict", {"template": "a", "params": {"a": HOLE}}),
        (
            "repeat",
            {"template": "x", "for_each": {"a": ["1"], "b": HOLE}, "permutations": False},
        ),
        ("str_split", ["", HOLE]),
        ("map_replace", [{"a": 1, "b": 2}, {"keys": {"a": HOLE, "b": HOLE}}]),
        ("make_url", {"host": "h", "port": HOLE}),
    ],
)
def test_a_possibly_valid_value_is_accepted(name: str, args: Json) -> None:
    function = FUNCTIONS[name]
    assert function.with_placeholders is not None
    known = function.with_placeholders(args)
    assert known is None or refusal(function, known) is None
