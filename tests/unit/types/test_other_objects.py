"""Which responses of a service are perhaps not about the object of Headgate::HTTP."""

from typing import Any

import pytest

from engine.types.http.observation import observation_of
from engine.types.http.remote_object import RemoteObject
from engine.words import ObservedState

OWN = RemoteObject("t3", "key")
BY_NAME = '$.found[?@.name == "${key}"].id'
READY = {"path": "$.state", "values": ["ready"], "failed": ["broken"]}
ALL = {"id": "$.id", "ready": READY, "compare": {"$.size": 1}}


def seen(properties: Any, content: Any, own: RemoteObject | None = OWN) -> Any:
    return observation_of(properties, content, (), own)


@pytest.mark.parametrize("size", [1, 77])
@pytest.mark.parametrize("state", ["ready", "broken", "building"])
def test_a_response_with_another_id_says_nothing_about_the_object(size: int, state: str) -> None:
    found = seen(ALL, {"id": "zz", "size": size, "state": state})
    assert (found.state, found.differences) == (ObservedState.UNKNOWN, ())
    assert all(part in found.reason for part in ('"zz"', '"t3"', "$.id", "Check the URL"))
    assert "zz" not in found.public_reason and "t3" not in found.public_reason
    assert found.is_usable  # its service works


@pytest.mark.parametrize(
    ("source", "content", "other"),
    [
        ("$.id", {"id": "T3"}, False),
        ("$.id", {"id": 3}, True),
        ("$.a[0].id", {"a": [{"id": "zz"}]}, True),
        ("$.by.${key}", {"by": {"key": "zz"}}, True),
        ("$.id", {"id": ""}, False),
        ("$.id", {"id": None}, False),
        ("$.id", {}, False),
        # The path searches, or the ID is a text: there is no place for the ID.
        (BY_NAME, {"found": [{"name": "key", "id": "zz"}]}, False),
        ("t3", {"id": "zz"}, False),
    ],
)
def test_the_id_is_compared_where_the_template_says_that_responses_have_it(
    source: str, content: Any, other: bool
) -> None:
    found = seen({"id": source, "compare": {"$.size": 1}}, {"size": 1, **content})
    assert found.state is (ObservedState.UNKNOWN if other else ObservedState.PRESENT)
    assert ("another object" in found.reason) == other


UUID_TEXT = "3f2b8c1e-5d64-4a7b-9c0e-1d2f3a4b5c6d"


@pytest.mark.parametrize(
    ("own", "found", "same"),
    [
        (UUID_TEXT, UUID_TEXT.replace("-", ""), True),
        (UUID_TEXT, UUID_TEXT.upper(), True),
        (UUID_TEXT, f"{UUID_TEXT[:-1]}e", False),
        ("a-b", "ab", False),
        ("7", 7.0, True),
        ("7", "7.00", True),
        ("7", 7.5, False),
        ("7", 70, False),
        ("1.0.0", "1.0", False),
        ("https://x.example/v1/t/7", "https://x.example/v1/t/7/", True),
        ("https://x.example/v1/t/7", "https://x.example/v1/t/8/", False),
    ],
)
def test_an_id_can_be_written_differently(own: str, found: Any, same: bool) -> None:
    content = {"id": found, "size": 1, "state": "ready"}
    state = seen(ALL, content, RemoteObject(own, "key")).state
    assert state is (ObservedState.PRESENT if same else ObservedState.UNKNOWN)


def test_an_object_without_a_recorded_id_is_not_another_one() -> None:
    found = seen(ALL, {"id": "t3", "size": 1, "state": "ready"}, RemoteObject(None, "key"))
    assert found.state is ObservedState.PRESENT


@pytest.mark.parametrize(
    ("properties", "content", "state"),
    [
        (ALL, {"error": "maintenance", "state": "unavailable"}, "unknown"),
        # A service may leave out the ID in the response to `read`.
        (ALL, {"size": 1, "state": "ready"}, "present"),
        (ALL, {"size": 7, "state": "ready"}, "changed"),
        (ALL, {"size": 1, "state": "unavailable"}, "degraded"),
        (ALL, {"id": "t3", "state": "unavailable"}, "degraded"),
        # A word that errors have, too.
        (ALL, {"state": "broken"}, "unknown"),
        (ALL, {"size": None, "state": "broken"}, "unknown"),
        (ALL, {"size": None, "state": "ready"}, "unknown"),
        (ALL, {"id": "t3", "size": None, "state": "ready"}, "changed"),
        # Nothing is compared, and the state is one that `ready` names.
        ({"id": "$.id", "ready": READY}, {"state": "ready"}, "present"),
        ({"id": "$.id", "ready": READY}, {"state": "broken"}, "degraded"),
        ({"id": "$.id", "ready": READY}, {"state": "unavailable"}, "unknown"),
        ({"ready": READY}, {"state": "unavailable"}, "unknown"),
        ({"ready": READY, "compare": {"$.owner": None}}, {"state": "broken"}, "degraded"),
        # Only the status counts.
        ({"id": "$.id"}, None, "present"),
        ({"id": "$.id", "compare": {"$.owner": None}}, {}, "present"),
        ({"id": "orders", "compare": {"$.size": 1}}, {"size": 7}, "changed"),
        # Null is no state.
        (ALL, {"id": "t3", "size": 1, "state": None}, "unknown"),
        (ALL | {"ready": {"path": "$.state", "values": [None]}},
         {"id": "t3", "size": 1, "state": None}, "present"),
    ],
)  # fmt: skip
def test_a_response_that_may_be_an_error_says_nothing_about_the_object(
    properties: Any, content: Any, state: str
) -> None:
    found = seen(properties, content)
    assert found.state == state, found
    assert bool(found.reason) == (state not in ("present", "changed") or "size" in found.reason)


def test_an_item_of_a_list_has_been_found_by_its_id() -> None:
    """The path in `id` is one into the response to `create`."""
    found = seen(ALL, {"id": "zz", "state": "unavailable"}, None)
    assert found.state is ObservedState.DEGRADED
    assert seen(ALL, {"size": 1, "state": None}, None).incomplete


def test_ids_that_repeat_a_hidden_value_are_masked() -> None:
    more = {"attributes": {"token": "$.token"}, "hidden": ["token"]}
    found = seen(ALL | more, {"id": "of-s3cr3t-token", "token": "s3cr3t-token", "state": "ready"})
    assert "s3cr3t" not in found.reason and "another object" in found.reason
