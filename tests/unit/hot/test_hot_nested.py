"""Templates as resource types: parameters, attributes, and errors in them."""

import pytest

from engine.errors import Invalid, LimitReached
from engine.hot.functions.cost_budget import CostLimits
from engine.hot.nested.nested_templates import NestedTemplates
from engine.hot.schema.type_schema import Attribute, Kind
from engine.words import Json
from tests.unit.hot.hot_support import thing
from tests.unit.hot.nested_support import findings_of, nested, stack, template, web


def test_a_template_can_be_a_type() -> None:
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
    assert all(one.default is None for one in schema.properties.values())  # set by the template
    assert [name for name, one in schema.properties.items() if one.hidden] == ["key"]
    assert schema.attributes == {
        "OS::stack_id": Attribute(description="The ID of the nested stack."),
        "o": Attribute(description="Out"),
    }
    assert stack(web()).resources["web"].type == "server.yaml"


@pytest.mark.parametrize(
    ("properties", "parameters"),
    [
        # as Heat shows them
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
        # Heat fails with an internal error
        ({"names": [1, True]}, {"names": "1,True"}),
        ({"names": [{"a": 1}, "b", ["c"]]}, {"names": '.member.0.a=1,b,["c"]'}),
    ],
)
def test_properties_become_parameters(properties: dict[str, Json], parameters: Json) -> None:
    assert nested(web(**properties)).parameters == parameters


@pytest.mark.parametrize(
    ("properties", "place", "reason"),
    [
        ({"zork": 1}, "resources.web.properties", "Unknown Property zork"),
        ({"size": "x"}, "resources.web.properties.size", '"x" is not a number'),
        ({"size": 10}, "resources.web.properties.size", "10 is out of range (min: None, max: 9)"),
        ({"flag": "yes"}, "resources.web.properties.flag", "not a valid boolean"),
        ({"text": ["a"]}, "resources.web.properties.text", "Value must be a string"),
        ({"names": {"a": 1}}, "resources.web.properties.names", "is not a list"),
        ({"data": 5}, "resources.web.properties.data", "is not a map"),
        ({"data": "{"}, "resources.web<server.yaml>", "Parameter 'data' is invalid: Value must be"),
    ],
)
def test_unknown_properties_of_a_template_type_are_refused(
    properties: dict[str, Json], place: str, reason: str
) -> None:
    (finding,) = findings_of(web(**properties))
    assert finding.place == place and reason in finding.reason


def test_a_parameter_without_a_default_is_required() -> None:
    files = {"server.yaml": template(parameters={"r": {"type": "string"}})}
    (finding,) = findings_of(web(), files)
    assert str(finding) == 'resources.web.properties: Property r not assigned. Add "r".'
    assert nested(web(), files, environment={"parameter_defaults": {"r": "z"}}).parameters == {}
    # parameters of the parent stack are separate
    around = {"parameters": {"r": {"type": "string", "default": "z"}}}
    assert len(findings_of(web(), files, template=around)) == 1


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
def test_attributes_are_outputs_and_nested_resources(attribute: str, known: bool) -> None:
    resources = web() | {"reader": thing(value={"get_attr": ["web", attribute]})}
    if known:
        stack(resources)
        return
    (finding,) = findings_of(resources)
    assert finding.place == "resources.reader.properties.value.get_attr"
    assert finding.reason == f"The Referenced Attribute (web {attribute}) is incorrect."


def test_errors_in_nested_templates_have_their_path() -> None:
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
    found = findings_of({**web(), "other": thing(sise=2)}, files)
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
    (finding,) = findings_of(web(), files)
    assert finding.place == (
        "resources.web<server.yaml>.resources.y<file:///t/db.yaml>.resources.q.type"
    )
    assert finding.reason.startswith('Could not fetch remote template "gone.yaml"')


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("{", "resources.web<server.yaml>", "Error parsing template server.yaml"),
        ("{}", "resources.web<server.yaml>", "The template version is invalid: "),
        (
            template(parameters={"a": {"type": "strng"}}),
            "resources.web<server.yaml>.parameters.a",
            "Invalid type (strng)",
        ),
        (
            template(conditions={"c": {"equals": [1]}}),
            "resources.web<server.yaml>.conditions.c.equals",
            'Arguments to "equals" must be of the form: ',
        ),
    ],
)
def test_a_file_that_is_not_a_template_is_refused(text: str, place: str, reason: str) -> None:
    (finding,) = findings_of(web(), {"server.yaml": text})
    assert finding.place == place and finding.reason.startswith(reason)


def test_an_invalid_file_is_reported_once_for_all_uses() -> None:
    resources = {f"r{number}": {"type": "server.yaml"} for number in range(5)}
    assert len(findings_of(resources, {"server.yaml": "{"})) == 1


def chain(levels: int) -> dict[str, str]:
    files = {
        f"l{number}.yaml": template(resources={"x": {"type": f"l{number + 1}.yaml"}})
        for number in range(1, levels)
    }
    return files | {f"l{levels}.yaml": template(resources={"x": thing()})}


