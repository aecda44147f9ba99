"""Bodies that cannot be stored: large numbers, NUL characters and many levels."""

import json
import tracemalloc
from collections.abc import Callable

import pytest

from engine.words import Json
from hub.api.request_validation import MAX_DEPTH, is_deep, nul_in, too_large_number

LARGE = 123456789012345678901234567890


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"template": {"a": [1, {"b": LARGE}]}}, "template.a[1].b"),
        ({"parameters": {"p": -LARGE}}, "parameters.p"),
        ({"template": {"a": -(10**19 - 1)}}, "template.a"),
        ({"environment": {"parameters": {"p": 2**64}}}, "environment.parameters.p"),
        ({"template": {"a": 2**64 - 1, "b": -(2**63), "c": str(LARGE), "d": 1e30}}, None),
        ({"alarm": LARGE}, None),
        ({"template": "9" * 5000}, None),
    ],
)
def test_the_place_of_a_number_that_is_too_large(body: dict[str, Json], place: str | None) -> None:
    assert too_large_number(json.dumps(body).encode(), body) == place


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"a": [1, {"b": "x\0"}]}, "a[1].b"),
        ({"a": {"b\0": 1}}, "a"),
        ({"b\0": 1}, ""),
        ({"a": "x", "b": ["y"]}, None),
    ],
)
def test_the_place_of_a_nul_character(body: dict[str, Json], place: str | None) -> None:
    assert nul_in(body) == place


@pytest.mark.parametrize("last", ["\0", LARGE], ids=["nul", "number"])
def test_many_values_below_a_long_key_need_little_memory(last: Json) -> None:
    """The place of each value would be as long as the key."""
    body = {"template": {"k" * 20_000: [1] * 20_000 + [last]}}
    raw = json.dumps(body).encode()
    tracemalloc.start()
    try:
        found = nul_in(body) if last == "\0" else too_large_number(raw, body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found is not None and found.endswith("[20000]")
    assert peak < 20_000_000


@pytest.mark.parametrize("innermost", [{}, [], {"a": 1}, [1]], ids=json.dumps)
@pytest.mark.parametrize("wrap", [lambda one: {"a": one}, lambda one: [one]], ids=["map", "list"])
def test_a_body_has_at_most_so_many_levels(wrap: Callable[[Json], Json], innermost: Json) -> None:
    body = innermost
    for _ in range(MAX_DEPTH - 1):
        body = wrap(body)
    assert not is_deep(body)
    assert is_deep({"also": 1, "body": body})
