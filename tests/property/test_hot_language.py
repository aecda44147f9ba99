"""What must hold of the language for any input."""

from collections.abc import Mapping
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import Invalid
from engine.hot.definition.stack import StackDefinition, define_stack
from engine.hot.environment.environment import parse_environment
from engine.hot.evaluation.resolver import resolve
from engine.hot.expressions.expression import (
    FunctionCall,
    decode,
    encode,
    is_static,
    referenced_resources,
)
from engine.hot.functions.text import replace_keys
from engine.hot.schema.type_schema import TypeSchema
from engine.hot.syntax.document import read_document
from engine.hot.template.template import parse_template
from engine.words import Json

VERSION = "2021-04-16"
KEYS = st.sampled_from(["$call", "$$call", "$$$call", "get_resource", "a"]) | st.text(max_size=3)
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=4)


def nested(leaves: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=8,
    )


JSON = nested(SCALARS)
CALLS = st.builds(
    FunctionCall,
    st.sampled_from(["get_resource", "list_join"]),
    st.just(VERSION),
    nested(SCALARS) | st.lists(JSON, min_size=1, max_size=2),
)
EXPRESSIONS = nested(SCALARS | CALLS)


class NoResources:
    def reference(self, resource: str) -> str:
        raise AssertionError(resource)

    def attribute(self, resource: str, attribute: str) -> Json:
        raise AssertionError(resource)

    def attributes(self, resource: str) -> Mapping[str, Json]:
        raise AssertionError(resource)


@given(EXPRESSIONS)
def test_stored_expressions_are_restored(expression: Json) -> None:
    assert decode(encode(expression), VERSION) == expression


@given(EXPRESSIONS, EXPRESSIONS)
def test_different_expressions_are_stored_differently(first: Json, second: Json) -> None:
    assert (encode(first) == encode(second)) == (first == second)


@given(JSON)
def test_plain_data_is_unchanged(value: Json) -> None:
    assert is_static(value) and not referenced_resources(value)
    assert resolve(value, NoResources()) == value
    assert is_static(decode(encode(value), VERSION))


@given(st.text() | st.text(alphabet="{}[]:-? \n&*a1,'\"<!|>#%@`~\\", max_size=60))
@settings(max_examples=400)
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with suppress(Invalid):
        assert isinstance(read_document(text, "template"), dict)


KEY = st.text("ab$", min_size=1, max_size=3)


@given(st.text("ab$", max_size=12), st.dictionaries(KEY, st.text("ab$", max_size=3), max_size=4))
def test_str_replace_prefers_the_longest_key_and_replaces_once(
    text: str, params: dict[str, str]
) -> None:
    replaced, at = "", 0
    while at < len(text):
        keys = [key for key in params if text.startswith(key, at)]
        best = max(keys, key=len, default="")
        replaced += params[best] if best else text[at]
        at += len(best) or 1
    assert replace_keys(text, params)[0] == replaced


TYPES = {"T": TypeSchema("T", any_property=True, any_attribute=True)}


def defined(resources: dict[str, Json]) -> StackDefinition:
    return define_stack(
        template=parse_template({"heat_template_version": VERSION, "resources": resources}),
        environment=parse_environment({}),
        parameters={},
        files={},
        pseudo={},
        types=TYPES,
        check_properties=lambda kind, properties, place, findings: None,
    )


def body(needs: list[int], way: int) -> dict[str, Json]:
    """A resource that needs others, in one of three ways."""
    names = [f"r{one}" for one in needs]
    calls = [{"get_resource": n} if way == 1 else {"get_attr": [n, "x"]} for n in names]
    return (
        {"type": "T", "depends_on": names} if not way else {"type": "T", "properties": {"p": calls}}
    )


@given(st.data())
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_requires_are_the_edges_and_cycles_are_refused(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 8))
    edges = {
        one: data.draw(st.lists(st.integers(0, one - 1), unique=True)) if one else []
        for one in range(size)
    }
    ways = {one: data.draw(st.integers(0, 2)) for one in range(size)}
    order = data.draw(st.permutations(range(size)))
    resources = {f"r{one}": body(edges[one], ways[one]) for one in order}
    by_name = defined(resources).resources
    for one in range(size):
        assert by_name[f"r{one}"].requires == {f"r{other}" for other in edges[one]}
    chain = data.draw(st.lists(st.sampled_from(range(size)), min_size=1, unique=True))
    for one, after in zip(chain, [*chain[1:], chain[0]], strict=True):
        resources[f"r{one}"] = body([after], ways[one])
    with pytest.raises(Invalid) as caught:
        defined(resources)
    reason = caught.value.findings[0].reason
    names = reason.removeprefix("Circular Dependency Found: ").split(" -> ")
    assert names[0] == names[-1] and set(names[1:]) == {f"r{one}" for one in chain}
