"""Templates that replace an existing resource type."""

import pytest

from engine.errors import Finding
from engine.hot.nested.nested_templates import NestedTemplates
from engine.words import Json
from tests.unit.hot.nested_support import findings_of, stack, template, with_operator_registry


def facade(parameters: Json, outputs: Json, **properties: Json) -> list[Finding]:
    files = {"f.yaml": template(parameters=parameters, outputs=outputs)}
    resources = {"a": {"type": "Test::Facade", "properties": properties}}
    registry = {"Test::Facade": "f.yaml"}
    return findings_of(resources, files, registry)


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
def test_a_template_that_replaces_a_type_must_have_its_interface(
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
def test_a_template_with_the_interface_of_the_type_is_accepted(
    parameters: Json, outputs: Json
) -> None:
    files = {"f.yaml": template(parameters=parameters, outputs=outputs)}
    stack({"a": {"type": "Test::Facade"}}, files, {"Test::Facade": "f.yaml"})


def test_a_template_for_a_new_type_name_needs_no_interface() -> None:
    files = {"f.yaml": template()}
    stack({"a": {"type": "My::Own"}}, files, {"My::Own": "f.yaml"})
    stack({"a": {"type": "Test::Free"}}, files, {"Test::Free": "f.yaml"})


def test_a_template_of_the_operator_must_have_the_interface_too() -> None:
    files = {"f.yaml": template()}
    of_operator = {"of.yaml": template(outputs={"o": {"value": 1}})}
    (finding,) = findings_of(
        {"a": {"type": "My::Own"}},
        files,
        {"My::Own": "f.yaml"},
        operator=with_operator_registry({"My::Own": "of.yaml"}),
        nesting=NestedTemplates(files, of_operator),
    )
    assert finding.reason == "Attribute o for facade My::Own missing in provider"
