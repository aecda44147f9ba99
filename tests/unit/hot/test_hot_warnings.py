"""What Heat accepts and a user has probably not meant: accepted with a warning."""

import pytest

from engine.errors import MAX_WARNINGS, Finding, Findings
from engine.hot.definition.stack import evaluate_output
from engine.hot.expressions.expression import decode, encode
from engine.hot.functions.function import QUOTE_NAMES, FunctionError
from engine.hot.nested.nested_templates import NestedTemplates
from engine.hot.schema.type_schema import TypeSchema
from engine.hot.syntax.document import read_document
from engine.words import Json

from .cfn_support import AWS, cfn_thing
from .hot_support import TYPES, UniformView, defined, faults, thing

UNDECLARED = {"equals": [{"get_param": "nix"}, 1]}


def warnings(template: dict[str, Json], **more: Json) -> list[tuple[str, str]]:
    """(code, place) of each warning."""
    return [(one.code, one.place) for one in defined(template, **more).warnings]


def text_warnings(text: str) -> tuple[dict[str, Json], list[Finding]]:
    found = Findings()
    return read_document(text, "template", warnings=found), list(found.warnings)


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("a: 1\nb: 0\na: 2", {"a": 2, "b": 0}, [("DuplicateKey", "a", 3, 1)]),
        ('{"a": 1,\n "b": {"c": 1, "c": 2}}', {"a": 1, "b": {"c": 2}},
         [("DuplicateKey", "b.c", 2, 16)]),
        ("a: [{}, {b: 1, 'b': 2, b: 3}]", {"a": [{}, {"b": 3}]},
         [("DuplicateKey", "a[1].b", 1, 16)]),
        ("a:\n  80: x\n  0x51: y", {"a": {"80": "x", "81": "y"}},
         [("KeyNotText", "a.80", 2, 3), ("KeyNotText", "a.81", 3, 3)]),
        ("1.5: x\n~: y", {"1.5": "x", "null": "y"},
         [("KeyNotText", "1.5", 1, 1), ("KeyNotText", "null", 2, 1)]),
        ("80: x\n'80': y", {"80": "y"},
         [("KeyNotText", "80", 1, 1), ("DuplicateKey", "80", 2, 1)]),
        ("a: &a {x: 1, y: 1}\nb: &b {x: 2}\nc: {<<: *a, <<: *b}",
         {"a": {"x": 1, "y": 1}, "b": {"x": 2}, "c": {"x": 2, "y": 1}},
         [("DuplicateKey", "c.<<", 3, 13)]),
        ("a: &a b\nc: {*a : 1, b: 2}", {"a": "b", "c": {"b": 2}}, [("DuplicateKey", "c.b", 2, 13)]),
        ("on: 1\nyes: 2\n'no': 3", {"on": 1, "yes": 2, "no": 3}, []),
    ],
)  # fmt: skip
def test_keys_that_are_given_twice_or_are_not_text(
    text: str, value: Json, expected: list[tuple[str, str, int, int]]
) -> None:
    document, found = text_warnings(text)
    assert document == value
    assert [(one.code, one.place, one.line, one.column) for one in found] == expected


def test_the_number_of_warnings_is_limited() -> None:
    _, found = text_warnings("a:\n" + "  b: 1\n" * 10_000)
    assert len(found) == MAX_WARNINGS + 1
    assert found[-1].code == "MoreWarnings"


def test_an_unused_condition_may_name_an_undeclared_parameter() -> None:
    template = {"conditions": {"c": UNDECLARED, "d": {"not": "c"}}, "resources": {"a": thing()}}
    assert warnings(template) == [("UnusedCondition", "conditions.c")]
    template = {"conditions": {"c": {"not": 5}}, "resources": {"a": thing()}}
    assert warnings(template) == [("UnusedCondition", "conditions.c")]


