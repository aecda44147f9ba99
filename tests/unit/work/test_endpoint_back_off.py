"""Which endpoints are left alone, with the clock as an argument."""

import pytest

from engine.types.observation import Observation
from engine.work import endpoint_back_off
from engine.work.endpoint_back_off import PAUSES, REMEMBERED, Endpoint, EndpointBackOff

FAILED = Observation.unknown("it is down", "it is down")


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def endpoint(name: str) -> Endpoint:
    return ("project", "type", name)


def test_each_failure_doubles_the_pause_until_a_success() -> None:
    clock = Clock()
    back_off = EndpointBackOff(clock, lambda: 0.0)
    pauses = []
    for _ in range(3):
        pauses.append(back_off.fail(endpoint("a"), FAILED))
        clock.now += pauses[-1]
    assert pauses == [PAUSES.first / 2, PAUSES.first, PAUSES.first * 2]
    assert back_off.get(endpoint("a")) is None
    back_off.succeed(endpoint("a"))
    assert back_off.fail(endpoint("a"), FAILED) == PAUSES.first / 2


def test_an_endpoint_is_not_observed_during_its_pause() -> None:
    clock = Clock()
    back_off = EndpointBackOff(clock, lambda: 0.0)
    seconds = back_off.fail(endpoint("a"), FAILED)
    clock.now += seconds / 2
    failed = back_off.get(endpoint("a"))
    assert failed is not None and failed.observation == FAILED
    assert back_off.remaining(failed) == seconds / 2
    assert (len(back_off), back_off.get(endpoint("b"))) == (1, None)
    clock.now += seconds
    assert (len(back_off), back_off.remaining(failed)) == (0, 0.0)


def test_failures_of_long_ago_are_forgotten() -> None:
    clock = Clock()
    back_off = EndpointBackOff(clock, lambda: 0.0)
    first = back_off.fail(endpoint("a"), FAILED)
    clock.now += first + REMEMBERED
    assert back_off.fail(endpoint("a"), FAILED) == first


def test_the_number_of_endpoints_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_back_off, "MAX_ENDPOINTS", 3)
    back_off = EndpointBackOff(Clock(), lambda: 0.0)
    for number in range(5):
        back_off.fail(endpoint(str(number)), FAILED)
    assert len(back_off) == 3 and back_off.get(endpoint("1")) is None
