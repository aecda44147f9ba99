"""How long endpoints are left alone after failures."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from engine.types.failure_scope import FailureScope, scope_of_response
from engine.types.observation import PRESENT, Observation
from engine.work.observer.batch_outcomes import PROBES, BatchOutcomes
from engine.work.observer.call_groups import CallGroup
from engine.work.observer.endpoint_back_off import (
    MAX_OF_STACK,
    MAX_RETRY_AFTER,
    MIN_SERVER_ERRORS,
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
NOW = datetime(2026, 1, 1, tzinfo=UTC)


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
    failed = KnownFailure(1, NOW, remaining, "it is down", "", throttled)
    assert is_blocked(failed, requested=requested) is blocked


def test_only_an_unknown_state_can_be_throttled() -> None:
    assert is_throttled(Observation.unknown("busy", "busy", 0.0))
    assert not is_throttled(Observation.unknown("busy"))
    assert not is_throttled(PRESENT)


A, B = UUID(int=1), UUID(int=2)
DOWN = Observation.unknown("no answer", "no answer", scope=FailureScope.ENDPOINT)
ERROR = Observation.unknown("answered 500", "answered 500", scope=FailureScope.SERVER)
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
    ("failures", "stacks", "same", "endpoint"),
    [
        ((ERROR,), 1, False, False),
        ((ERROR, ERROR), 2, False, False),
        ((ERROR,) * MIN_SERVER_ERRORS, 2, False, True),
        ((ERROR,) * MIN_SERVER_ERRORS, 1, False, False),
        ((ERROR,) * MIN_SERVER_ERRORS, 2, True, False),
        ((ERROR, DOWN, ERROR), 2, False, True),
        ((ERROR, DOWN), 2, False, False),
        ((DOWN,), 1, False, True),
        ((DOWN, DOWN), 1, True, True),
        ((*(ERROR,) * MIN_SERVER_ERRORS, None), 2, False, False),
        ((*(ERROR,) * MIN_SERVER_ERRORS, DENIED), 2, False, False),
        ((*(ERROR,) * MIN_SERVER_ERRORS, ABSENT), 2, False, False),
    ],
)
def test_errors_of_the_server_are_about_the_endpoint_only_for_several_stacks(
    failures: Sequence[Observation | None], stacks: int, same: bool, endpoint: bool
) -> None:
    """same: the same request."""
    found = [
        outcome("r" if same else str(number), one, UUID(int=number % stacks))
        for number, one in enumerate(failures)
    ]
    verdict = judge(found)
    assert (verdict.endpoint is not None) is endpoint
    assert bool(verdict.requests) is not endpoint
    assert verdict.works is any(one in (None, DENIED, ABSENT) for one in failures)
    other = judge(found, answered=True)
    assert other.endpoint is None and other.works
    throttled = judge([*found, outcome("busy", BUSY)], answered=True)
    assert throttled.endpoint is BUSY and not throttled.works


ENDPOINT = ("p", "t", "e")


def group(request: str, *stacks: UUID) -> CallGroup:
    resources: list[Any] = [SimpleNamespace(stack_id=one) for one in stacks]
    unused: Any = None
    return CallGroup(("t", request), unused, ENDPOINT, request, resources)


def test_failures_are_judged_by_all_requests_of_a_batch() -> None:
    batch, known = BatchOutcomes(), KnownFailures()
    before = KnownFailures(
        {ENDPOINT: KnownFailure(3, NOW, -SECOND, "", "")},
        {(*ENDPOINT, "a"): KnownFailure(2, NOW, -SECOND, "", "")},
    )
    assert batch.judge(ENDPOINT, [outcome("a", DOWN)], before, requested=False) is None
    assert batch.failing() == before.endpoints and batch.failure_of(ENDPOINT) is DOWN
    verdict = batch.judge(ENDPOINT, [outcome("b", None)], known, requested=False)
    assert verdict is not None and verdict.endpoint is None and verdict.works
    assert verdict.requests == {"a": DOWN} and "b" in verdict.working
    assert batch.take([ENDPOINT]) == KnownFailures({}, before.requests)
    assert batch.failing() == {} and batch.failure_of(ENDPOINT) is None
    # Later ones of the batch have failed by themselves.
    later = batch.judge(ENDPOINT, [outcome("c", DOWN)], known, requested=False)
    assert later is not None and later.requests == {"c": DOWN}


@pytest.mark.parametrize("how", ["last", "throttled"])
def test_what_is_not_withheld(how: str) -> None:
    batch, known = BatchOutcomes(is_last=how == "last"), KnownFailures()
    failure = BUSY if how == "throttled" else DOWN
    verdict = batch.judge(ENDPOINT, [outcome("a", failure)], known, requested=False)
    assert verdict is not None and verdict.endpoint is failure


def test_a_requested_pause_does_not_show_that_the_endpoint_works() -> None:
    assert not outcome("a", BUSY).is_answered
    assert outcome("a", DENIED).is_answered and outcome("a", None).is_answered


def test_one_error_of_the_server_does_not_let_its_stack_try_again_soon() -> None:
    batch = BatchOutcomes()
    assert batch.judge(ENDPOINT, [outcome("a", ERROR)], KnownFailures(), requested=False) is None
    assert batch.failing() == {}


def test_each_stack_has_a_request_of_an_endpoint_that_has_answered_nothing() -> None:
    groups = [*(group(f"a{number}", A) for number in range(30)), group("b", B), group("ab", A, B)]
    batch = BatchOutcomes()
    first, others = batch.split(groups)
    assert [one.request for one in first[:2]] == ["a0", "b"] and len(first) == 32 and not others
    batch.judge(ENDPOINT, [outcome("x", DOWN)], KnownFailures(), requested=False)
    first, others = batch.split(groups)
    assert [one.request for one in first[:2]] == ["a0", "b"]
    assert (len(first), len(others)) == (PROBES, 32 - PROBES)
    many = [group(f"r{number}", UUID(int=number)) for number in range(3 * PROBES)]
    assert batch.split(many) == (many, [])


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
    endpoint, failed = ("p", "t", "e"), KnownFailure(1, NOW, SECOND, "it failed", "")
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
        *((status, False, FailureScope.ENDPOINT) for status in (502, 503, 504)),
        *((status, False, FailureScope.SERVER) for status in (500, 507, 520)),
        *((status, False, FailureScope.REQUEST) for status in (501, 505)),
        *((status, True, FailureScope.ENDPOINT) for status in (413, 429, 500, 503)),
    ],
)
def test_what_a_response_is_about(status: int | None, throttled: bool, scope: FailureScope) -> None:
    assert scope_of_response(status, throttled=throttled) is scope


def test_a_user_lengthens_only_the_pauses_that_the_provider_requests() -> None:
    assert lengthens_pause(BUSY, requested=True) and lengthens_pause(DOWN, requested=False)
    assert not lengthens_pause(DOWN, requested=True)
    assert not lengthens_pause(DENIED, requested=True)