@pytest.mark.parametrize(("name", "value"), [("on", True), ("Yes", True), ("off", False)])
@pytest.mark.parametrize(
    ("part", "place"),
    [
        ("resource", "resources.a.condition"),
        ("not", "resources.a.condition"),
        ("output", "outputs.o.condition"),
        ("if", "resources.a.properties.value.if[0]"),
        ("condition", "conditions.{}"),
        ("assertion", "resources.a.preconditions[0].assert.or[0]"),
    ],
)
def test_a_boolean_in_place_of_the_name_of_a_condition(
    name: str, value: bool, part: str, place: str
) -> None:
    """YAML reads `condition: on` as a boolean, which Heat takes for the result."""

    def template(used: Json) -> Json:
        written: Json = {"conditions": {name: {"equals": [1, 1]}}, "resources": {"a": thing()}}
        match part:
            case "resource":
                written["resources"]["a"]["condition"] = used
            case "not":
                written["resources"]["a"]["condition"] = {"not": used}
            case "output":
                written["outputs"] = {"o": {"value": 1, "condition": used}}
            case "if":
                written["resources"]["a"] = thing(value={"if": [used, "1", "2"]})
            case "condition":
                written["conditions"]["other"] = {"not": used}
            case "assertion":
                held = {"assert": {"or": [used, {"equals": [1, 1]}]}, "message": "m"}
                written["resources"]["a"]["preconditions"] = [held]
                written["heat_template_version"] = "2026-12-01"
        return written

    (warning,) = defined(template(value)).warnings
    assert (warning.code, warning.place) == ("NoEffect", place.format(name))
    text = f'This is the boolean {str(value).lower()}, and not the condition "{name}".'
    assert (warning.reason, warning.remedy) == (text, QUOTE_NAMES)
    assert warnings(template(name)) == []
    assert warnings(template(not value)) == []


def test_a_boolean_beside_the_quoted_name_of_a_condition_is_meant() -> None:
    template = {
        "conditions": {"on": {"equals": [1, 1]}},
        "resources": {
            "a": thing() | {"condition": True},
            "b": thing() | {"condition": "on"},
        },
    }
    assert warnings(template) == []


@pytest.mark.parametrize("used", ["c", "d"])
@pytest.mark.parametrize("where", ["resource", "output", "if"])
def test_a_condition_with_an_undeclared_parameter_cannot_be_used(used: str, where: str) -> None:
    template: dict[str, Json] = {
        "conditions": {"c": UNDECLARED, "d": {"not": "c"}},
        "resources": {"a": thing()},
    }
    match where:
        case "resource":
            template["resources"]["a"]["condition"] = used
        case "output":
            template["outputs"] = {"o": {"value": 1, "condition": used}}
        case "if":
            template["resources"]["a"] = thing(value={"if": [used, 1, 2]})
    found = faults(template)
    assert [one.place for one in found] == ["conditions.c"]
    assert "The Parameter (nix) was not provided." in found[0].reason


@pytest.mark.parametrize("used", ["c", "d"])
def test_a_hook_cannot_use_such_a_condition(used: str) -> None:
    definition = defined({"conditions": {"c": UNDECLARED, "d": {"not": "c"}}, "resources": {}})
    for _ in range(2):
        with pytest.raises(FunctionError, match="was not provided"):
            definition.decide(used, "hooks[0].when")


@pytest.mark.parametrize(
    "conditions", [{"c": {"not": "d"}, "d": {"not": "c"}}, {"c": {"not": "nix"}}]
)
def test_an_unused_condition_may_be_circular_or_name_another_that_does_not_exist(
    conditions: dict[str, Json],
) -> None:
    found = defined({"conditions": conditions, "resources": {"a": thing()}}).warnings
    assert {one.code for one in found} == {"UnusedCondition"}
    template = {"conditions": conditions, "resources": {"a": thing() | {"condition": "c"}}}
    assert all(one.place.startswith("conditions.") for one in faults(template))


