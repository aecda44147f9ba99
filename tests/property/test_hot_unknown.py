"""Unknown values are never guessed: what is known early stays true for every later value."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import Invalid
from engine.hot.evaluation.resolver import resolve
from engine.hot.expressions.expression import Expression, FunctionCall
from engine.hot.functions.function import Function, FunctionError
from engine.hot.language.versions import VERSIONS, StackFunction
from engine.words import Json
from tests.property.language_fuzz import SHAPES, Chance
from tests.unit.hot.hot_support import UniformView, defined

VERSION = "2026-12-01"
#: What is known later: a parameter of the stack around, or an attribute.
GIVEN: Json = {"get_param": ["p", "v"]}
READ: Json = {"get_attr": ["b", "output"]}
NAMES = sorted(
    name
    for name, entry in VERSIONS[VERSION].functions.items()
    if isinstance(entry, Function) or entry in (StackFunction.IF, StackFunction.YAQL)
)
VALUES: tuple[Json, ...] = (
    "", "a", "a,b", 0, 1, True, [], ["a", "b"], [["a"]], {}, {"a": "b"}, {"a": 1, "x": None}, 3.5,
    "sha256",
)  # fmt: skip
#: Of what has to be known when the stack is defined.
NOT_LATER = ("invalid in this context", "must contain a string")


class Holed(Chance):
    """Makes values with holes, and calls of functions that read nothing else."""

    def value(self, depth: int = 4) -> Json:
        return GIVEN if self.chance.random() < 0.2 else super().value(depth)

    def call(self, depth: int) -> Json:
        name = self.chance.choice(NAMES)
        return {name: SHAPES[name](self, depth - 1) if name in SHAPES else self.value(depth - 1)}


def outcome(snippet: Json, value: Json = None) -> Expression | Invalid:
    """What a snippet becomes with a parameter of this value; with null, while it is not known."""
    resources: Json = {
        "a": {"type": "Test::Free", "properties": {"value": snippet}},
        "b": {"type": "Test::Free"},
    }
    template: Json = {
        "heat_template_version": VERSION,
        "parameters": {"p": {"type": "json"}},
        "conditions": {"c0": {"equals": [GIVEN, "a"]}},
        "resources": resources,
    }
    try:
        if value is None:
            found = defined(template, unknown=frozenset({"p"}))
        else:
            found = defined(template, parameters={"p": value})
    except Invalid as invalid:
        return invalid
    return found.resources["a"].properties.get("value")


def holds(before: Expression, after: Json) -> bool:
    """Whether what was known before is so afterwards; an item that is unknown may be left out."""
    if isinstance(before, FunctionCall):
        return True
    if isinstance(before, dict):
        known = {key: one for key, one in before.items() if not isinstance(one, FunctionCall)}
        return (
            isinstance(after, dict)
            and known.keys() <= after.keys() <= before.keys()
            and all(holds(one, after[key]) for key, one in known.items())
        )
    if isinstance(before, list):
        if not isinstance(after, list):
            return False
        if any(isinstance(one, FunctionCall) for one in before):
            return len(after) <= len(before)
        return len(before) == len(after) and all(map(holds, before, after))
    return type(before) is type(after) and bool(before == after)


def random_value(chance: random.Random) -> Json:
    while True:
        snippet = Holed(chance).call(3)
        if json.dumps(GIVEN) in json.dumps(snippet):
            return snippet


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False))
def test_early_results_hold_for_every_later_value(chance: random.Random) -> None:
    snippet = random_value(chance)
    before = outcome(snippet)
    for value in VALUES:
        after = outcome(snippet, {"v": value})
        if isinstance(before, Invalid):
            assert isinstance(after, Invalid), (snippet, value, str(before), after)
        elif not isinstance(after, Invalid):
            assert holds(before, after), (snippet, value, before, after)


def later(snippet: Json) -> Json:
    """The same, with an attribute in place of the parameter."""
    return json.loads(json.dumps(snippet).replace(json.dumps(GIVEN), json.dumps(READ)))


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False))
def test_late_and_early_values_have_the_same_result(chance: random.Random) -> None:
    snippet = random_value(chance)
    for value in VALUES:
        expression = outcome(later(snippet), {"v": value})
        now = outcome(snippet, {"v": value})
        if isinstance(expression, Invalid) and any(one in str(expression) for one in NOT_LATER):
            continue
        if isinstance(expression, Invalid):
            assert isinstance(now, Invalid), (snippet, value, str(expression), now)
            continue
        try:
            then: Json | FunctionError = resolve(expression, UniformView(value))
        except FunctionError as wrong:
            then = wrong
        if isinstance(then, FunctionError) or isinstance(now, Invalid):
            assert isinstance(then, FunctionError) and isinstance(now, Invalid), (
                snippet,
                value,
                then,
                now,
            )
        else:
            assert then == now, (snippet, value)


@pytest.mark.parametrize(
    ("snippet", "known"),
    [
        ({"list_join": [",", ["a", GIVEN]]}, False),
        ({"if": [{"equals": [GIVEN, "a"]}, 1, 2]}, False),
        ({"if": ["c0", 1, 2]}, False),
        ({"if": [{"not": {"equals": ["a", "b"]}}, "x", GIVEN]}, True),
        ({"yaql": {"expression": "1", "data": GIVEN}}, False),
        ({"contains": ["a", ["a", GIVEN]]}, False),
    ],
)
def test_expressions_that_read_an_unknown_value_are_unknown(snippet: Json, known: bool) -> None:
    assert isinstance(outcome(snippet), FunctionCall) is not known
