"""Digests of drift: which are comparable, and which differ."""

from uuid import UUID

import pytest

from engine.hooks.drift_digests import DriftDigests, are_comparable, digests_differ

STACK, RESOURCE = UUID(int=1), UUID(int=2)
ONE, OTHER = DriftDigests(b"a" * 32), DriftDigests(b"b" * 32)
SIZE, COLOR = [("size", b"1")], [("color", b"1")]


@pytest.mark.parametrize(
    ("first", "second", "comparable", "differ"),
    [
        (ONE.make(STACK, RESOURCE, SIZE), ONE.make(STACK, RESOURCE, SIZE), True, False),
        (ONE.make(STACK, RESOURCE, SIZE), ONE.make(STACK, RESOURCE, COLOR), True, True),
        (ONE.make(STACK, RESOURCE, SIZE), ONE.make(RESOURCE, STACK, SIZE), True, True),
        (ONE.make(STACK, RESOURCE, SIZE), OTHER.make(STACK, RESOURCE, SIZE), False, False),
        (ONE.make(STACK, RESOURCE, SIZE), OTHER.make(STACK, RESOURCE, COLOR), False, False),
        (ONE.make(STACK, RESOURCE, SIZE), None, False, False),
        (None, None, False, False),
    ],
    ids=["same", "other-drift", "other-resource", "other-key", "all-other", "one", "none"],
)
def test_digests_of_one_key_differ_if_the_drift_does(
    first: str | None, second: str | None, comparable: bool, differ: bool
) -> None:
    for pair in ((first, second), (second, first)):
        assert (are_comparable(*pair), digests_differ(*pair)) == (comparable, differ)