@pytest.mark.parametrize("condition", [{"get_attr": ["a", "b"]}, {"equals": [1]}, "x"])
def test_other_faults_of_unused_conditions_are_errors(condition: Json) -> None:
    assert faults({"conditions": {"c": condition}, "resources": {}})[0].place.startswith(
        "conditions.c"
    )


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"get_param": "nix"}, "The Parameter (nix) was not provided."),
        ({"get_resource": "nix"}, 'The specified reference "nix" (in o) is incorrect.'),
        ({"get_file": "nix"}, 'No content found in the "files" section for get_file path: nix'),
        ({"list_join": [",", [1]]}, "Items to join must be string, map or list not 1"),
        ({"digest": ["nix", "x"]}, "Algorithm must be one of"),
        ({"yaql": {"expression": "$.data.x", "data": {}}}, "x"),
        ({"list_join": [",", [{"get_param": "nix"}, {"get_attr": ["a", "output"]}]]}, "nix"),
    ],
)  # fmt: skip
def test_an_output_without_a_value_shows_the_error_when_it_is_read(
    value: Json, reason: str
) -> None:
    template = {"resources": {"a": thing()}, "outputs": {"o": {"value": value}}}
    definition = defined(template)
    found = definition.warnings
    assert [one.code for one in found] == ["OutputError"]
    assert found[0].place.startswith("outputs.o.value") and reason in found[0].reason
    stored = decode(encode(definition.outputs["o"].value), definition.version)
    shown, error = evaluate_output(stored, UniformView())
    assert shown is None and reason in str(error)


@pytest.mark.parametrize(
    "value",
    [
        {"get_attr": ["nix", "output"]},
        {"get_attr": ["a", "nix"]},
        {"list_join": "x"},
        {"if": ["nix", 1, 2]},
        {"yaql": {"expression": "1 +"}},
        {"make_url": {"port": 0}},
        {"Ref": "a"},
        {"get_resource": ["a"]},
    ],
)
def test_faults_of_outputs_that_heat_refuses_are_errors(value: Json) -> None:
    template = {"resources": {"a": thing()}, "outputs": {"o": {"value": value}}}
    assert faults(template)[0].place.startswith("outputs.o.value")


PORT = {"get_param": "port"}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"make_url": {"host": "h", "port": PORT}}, 'Invalid URL port ""'),
        ({"make_url": {"host": {"get_param": "n"}}}, 'argument to "make_url" must be a string'),
        ({"make_url": {"host": "h", "port": {"get_param": "n"}}}, "must be in range 1-65535"),
        ({"make_url": {"query": PORT}}, 'The "query" argument to "make_url" must be a map'),
        ({"list_join": [{"get_param": "n"}, ["a"]]}, "must be a string"),
        ([{"map_merge": [{}, {"a": {"make_url": {"port": PORT}}}]}], 'Invalid URL port ""'),
    ],
)
def test_a_value_of_a_parameter_that_a_function_refuses_is_an_error_of_the_output_only(
    value: Json, reason: str
) -> None:
    """As in Heat, which checks the template's own arguments first, and values when the output is
    read. The endpoint map of TripleO has 200 such ports, without its values."""
    template = {
        "parameters": {
            "port": {"type": "string", "default": ""},
            "n": {"type": "number", "default": 70000},
        },
        "outputs": {"o": {"value": value}},
    }
    found = defined(template).warnings
    assert [one.code for one in found] == ["OutputError"]
    assert reason in found[0].reason
    in_a_resource = {**template, "outputs": {}, "resources": {"a": thing(value=value)}}
    assert faults(in_a_resource)


@pytest.mark.parametrize(
    "value",
    [
        {"make_url": {"host": PORT, "port": 0}},
        {"make_url": {"host": PORT, "port": "x"}},
        {"make_url": {"prot": PORT}},
        {"str_replace": {"template": "t", "nix": PORT}},
    ],
)
def test_literal_arguments_of_outputs_are_checked_beside_calls(value: Json) -> None:
    parameters = {"port": {"type": "string", "default": ""}}
    template = {"parameters": parameters, "outputs": {"o": {"value": value}}}
    assert faults(template)[0].place.startswith("outputs.o.value")


