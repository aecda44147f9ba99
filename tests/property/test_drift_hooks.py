"""Hooks about drift under any sequence of observations and answers."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.hooks.drift_hooks import AskedDrift, Drift, DriftStep, drift_step
from engine.words import Decision, ObservedState

START = datetime(2026, 1, 1, tzinfo=UTC)
OBSERVED = st.sampled_from([
    Drift(ObservedState.PRESENT),
    Drift(ObservedState.UNKNOWN),
    Drift(ObservedState.MISSING, recorded_at=START),
    *(
        Drift(ObservedState.CHANGED, [{"path": "$.size", "desired": 1, "observed": size}], START)
        for size in (2, 3)
    ),
])  # fmt: skip
ANSWERS = st.sampled_from([None, "continue", "reject", "ignore"])


@given(st.lists(st.tuples(OBSERVED, ANSWERS, st.booleans()), max_size=12))
def test_each_drift_is_asked_once_and_no_hook_outlives_its_drift(
    turns: list[tuple[Drift, str | None, bool]],
) -> None:
    asked: AskedDrift | None = None
    now = START
    for found, answer, changing in turns:
        now += timedelta(hours=1)
        before, step = asked, drift_step(found, asked, now, holds=True, changing=changing)
        if step is DriftStep.OPEN:
            assert not changing
            assert before is None or not (before.waiting and found.is_same(before.drift))
            asked = AskedDrift(found, waiting=True)
        elif step is DriftStep.CLOSE:
            asked = None
        elif step is DriftStep.REPAIR:
            assert before is not None and before.decision is Decision.CONTINUE
            assert found == before.drift and not changing
        # A waiting hook is about the drift that there is, unless that is not known.
        if asked is not None and asked.waiting and found.state is not ObservedState.UNKNOWN:
            assert found.is_same(asked.drift)
        # Drift that lasts has been asked, unless a change is under way.
        if not changing and found.state in (ObservedState.MISSING, ObservedState.CHANGED):
            assert asked is not None
        # A second observation of the same changes nothing.
        again = drift_step(found, asked, now, holds=True, changing=changing)
        assert again in (DriftStep.KEEP, DriftStep.REPAIR)
        if answer is not None and asked is not None and asked.waiting:
            asked = AskedDrift(
                asked.drift,
                waiting=False,
                decision=Decision.CONTINUE if answer == "continue" else Decision.REJECT,
                ignored_until=now + timedelta(hours=3) if answer == "ignore" else None,
            )
