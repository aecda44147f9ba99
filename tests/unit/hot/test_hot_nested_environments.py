"""The parts of an environment that apply to nested templates."""

import pytest

from engine.hot.nested.nested_templates import NestedTemplates
from engine.hot.nested.template_type import settings_inside
from engine.words import Json
from tests.unit.hot.hot_support import defined, thing
from tests.unit.hot.nested_support import (
    findings_of,
    nested,
    stack,
    template,
    web,
    with_operator_registry,
)

PROVIDER = {
    "f.yaml": template(
        resources={"x": thing(size=2)}, outputs={"output": {"value": 1}, "key": {"value": 1}}
    )
}
REGISTRY: dict[str, Json] = {"Test::Thing": "f.yaml"}


@pytest.mark.parametrize(
    ("registry", "operator"),
    [(REGISTRY, {}), ({}, REGISTRY), ({"resources": {"a": REGISTRY}}, {})],
    ids=["of the user", "of the operator", "for one resource"],
)
def test_in_a_provider_template_the_type_is_the_real_one(
    registry: dict[str, Json], operator: dict[str, Json]
) -> None:
    """The real type has a size; the provider template has none."""
    found = stack({"a": thing()}, PROVIDER, registry, operator=with_operator_registry(operator))
    assert list(found.nested) == ["a"] and found.nested["a"].nested == {}


def test_in_a_users_provider_template_the_operators_mapping_applies() -> None:
    operators = template(
        parameters={"size": {"type": "number", "default": 1}},
        resources={"y": thing(size={"get_param": "size"})},
        outputs={"output": {"value": 1}, "key": {"value": 1}},
    )
    operator = with_operator_registry({"Test::Thing": "of.yaml"})
    nesting = NestedTemplates(PROVIDER, {"of.yaml": operators})
    found = stack({"a": thing()}, PROVIDER, REGISTRY, operator=operator, nesting=nesting)
    inside = found.nested["a"].nested["x"]
    assert (inside.kind.file, inside.nested) == ("of.yaml", {})


@pytest.mark.parametrize(
    ("resources", "inside"),
    [
        ({"web": {"label": "a=b"}}, {"*": {"label": "a=b"}}),
        ({"w*": {"label": "a=b"}, "web": {"x": {"hooks": []}}},
         {"*": {"label": "a=b"}, "x": {"hooks": []}}),
        ({"web": {"label": "a=b", "x": {"label": ""}, "*": {"hooks": []}}},
         {"*": {"label": "a=b", "hooks": []}, "x": {"label": ""}}),
        ({"web": {"label": "a=b", "*": {"label": "c=d"}}}, {"*": {"label": "c=d"}}),
        ({"w*": {"label": "a=b"}, "web": {"label": None}}, {}),
        ({"db": {"label": "a=b"}}, {}),
        # A resource of the nested stack has this name.
        ({"web": {"label": {"hooks": []}}}, {"label": {"hooks": []}}),
    ],
)  # fmt: skip
def test_a_nested_stack_inherits_the_label_of_its_resource(resources: Json, inside: Json) -> None:
    found = settings_inside({"resource_registry": {"resources": resources}}, "web")
    assert found.resources == inside
    assert not inside or [*found.resources] == [*inside]


def test_the_environment_of_a_nested_stack() -> None:
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


def test_types_can_be_mapped_by_path_of_nested_resources() -> None:
    files = {
        "server.yaml": template(
            resources={
                "x": {"type": "Test::Strict"},
                "y": {"type": "Test::Strict", "properties": {"needed": "n"}},
            }
        )
    }
    assert len(findings_of(web(), files)) == 1
    inside = {"resources": {"web": {"x": {"Test::Strict": "Test::Free"}}}}
    assert nested(web(), files, inside).nested == {}


def test_user_files_do_not_replace_templates_of_the_operator() -> None:
    mine = {"of.yaml": template(parameters={"mine": {"type": "string"}})}
    nesting = NestedTemplates(mine, {"of.yaml": template()})
    resources = {"web": {"type": "My::Own"}}
    operator = with_operator_registry({"My::Own": "of.yaml"})
    assert not nested(resources, mine, operator=operator, nesting=nesting).kind.schema.properties
    # under its own name, the user's file is used
    assert (
        len(findings_of({"web": {"type": "of.yaml"}}, mine, operator=operator, nesting=nesting))
        == 1
    )


def test_missing_urls_are_reported() -> None:
    far = "https://t.example.org/"
    files = {"server.yaml": template(resources={"x": {"type": f"{far}b.template"}})}
    nesting = NestedTemplates(files)
    resources = web() | {"y": {"type": f"{far}a.yaml"}, "z": {"type": "gone.yaml"}}
    assert len(findings_of(resources, files, nesting=nesting)) == 3
    assert nesting.missing == {f"{far}a.yaml", f"{far}b.template"}


def test_the_entry_that_maps_to_a_template_does_not_apply_in_it() -> None:
    """Another entry for the same template applies in it."""
    provider = {"f.yaml": template(resources={"x": {"type": "Test::Free"}})}
    ways: dict[str, Json] = {"Test::Free": "f.yaml", "My::Other": "f.yaml"}
    found = stack({"a": {"type": "Test::Free"}, "b": {"type": "My::Other"}}, provider, ways)
    assert found.nested["a"].nested == {}
    assert list(found.nested["b"].nested) == ["x"]


@pytest.mark.parametrize("properties", [{}, {"p": {"get_param": "s"}}], ids=["alone", "too"])
def test_metadata_with_a_hidden_value_is_reported_and_unknown_in_the_nested_template(
    properties: dict[str, Json],
) -> None:
    """Whether the properties have a hidden value, too, or not."""
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