NONE = TypeSchema("OS::Heat::None", any_property=True, any_attribute=True)


@pytest.mark.parametrize(
    "value",
    [
        {"get_param": "nix"},
        {"get_file": "nix"},
        {"list_join": [",", [1]]},
        {"make_url": {"query": {"get_param": "n"}}},
        [{"a": {"get_param": "nix"}}],
    ],
)
@pytest.mark.parametrize("kind", ["OS::Heat::None", "Test::Off"])
def test_properties_of_a_type_that_is_switched_off_need_no_value(kind: str, value: Json) -> None:
    """As in Heat, whose resource reads no property."""
    resources = {
        "b": thing(),
        "a": {"type": kind, "properties": {"p": value, "q": {"get_attr": ["b", "output"]}}},
    }
    registry = {"resource_registry": {"Test::Off": "OS::Heat::None"}}
    template = {"parameters": {"n": {"type": "number", "default": 1}}, "resources": resources}
    found = defined(template, types={**TYPES, NONE.name: NONE}, environment=registry)
    assert {one.code for one in found.warnings} == {"NoEffect"}
    assert any(one.place.startswith("resources.a.properties.p") for one in found.warnings)
    assert found.resources["a"].properties == {}
    assert found.resources["a"].requires == {"b"}


@pytest.mark.parametrize(
    "value", [{"list_join": "x"}, {"get_resource": "nix"}, {"if": ["nix", 1, 2]}]
)
def test_other_faults_of_a_type_that_is_switched_off_are_errors(value: Json) -> None:
    resources = {"a": {"type": NONE.name, "properties": {"p": value}}}
    found = faults({"resources": resources}, types={**TYPES, NONE.name: NONE})
    assert found[0].place.startswith("resources.a")


def test_only_the_properties_of_a_type_that_is_switched_off_need_no_value() -> None:
    unknown = {"p": {"get_param": "nix"}}
    off = {"type": NONE.name, "properties": unknown, "metadata": unknown}
    resources = {"a": off, "b": thing(value={"get_param": "nix"})}
    found = faults({"resources": resources}, types={**TYPES, NONE.name: NONE})
    assert [one.place.rpartition(".")[0] for one in found] == [
        "resources.a.metadata.p", "resources.b.properties.value"
    ]  # fmt: skip


