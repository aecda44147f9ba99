"""Where an object of Headgate::HTTP takes over an observed value."""

import pytest

from engine.types.http.adoption import adopted_places, adopted_value
from engine.types.http.requests import fill, names_in
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
        ({"limit": 3}, []),
        ({"limits": [1, 3]}, []),
        ({"limit": "3"}, []),
        ({"command": "resize to 3"}, []),
        ({"queue": {"size": 3}, "limit": 3}, []),
        ({"size": 3, "limit": 3}, [COMPARE, ("update", "body", "size")]),
        ({"limit": 30, "name": "v3", "ratio": "3.5"}, [COMPARE]),
    ],
    ids=[
        "same path", "below another", "not sent", "no body", "other value", "in a list", "text",
        "other name", "other list", "as text", "in a text", "also below another", "also elsewhere",
        "similar values",
    ],
)  # fmt: skip
def test_an_update_sends_the_adopted_value_or_it_is_not_adopted(body: Json, places: Json) -> None:
    properties = {"compare": {"$.size": 3}, "update": {"url": "/a", "body": body}}
    assert adopted_places(properties, "$.size") == (places or ())


def test_a_create_sends_it_too_if_it_is_at_the_same_path() -> None:
    properties = {"compare": {"$.size": 3}, "create": {"body": {"size": 3}}}
    assert adopted_places(properties, "$.size") == [COMPARE, ("create", "body", "size")]
    assert adopted_places({"compare": {"$.size": 3}, "create": {"body": "x"}}, "$.size") == [
        COMPARE
    ]


@pytest.mark.parametrize(
    ("request_", "adoptable"),
    [
        ({"url": "/things/a?size=3"}, False),
        ({"url": "/things/a/size/3"}, False),
        ({"url": "/things/a", "headers": {"X-Size": "3"}}, False),
        ({"url": "/v3/things/${id}?page=30"}, True),
    ],
    ids=["query", "path", "header", "other numbers"],
)
@pytest.mark.parametrize("body", [None, {"size": 3}], ids=["no body", "body"])
def test_a_value_that_the_rest_of_an_update_sends_is_not_adopted(
    body: Json, request_: dict[str, Json], adoptable: bool
) -> None:
    update = request_ if body is None else {**request_, "body": body}
    places = adopted_places({"compare": {"$.size": 3}, "update": update}, "$.size")
    assert bool(places) is adoptable


def test_a_word_in_an_encoded_query_is_found() -> None:
    properties = {"compare": {"$.name": "a b"}, "update": {"url": "/things?name=a+b"}}
    assert adopted_places(properties, "$.name") == ()


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


def test_an_escaped_text_is_the_same_value_and_a_placeholder_is_another_one() -> None:
    compare = {"compare": {"$.note": "${key}"}}
    body = ("update", "body", "note")
    escaped = compare | {"update": {"body": {"note": "$${key}"}}}
    assert adopted_places(escaped, "$.note") == [("compare", "$.note"), body]
    assert adopted_places(compare | {"update": {"body": {"note": "${key}"}}}, "$.note") == ()
    in_header = {"update": {"url": "/a", "headers": {"X-Note": "is $${key}"}}}
    assert adopted_places(compare | in_header, "$.note") == ()


@pytest.mark.parametrize(
    "value", ["${a}", "$${a}", "$$${a} ${", "$", 3, None, {"${k}": ["${a}", {"b": "${c}"}]}]
)
def test_requests_send_an_adopted_value_as_it_is(value: Json) -> None:
    written = adopted_value(("update", "body", "note"), value)
    assert fill(written, {}) == value and not any(names_in(written))
    assert adopted_value(("compare", "$.note"), value) == value
