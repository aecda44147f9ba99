"""Ids of parametrized tests are readable and equal in every process."""

from datetime import timedelta

import pytest

from engine.words import Decision
from tests.support.parameter_ids import MAX_ID_LENGTH, parameter_id


def test_sets_are_ordered() -> None:
    assert parameter_id({"b", "a", "c"}) == "{'a', 'b', 'c'}"
    assert parameter_id({"k": [frozenset({2, 1}), None]}) == "{'k': [{1, 2}, None]}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([1, "a", True], "[1, 'a', True]"),
        ((Decision.STEP,), "[step]"),
        (ValueError("x"), "ValueError"),
        (timedelta(minutes=5), "0:05:00"),
    ],
)
def test_arguments_are_shown(value: object, expected: str) -> None:
    assert parameter_id(value) == expected


def test_long_ids_are_truncated() -> None:
    name = parameter_id(["x" * 100])
    assert name is not None
    assert len(name) == MAX_ID_LENGTH
    assert name.endswith("...")


@pytest.mark.parametrize(
    "value", ["text", 5, None, [object()]], ids=["text", "number", "none", "object"]
)
def test_pytest_chooses_other_ids(value: object) -> None:
    assert parameter_id(value) is None
