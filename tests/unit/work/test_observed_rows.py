"""Rows of observations show no secret."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from engine.hooks.drift_digests import DriftDigests
from engine.hot.expressions.masking import MASK, MAX_SECRETS
from engine.hot.schema.type_schema import Attribute, Kind, TypeSchema
from engine.store.observer.observations import ObservedResource, RecordedResource
from engine.types.observation import MAX_VALUE, Difference, Observation
from engine.words import FoundBy, Json, ObservedState
from engine.work.nodes.prepare import HIDDEN_REASON
from engine.work.observer.observed_rows import (
    MAX_DIFFERENCES,
    observed_resource,
    without_secrets,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "correct-horse-battery"
SCHEMA = TypeSchema(
    "Test::Key",
    attributes={"key": Attribute(Kind.ANY, secret=True), "open": Attribute(Kind.ANY)},
)
DIGESTS = DriftDigests(b"k" * 32)


def recorded(attributes: Mapping[str, Json], **more: Any) -> RecordedResource:
    values: dict[str, Any] = {
        "stack_id": UUID(int=1), "id": UUID(int=2), "name": "a", "type": "Test::Key",
        "physical_id": "p", "properties": {}, "data": {}, "attributes": attributes,
        "updated_at": NOW, "has_secrets": False, "now": NOW,
    }  # fmt: skip
    return RecordedResource(**(values | more))


def row_of(
    resource: RecordedResource, *differences: Difference, reason: str = ""
) -> ObservedResource:
    found = Observation(ObservedState.CHANGED, differences, reason, reason)
    endpoint = ("p", "Test::Key", "")
    return observed_resource(
        resource, found, SCHEMA, endpoint, FoundBy.POLICY, polled=True, digests=DIGESTS
    )


def shown(resource: RecordedResource, desired: Json, observed: Json) -> tuple[Json, Json]:
    (one,) = row_of(resource, Difference("x", desired, observed)).differences
    return one["desired"], one["observed"]


@pytest.mark.parametrize(
    ("value", "is_masked"),
    [
        (SECRET, True),
        (f"key {SECRET}", True),
        ([{"deep": SECRET}], True),
        (f"{'z' * MAX_VALUE}{SECRET}", True),
        (f"{'z' * MAX_VALUE}...", True),
        ("horse", False),
        (7, False),
        (None, False),
    ],
    ids=["equal", "part", "inside", "cut-off", "shortened", "other", "number", "none"],
)
def test_a_value_that_repeats_a_secret_attribute_is_masked(value: Json, is_masked: bool) -> None:
    resource = recorded({"key": {"private": SECRET}, "open": "x"})
    expected = MASK if is_masked else value
    assert shown(resource, value, "b") == (expected, "b")
    assert shown(resource, "b", value) == ("b", expected)


def test_attributes_that_the_row_declares_secret_are_masked_too() -> None:
    resource = recorded({"open": SECRET}, secret_attributes=["open"])
    assert shown(resource, SECRET, "b") == (MASK, "b")
    assert shown(recorded({"open": SECRET}), SECRET, "b") == (SECRET, "b")


def test_more_secrets_than_are_compared_mask_every_value() -> None:
    resource = recorded({"key": [f"secret-{index}" for index in range(MAX_SECRETS + 1)]})
    assert shown(resource, "a", "b") == (MASK, MASK)


def test_a_reason_shows_no_secret_attribute() -> None:
    row = row_of(recorded({"key": SECRET}), reason=f"the key {SECRET} is lost")
    assert row.reason == f"the key {MASK} is lost"


@pytest.mark.parametrize(
    "hidden",
    [
        {"attributes": {"key": SECRET}},
        {"attributes": {"open": SECRET}, "secret_attributes": ["open"]},
        {"attributes": {}, "has_secrets": True},
    ],
    ids=["attribute", "declared by the row", "property"],
)
def test_a_reason_is_shown_only_in_public_if_a_value_is_secret(hidden: Json) -> None:
    found = Observation.unknown(f"the service refused {SECRET[::-1]}", "the service refused it")
    resource, open_ = recorded(**hidden), recorded({"key": "", "open": SECRET})
    row = observed_resource(
        resource, found, SCHEMA, ("p", "Test::Key", ""), FoundBy.POLICY, polled=True
    )
    assert row.reason == "the service refused it"
    assert without_secrets(found, [open_, resource], SCHEMA).reason == row.reason
    assert without_secrets(found, [open_], SCHEMA) is found
    nothing = without_secrets(replace(found, public_reason=""), [resource], SCHEMA)
    assert nothing.reason == HIDDEN_REASON


@pytest.mark.parametrize("hidden", [{}, {"has_secrets": True}], ids=["shown", "masked"])
def test_the_digest_is_of_all_values_also_of_those_that_are_not_shown(hidden: Json) -> None:
    resource = recorded({}, **hidden)
    many = [Difference(f"x{index}", 1, 2) for index in range(MAX_DIFFERENCES + 1)]
    long = "z" * 2 * MAX_VALUE
    rows = [
        row_of(resource, *many),
        row_of(resource, *many[:-1], Difference(many[-1].path, 1, 3)),
        row_of(resource, *many[:-1], Difference(many[-1].path, 0, 2)),
        row_of(resource, Difference("x", 1, f"{long}1")),
        row_of(resource, Difference("x", 1, f"{long}2")),
    ]
    assert rows[0].differences == rows[1].differences and len(rows[0].differences) == 20
    assert len({one.drift_digest for one in rows}) == len(rows)
    # It depends on neither the order nor who has shortened a value.
    assert row_of(resource, *reversed(many)).drift_digest == rows[0].drift_digest
    shortened = row_of(resource, Difference.shorten("x", 1, f"{long}1"))
    assert shortened.drift_digest == rows[3].drift_digest
    # The same values of another resource have another digest.
    other = recorded({}, id=UUID(int=3), **hidden)
    assert row_of(other, *many).drift_digest != rows[0].drift_digest


def test_drift_without_differences_has_no_digest() -> None:
    assert row_of(recorded({})).drift_digest is None
