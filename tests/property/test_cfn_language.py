"""What must hold of CFN templates for any input."""

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import Invalid
from engine.hot.definition.stack import StackDefinition, define_stack
from engine.hot.environment.environment import parse_environment
from engine.hot.evaluation.resolver import resolve
from engine.hot.expressions.expression import decode, encode, is_static, referenced_resources
from engine.hot.functions.function import FunctionError
from engine.hot.language.versions import VERSIONS
from engine.hot.schema.type_schema import TypeSchema
from engine.hot.syntax.document import check_document
from engine.hot.template.template import parse_template
from engine.words import Json
from tests.unit.hot.hot_support import UniformView

TYPES = {"T": TypeSchema("T", any_property=True, any_attribute=True)}
AWS = "AWSTemplateFormatVersion"
NAMES = st.sampled_from(["r", "p", "m", "k", "", "0", "1", "r.x", "AWS::Region", "nobody"])
LEAVES = st.none() | st.booleans() | st.integers(-2, 5) | NAMES | st.text(max_size=3)
CALLED = st.sampled_from(sorted({*VERSIONS["2010-09-09"].functions, "Fn::Equals", "Fn::Not"}))


def nested(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    lists = st.lists(inner, max_size=3)
    maps = st.dictionaries(NAMES, inner, max_size=3)
    return lists | maps | st.builds(lambda name, args: {name: args}, CALLED, inner | lists)


SNIPPETS = st.recursive(LEAVES, nested, max_leaves=10)


def defined(sections: dict[str, Any]) -> StackDefinition:
    return define_stack(
        template=parse_template(check_document({AWS: "2010-09-09", **sections}, "template")),
        environment=parse_environment({}),
        parameters={},
        files={},
        pseudo={},
        types=TYPES,
        check_properties=lambda kind, properties, place, findings: None,
    )


@given(SNIPPETS)
@settings(max_examples=200)
def test_any_snippet_is_a_value_or_waits_for_what_it_reads_or_is_refused(snippet: Json) -> None:
    resources = {"a": {"Type": "T", "Properties": {"value": snippet}}, "r": {"Type": "T"}}
    sections = {
        "Parameters": {"p": {"Type": "CommaDelimitedList", "Default": "x,y"}},
        "Mappings": {"m": {"k": {"0": ["x"], "1": "y"}}},
        "Resources": resources,
    }
    with suppress(Invalid):
        resource = defined(sections).resources["a"]
        value = resource.properties["value"]
        assert is_static(value) == (not referenced_resources(value)) and resource.requires <= {"r"}
        with suppress(FunctionError):
            stored = decode(encode(value), "2010-09-09")
            assert is_static(resolve(stored, UniformView("x")))


SECTIONS = ("Parameters", "Mappings", "Conditions", "Resources", "Outputs", "Hooks", "Description")
KEYS = st.sampled_from(
    ["Type", "Properties", "Metadata", "DependsOn", "DeletionPolicy", "Description", "Condition",
     "Value", "Default", "NoEcho", "AllowedValues", "AllowedPattern", "MinLength", "MaxValue"]
)  # fmt: skip
BODIES = st.dictionaries(KEYS, SNIPPETS | st.sampled_from(["T", "String", "Number"]), max_size=4)
SECTION = st.dictionaries(NAMES, BODIES | SNIPPETS, max_size=3) | SNIPPETS


@given(st.dictionaries(st.sampled_from(SECTIONS), SECTION, max_size=4))
@settings(max_examples=200)
def test_any_template_is_taken_or_refused(sections: dict[str, Json]) -> None:
    with suppress(Invalid):
        defined(sections)


TEXTS = st.text("ab$", max_size=4) | st.none() | st.integers(0, 3) | st.just(["a"])
TWINS = st.one_of(
    st.tuples(st.text(max_size=2), st.lists(TEXTS, max_size=3) | TEXTS).map(
        lambda args: ({"Fn::Join": [*args]}, {"list_join": [*args]})
    ),
    st.tuples(st.dictionaries(TEXTS.map(str), TEXTS, max_size=3), TEXTS).map(
        lambda args: (
            {"Fn::Replace": [*args]},
            {"str_replace": {"params": args[0], "template": args[1]}},
        )
    ),
)


@given(TWINS)
def test_functions_that_both_languages_have_agree(twins: tuple[Json, Json]) -> None:
    def value(snippet: Json) -> Json:
        resources = {"a": {"type": "T", "properties": {"value": snippet}}}
        document = {"heat_template_version": "2013-05-23", "resources": resources}
        stack = define_stack(
            template=parse_template(document),
            environment=parse_environment({}),
            parameters={},
            files={},
            pseudo={},
            types=TYPES,
            check_properties=lambda kind, properties, place, findings: None,
        )
        return stack.resources["a"].properties["value"]

    found: list[Json] = []
    for snippet in twins:
        try:
            found.append(value(snippet))
        except Invalid:
            found.append(Invalid)
    assert found[0] == found[1]
