"""Differences of Headgate::HTTP show no hidden value, and tell when one changes."""

import pytest

from engine.hot.expressions.masking import MASK
from engine.types.http.observation import observation_of
from engine.types.observation import MAX_VALUE, Difference, hash_values
from engine.words import Json

PROPERTIES: Json = {"attributes": {"token": "$.token"}, "hidden": ["token"]}
LONG = "z" * 2 * MAX_VALUE


@pytest.mark.parametrize(
    ("compare", "label", "shown"),
    [
        # The desired value of a hidden attribute is one, although the object has another.
        ({"$.token": "wanted"}, "", (MASK, MASK)),
        # A literal elsewhere is the same text as the value that the object has now.
        ({"$.label": "secret-now"}, "blue", (MASK, "blue")),
        ({"$.label": ["of secret-now"]}, "blue", (MASK, "blue")),
        ({"$.label": "red"}, "has secret-now", ("red", MASK)),
        ({"$.label": "red"}, "blue", ("red", "blue")),
        ({"$.label": LONG}, "blue", (MASK, "blue")),
    ],
    ids=["own-path", "literal", "inside", "observed", "neither", "long"],
)
def test_neither_side_of_a_difference_shows_a_hidden_value(
    compare: Json, label: str, shown: tuple[Json, Json]
) -> None:
    content = {"token": "secret-now", "label": label}
    (found,) = observation_of(PROPERTIES | {"compare": compare}, content).differences
    assert (found.desired, found.observed) == shown
    ((path, desired),) = compare.items()
    exact = hash_values(desired, content[path.removeprefix("$.")])
    assert found.exact == (exact if MASK in shown else None)
    assert found.values_hash == exact


def test_a_difference_that_is_shortened_tells_when_its_rest_changes() -> None:
    first, second = (Difference.shorten("x", 1, f"{LONG}{end}") for end in "12")
    assert first.observed == second.observed and first.values_hash != second.values_hash
    assert Difference.shorten("x", 1, "short").exact is None