def test_many_faults_of_outputs_refuse_no_template() -> None:
    url = {"make_url": {"host": "h", "port": PORT}}
    template = {
        "parameters": {"port": {"type": "string", "default": ""}},
        "outputs": {f"o{number}": {"value": url} for number in range(150)},
    }
    found = defined(template).warnings
    assert {one.code for one in found} == {"OutputError", "MoreWarnings"}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"length": 5}, '"length" takes a string, a list or a map, not 5'),
        ({"upper": ["x"]}, '"upper" takes a string'),
        ({"first": {"get_param": "size"}}, '"first" takes a list, not 2'),
        ({"distinct": "x"}, '"distinct" takes a list'),
        ({"from_json": 1}, '"from_json" takes a string with JSON'),
        ({"from_json": "{"}, '"from_json" takes valid JSON'),
        ({"coalesce": []}, 'Incorrect arguments to "coalesce"'),
        ({"coalesce": [None]}, 'All values of "coalesce" are null'),
        ({"lookup": [{}]}, 'Incorrect arguments to "lookup"'),
        ({"lookup": [[], "x"]}, '"lookup" takes an integer'),
        ({"lookup": [{}, "x"]}, '"lookup" finds no key'),
        ({"add": 1}, 'Incorrect arguments to "add"'),
        ({"add": [1, "x"]}, '"add" calculates with integers, not "x"'),
        ({"divide": [1, 0]}, '"divide" divides by zero'),
        ({"multiply": [2**62, 8]}, "does not fit into 64 bits"),
        ({"list_join": [",", ["${nix}", {"get_attr": ["a", "output"]}]]}, '"${nix}" names neither'),
        ("${size", 'The reference "${size" has no closing'),
        ("${size.x}", '"${size.x}" has no value'),
        ("${each.key}", 'has a value only in a resource with "for_each"'),
        ("${" + 1_001 * "x" + "}", "more than 1000 characters"),
        ({"get_local": {}}, '"get_local" takes the name'),
        ({"get_local": "nix"}, 'There is no local "nix"'),
        ({"stack_output": ["net"]}, '"stack_output" takes [stack, output'),
        ({"stack_output": [{"get_resource": "a"}, "x"]}, "known when the stack is defined"),
        ({"stack_output": [{"get_param": "hidden"}, "x"]}, "must not come from a hidden parameter"),
    ],
)  # fmt: skip
def test_in_outputs_all_faults_of_own_functions_are_warnings(value: Json, reason: str) -> None:
    """A resource with the same value is refused for the same reason."""
    parameters = {"size": {"type": "number", "default": 2}}
    parameters["hidden"] = {"type": "string", "default": "net", "hidden": True}
    template = {"heat_template_version": "headgate", "parameters": parameters}
    resources = {"a": thing()}
    definition = defined(template | {"resources": resources, "outputs": {"o": {"value": value}}})
    found = definition.warnings
    assert [one.code for one in found] == ["OutputError"]
    assert found[0].place.startswith("outputs.o.value") and reason in found[0].reason
    stored = decode(encode(definition.outputs["o"].value), definition.version)
    shown, error = evaluate_output(stored, UniformView())
    assert shown is None and reason in str(error)
    (refused,) = faults(template | {"resources": resources | {"b": thing(value=value)}})
    assert reason in refused.reason


def test_a_precondition_of_an_output_with_a_fault_is_a_warning() -> None:
    output = {"value": 1, "preconditions": [{"assert": {"equals": ["${nix}", 1]}, "message": "x"}]}
    template = {"heat_template_version": "headgate", "outputs": {"o": output}}
    definition = defined(template)
    assert [one.code for one in definition.warnings] == ["OutputError"]
    stored = decode(encode(definition.outputs["o"].value), definition.version)
    shown, error = evaluate_output(stored, UniformView())
    assert shown is None and '"${nix}" names neither' in str(error)


def test_a_secret_is_not_in_the_error_of_an_output() -> None:
    template: dict[str, Json] = {
        "parameters": {"p": {"type": "string", "hidden": True}},
        "resources": {},
        "outputs": {"o": {"value": {"get_file": {"get_param": "p"}}}},
    }
    definition = defined(template, parameters={"p": "s3cret"})
    assert definition.warnings and "s3cret" not in repr(definition.warnings)
    assert "s3cret" not in repr(definition.outputs)


INNER = """
heat_template_version: 2018-08-31
parameters: {p: {type: string, default: x}, p: {type: string, default: y}}
outputs: {o: {value: {get_param: nix}}, good: {value: {get_param: p}}}
"""


def test_warnings_about_nested_templates_name_the_file_once() -> None:
    template = {"resources": {"a": {"type": "in.yaml"}, "b": {"type": "in.yaml"}}}
    found = defined(template, nesting=NestedTemplates({"in.yaml": INNER})).warnings
    assert [(one.code, one.place, one.file, one.inner_place) for one in found] == [
        ("DuplicateKey", "resources.a<in.yaml>.parameters.p", "in.yaml", "parameters.p"),
        ("OutputError", "resources.a<in.yaml>.outputs.o.value.get_param", "in.yaml",
         "outputs.o.value.get_param"),
    ]  # fmt: skip


def test_an_output_without_a_value_that_a_resource_may_need_is_an_error() -> None:
    template = {"resources": {"a": {"type": "in.yaml"}, "b": thing(value={"get_attr": ["a", "o"]})}}
    found = faults(template, nesting=NestedTemplates({"in.yaml": INNER}))
    assert [(one.place, one.file) for one in found] == [
        ("resources.a<in.yaml>.outputs.o.value.get_param", "in.yaml")
    ]


