"""What is observed first, and how soon again."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.plan.observation_risk import (
    FADING_DRIFT,
    MAX_WEIGHT,
    SOONER,
    VARIATION,
    Risk,
    next_interval,
    urgency,
)
from engine.words import ObservedState

DAYS = st.timedeltas(timedelta(0), timedelta(days=400))
STATES = st.sampled_from([None, *ObservedState])
RISKS = st.builds(Risk, STATES, DAYS, st.none() | DAYS)
CHANCES = st.floats(0.0, 1.0, exclude_max=True)
ORDER = (
    ObservedState.PRESENT, ObservedState.UNKNOWN, ObservedState.CHANGED,
)  # fmt: skip


@given(RISKS)
def test_a_weight_is_between_one_and_the_maximum(risk: Risk) -> None:
    assert 1.0 <= risk.weight <= MAX_WEIGHT


@given(DAYS, DAYS, STATES)
def test_a_later_change_is_never_less_urgent(
    one: timedelta, other: timedelta, state: ObservedState | None
) -> None:
    newer, older = sorted((one, other))
    assert Risk(state, newer).weight >= Risk(state, older).weight


@given(DAYS)
def test_drift_weighs_more_than_a_failure_and_that_more_than_nothing(changed: timedelta) -> None:
    weights = [Risk(state, changed).weight for state in ORDER]
    assert weights[0] < weights[1] < weights[2]
    assert Risk(ObservedState.MISSING, changed).weight == weights[2]
    assert Risk(ObservedState.DEGRADED, changed).weight == weights[1]


@given(DAYS, DAYS, RISKS)
def test_later_drift_is_never_less_urgent(one: timedelta, other: timedelta, risk: Risk) -> None:
    newer, older = sorted((one, other))
    weights = [replace(risk, drifted=drifted).weight for drifted in (newer, older, None)]
    assert weights == sorted(weights, reverse=True)
    assert (weights[0] > weights[2]) is (newer < FADING_DRIFT)


@given(DAYS, DAYS, RISKS)
def test_age_alone_decides_at_equal_risk(one: timedelta, other: timedelta, risk: Risk) -> None:
    younger, older = sorted((one, other))
    assert urgency(younger, risk) <= urgency(older, risk)


@given(RISKS, RISKS)
def test_no_risk_starves_another_resource(risky: Risk, calm: Risk) -> None:
    """What has waited MAX_WEIGHT times as long is first at any risk."""
    assert urgency(timedelta(days=MAX_WEIGHT), calm) >= urgency(timedelta(days=1), risky)
    assert urgency(None, calm) >= urgency(timedelta(days=1), calm)


@given(st.timedeltas(timedelta(minutes=1), timedelta(days=365)), RISKS, RISKS, CHANCES)
def test_the_next_observation_is_sooner_at_a_higher_risk(
    every: timedelta, one: Risk, other: Risk, chance: float
) -> None:
    calm, risky = sorted((one, other), key=lambda risk: risk.weight)
    assert next_interval(every, risky, chance) <= next_interval(every, calm, chance)
    for risk in (calm, risky):
        interval = next_interval(every, risk, chance) / every
        assert 1 - VARIATION - SOONER - 1e-6 <= interval <= 1 + VARIATION + 1e-6
