"""The JSON Schema of HOT accepts what validation accepts, and refuses typical mistakes."""

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from engine.errors import Findings
from engine.hot.language.versions import VERSIONS, template_functions
from engine.hot.schema.type_schema import Constraint, Kind, Property, TypeSchema
from engine.hot.syntax.document import read_document
from engine.hot.template.json_schema import template_json_schema
from engine.words import Json
from tests.support.idle_engine import make_registry

EXAMPLES = Path(__file__).parents[3] / "examples"
TYPE = TypeSchema(
    "Test::Full",
    {
        "text": Property(Kind.STRING, constraints=(Constraint("length", min=2, max=3),)),
        "size": Property(Kind.INTEGER, required=True,
                         constraints=(Constraint("range", min=1, max=10),)),
        "ratio": Property(Kind.NUMBER),
        "flag": Property(Kind.BOOLEAN),
        "color": Property(Kind.STRING,
                          constraints=(Constraint("allowed_values", allowed=("red", "1")),)),
        "names": Property(Kind.LIST, items=Property(Kind.STRING)),
        "map": Property(Kind.MAP, fields={"inner": Property(Kind.INTEGER, required=True)}),
        "free": Property(Kind.MAP),
        "any": Property(Kind.ANY),
        "new": Property(Kind.STRING, former_names=("old",), required=True),
        "csv": Property(Kind.LIST, accepts_text=True),
        "secret": Property(Kind.STRING, hidden=True, default="s3cret"),
    },
    update_policy={"batch": Property(Kind.INTEGER)},
)  # fmt: skip
ANYTHING = TypeSchema("Test::Free", any_property=True)
SCHEMA = template_json_schema(
    {**make_registry().schemas(), TYPE.name: TYPE, ANYTHING.name: ANYTHING}
)
VALIDATOR = Draft202012Validator(SCHEMA)
CALL = {"get_param": "p"}
VALID: Json = {"size": 3, "new": "x"}


def places(document: Json) -> list[str]:
    """Where the document is refused, with the innermost reason."""
    return [".".join(map(str, one.absolute_path)) for one in VALIDATOR.iter_errors(document)]


def template(**sections: Json) -> Json:
    return {"heat_template_version": "2021-04-16", **sections}


def full(**properties: Json) -> Json:
    body = {"type": TYPE.name, "properties": VALID | properties}
    return template(resources={"a": body})


def test_the_schema_is_valid() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_every_example_is_accepted() -> None:
    found = 0
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        document = read_document(path.read_text(), path.name, warnings=Findings())
        if "heat_template_version" in document:
            found += 1
            assert places(document) == [], path
    assert found > 5


@pytest.mark.parametrize("name", sorted(TYPE.properties))
def test_a_function_is_accepted_in_place_of_every_property(name: str) -> None:
    assert places(full(**{name: CALL})) == []


def test_functions_are_accepted_inside_and_in_place_of_maps_and_lists() -> None:
    inside = full(names=["a", CALL], map={"inner": CALL}, free={"x": CALL})
    assert places(inside) == []
    for body in ({"properties": {"if": ["c", {}, {}]}}, {"metadata": {"get_file": "x"}}):
        assert places(template(resources={"a": {"type": "Test::Free", **body}})) == []
    assert places(template(resources={"a": {"type": TYPE.name, "properties": CALL}})) == []


def test_every_function_of_every_version_is_known() -> None:
    known = set(SCHEMA["$defs"]["function"]["propertyNames"]["enum"])
    for date, version in VERSIONS.items():
        if version.dialect.version == "heat_template_version":
            called = set(template_functions(date)) - version.conditions
            assert called <= known


@pytest.mark.parametrize(
    "properties",
    [
        {"size": "3", "ratio": "1.5", "flag": "True", "text": 12, "color": 1},
        {"size": 2.5, "ratio": True, "flag": None, "text": None, "color": None},
        {"map": None, "free": {}, "any": [1, {"a": None}], "csv": "a,b", "names": []},
    ],
    ids=["as-text", "other-types", "empty"],
)
def test_values_that_validation_converts_are_accepted(properties: Json) -> None:
    assert places(full(**properties)) == []


