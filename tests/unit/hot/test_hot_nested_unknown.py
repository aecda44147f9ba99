"""Templates inside of templates: what is not known yet, and what is hidden."""

from tests.unit.hot.hot_support import thing
from tests.unit.hot.nested_support import (
    FILES,
    PARAMETERS,
    UNKNOWN,
    nested,
    stack,
    template,
    web,
    wrong,
)


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


def test_properties_may_be_unknown_as_a_whole() -> None:
    resources = {"web": {"type": "server.yaml", "properties": UNKNOWN}, "b": thing()}
    assert nested(resources).parameters == {}
