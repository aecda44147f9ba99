"""The pauses between requests of the observer for one list, and where they are sent."""

from collections.abc import Mapping
from datetime import timedelta
from uuid import UUID

import pytest

from engine.hot.schema.type_schema import TypeSchema
from engine.store.observer.completions import ClaimedRequest
from engine.types.contract import Call, Done, Outcome, ResourceType
from engine.types.regions import region_definition
from engine.words import Json
from engine.work.observer.completion_observer import (
    FIRST,
    MAX_AFTER_FAILURE,
    endpoint_of,
    next_pause,
)


def seconds(
    sent: int = 0, failures: int = 0, took: float = 0.0, chance: float = 0.5, longest: float = 5.0
) -> float:
    claimed = ClaimedRequest(
        UUID(int=1), 1, "p", "Headgate::HTTP", sent, 0, timedelta(seconds=longest)
    )
    return next_pause(claimed, failures, took, chance).total_seconds()


def test_pauses_grow_from_the_first_to_the_longest_of_the_operations() -> None:
    pauses = [seconds(sent) for sent in range(10)]
    assert pauses[:3] == pytest.approx([FIRST, 1.5 * FIRST, 1.5**2 * FIRST])
    assert pauses == sorted(pauses) and pauses[-1] == 5
    assert seconds(0, longest=0.1) == FIRST


def test_pauses_after_failures_grow_further() -> None:
    pauses = [seconds(9, failures) for failures in range(1, 10)]
    assert pauses[:3] == [1, 2, 4] and pauses[-1] == MAX_AFTER_FAILURE


def test_a_slow_request_is_sent_at_most_half_the_time() -> None:
    assert seconds(0, took=7.0) == seconds(0, 1, took=7.0) == 7


def test_pauses_vary_by_a_tenth() -> None:
    assert seconds(9, chance=0) == pytest.approx(4.5)
    assert seconds(9, chance=0.999) == pytest.approx(5.5, abs=0.01)


class Listed(ResourceType):
    """A type whose objects the service in `definition` lists."""

    schema = TypeSchema("Test::Listed")

    def create(self, call: Call) -> Outcome:
        return Done("x")

    def delete(self, call: Call) -> Outcome:
        return Done(None)

    def objects_endpoint(self, definition: Mapping[str, Json]) -> str:
        return str(definition.get("service", ""))


@pytest.mark.parametrize(
    ("service", "region", "expected"),
    [
        ("Nova", "", "Nova"),
        ("Nova", "RegionTwo", "Nova in RegionTwo"),
        ("Nova", "Nova", "Nova in Nova"),
        ("", "RegionTwo", ""),
    ],
)
def test_a_list_of_a_region_has_an_endpoint_of_its_own(
    service: str, region: str, expected: str
) -> None:
    claimed = ClaimedRequest(UUID(int=1), 1, "p", "Test::Listed", 0, 0, timedelta(seconds=5))
    definition = {"service": service, **region_definition(region)}
    assert endpoint_of(claimed, Listed(), definition) == ("p", "Test::Listed", expected)
