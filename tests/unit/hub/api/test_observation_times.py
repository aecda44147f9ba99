"""Sentences about the next observation and about pauses never contradict each other."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import product
from uuid import UUID

import pytest

from engine.plan.convergence import ConvergencePolicy
from engine.service.observation_times import find_pauses
from engine.service.observations import StackDrift
from engine.store.observer.drift_rows import DriftedResource
from engine.store.observer.observation_schedule import ObservationStatus
from engine.store.observer.provider_endpoints import PausedObservation
from engine.words import ObservedState
from hub.api.headgate.drift import next_time
from hub.api.headgate.explanations import explain_paused, explain_unknown

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SOON, LATER, TOMORROW, LAST = (NOW + timedelta(hours=hours) for hours in (1, 2, 24, 48))
TIMES = {SOON: "01T01:", LATER: "01T02:", TOMORROW: "02T00:", LAST: "03T00:"}
NEVER = ConvergencePolicy(None)
HOURLY = ConvergencePolicy(timedelta(hours=1))
UNKNOWN = DriftedResource(
    UUID(int=1), "s", "", UUID(int=2), "a", "T", "p", ObservedState.UNKNOWN, [],
    "it does not respond", NOW, NOW, None, None, endpoint="e",
)  # fmt: skip
#: An observation was requested; changes were reported; neither.
CAUSES = ("request", "report", "none")
QUOTA = PausedObservation("", "", 1, TOMORROW, "the quota is used up", of_quota=True)
BUDGET = PausedObservation("", "", 1, SOON, "the budget is used up")
FAILED = PausedObservation("T", "e", 1, LATER, "it does not respond")
THROTTLED = replace(FAILED, throttled=True)
LONG = replace(FAILED, until=LAST)
OTHER = replace(FAILED, endpoint="another", until=LAST)
OF_REQUEST = replace(FAILED, until=LAST, of_requests=True)


@dataclass(frozen=True)
class Case:
    policy: ConvergencePolicy | None
    cause: str
    scheduled: datetime | None
    starting: bool
    waiting: tuple[PausedObservation, ...]
    quota: PausedObservation | None
    operating: bool

    def drift(self) -> StackDrift:
        due, requested = self.cause != "none", self.cause == "request"
        status = ObservationStatus(NOW, due, requested, 1, 0, self.scheduled, self.starting)
        paused = find_pauses(status, self.policy, self.waiting, self.quota)
        resource = replace(UNKNOWN, operating=self.operating)
        return StackDrift(status, [resource], [], self.policy, [], paused)

    @property
    def is_observed(self) -> bool:
        return self.policy is HOURLY or self.cause != "none"


def cases() -> Iterator[Case]:
    waiting = [(), (BUDGET,), (FAILED,), (THROTTLED,), (LONG,), (OTHER,), (BUDGET, FAILED, OTHER)]
    for found in product(
        (None, NEVER, HOURLY), CAUSES, (None, SOON, LATER), (False, True), waiting, (None, QUOTA),
        (False, True),
    ):  # fmt: skip
        yield Case(*found)


def test_no_combination_contradicts_itself() -> None:
    count = 0
    for case in cases():
        count += 1
        drift = case.drift()
        (unknown,) = explain_unknown(drift)
        paused = explain_paused(drift.paused)
        sentence, at = unknown["sentence"].rpartition(": ")[2], unknown["next_observation_at"]
        if not case.is_observed:
            # No time of what does not take place; a pause only if it delays requests, too.
            assert (at, next_time(drift)) == (None, None), case
            assert all(one.throttled for one in drift.paused), case
        if case.operating:
            assert "after the operation that is under way" in sentence and at is None, case
            continue
        assert ("No other is scheduled" in sentence) is not case.is_observed, case
        assert ("runs or starts soon" in sentence) is (case.is_observed and at is None), case
        # A time is not before the end of a pause that applies to the resource.
        for one in drift.paused if case.is_observed else ():
            if one.of_quota or (one.type, one.endpoint) == (UNKNOWN.type, UNKNOWN.endpoint):
                assert at is not None and datetime.fromisoformat(at) >= one.until, case
        # A sentence names one time, that of the document.
        assert (at is None) is ("Z." not in sentence), case
        if at is not None:
            assert at in sentence, case
        if case.quota is not None and case.is_observed:
            # Nothing is observed before tomorrow.
            assert at is not None and datetime.fromisoformat(at) >= TOMORROW, case
            assert next_time(drift) == TOMORROW, case
            assert all(datetime.fromisoformat(one["until"]) >= TOMORROW for one in paused), case
        if case.cause == "request" and case.quota is None:
            # A request tries an endpoint that has failed at once, unless that is throttled.
            assert FAILED not in drift.paused and LONG not in drift.paused, case
    assert count == 3 * 3 * 3 * 2 * 7 * 2 * 2


@pytest.mark.parametrize(
    ("case", "sentence", "paused"),
    [
        (Case(None, "none", SOON, False, (), None, False), "No other is scheduled", []),
        (Case(NEVER, "none", SOON, False, (FAILED,), QUOTA, False), "No other is scheduled", []),
        (Case(HOURLY, "none", SOON, False, (), None, False), f"is at 2026-01-{TIMES[SOON]}", []),
        (Case(HOURLY, "none", SOON, True, (), None, False), "runs or starts soon", []),
        (Case(HOURLY, "none", SOON, False, (FAILED,), None, False),
         f"is not before 2026-01-{TIMES[LATER]}", [FAILED]),
        (Case(HOURLY, "none", LATER, False, (FAILED,), None, False),
         f"is at 2026-01-{TIMES[LATER]}", [FAILED]),
        (Case(HOURLY, "none", SOON, False, (OTHER,), None, False),
         f"is at 2026-01-{TIMES[SOON]}", [OTHER]),
        (Case(HOURLY, "none", SOON, False, (FAILED,), QUOTA, False),
         f"is not before 2026-01-{TIMES[TOMORROW]}", [QUOTA]),
        (Case(HOURLY, "none", SOON, False, (LONG,), QUOTA, False),
         f"is not before 2026-01-{TIMES[LAST]}", [QUOTA, LONG]),
        (Case(HOURLY, "request", SOON, True, (FAILED,), None, False), "runs or starts soon", []),
        (Case(HOURLY, "request", SOON, True, (THROTTLED,), None, False),
         f"is not before 2026-01-{TIMES[LATER]}", [THROTTLED]),
        (Case(NEVER, "report", SOON, False, (BUDGET,), None, False),
         f"is at 2026-01-{TIMES[SOON]}", [BUDGET]),
        (Case(HOURLY, "none", SOON, False, (), QUOTA, True), "after the operation", [QUOTA]),
    ],
    ids=[
        "no-policy", "never", "scheduled", "starting", "backing-off", "back-off-ends-first",
        "another-endpoint", "quota", "longer-than-quota", "requested", "throttled", "budget",
        "operation",
    ],
)  # fmt: skip
def test_the_next_observation_of_an_unknown_resource(
    case: Case, sentence: str, paused: list[PausedObservation]
) -> None:
    drift = case.drift()
    (unknown,) = explain_unknown(drift)
    assert sentence in unknown["sentence"] and drift.paused == paused


@pytest.mark.parametrize(
    ("cause", "paused_until", "at"),
    [
        ("none", None, SOON),
        ("none", NOW, SOON),
        ("none", LATER, LATER),
        ("request", LATER, SOON),
        ("report", LATER, LATER),
    ],
)
def test_the_pause_of_a_request_applies_to_its_resources_alone(
    cause: str, paused_until: datetime | None, at: datetime
) -> None:
    drift = Case(HOURLY, cause, SOON, False, (OF_REQUEST,), None, False).drift()
    resource = replace(UNKNOWN, paused_until=paused_until)
    (unknown,) = explain_unknown(replace(drift, resources=[resource]))
    assert unknown["next_observation_at"] is not None
    assert datetime.fromisoformat(unknown["next_observation_at"]) == at
    assert ("is not before" in unknown["sentence"]) is (at != SOON)


def test_resources_with_the_same_reason_and_other_times_are_explained_apart() -> None:
    case = Case(HOURLY, "none", SOON, False, (FAILED,), None, False)
    drift = case.drift()
    resources = [
        UNKNOWN,
        replace(UNKNOWN, name="b", endpoint="another"),
        replace(UNKNOWN, name="c"),
    ]
    found = explain_unknown(replace(drift, resources=resources))
    assert [one["resources"] for one in found] == [["a", "c"], ["b"]]
