"""When a hook about drift opens, is kept and closes, and what its answers mean."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from engine.errors import Findings, Invalid
from engine.hooks.answers import ABOUT_DRIFT, allowed_decisions
from engine.hooks.drift_hooks import (
    DECISIONS,
    AskedDrift,
    Drift,
    DriftStep,
    adoption_refusal,
    drift_rule,
    drift_step,
    ignored_for,
    is_same_answer,
    read_hold,
    recorded_as,
)
from engine.hooks.rule import Rule
from engine.words import DRIFT, Decision, Json, ObservedState, OnTimeout

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SIZE_7 = Drift(
    ObservedState.CHANGED, [{"path": "$.size", "desired": 1, "observed": 7}], NOW
)  # fmt: skip
SIZE_8 = replace(SIZE_7, differences=[{"path": "$.size", "desired": 1, "observed": 8}])
MISSING = Drift(ObservedState.MISSING, recorded_at=NOW)
PRESENT = Drift(ObservedState.PRESENT)
UNKNOWN = Drift(ObservedState.UNKNOWN)
WAITING = AskedDrift(SIZE_7, waiting=True)
REJECTED = AskedDrift(SIZE_7, waiting=False, decision=Decision.REJECT)
IGNORED = replace(REJECTED, ignored_until=NOW + timedelta(hours=2))
APPROVED = AskedDrift(SIZE_7, waiting=False, decision=Decision.CONTINUE)
#: Its hook ended without an answer.
ENDED = AskedDrift(SIZE_7, waiting=False)
#: The record changed, and the difference did not.
RECORDED_LATER = replace(SIZE_7, recorded_at=NOW + timedelta(minutes=1))


@pytest.mark.parametrize(
    ("found", "asked", "step"),
    [
        (SIZE_7, None, DriftStep.OPEN),
        (MISSING, None, DriftStep.OPEN),
        (PRESENT, None, DriftStep.KEEP),
        (UNKNOWN, None, DriftStep.KEEP),
        (SIZE_7, WAITING, DriftStep.KEEP),
        (RECORDED_LATER, WAITING, DriftStep.KEEP),
        (SIZE_8, WAITING, DriftStep.OPEN),
        (MISSING, WAITING, DriftStep.OPEN),
        (UNKNOWN, WAITING, DriftStep.KEEP),
        (PRESENT, WAITING, DriftStep.CLOSE),
        (SIZE_7, REJECTED, DriftStep.KEEP),
        (SIZE_8, REJECTED, DriftStep.OPEN),
        (PRESENT, REJECTED, DriftStep.CLOSE),
        (SIZE_7, IGNORED, DriftStep.KEEP),
        (SIZE_8, IGNORED, DriftStep.KEEP),
        (PRESENT, IGNORED, DriftStep.KEEP),
        (SIZE_7, APPROVED, DriftStep.REPAIR),
        (SIZE_8, APPROVED, DriftStep.OPEN),
        (RECORDED_LATER, APPROVED, DriftStep.OPEN),
        (UNKNOWN, APPROVED, DriftStep.KEEP),
        (PRESENT, APPROVED, DriftStep.CLOSE),
        (SIZE_7, ENDED, DriftStep.OPEN),
    ],
)
def test_each_step(found: Drift, asked: AskedDrift | None, step: DriftStep) -> None:
    assert drift_step(found, asked, NOW, holds=True, changing=False) is step


@pytest.mark.parametrize(
    ("found", "asked", "step"),
    [
        (SIZE_7, None, DriftStep.KEEP),
        (SIZE_8, WAITING, DriftStep.CLOSE),
        (PRESENT, WAITING, DriftStep.CLOSE),
        (SIZE_7, APPROVED, DriftStep.KEEP),
        (SIZE_8, APPROVED, DriftStep.KEEP),
    ],
)
def test_no_hook_opens_during_a_change(
    found: Drift, asked: AskedDrift | None, step: DriftStep
) -> None:
    assert drift_step(found, asked, NOW, holds=True, changing=True) is step


@pytest.mark.parametrize("found", [SIZE_7, PRESENT, UNKNOWN], ids=["drift", "present", "unknown"])
def test_without_the_policy_hooks_close(found: Drift) -> None:
    assert drift_step(found, None, NOW, holds=False, changing=False) is DriftStep.KEEP
    assert drift_step(found, IGNORED, NOW, holds=False, changing=False) is DriftStep.CLOSE


def test_ignored_drift_is_asked_again_afterwards() -> None:
    later = NOW + timedelta(hours=2)
    assert drift_step(SIZE_7, IGNORED, later, holds=True, changing=False) is DriftStep.OPEN
    before = later - timedelta(seconds=1)
    assert drift_step(SIZE_7, IGNORED, before, holds=True, changing=False) is DriftStep.KEEP


def test_a_rejection_may_ignore_drift_for_a_time() -> None:
    assert ignored_for(Decision.REJECT, {"ignore": {"for": "2h"}}) == timedelta(hours=2)
    assert ignored_for(Decision.REJECT, None) is None
    assert ignored_for(Decision.CONTINUE, None) is None
    assert ignored_for(Decision.REPAIR, None) is None
    assert ignored_for(Decision.IGNORE, {"for": "2h"}) == timedelta(hours=2)


#: Of the decisions that need data.
DATA: dict[Decision, Json] = {Decision.IGNORE: {"for": "2h"}}


@pytest.mark.parametrize(
    ("decision", "first", "same", "others"),
    [
        (Decision.IGNORE, {"for": "2h"}, {"for": "120m"}, [{"for": "1h"}, {"for": "366d"}]),
        (Decision.REJECT, None, None, [{"ignore": {"for": "2h"}}]),
        (Decision.REJECT, {"ignore": {"for": "2h"}}, {"ignore": {"for": "2h"}},
         [None, {"ignore": {"for": "3h"}}]),
    ],
)  # fmt: skip
def test_another_time_is_another_answer(
    decision: Decision, first: Json, same: Json, others: list[Json]
) -> None:
    assert is_same_answer(decision, first, decision, same)
    assert not any(is_same_answer(decision, first, decision, other) for other in others)
    with pytest.raises(Invalid):
        is_same_answer(decision, first, decision, {"for": "garbage"})


@pytest.mark.parametrize("decision", DECISIONS)
def test_an_answer_is_recorded_as_what_it_does(decision: Decision) -> None:
    found = recorded_as(decision)
    assert (found is Decision.CONTINUE) == (decision in (Decision.REPAIR, Decision.CONTINUE))
    assert (found is Decision.REJECT) == (decision in (Decision.IGNORE, Decision.REJECT))
    same = [
        one for one in DECISIONS if is_same_answer(decision, DATA.get(decision), one, DATA.get(one))
    ]
    repairs = [Decision.REPAIR, Decision.CONTINUE]
    assert same == (repairs if decision in repairs else [decision])


@pytest.mark.parametrize(
    ("decision", "data", "place"),
    [
        (Decision.CONTINUE, {"ignore": {"for": "2h"}}, "data"),
        (Decision.REPAIR, {"for": "2h"}, "data"),
        (Decision.IGNORE, None, "data"),
        (Decision.IGNORE, {}, "data"),
        (Decision.IGNORE, {"ignore": {"for": "2h"}}, "data"),
        (Decision.IGNORE, {"for": "2h", "more": 1}, "data"),
        (Decision.IGNORE, {"for": "soon"}, "data.for"),
        (Decision.IGNORE, {"for": "367d"}, "data.for"),
        (Decision.REJECT, {"ignore": "2h"}, "data"),
        (Decision.REJECT, {"ignored": {"for": "2h"}}, "data"),
        (Decision.REJECT, {"ignore": {"for": "2h"}, "more": 1}, "data"),
        (Decision.REJECT, {"ignore": {"for": "soon"}}, "data.ignore.for"),
        (Decision.REJECT, {"ignore": {"for": 7}}, "data.ignore.for"),
        (Decision.REJECT, {"ignore": {"for": "367d"}}, "data.ignore.for"),
    ],
)
def test_other_data_is_refused(decision: Decision, data: Json, place: str) -> None:
    with pytest.raises(Invalid) as refused:
        ignored_for(decision, data)
    assert [one.place for one in refused.value.findings] == [place]


def test_hold_says_who_may_answer() -> None:
    hold = {"answer_by": ["role:dba"], "approvals": 2, "exclude": "requester", "remind": "1h"}
    rule = drift_rule(hold, by_operator=True, excluded=["name:ada"])
    assert rule == Rule(
        DRIFT,
        on_timeout=OnTimeout.REJECT,
        answer_by=("role:dba",),
        approvals=2,
        exclude="requester",
        excluded=("name:ada",),
        remind=timedelta(hours=1),
        by_operator=True,
    )
    assert drift_rule(None, by_operator=False, excluded=["name:ada"]).excluded == ()


@pytest.mark.parametrize(
    ("hold", "place", "remedy"),
    [
        ("role:dba", "hold", "answer_by"),
        ({"answerby": ["role:dba"]}, "hold.answerby", '"answer_by"'),
        ({"answer_by": ["dba"]}, "hold.answer_by[0]", "role:NAME"),
        ({"timeout": "1h"}, "hold.timeout", "Known"),
        ({"approvals": 2, "answer_by": ["user:ada"]}, "hold.approvals", "Name more"),
    ],
)
def test_a_wrong_hold_is_refused(hold: Json, place: str, remedy: str) -> None:
    findings = Findings()
    read_hold(hold, "hold", findings)
    assert [(one.place, remedy in one.remedy) for one in findings.all] == [(place, True)]


def test_repair_adopt_ignore_and_reject_are_answers() -> None:
    rule = drift_rule(None, by_operator=False)
    assert allowed_decisions(rule, DRIFT, None) == list(DECISIONS)
    assert not ABOUT_DRIFT & set(allowed_decisions(rule, "pre-update", None))
    # The approvals of several principals are of the same result.
    several = drift_rule({"approvals": 2}, by_operator=False)
    known = [one for one in DECISIONS if one is not Decision.ADOPT]
    assert allowed_decisions(several, DRIFT, None) == known


@pytest.mark.parametrize("state", ObservedState)
def test_only_changed_values_can_be_adopted(state: ObservedState) -> None:
    refusal = adoption_refusal(state, [{"path": "size", "desired": 1, "observed": 2}])
    assert (refusal is None) == (state is ObservedState.CHANGED)
    assert refusal is None or all(refusal)


def test_a_value_that_does_not_exist_cannot_be_adopted() -> None:
    found = [{"path": f"p{number}", "desired": 1, "observed": None} for number in range(6)]
    found.append({"path": "size", "desired": 1, "observed": 2})
    refusal = adoption_refusal(ObservedState.CHANGED, found)
    assert refusal is not None
    assert refusal[0] == "the object has no value at p0, p1, p2, p3, p4 and others"


@pytest.mark.parametrize("decision", [Decision.CONTINUE, Decision.ADOPT])
def test_only_a_rejection_ignores_drift(decision: Decision) -> None:
    assert ignored_for(decision, None) is None
    with pytest.raises(Invalid):
        ignored_for(decision, {"ignore": {"for": "2h"}})
