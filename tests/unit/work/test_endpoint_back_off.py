"""How long endpoints are left alone after failures."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import pytest

from engine.types.failure_scope import FailureScope, scope_of_response
from engine.types.observation import PRESENT, Observation
from engine.work.observer.endpoint_back_off import (
    MAX_OF_STACK,
    MAX_RETRY_AFTER,
    PAUSES,
    KnownFailure,
    KnownFailures,
    RequestOutcome,
    is_blocked,
    is_throttled,
    judge,
    lengthens_pause,
    pause_after,
)

SECOND = timedelta(seconds=1)


def test_each_failure_doubles_the_pause() -> None:
    pauses = [pause_after(failures, None, 0.0) for failures in (1, 2, 3)]
    first = timedelta(seconds=PAUSES.first)
    assert pauses == [first / 2, first, first * 2]
    assert pause_after(100, None, 0.99) <= timedelta(seconds=PAUSES.max_pause)


@pytest.mark.parametrize(
    ("requested", "seconds"),
    [(0.0, 15.0), (5.0, 15.0), (600.0, 600.0), (1e9, MAX_RETRY_AFTER)],
)
def test_a_requested_pause_is_respected(requested: float, seconds: float) -> None:
    assert pause_after(1, requested, 0.0) == timedelta(seconds=seconds)
    assert pause_after(1, requested, 0.9) >= timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("remaining", "throttled", "requested", "blocked"),
    [
        (SECOND, False, False, True),
        (SECOND, False, True, False),
        (SECOND, True, True, True),
        (-SECOND, True, False, False),
        (timedelta(0), True, False, False),
    ],
)
def test_requests_of_users_wait_only_if_the_provider_asks_for_it(
    remaining: timedelta, throttled: bool, requested: bool, blocked: bool
) -> None:
    failed = KnownFailure(1, remaining, "it is down", "", throttled)
    assert is_blocked(failed, requested=requested) is blocked


def test_only_an_unknown_state_can_be_throttled() -> None:
    assert is_throttled(Observation.unknown("busy", "busy", 0.0))
    assert not is_throttled(Observation.unknown("busy"))
    assert not is_throttled(PRESENT)


A, B = UUID(int=1), UUID(int=2)
DOWN = Observation.unknown("no answer", "no answer", scope=FailureScope.ENDPOINT)
DENIED = Observation.unknown("answered 401: secret", "answered 401")
BUSY = Observation.unknown("busy", "busy", 5.0)
ABSENT = Observation.unknown("no object", "no object", scope=FailureScope.OBJECT)


def outcome(
    request: str, failure: Observation | None, *stacks: UUID, usable: int = 0, failed: int = 0
) -> RequestOutcome:
    throttling = failure if failure and is_throttled(failure) else None
    which = stacks or (A,)
    objects = dict.fromkeys(which, usable), dict.fromkeys(which, failed)
    return RequestOutcome(request, frozenset(which), failure, throttling, *objects)


@pytest.mark.parametrize(
    ("failures", "endpoint", "requests"),
    [
        ((DOWN, DOWN), DOWN, ""),
        ((DOWN, None), None, "0"),
        ((DOWN, DENIED), None, "01"),
        ((DENIED, None), None, "0"),
        ((DENIED, DENIED), None, "01"),
        ((None, BUSY), BUSY, ""),
        ((ABSENT, ABSENT), None, ""),
        ((ABSENT, DOWN), None, "1"),
        ((None, None), None, ""),
        ((), None, ""),
    ],
)
def test_an_endpoint_has_failed_if_it_answers_nothing_or_requests_a_pause(
    failures: Sequence[Observation | None], endpoint: Observation | None, requests: str
) -> None:
    verdict = judge([outcome(str(number), one) for number, one in enumerate(failures)])
    assert verdict.endpoint is endpoint
    assert "".join(verdict.requests) == requests


@pytest.mark.parametrize(
    ("failed", "good", "whole"),
    [(MAX_OF_STACK - 1, 0, False), (MAX_OF_STACK, 0, True), (MAX_OF_STACK, MAX_OF_STACK, True),
     (MAX_OF_STACK, MAX_OF_STACK + 1, False)],
)  # fmt: skip
def test_most_requests_of_a_stack_are_one_failure(failed: int, good: int, whole: bool) -> None:
    """One more of them is of two stacks."""
    found = judge(
        [
            *(outcome(f"a{number}", DENIED) for number in range(failed)),
            *(outcome(f"g{number}", None) for number in range(good)),
            outcome("b", DENIED, B),
            outcome("shared", DENIED, A, B),
        ]
    )
    assert (str(A) in found.requests) is whole
    assert ("a0" in found.requests) is not whole
    assert {"b", "shared"} <= found.requests.keys() and str(B) not in found.requests
    assert not any("secret" in one.reason for key, one in found.requests.items() if key == str(A))
    assert (str(A) in found.working) is (2 * (failed + 1) <= failed + good + 1)


@pytest.mark.parametrize(("usable", "whole"), [(0, True), (MAX_OF_STACK + 1, False)])
def test_objects_of_a_list_count_as_requests_of_their_stack(usable: int, whole: bool) -> None:
    failure = None if usable else ABSENT
    found = judge([outcome("list", failure, A, usable=usable, failed=MAX_OF_STACK + 1)])
    assert list(found.requests) == [str(A)] * whole
    assert found.working == ["list"] + [str(A)] * (not whole)


@pytest.mark.parametrize(
    ("paused", "stacks", "scope"),
    [
        ((), (A,), None),
        (("p",), (A,), FailureScope.ENDPOINT),
        (("r",), (A,), FailureScope.REQUEST),
        ((str(A),), (A,), FailureScope.REQUEST),
        ((str(A),), (A, B), None),
        ((str(A), str(B)), (A, B), FailureScope.REQUEST),
    ],
)
def test_a_request_waits_for_its_endpoint_itself_or_all_of_its_stacks(
    paused: Sequence[str], stacks: Sequence[UUID], scope: FailureScope | None
) -> None:
    endpoint, failed = ("p", "t", "e"), KnownFailure(1, SECOND, "it failed", "")
    known = KnownFailures(
        {endpoint: failed} if "p" in paused else {},
        {(*endpoint, one): failed for one in paused if one != "p"},
    )
    found = known.find_pause(endpoint, "r", stacks, requested=False)
    assert (found and found[0]) == scope
    assert known.find_pause(endpoint, "r", stacks, requested=True) is None


@pytest.mark.parametrize(
    ("status", "throttled", "scope"),
    [
        (None, False, FailureScope.REQUEST),
        *((status, False, FailureScope.REQUEST) for status in (301, 400, 401, 403, 404, 410, 409)),
        *((status, False, FailureScope.ENDPOINT) for status in (500, 502, 503, 504, 507)),
        *((status, False, FailureScope.REQUEST) for status in (501, 505)),
        *((status, True, FailureScope.ENDPOINT) for status in (413, 429, 503)),
    ],
)
def test_what_a_response_is_about(status: int | None, throttled: bool, scope: FailureScope) -> None:
    assert scope_of_response(status, throttled=throttled) is scope


def test_a_user_lengthens_only_the_pauses_that_the_provider_requests() -> None:
    assert lengthens_pause(BUSY, requested=True) and lengthens_pause(DOWN, requested=False)
    assert not lengthens_pause(DOWN, requested=True)
    assert not lengthens_pause(DENIED, requested=True)
