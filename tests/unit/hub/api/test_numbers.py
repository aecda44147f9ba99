"""Numbers that would be read as other ones."""

import json

import pytest

from engine.words import Json
from hub.api.numbers import too_large

LARGE = 123456789012345678901234567890


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"template": {"a": [1, {"b": LARGE}]}}, "template.a[1].b"),
        ({"parameters": {"p": -LARGE}}, "parameters.p"),
        ({"environment": {"parameters": {"p": 2**64}}}, "environment.parameters.p"),
        ({"template": {"a": 2**64 - 1, "b": -(2**63), "c": str(LARGE), "d": 1e30}}, None),
        ({"alarm": LARGE}, None),
        ({"template": "9" * 5000}, None),
    ],
)
def test_where_a_number_is_too_large(body: dict[str, Json], place: str | None) -> None:
    assert too_large(json.dumps(body).encode(), body) == place