@pytest.mark.parametrize(
    ("properties", "place"),
    [
        ({"sise": 3}, ""),
        ({"size": "big"}, ".size"),
        ({"size": 11}, ".size"),
        ({"size": []}, ".size"),
        ({"ratio": "half"}, ".ratio"),
        ({"flag": "si"}, ".flag"),
        ({"text": "long"}, ".text"),
        ({"color": "blue"}, ".color"),
        ({"names": "a"}, ".names"),
        ({"names": [["a"]]}, ".names.0"),
        ({"map": {}}, ".map"),
        ({"map": {"inner": 1, "iner": 2}}, ".map"),
        ({"free": "x"}, ".free"),
        ({"text": {"get_parm": "p"}}, ".text"),
    ],
    ids=lambda one: one if isinstance(one, str) else str(*one),
)
def test_wrong_properties_are_refused_at_their_place(properties: Json, place: str) -> None:
    assert places(full(**properties)) == [f"resources.a.properties{place}"]


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"resources": {}}, ""),
        (template(resource={}), ""),
        ({"heat_template_version": "2021-04-61"}, "heat_template_version"),
        (template(resources=[]), "resources"),
        (template(resources={"a": {"properties": {}}}), "resources.a"),
        (template(resources={"a": {"type": "X", "depend_on": "b"}}), "resources.a"),
        (template(resources={"a": {"type": TYPE.name}}), "resources.a"),
        (template(resources={"a": {"type": TYPE.name, "properties": {"new": "x"}}}),
         "resources.a.properties"),
        (template(resources={"a": {"type": TYPE.name, "properties": VALID,
                                   "update_policy": {"bach": 1}}}), "resources.a.update_policy"),
        (template(resources={"a": {"type": "X", "deletion_policy": "Keep"}}),
         "resources.a.deletion_policy"),
        (template(parameters={"p": {"type": "numbr"}}), "parameters.p.type"),
        (template(parameters={"p": {"type": "string", "defalut": 1}}), "parameters.p"),
        (template(parameters={"p": {"type": "string", "constraints": [{"alowed": []}]}}),
         "parameters.p.constraints.0"),
        (template(outputs={"o": {"description": "x"}}), "outputs.o"),
    ],
    ids=["no-version", "section", "version", "list", "no-type", "key", "no-properties",
         "missing-property", "update-policy", "deletion-policy", "parameter-type", "parameter-key",
         "constraint", "output"],
)  # fmt: skip
def test_wrong_documents_are_refused_at_their_place(document: Json, place: str) -> None:
    assert places(document) == [place]


def test_types_that_an_environment_may_map_have_any_properties() -> None:
    for kind in ("My::Web", "web.yaml", "Test::Free"):
        body = {"type": kind, "properties": {"x": 1}}
        assert places(template(resources={"a": body})) == []


def test_former_names_are_accepted() -> None:
    body = {"type": TYPE.name, "properties": {"size": 1, "old": "x"}}
    assert places(template(resources={"a": body})) == []


def test_defaults_of_hidden_properties_are_not_in_the_schema() -> None:
    assert "s3cret" not in str(SCHEMA)


# -- Headgate's own version -----------------------------------------------------------------------


ASSERTION = {"assert": {"equals": [1, 2]}, "message": "no ${x}"}


def extended(**body: Json) -> Json:
    return {
        "heat_template_version": "2026-12-01",
        "parameters": {"p": {"type": "json", "schema": {"type": "object"}}},
        "locals": {"x": 1},
        "data": {"d": {"type": "My::Net", "id": {"get_param": "p"}}},
        "rules": [ASSERTION, ASSERTION | {"when": "c"}],
        "moved": [{"from": "b", "to": "a"}],
        "import": [{"resource": "a", "id": {"get_param": "p"}}],
        "resources": {"a": {"type": TYPE.name, "properties": VALID, **body}},
        "outputs": {"o": {"value": 1, "preconditions": [{"assert": "c", "message": "m"}]}},
    }


@pytest.mark.parametrize(
    "body",
    [
        {"for_each": ["a"]},
        {"for_each": {"a": 1}},
        {"for_each": CALL},
        {"for_each": "${x}"},
        {"depends_on": {"if": ["c", "b"]}},
        {"depends_on": ["b", {"get_param": "p"}]},
        {"lifecycle": {"prevent_destroy": "${x}", "ignore_changes": "all", "replace_when": [CALL]}},
        {"lifecycle": {"ignore_changes": ["size"]}},
        {"preconditions": [ASSERTION], "postconditions": []},
        {"properties": VALID | {"size": "${x}", "names": "${x}", "map": "${x}", "flag": "${x}"}},
        {"deletion_policy": "${x}"},
    ],
    ids=str,
)
def test_keys_of_headgate_s_version_are_accepted(body: Json) -> None:
    assert places(extended(**body)) == []
    assert places(extended(**body) | {"heat_template_version": "headgate"}) == []


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"moved": [{"from": "a"}]}, "moved.0"),
        ({"import": [{"resource": "a", "ids": "x"}]}, "import.0"),
        ({"locals": []}, "locals"),
        ({"data": {"d": {"type": "My::Net"}}}, "data.d"),
        ({"rules": [{"when": "c", "message": "m"}]}, "rules.0"),
        ({"outputs": {"o": {"value": 1, "preconditions": [{"assert": True}]}}},
         "outputs.o.preconditions.0"),
        (extended(for_each=1), "resources.a.for_each"),
        (extended(lifecycle={"prevent": True}), "resources.a.lifecycle"),
        (extended(postconditions={}), "resources.a.postconditions"),
    ],
    ids=["moved", "import", "locals", "data", "rules", "output", "for-each", "lifecycle",
         "postconditions"],
)  # fmt: skip
def test_wrong_keys_of_headgate_s_version_are_refused(change: Json, place: str) -> None:
    found = set(places(extended() | change))
    assert place in found and all(one.startswith(place) for one in found)
