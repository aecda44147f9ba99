"""Where an object of Headgate::HTTP takes over an observed value."""

import pytest

from engine.types.http.adoption import adopted_places
from engine.words import Json

COMPARE = ("compare", "$.size")


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ({"size": 3}, [COMPARE, ("update", "body", "size")]),
        ({"queue": {"size": 3}}, [COMPARE, ("update", "body", "queue", "size")]),
        ({"tags": ["a"]}, [COMPARE]),
        (None, [COMPARE]),
        ({"size": 4}, []),
        ({"parts": [{"size": 3}]}, []),
        ('{"size": 3}', []),
    ],
    ids=["same path", "below another", "not sent", "no body", "other value", "in a list", "text"],
)
def test_an_update_sends_the_adopted_value_or_it_is_not_adopted(body: Json, places: Json) -> None:
    properties = {"compare": {"$.size": 3}, "update": {"url": "/a", "body": body}}
    assert adopted_places(properties, "$.size") == (places or ())


def test_a_create_sends_it_too_if_it_is_at_the_same_path() -> None:
    properties = {"compare": {"$.size": 3}, "create": {"body": {"size": 3}}}
    assert adopted_places(properties, "$.size") == [COMPARE, ("create", "body", "size")]
    assert adopted_places({"compare": {"$.size": 3}, "create": {"body": "x"}}, "$.size") == [
        COMPARE
    ]


def test_a_longer_path_is_matched_as_a_whole() -> None:
    body = {"first": {"size": 3}, "second": {"size": 3}}
    properties = {"compare": {"$.second.size": 3}, "update": {"body": body}}
    assert adopted_places(properties, "$.second.size") == [
        ("compare", "$.second.size"),
        ("update", "body", "second", "size"),
    ]


def test_a_path_with_an_index_is_not_adopted_if_updates_have_a_body() -> None:
    compare = {"compare": {"$.sizes[0]": 3}}
    assert adopted_places(compare, "$.sizes[0]") == [("compare", "$.sizes[0]")]
    assert adopted_places(compare | {"update": {"body": {"a": 3}}}, "$.sizes[0]") == ()
    assert adopted_places(compare, "$.other") == ()
