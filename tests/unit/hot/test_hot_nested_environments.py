"""What of an environment reaches templates inside of templates."""

import pytest

from engine.hot.nested.nested_templates import NestedTemplates
from engine.words import Json
from tests.unit.hot.hot_support import defined, thing
from tests.unit.hot.nested_support import nested, operated, stack, template, web, wrong

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
    nesting = NestedTemplates(PROVIDER, {"of.yaml": operators})
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
    nesting = NestedTemplates(mine, {"of.yaml": template()})
    resources = {"web": {"type": "My::Own"}}
    operator = operated({"My::Own": "of.yaml"})
    assert not nested(resources, mine, operator=operator, nesting=nesting).kind.schema.properties
    # By its own name it is the user's file.
    assert len(wrong({"web": {"type": "of.yaml"}}, mine, operator=operator, nesting=nesting)) == 1


def test_addresses_that_are_missing_are_known() -> None:
    far = "https://t.example.org/"
    files = {"server.yaml": template(resources={"x": {"type": f"{far}b.template"}})}
    nesting = NestedTemplates(files)
    resources = web() | {"y": {"type": f"{far}a.yaml"}, "z": {"type": "gone.yaml"}}
    assert len(wrong(resources, files, nesting=nesting)) == 3
    assert nesting.missing == {f"{far}a.yaml", f"{far}b.template"}


def test_each_way_to_a_template_leaves_out_the_entry_that_led_there() -> None:
    """Another entry that leads to the same template holds inside of it."""
    provider = {"f.yaml": template(resources={"x": {"type": "Test::Free"}})}
    ways: dict[str, Json] = {"Test::Free": "f.yaml", "My::Other": "f.yaml"}
    found = stack({"a": {"type": "Test::Free"}, "b": {"type": "My::Other"}}, provider, ways)
    assert found.nested["a"].nested == {}
    assert list(found.nested["b"].nested) == ["x"]


@pytest.mark.parametrize("properties", [{}, {"p": {"get_param": "s"}}], ids=["alone", "too"])
def test_metadata_with_a_hidden_value_is_told_of_and_left_open_inside(
    properties: dict[str, Json],
) -> None:
    """Whether the properties have one as well, or not."""
    inner = template(
        parameters={"p": {"type": "string", "default": "a"}},
        resources={"x": thing(value={"resource_facade": "metadata"})},
    )
    s = {"type": "string", "hidden": True, "default": "hush"}
    web = {"type": "f.yaml", "properties": properties, "metadata": {"m": {"get_param": "s"}}}
    around = {"parameters": {"s": s}, "resources": {"web": web}}
    found = defined(around, nesting=NestedTemplates({"f.yaml": inner}))
    assert found.resources["web"].secret_metadata
    (one,) = found.contained
    assert "hush" not in str(one.definition.resources["x"])
