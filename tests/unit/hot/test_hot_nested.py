"""Templates as types of resources: what they take and give, and what is wrong inside them."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from engine.errors import Finding, Invalid, LimitReached
from engine.hot.definition import Definition, NestedDefinition
from engine.hot.effort import EffortLimits
from engine.hot.environment import parse_environment
from engine.hot.nesting import Nesting
from engine.hot.registry import Registry
from engine.hot.schema import Attribute, Kind, Property, TypeSchema
from engine.words import Json
from tests.unit.hot.hot_support import TYPES, defined, thing

FACADE = TypeSchema(
    "Test::Facade",
    {
        "size": Property(Kind.INTEGER, required=True),
        "name": Property(Kind.STRING),
        "any": Property(Kind.ANY),
    },
    {"address": Attribute()},
)
ALL = {**TYPES, FACADE.name: FACADE}
PARAMETERS = {
    "size": {"type": "number", "default": 3, "constraints": [{"range": {"max": 9}}]},
    "names": {"type": "comma_delimited_list", "default": "", "description": "Who"},
    "data": {"type": "json", "default": {}},
    "text": {"type": "string", "default": "d"},
    "flag": {"type": "boolean", "default": False},
    "key": {"type": "string", "default": "k", "hidden": True},
}


def template(**sections: Json) -> str:
    return json.dumps({"heat_template_version": "2021-04-16", **sections})


SERVER = template(
    parameters=PARAMETERS,
    resources={"x": thing(text={"get_param": "text"})},
    outputs={"o": {"value": {"get_attr": ["x", "output"]}, "description": "Out"}},
)
FILES = {"server.yaml": SERVER}


def stack(
    resources: dict[str, Json],
    files: Mapping[str, str] = FILES,
    registry: dict[str, Json] | None = None,
    **more: Any,
) -> Definition:
    sections = {"resources": resources, **more.pop("template", {})}
    environment = {"resource_registry": registry or {}, **more.pop("environment", {})}
    more.setdefault("nesting", Nesting(files))
    return defined(sections, environment, files=files, types=ALL, **more)


def wrong(*args: Any, **more: Any) -> list[Finding]:
    with pytest.raises(Invalid) as caught:
        stack(*args, **more)
    return list(caught.value.findings)


def web(**properties: Json) -> dict[str, Json]:
    return {"web": {"type": "server.yaml", "properties": properties}}


def nested(*args: Any, **more: Any) -> NestedDefinition:
    return stack(*args, **more).nested["web"]


def test_a_template_as_a_type() -> None:
    schema = nested(web()).kind.schema
    assert {name: one.kind for name, one in schema.properties.items()} == {
        "size": Kind.NUMBER,
        "names": Kind.LIST,
        "data": Kind.MAP,
        "text": Kind.STRING,
        "flag": Kind.BOOLEAN,
        "key": Kind.STRING,
    }
    assert schema.properties["names"].description == "Who"
    assert all(one.update_allowed and not one.required for one in schema.properties.values())
    assert all(one.default is None for one in schema.properties.values())  # the template's to fill
    assert [name for name, one in schema.properties.items() if one.hidden] == ["key"]
    assert schema.attributes == {
        "OS::stack_id": Attribute(description="The id of the stack inside."),
        "o": Attribute(description="Out"),
    }
    assert stack(web()).resources["web"].type == "server.yaml"


@pytest.mark.parametrize(
    ("properties", "given"),
    [
        # As Heat gives them.
        ({"names": ["a", "b,c"]}, {"names": "a,b,c"}),
        ({"names": "a,b"}, {"names": "a,b"}),
        ({"names": []}, {"names": ""}),
        ({"names": ["a", None]}, {"names": "a,"}),
        (
            {"names": [{"k": "v", "l": "w"}, {"k": "x"}]},
            {"names": ".member.0.k=v,.member.0.l=w,.member.1.k=x"},
        ),
        ({"data": {"a": 1}}, {"data": {"a": 1}}),
        ({"data": [1, 2]}, {"data": [1, 2]}),
        ({"data": '{"a": 2}'}, {"data": '{"a": 2}'}),
        ({"size": "5"}, {"size": 5}),
        ({"flag": "true"}, {"flag": True}),
        ({"text": 5}, {"text": "5"}),
        ({"text": None, "names": None, "flag": None}, {"text": "", "names": "", "flag": False}),
        # Heat ends in an error of its own.
        ({"names": [1, True]}, {"names": "1,True"}),
        ({"names": [{"a": 1}, "b", ["c"]]}, {"names": '.member.0.a=1,b,["c"]'}),
    ],
)
def test_properties_become_parameters(properties: dict[str, Json], given: Json) -> None:
    assert nested(web(**properties)).parameters == given


@pytest.mark.parametrize(
    ("properties", "place", "reason"),
    [
        ({"zork": 1}, "resources.web.properties", "Unknown Property zork"),
        ({"size": "x"}, "resources.web.properties.size", "could not convert string to float"),
        ({"size": 10}, "resources.web.properties.size", "10 is out of range (min: None, max: 9)"),
        ({"flag": "yes"}, "resources.web.properties.flag", "not a valid boolean"),
        ({"text": ["a"]}, "resources.web.properties.text", "Value must be a string"),
        ({"names": {"a": 1}}, "resources.web.properties.names", "is not a list"),
        ({"data": 5}, "resources.web.properties.data", "is not a map"),
        ({"data": "{"}, "resources.web<server.yaml>", "Parameter 'data' is invalid: Value must be"),
    ],
)
def test_properties_that_the_template_does_not_take(
    properties: dict[str, Json], place: str, reason: str
) -> None:
    (finding,) = wrong(web(**properties))
    assert finding.place == place and reason in finding.reason


def test_a_parameter_without_a_default_is_required() -> None:
    files = {"server.yaml": template(parameters={"r": {"type": "string"}})}
    (finding,) = wrong(web(), files)
    assert str(finding) == "resources.web.properties: Property r not assigned"
    assert nested(web(), files, environment={"parameter_defaults": {"r": "z"}}).parameters == {}
    # Parameters of the stack around are its own.
    around = {"parameters": {"r": {"type": "string", "default": "z"}}}
    assert len(wrong(web(), files, template=around)) == 1


@pytest.mark.parametrize(
    ("attribute", "known"),
    [
        ("o", True),
        ("show", True),
        ("OS::stack_id", True),
        ("resource.x", True),
        ("resource.x.output", True),
        ("resource.y", False),
        ("resource", False),
        ("nope", False),
    ],
)
def test_attributes_are_outputs_and_what_is_inside(attribute: str, known: bool) -> None:
    resources = web() | {"reader": thing(value={"get_attr": ["web", attribute]})}
    if known:
        stack(resources)
        return
    (finding,) = wrong(resources)
    assert finding.place == "resources.reader.properties.value.get_attr"
    assert finding.reason == f"The Referenced Attribute (web {attribute}) is incorrect."


def test_what_is_wrong_inside_is_told_with_the_way_there() -> None:
    files = {
        "server.yaml": template(
            resources={
                "x": thing(sise=1),
                "y": {"type": "file:///t/db.yaml"},
                "z": {"type": "Test::Thong"},
            },
            outputs={"o": {"value": {"get_attr": ["x", "nope"]}}},
        ),
        "file:///t/db.yaml": template(
            parameters={"a": {"type": "string"}}, resources={"q": {"type": "gone.yaml"}}
        ),
    }
    found = wrong({**web(), "other": thing(sise=2)}, files)
    assert [(one.place, one.reason) for one in found] == [
        ("resources.other.properties", "Unknown Property sise"),
        ("resources.web<server.yaml>.resources.x.properties", "Unknown Property sise"),
        ("resources.web<server.yaml>.resources.y.properties", "Property a not assigned"),
        (
            "resources.web<server.yaml>.resources.z.type",
            "The Resource Type (Test::Thong) could not be found.",
        ),
        (
            "resources.web<server.yaml>.outputs.o.value.get_attr",
            "The Referenced Attribute (x nope) is incorrect.",
        ),
    ]
    files["server.yaml"] = template(
        resources={"y": {"type": "file:///t/db.yaml", "properties": {"a": 1}}}
    )
    (finding,) = wrong(web(), files)
    assert finding.place == (
        "resources.web<server.yaml>.resources.y<file:///t/db.yaml>.resources.q.type"
    )
    assert finding.reason.startswith('Could not fetch remote template "gone.yaml"')


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("{", "resources.web<server.yaml>", "Error parsing template server.yaml"),
        ("{}", "resources.web<server.yaml>", "Template format version not found."),
        (
            template(parameters={"a": {"type": "strng"}}),
            "resources.web<server.yaml>.parameters.a",
            'Invalid type "strng"',
        ),
        (
            template(conditions={"c": {"equals": [1]}}),
            "resources.web<server.yaml>.conditions.c",
            "Condition validation error",
        ),
    ],
)
def test_a_file_that_is_no_template(text: str, place: str, reason: str) -> None:
    (finding,) = wrong(web(), {"server.yaml": text})
    assert finding.place == place and finding.reason.startswith(reason)


def test_a_broken_file_is_told_of_once_however_many_use_it() -> None:
    resources = {f"r{number}": {"type": "server.yaml"} for number in range(5)}
    assert len(wrong(resources, {"server.yaml": "{"})) == 1


def chain(levels: int) -> dict[str, str]:
    files = {
        f"l{number}.yaml": template(resources={"x": {"type": f"l{number + 1}.yaml"}})
        for number in range(1, levels)
    }
    return files | {f"l{levels}.yaml": template(resources={"x": thing()})}


def test_five_levels_and_no_more() -> None:
    top = {"web": {"type": "l1.yaml"}}
    stack(top, chain(5))
    (finding,) = wrong(top, chain(6))
    assert (finding.reason, finding.code) == ("Recursion depth exceeds 5.", "RequestLimitExceeded")
    assert finding.place == "resources.web<l1.yaml>." + ".".join(
        f"resources.x<l{number}.yaml>" for number in range(2, 7)
    )


@pytest.mark.parametrize(
    ("files", "remedy"),
    [
        (
            {"a.yaml": template(resources={"x": {"type": "a.yaml"}})},
            "a.yaml contains itself: a.yaml -> a.yaml.",
        ),
        (
            {
                "a.yaml": template(resources={"x": {"type": "b.yaml"}}),
                "b.yaml": template(resources={"x": {"type": "a.yaml"}}),
            },
            "b.yaml contains itself: b.yaml -> a.yaml -> b.yaml.",
        ),
    ],
)
def test_a_template_that_contains_itself(files: dict[str, str], remedy: str) -> None:
    (finding,) = wrong({"web": {"type": "a.yaml"}}, files)
    assert finding.reason == "Recursion depth exceeds 5." and finding.remedy == remedy


COUNTDOWN = template(
    parameters={"left": {"type": "string"}},
    conditions={"more": {"not": {"equals": [{"get_param": "left"}, ""]}}},
    resources={
        "x": {
            "type": "down.yaml",
            "condition": "more",
            "properties": {"left": {"str_replace": {"template": {"get_param": "left"},
                                                    "params": {"ab": "", "cd": "ab"}}}},
        }
    },
)  # fmt: skip


def test_a_template_may_contain_itself_for_a_while() -> None:
    top = {"web": {"type": "down.yaml", "properties": {"left": "cd"}}}
    found = nested(top, {"down.yaml": COUNTDOWN})
    assert found.nested["x"].nested["x"].nested == {}


def test_resources_are_counted_in_all() -> None:
    files = {"server.yaml": template(resources={f"x{n}": thing() for n in range(3)})}
    resources = {name: {"type": "server.yaml"} for name in ("a", "b")}
    stack(resources, nesting=Nesting(files, most_resources=8))
    with pytest.raises(LimitReached) as caught:
        stack(resources, nesting=Nesting(files, most_resources=7))
    assert caught.value.code == "RequestLimitExceeded"
    assert "8 resources, those of nested templates among them" in str(caught.value)


def test_large_templates_are_counted_as_often_as_they_are_used() -> None:
    large = template(description="x" * 500_000)
    resources = {f"r{number}": {"type": "server.yaml"} for number in range(70)}
    with pytest.raises(LimitReached) as caught:
        stack(resources, {"server.yaml": large})
    assert "larger than 33554432 characters" in str(caught.value)


def test_what_an_environment_says_is_counted_as_often_as_it_is_looked_at() -> None:
    many = {f"x{number}*": {"hooks": "pre-create"} for number in range(3000)}
    resources = {f"r{number}": {"type": "server.yaml"} for number in range(150)}
    with pytest.raises(LimitReached) as caught:
        stack(resources, {"server.yaml": template()}, {"resources": many})
    assert "larger than 33554432 characters" in str(caught.value)


def test_what_functions_make_is_counted_for_the_whole_tree() -> None:
    letters = [*"abcdefghij"]
    repeat = {"template": "%a%%b%", "for_each": {"%a%": letters, "%b%": letters}}
    files = {"server.yaml": template(outputs={"o": {"value": {"repeat": repeat}}})}
    one: dict[str, Json] = {"r": {"type": "server.yaml"}}
    limits = EffortLimits(size=10_000)
    stack(one, files, limits=limits)
    many = {f"r{number}": {"type": "server.yaml"} for number in range(10)}
    finding = wrong(many, files, limits=limits)[0]
    assert finding.code == "RequestLimitExceeded" and "10000 characters" in finding.reason
    assert finding.place.endswith("<server.yaml>.outputs.o.value.repeat")


def test_resources_of_which_nothing_more_is_said_share_a_type() -> None:
    resources = {name: {"type": "server.yaml"} for name in ("a", "b", "c")}
    found = stack(resources, registry={"resources": {"c": {"x": {"A": "B"}}}}).nested
    assert found["a"].kind is found["b"].kind is not found["c"].kind
    assert found["c"].kind.environment.registry.by_resource["x"]["A"].target == "B"


# -- what is not known yet ------------------------------------------------------------------------

UNKNOWN = {"get_attr": ["b", "output"]}


def test_what_is_not_known_yet_is_not_guessed() -> None:
    inner = template(
        parameters=PARAMETERS,
        conditions={
            "given": {"equals": [{"get_param": "text"}, "x"]},
            "both": {"and": ["given", True]},
            "own": {"equals": [{"get_param": "OS::stack_name"}, "x"]},
        },
        resources={
            "x": thing(text={"get_param": "text"}, size={"if": ["both", "nonsense", 1]}),
            "maybe": {"type": "Test::Thing", "condition": "given", "properties": {"sise": 1}},
            "own": {"type": "gone.yaml", "condition": "own"},
            "policy": thing() | {"deletion_policy": {"get_param": "text"}},
            "there": thing() | {"external_id": {"list_join": ["", [{"get_param": "text"}]]}},
            "reader": thing(value={"get_attr": ["maybe", "output"]}),
            "joined": thing(size={"str_replace": {"template": "p", "params": {
                "p": {"get_param": "text"}}}}),
        },
        outputs={
            "o": {"value": {"list_join": [",", [{"get_param": "text"}]]}},
            "p": {"value": {"get_param": "OS::stack_id"}, "condition": "given"},
        },
    )  # fmt: skip
    resources = web(text=UNKNOWN, size=2, names=["a", UNKNOWN]) | {"b": thing()}
    found = nested(resources, {"server.yaml": inner})
    assert found.parameters == {"size": 2} and found.nested == {}


def test_what_is_known_besides_is_checked() -> None:
    inner = template(
        parameters=PARAMETERS,
        conditions={"big": {"equals": [{"get_param": "size"}, 2]}},
        resources={
            "x": thing(sise={"get_param": "text"}),
            "y": {"type": "Test::Thing", "condition": "big", "properties": {"size": 11}},
        },
    )
    resources = web(text=UNKNOWN, size=2) | {"b": thing()}
    places = [one.place for one in wrong(resources, {"server.yaml": inner})]
    assert places == [
        "resources.web<server.yaml>.resources.x.properties",
        "resources.web<server.yaml>.resources.y.properties.size",
    ]


def test_a_stack_without_all_parameters_is_checked_as_far_as_it_is_known() -> None:
    sections = {
        "parameters": {"a": {"type": "string"}},
        "conditions": {"c": {"equals": [{"get_param": "a"}, "x"]}},
    }
    found = wrong({"x": thing(sise=1, text={"if": ["c", 1, 2]})}, template=sections)
    assert [one.reason for one in found] == [
        "The Parameter (a) was not provided.",
        "Unknown Property sise",
    ]
    draft = stack(
        {"x": thing(text={"if": ["c", 1, 2]})} | web(text={"get_param": "a"}),
        template=sections,
        unknown=frozenset({"a"}),
    )
    assert draft.nested["web"].parameters == {}


def test_what_is_hidden_around_a_template_is_hidden_inside_it() -> None:
    files = FILES | {
        "mid.yaml": template(
            parameters={"a": {"type": "string"}, "b": {"type": "string"}, "l": {"type": "json"}},
            resources={
                "web": {
                    "type": "server.yaml",
                    "properties": {"text": {"get_param": "a"}, "size": 1},
                }
            },
        )
    }
    sections = {"parameters": {"p": {"type": "string", "hidden": True}}}
    properties = {"a": {"get_param": "p"}, "b": "open", "l": [{"x": {"get_param": "p"}}]}
    resources = {"web": {"type": "mid.yaml", "properties": properties}}
    found = nested(resources, files, template=sections, parameters={"p": "planted"})
    assert found.hidden == {"a", "l"} and found.nested["web"].hidden == {"text", "key"}
    assert found.nested["web"].parameters == {"text": "planted", "size": 1}
    assert "planted" not in repr(found)


# -- what stands around, and the older language ----------------------------------------------------


def test_a_nested_template_reads_the_resource_that_it_stands_for() -> None:
    inner = template(
        resources={
            "x": thing(
                text={"resource_facade": "deletion_policy"},
                map={"inner": {"get_param": "n"}},
                value={"resource_facade": "metadata"},
            )
            | {"deletion_policy": {"resource_facade": "deletion_policy"}},
            "y": thing(sise={"resource_facade": "metadata"}),
        },
        parameters={"n": {"type": "number", "default": 1}},
    )
    around = {"metadata": {"a": {"get_attr": ["b", "output"]}}, "deletion_policy": "Retain"}
    resources = {"web": {"type": "server.yaml"} | around, "b": thing()}
    (finding,) = wrong(resources, {"server.yaml": inner})
    assert finding.place == "resources.web<server.yaml>.resources.y.properties"
    sound = inner.replace("sise", "value")
    assert nested(resources, {"server.yaml": sound}).nested == {}
    bad = sound.replace('"metadata"', '"metedata"')
    assert len(wrong(resources, {"server.yaml": bad})) == 2


def test_a_nested_template_reads_the_update_policy_of_its_resource() -> None:
    files = {
        "server.yaml": template(resources={"x": thing(size={"resource_facade": "update_policy"})})
    }
    (finding,) = wrong({"web": {"type": "server.yaml", "update_policy": {"batch": 2}}}, files)
    assert finding.place == "resources.web<server.yaml>.resources.x.properties.size"
    assert '{"batch":2}' in finding.reason


def test_hidden_metadata_is_not_read_inside_before_it_is_there() -> None:
    inner = template(resources={"x": thing(size={"resource_facade": "metadata"})})
    sections = {"parameters": {"p": {"type": "string", "hidden": True}}}
    around = {"type": "server.yaml", "metadata": {"m": {"get_param": "p"}}}
    files, given = {"server.yaml": inner}, {"p": "planted"}
    assert nested({"web": around}, files, template=sections, parameters=given).nested == {}


OLDER = json.dumps(
    {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": {"Size": {"Type": "Number"}, "Name": {"Type": "String"}},
        "Conditions": {
            "Named": {"Fn::Equals": [{"Ref": "Name"}, "x"]},
            "Own": {"Fn::Equals": [{"Ref": "AWS::StackName"}, "x"]},
        },
        "Resources": {
            "A": {"Type": "Test::Thing", "Properties": {"sise": {"Ref": "Size"}}},
            "B": {"Type": "Test::Thing", "Condition": "Named", "Properties": {"sise": 1}},
            "C": {"Type": "gone.yaml", "Condition": "Own"},
            "D": {"Type": "inner.template"},
        },
        "Outputs": {"O": {"Value": {"Fn::Join": ["", [{"Ref": "AWS::StackId"}]]}}},
    }
)


def test_templates_of_the_older_language_inside_and_around() -> None:
    files = {"older.template": OLDER, "inner.template": template(resources={"q": thing(sise=1)})}
    properties = {"Size": "4", "Name": UNKNOWN}
    top = {"web": {"type": "older.template", "properties": properties}, "b": thing()}
    assert [one.place for one in wrong(top, files)] == [
        "resources.web<older.template>.Resources.A.Properties",
        "resources.web<older.template>.Resources.D<inner.template>.resources.q.properties",
    ]
    around = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Resources": {"W": {"Type": "gone.yaml"}, "V": {"Type": "inner.template"}},
    }
    with pytest.raises(Invalid) as caught:
        defined(around, files=files)
    assert [one.place for one in caught.value.findings] == [
        "Resources.W.Type",
        "Resources.V<inner.template>.resources.q.properties",
    ]


# -- facades --------------------------------------------------------------------------------------


def facade(parameters: Json, outputs: Json, **properties: Json) -> list[Finding]:
    files = {"f.yaml": template(parameters=parameters, outputs=outputs)}
    resources = {"a": {"type": "Test::Facade", "properties": properties}}
    registry = {"Test::Facade": "f.yaml"}
    return wrong(resources, files, registry)


SIZE: Json = {"size": {"type": "number", "default": 1}}
OUTPUTS: Json = {"address": {"value": "x"}}


@pytest.mark.parametrize(
    ("parameters", "outputs", "properties", "reason", "remedy"),
    [
        (
            {}, OUTPUTS, {},
            "Required property size for facade Test::Facade missing in provider",
            "Add the parameter to f.yaml.",
        ),
        (
            {**SIZE, "name": {"type": "json", "default": {}}}, OUTPUTS, {},
            "Property name type mismatch between facade Test::Facade (String) and provider (Map)",
            "Change the type of the parameter in f.yaml.",
        ),
        (
            {**SIZE, "z": {"type": "string"}}, OUTPUTS, {"z": "x"},
            "Provider requires property z unknown in facade Test::Facade",
            "Give the parameter a default in f.yaml.",
        ),
        (
            SIZE, {}, {},
            "Attribute address for facade Test::Facade missing in provider",
            "Add the output to f.yaml.",
        ),
    ],
)  # fmt: skip
def test_a_template_that_stands_for_a_type_has_to_be_like_it(
    parameters: Json, outputs: Json, properties: dict[str, Json], reason: str, remedy: str
) -> None:
    (finding,) = facade(parameters, outputs, **properties)
    assert (finding.place, finding.reason, finding.remedy) == ("resources.a.type", reason, remedy)


@pytest.mark.parametrize(
    ("parameters", "outputs"),
    [
        (SIZE, OUTPUTS),
        ({**SIZE, "name": {"type": "string", "default": ""}}, OUTPUTS),
        ({**SIZE, "any": {"type": "json", "default": {}}}, OUTPUTS),
        ({**SIZE, "more": {"type": "string", "default": ""}}, {**OUTPUTS, "more": {"value": 1}}),
    ],
)
def test_a_template_that_is_like_the_type(parameters: Json, outputs: Json) -> None:
    files = {"f.yaml": template(parameters=parameters, outputs=outputs)}
    stack({"a": {"type": "Test::Facade"}}, files, {"Test::Facade": "f.yaml"})


def test_a_name_that_is_no_other_type_wants_nothing() -> None:
    files = {"f.yaml": template()}
    stack({"a": {"type": "My::Own"}}, files, {"My::Own": "f.yaml"})
    stack({"a": {"type": "Test::Free"}}, files, {"Test::Free": "f.yaml"})


def operated(registry: dict[str, Json]) -> Registry:
    return parse_environment({"resource_registry": registry}, operator=None).registry


def test_a_template_of_the_operator_is_a_facade_too() -> None:
    files = {"f.yaml": template()}
    of_operator = {"of.yaml": template(outputs={"o": {"value": 1}})}
    (finding,) = wrong(
        {"a": {"type": "My::Own"}},
        files,
        {"My::Own": "f.yaml"},
        operator=operated({"My::Own": "of.yaml"}),
        nesting=Nesting(files, of_operator),
    )
    assert finding.reason == "Attribute o for facade My::Own missing in provider"


# -- environments of nested stacks ----------------------------------------------------------------


PROVIDER = {
    "f.yaml": template(
        resources={"x": thing(size=2)}, outputs={"output": {"value": 1}, "key": {"value": 1}}
    )
}
MAPPED: dict[str, Json] = {"Test::Thing": "f.yaml"}


@pytest.mark.parametrize(
    ("registry", "operator"),
    [(MAPPED, {}), ({}, MAPPED), ({"resources": {"a": MAPPED}}, {})],
    ids=["of the user", "of the operator", "for one resource"],
)
def test_inside_a_provider_the_type_is_the_real_one(
    registry: dict[str, Json], operator: dict[str, Json]
) -> None:
    """Which takes a size, as the provider does not."""
    found = stack({"a": thing()}, PROVIDER, registry, operator=operated(operator))
    assert list(found.nested) == ["a"] and found.nested["a"].nested == {}


def test_inside_a_users_provider_is_the_operators() -> None:
    operators = template(
        parameters={"size": {"type": "number", "default": 1}},
        resources={"y": thing(size={"get_param": "size"})},
        outputs={"output": {"value": 1}, "key": {"value": 1}},
    )
    operator = operated({"Test::Thing": "of.yaml"})
    nesting = Nesting(PROVIDER, {"of.yaml": operators})
    found = stack({"a": thing()}, PROVIDER, MAPPED, operator=operator, nesting=nesting)
    inside = found.nested["a"].nested["x"]
    assert (inside.kind.file, inside.nested) == ("of.yaml", {})


def test_what_goes_down_to_a_nested_stack() -> None:
    environment = {
        "parameters": {"p": 1},
        "parameter_defaults": {"text": "z"},
        "encrypted_param_names": ["text"],
        "event_sinks": [{"type": "webhook", "target": "https://a.test/"}],
        "hooks": [
            {"at": "web/x", "on": ["pre-create"]},
            {"at": "w*/*/y", "on": ["pre-create"]},
            {"at": "db/x", "on": ["pre-create"]},
            {"at": "web", "on": ["pre-create"]},
        ],
        "resource_registry": {
            "My::Server": "server.yaml",
            "Other": "Test::Thing",
            "resources": {
                "web": {"hooks": "pre-create", "x": {"hooks": "pre-delete", "T": "U"}},
                "w*": {"x": {"hooks": "pre-update"}, "y": {"restricted_actions": "replace"}},
                "db": {"z": {"hooks": "pre-create"}},
            },
        },
    }
    template = {"parameters": {"p": {"type": "number"}}}
    resources = {"web": {"type": "My::Server"}}
    found = nested(resources, environment=environment, template=template)
    assert found.type == "My::Server" and found.kind.file == "server.yaml"
    assert found.kind.environment.document == {
        "parameter_defaults": {"text": "z"},
        "encrypted_param_names": ["text"],
        "event_sinks": environment["event_sinks"],
        "hooks": [{"at": "x", "on": ["pre-create"]}, {"at": "*/y", "on": ["pre-create"]}],
        "resource_registry": {
            "Other": "Test::Thing",
            "resources": {
                "x": {"hooks": "pre-delete", "T": "U"},
                "y": {"restricted_actions": "replace"},
            },
        },
    }
    assert found.kind.schema.properties["text"].hidden


def test_types_of_resources_inside_by_name() -> None:
    files = {
        "server.yaml": template(
            resources={
                "x": {"type": "Test::Strict"},
                "y": {"type": "Test::Strict", "properties": {"needed": "n"}},
            }
        )
    }
    assert len(wrong(web(), files)) == 1
    inside = {"resources": {"web": {"x": {"Test::Strict": "Test::Free"}}}}
    assert nested(web(), files, inside).nested == {}


def test_what_the_operator_maps_to_is_nobodys_to_replace() -> None:
    mine = {"of.yaml": template(parameters={"mine": {"type": "string"}})}
    nesting = Nesting(mine, {"of.yaml": template()})
    resources = {"web": {"type": "My::Own"}}
    operator = operated({"My::Own": "of.yaml"})
    assert not nested(resources, mine, operator=operator, nesting=nesting).kind.schema.properties
    # By its own name it is the user's file.
    assert len(wrong({"web": {"type": "of.yaml"}}, mine, operator=operator, nesting=nesting)) == 1


def test_addresses_that_are_missing_are_known() -> None:
    far = "https://t.example.org/"
    files = {"server.yaml": template(resources={"x": {"type": f"{far}b.template"}})}
    nesting = Nesting(files)
    resources = web() | {"y": {"type": f"{far}a.yaml"}, "z": {"type": "gone.yaml"}}
    assert len(wrong(resources, files, nesting=nesting)) == 3
    assert nesting.missing == {f"{far}a.yaml", f"{far}b.template"}