def test_the_depth_of_nesting_is_limited() -> None:
    top = {"web": {"type": "l1.yaml"}}
    stack(top, chain(7))
    (finding,) = findings_of(top, chain(8))
    assert (finding.reason, finding.code) == ("Recursion depth exceeds 7.", "RequestLimitExceeded")
    assert finding.place == "resources.web<l1.yaml>." + ".".join(
        f"resources.x<l{number}.yaml>" for number in range(2, 9)
    )
    assert "[language] nesting_depth" in finding.remedy


def test_the_maximum_depth_of_nesting_can_be_set() -> None:
    top, files = {"web": {"type": "l1.yaml"}}, chain(3)
    stack(top, nesting=NestedTemplates(files, depth=3))
    with pytest.raises(Invalid, match=r"Recursion depth exceeds 2\."):
        stack(top, nesting=NestedTemplates(files, depth=2))


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
def test_a_template_that_contains_itself_is_refused(files: dict[str, str], remedy: str) -> None:
    (finding,) = findings_of({"web": {"type": "a.yaml"}}, files)
    assert finding.reason == "Recursion depth exceeds 7." and finding.remedy == remedy


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


def test_a_template_can_contain_itself_with_an_end_condition() -> None:
    top = {"web": {"type": "down.yaml", "properties": {"left": "cd"}}}
    found = nested(top, {"down.yaml": COUNTDOWN})
    assert found.nested["x"].nested["x"].nested == {}


def test_resources_of_all_levels_are_counted() -> None:
    files = {"server.yaml": template(resources={f"x{n}": thing() for n in range(3)})}
    resources = {name: {"type": "server.yaml"} for name in ("a", "b")}
    stack(resources, nesting=NestedTemplates(files, most_resources=8))
    with pytest.raises(LimitReached) as caught:
        stack(resources, nesting=NestedTemplates(files, most_resources=7))
    assert caught.value.code == "RequestLimitExceeded"
    assert "8 resources, including those of nested templates" in str(caught.value)


def test_the_size_of_a_template_counts_for_each_use() -> None:
    large = template(description="x" * 500_000)
    resources = {f"r{number}": {"type": "server.yaml"} for number in range(70)}
    with pytest.raises(LimitReached) as caught:
        stack(resources, {"server.yaml": large})
    assert "larger than 33554432 characters" in str(caught.value)


def test_the_size_of_an_environment_counts_for_each_evaluation() -> None:
    many = {f"x{number}*": {"hooks": "pre-create"} for number in range(3000)}
    resources = {f"r{number}": {"type": "server.yaml"} for number in range(150)}
    with pytest.raises(LimitReached) as caught:
        stack(resources, {"server.yaml": template()}, {"resources": many})
    assert "larger than 33554432 characters" in str(caught.value)


def test_the_cost_of_functions_counts_for_the_whole_tree() -> None:
    letters = [*"abcdefghij"]
    repeat = {"template": "%a%%b%", "for_each": {"%a%": letters, "%b%": letters}}
    body = template(
        parameters={"n": {"type": "number"}}, outputs={"o": {"value": {"repeat": repeat}}}
    )
    files, limits = {"server.yaml": body}, CostLimits(size=10_000)

    def server(number: int) -> Json:
        return {"type": "server.yaml", "properties": {"n": number}}

    stack({"r": server(0)}, files, limits=limits)
    stack({f"r{number}": server(0) for number in range(10)}, files, limits=limits)  # created once
    many = {f"r{number}": server(number) for number in range(10)}
    finding = findings_of(many, files, limits=limits)[0]
    assert finding.code == "RequestLimitExceeded" and "10000 characters" in finding.reason
    assert finding.place.endswith("<server.yaml>.outputs.o.value.repeat")


def test_resources_with_the_same_template_share_a_type() -> None:
    resources = {name: {"type": "server.yaml"} for name in ("a", "b", "c")}
    found = stack(resources, registry={"resources": {"c": {"x": {"A": "B"}}}}).nested
    assert found["a"].kind is found["b"].kind is not found["c"].kind
    assert found["c"].kind.environment.registry.by_resource["x"]["A"].target == "B"


def test_resources_with_other_values_are_evaluated_separately() -> None:
    """Both resources use the same template; the values of the second one cause an error in it."""
    inner = template(
        resources={"x": thing(size={"get_param": "n"})},
        parameters={"n": {"type": "string", "default": "1"}},
    )
    files = {"server.yaml": inner}
    resources: Json = {"a": {"type": "server.yaml"}, "b": {"type": "server.yaml"}}
    found = stack(resources, files)
    assert found.resources["a"].digest == found.resources["b"].digest
    resources["b"]["properties"] = {"n": "many"}
    (finding,) = findings_of(resources, files)
    assert finding.place == "resources.b<server.yaml>.resources.x.properties.size"