@pytest.mark.parametrize(
    ("snippet", "version", "remedy"),
    [
        ({"get_atr": ["a", "output"]}, "2021-04-16", 'Did you mean "get_attr"?'),
        ({"get_params": "x"}, "2021-04-16", 'Did you mean "get_param"?'),
        ({"gte_param": "x"}, "2021-04-16", 'Did you mean "get_param"?'),
        ({"getattr": ["a", "output"]}, "2021-04-16", 'Did you mean "get_attr"?'),
        ({"Str-Replace": {}}, "2021-04-16", 'Did you mean "str_replace"?'),
        ({"str_split": [",", "a,b"]}, "2013-05-23", "Use heat_template_version 2015-10-15"),
        ({"repeat": {"template": "x", "for_each": {"x": []}}}, "2013-05-23", "2015-04-30"),
        ({"if": ["c", 1, 2]}, "2015-04-30", "2016-10-14"),
    ],
)
def test_a_function_that_the_version_does_not_have_is_data(
    snippet: Json, version: str, remedy: str
) -> None:
    resources = {"a": thing(value=[snippet])}
    definition = defined({"heat_template_version": version, "resources": resources})
    assert definition.resources["a"].properties["value"] == [snippet]
    ((one),) = definition.warnings
    assert one.code == "UnknownFunction" and remedy in one.remedy
    assert one.place == f"resources.a.properties.value[0].{next(iter(snippet))}"


@pytest.mark.parametrize(
    ("call", "function"),
    [
        ({"get_parm": "p"}, "get_param"),
        ({"get.param": "p"}, "get_param"),
        ({"str.replace": {}}, "str_replace"),
        ({"list.join": [",", []]}, "list_join"),
    ],
)
@pytest.mark.parametrize("name", ["size", "a.b"])
def test_an_error_about_a_misspelt_call_suggests_the_function(
    call: Json, function: str, name: str
) -> None:
    """Keys with dots too, in resources whose name has dots."""
    ((found),) = faults({"resources": {name: thing(size=call)}})
    assert found.place == f"resources.{name}.properties.size"
    assert found.remedy == f'Did you mean "{function}"?'


def test_an_error_about_a_map_has_no_remedy_for_a_part_of_it() -> None:
    """The key of the part ends like a place below the map."""
    wrong = {"get": {"get.param": "p"}}
    ((found),) = faults({"resources": {"a": thing(size=wrong)}})
    assert "Did you mean" not in found.remedy
    wrong = {"x.get_parm": {"get_parm": "p"}}
    ((found),) = faults({"resources": {"a": thing(size=wrong)}})
    assert "Did you mean" not in found.remedy


@pytest.mark.parametrize(
    "data",
    [{"filter": "x"}, {"repeat": 3}, {"if": "eth0"}, {"name": 1}, {"contains": "x"}, {"get": 1},
     {"x" * 1000: 1}, {"get_atr": 1, "other": 2}, {"digest": "sha256"}],
)  # fmt: skip
def test_ordinary_data_has_no_warning(data: Json) -> None:
    template = {"heat_template_version": "2013-05-23", "resources": {"a": thing(value=[data])}}
    assert warnings(template) == []


def test_keys_without_effect() -> None:
    resource = cfn_thing() | {"DependOn": "b", "UpdateReplacePolicy": "Retain", "//": "a comment"}
    cfn = {AWS: "2010-09-09", "Resources": {"a": resource}}
    assert warnings(cfn) == [
        ("NoEffect", "Resources.a.DependOn"),
        ("NoEffect", "Resources.a.UpdateReplacePolicy"),
    ]
    early = {
        "heat_template_version": "2013-05-23",
        "resources": {},
        "outputs": {"o": {"value": 1, "vlaue": 2, "condition": False}},
    }
    assert warnings(early) == [
        ("NoEffect", "outputs.o.vlaue"),
        ("NoEffect", "outputs.o.condition"),
    ]
    hot = {"parameters": {"p": {"type": "json", "default": {}, "schema": {}}}, "resources": {}}
    assert warnings(hot) == [("NoEffect", "parameters.p.schema")]


