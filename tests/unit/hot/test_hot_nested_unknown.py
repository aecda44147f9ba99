"""Unknown and hidden values in nested templates."""

from tests.unit.hot.hot_support import thing
from tests.unit.hot.nested_support import (
    FILES,
    PARAMETERS,
    UNKNOWN,
    findings_of,
    nested,
    stack,
    template,
    web,
)


def test_unknown_values_stay_unknown_in_nested_templates() -> None:
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


def test_known_values_next_to_unknown_ones_are_validated() -> None:
    inner = template(
        parameters=PARAMETERS,
        conditions={"big": {"equals": [{"get_param": "size"}, 2]}},
        resources={
            "x": thing(sise={"get_param": "text"}),
            "y": {"type": "Test::Thing", "condition": "big", "properties": {"size": 11}},
        },
    )
    resources = web(text=UNKNOWN, size=2) | {"b": thing()}
    places = [one.place for one in findings_of(resources, {"server.yaml": inner})]
    assert places == [
        "resources.web<server.yaml>.resources.x.properties",
        "resources.web<server.yaml>.resources.y.properties.size",
    ]


def test_a_stack_with_missing_parameters_is_validated_as_far_as_possible() -> None:
    sections = {
        "parameters": {"a": {"type": "string"}},
        "conditions": {"c": {"equals": [{"get_param": "a"}, "x"]}},
    }
    found = findings_of({"x": thing(sise=1, text={"if": ["c", 1, 2]})}, template=sections)
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


def test_hidden_values_of_the_parent_are_hidden_in_nested_templates() -> None:
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


def test_all_properties_can_be_unknown() -> None:
    resources = {"web": {"type": "server.yaml", "properties": UNKNOWN}, "b": thing()}
    assert nested(resources).parameters == {}
