"""What the remedies of common mistakes suggest."""

import pytest

from engine.hot.schema.type_schema import Constraint, Kind, Property, TypeSchema
from engine.words import Json

from .hot_support import TYPES, faults

RULE = (Constraint("allowed_values", allowed=("0", "1", "2", "3", "4", "5", "6", "7", "8", "tcp")),)
NET = TypeSchema(
    "Test::Rule",
    properties={
        "protocol": Property(Kind.STRING, constraints=RULE),
        "hidden": Property(Kind.STRING, constraints=RULE, hidden=True),
    },
)
USUAL = 'Use one of "0", "1", "2", "3", "4", "5", "6", "7", ....'


def remedy(properties: Json, parameters: Json = None) -> str:
    resource = {"type": NET.name, "properties": properties}
    template = {"parameters": parameters or {}, "resources": {"a": resource}}
    (found,) = faults(template, types={NET.name: NET})
    return found.remedy


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("TCP", f'Did you mean "tcp"? {USUAL}'),
        ("tpc", f'Did you mean "tcp"? {USUAL}'),
        ("x", USUAL),
    ],
)
def test_the_nearest_allowed_value_is_suggested(given: str, expected: str) -> None:
    assert remedy({"protocol": given}) == expected


def test_a_secret_value_gets_no_suggestion() -> None:
    """It would tell what the value resembles."""
    assert remedy({"hidden": "TCP"}) == USUAL
    parameters = {"p": {"type": "string", "default": "TCP", "hidden": True}}
    assert remedy({"protocol": {"get_param": "p"}}, parameters) == USUAL


@pytest.mark.parametrize("name", ["server.yml", "lib/server.hot", "server.json"])
def test_a_type_with_the_name_of_a_file_must_end_as_a_template_file(name: str) -> None:
    (found,) = faults({"resources": {"a": {"type": name}}}, types=TYPES)
    assert found.remedy == "The name of a template file ends with .yaml or .template: rename it."