def test_entries_of_an_environment_without_effect() -> None:
    environment = {
        "resource_registry": {"resources": {"a": {"A::*": "B"}}},
        "parameter_merge_strategies": {"p": "mrge", "q": ["merge"]},
    }
    assert warnings({"resources": {}}, environment=environment) == [
        ("NoEffect", "parameter_merge_strategies.p"),
        ("NoEffect", "parameter_merge_strategies.q"),
        ("NoEffect", "resource_registry.resources.a.A::*"),
    ]


@pytest.mark.parametrize(
    ("type_", "properties", "expected"),
    [
        ("Test::Thing", {"size": 1}, [("NoEffect", "resources.a.properties")]),
        ("Test::Thing", {"nope": 1}, [("NoEffect", "resources.a.properties")]),
        ("Test::Thing", {}, []),
        ("OS::Heat::None", {"size": 1}, [("NoEffect", "resources.a.properties")]),
        ("OS::Heat::None", {}, []),
        ("Other::Thing", {"size": 1}, []),
    ],
)
def test_properties_of_a_type_that_is_switched_off(
    type_: str, properties: Json, expected: list[tuple[str, str]]
) -> None:
    none = TypeSchema("OS::Heat::None", any_property=True, any_attribute=True)
    other = TypeSchema("Other::Type", any_property=True)
    written = {"resources": {"a": {"type": type_, "properties": properties}}}
    registry = {"Test::Thing": "OS::Heat::None", "Other::Thing": "Other::Type"}
    types = TYPES | {one.name: one for one in (none, other)}
    environment = {"resource_registry": registry}
    assert warnings(written, environment=environment, types=types) == expected


NONE = TypeSchema("OS::Heat::None", any_property=True, any_attribute=True, snapshots=True)


@pytest.mark.parametrize("mapped", [True, False])
def test_what_has_no_effect_in_a_resource_that_is_switched_off(mapped: bool) -> None:
    kind = "Test::Thing" if mapped else NONE.name
    body: Json = {"type": kind, "properties": {"text": "x"}, "deletion_policy": "Snapshot"}
    registry = {"resource_registry": {"Test::Thing": NONE.name}} if mapped else {}
    found = defined({"resources": {"a": body}}, registry, types=TYPES | {NONE.name: NONE})
    assert [(one.place, one.code) for one in found.warnings] == [
        ("resources.a.properties", "NoEffect"), ("resources.a.deletion_policy", "NoEffect"),
    ]  # fmt: skip
    assert ("environment" in found.warnings[0].reason) is mapped
    plain = defined({"resources": {"a": {"type": kind}}}, registry, types=TYPES | {NONE.name: NONE})
    assert plain.warnings == ()


@pytest.mark.parametrize(
    ("snippet", "meant"),
    [
        ({"uper": "abc"}, "upper"), ({"lokup": [{"a": 1}, "a", 2]}, "lookup"),
        ({"lenght": [1]}, "length"), ({"uper": {"a": 1}}, ""), ({"of": [1, 2, 3]}, ""),
        ({"upper_case": "abc"}, ""),
    ],
)  # fmt: skip
def test_misspelt_words_are_functions_only_with_fitting_arguments(
    snippet: Json, meant: str
) -> None:
    def warnings(version: str) -> list[str]:
        written = {"heat_template_version": version, "resources": {"a": thing(value=snippet)}}
        return [one.remedy for one in defined(written).warnings]

    assert warnings("2026-12-01") == ([f'Did you mean "{meant}"?'] if meant else [])
    assert warnings("2021-04-16") == []
