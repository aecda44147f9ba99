"""Which responses of a service show that an object of Headgate::HTTP has lost a value."""

from typing import Any

import pytest

from engine.types.http.observation import observation_of
from engine.types.http.remote_object import RemoteObject
from engine.types.observation import Difference
from engine.words import ObservedState

OWN = RemoteObject("7", "key")
READY = {"path": "$.state", "values": ["up"]}
BY_NAME = '$.found[?@.name == "${key}"].id'


def seen(content: Any, **properties: Any) -> Any:
    return observation_of(
        {"compare": {"$.size": 1, "$.color": "red"}} | properties, content, (), OWN
    )


@pytest.mark.parametrize(
    ("properties", "content", "shows"),
    [
        # `id` says where the ID is.
        ({"id": "$.id"}, {"id": "7", "color": "red"}, True),
        ({"id": "$.id"}, {"id": 7}, True),
        ({"id": "$.id"}, {"color": "red"}, False),
        ({"id": "$.id"}, {"id": None, "color": "red"}, False),
        ({"id": "$.id"}, {"id": "8", "color": "red"}, False),
        ({"id": "$.by.${key}.id"}, {"by": {"key": {"id": "7"}}}, True),
        # The ID is a text, the key, or in the response to `find` only.
        ({"id": "thing-${key}"}, {"color": "red"}, True),
        ({}, {"color": "red"}, True),
        ({"id": BY_NAME}, {"color": "red"}, True),
        ({}, {"state": "up"}, False),
        # An error may have a status, a message or a name, too.
        ({"ready": READY}, {"state": "up"}, False),
        ({"attributes": {"status": "$.status"}}, {"status": "error", "message": "later"}, False),
        ({}, {}, False),
        ({}, None, False),
        ({}, ["red"], False),
        ({}, "red", False),
    ],
)
def test_a_response_that_is_evidently_the_object_shows_what_it_has_lost(
    properties: Any, content: Any, shows: bool
) -> None:
    found = seen(content, **properties)
    lost = Difference("$.size", 1, None)
    assert (lost in found.differences) == shows, found
    assert found.incomplete != shows
    if shows:
        assert found.state is ObservedState.CHANGED
        assert "$.size" in found.reason and found.public_reason == "the response has no value"


def test_an_entry_of_a_list_never_shows_what_an_object_has_lost() -> None:
    properties = {"id": "$.id", "compare": {"$.size": 1, "$.color": "red"}}
    found = observation_of(properties, {"id": "7", "color": "red"})
    assert found.state is ObservedState.UNKNOWN and found.incomplete
    found = observation_of(properties, {"id": "7", "color": "blue"})
    assert [one.path for one in found.differences] == ["$.color"] and found.incomplete


def test_a_hidden_value_that_was_lost_is_masked() -> None:
    more = {"attributes": {"password": "$.size"}, "hidden": ["password"]}
    found = seen({"color": "red"}, **more)
    assert [one.observed for one in found.differences] == ["******"]
