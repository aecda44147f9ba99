"""Hooks about drift: when one opens, is replaced or closes, and what its answers mean. Pure.

A drift hook belongs to a resource, not to a change: nothing is under way while it waits. An answer
`repair` (or `continue`) repairs the resource, `adopt` makes the observed values the desired ones,
`ignore` leaves all drift of the resource for a time, and `reject` leaves this drift as it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from engine.errors import Finding, Findings, Invalid, nearest, quote_value
from engine.hooks.drift_digests import are_comparable, digests_differ
from engine.hooks.durations import parse_span
from engine.hooks.rule import HookLimits, Rule
from engine.hooks.rule_reader import Reader
from engine.words import DRIFT, Decision, Json, ObservedState, OnTimeout

#: The decisions that an answer to a drift hook may have.
DECISIONS = (
    Decision.REPAIR, Decision.ADOPT, Decision.IGNORE, Decision.REJECT, Decision.CONTINUE
)  # fmt: skip
#: Those that approve a repair.
REPAIRS = (Decision.REPAIR, Decision.CONTINUE)
#: As `AskedDrift` and the table of drift hooks have them. `ignore` is a rejection with a time.
_RECORDED_AS = {Decision.REPAIR: Decision.CONTINUE, Decision.IGNORE: Decision.REJECT}
#: In the data of a rejection: ``{"ignore": {"for": "2h"}}``; of `ignore`: ``{"for": "2h"}``.
IGNORE, FOR = "ignore", "for"
FOR_EXAMPLE = 'Send {"for": "2h"}.'
IGNORE_EXAMPLE = 'Send {"ignore": {"for": "2h"}}, or leave it out.'
#: Keys of a rule about drift hooks. They never expire, so the others do not apply.
KEYS = ("answer_by", "approvals", "exclude", "remind", "escalate")
#: A drift hook waits until it is answered or closed: its deadline is too far away to matter.
NO_DEADLINE = timedelta(days=36_500)
#: Paths that a refusal names.
MAX_PATHS = 5
#: Longest time for which drift is ignored.
MAX_IGNORED = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class Drift:
    """What an observation says about a resource. state: PRESENT: it is as recorded, or it is gone;
    UNKNOWN: the observation says nothing about its current state. differences: as they are shown.
    recorded_at: of the recorded state. digest: of the differences with their values; None: it is
    not known (`engine.hooks.drift_digests`)."""

    state: ObservedState
    differences: Sequence[Mapping[str, Json]] = ()
    recorded_at: datetime | None = None
    digest: str | None = None

    def is_same(self, other: "Drift") -> bool:
        """Whether both are the same difference, perhaps after changes of the record."""
        shown = self.state is other.state and [*self.differences] == [*other.differences]
        return shown and not digests_differ(self.digest, other.digest)

    def new_digest(self, other: "Drift") -> str | None:
        """The digest of this drift if the same one was recorded without a digest, or with one that
        cannot be compared; else None."""
        known = self.digest is None or are_comparable(self.digest, other.digest)
        return None if known or not self.is_same(other) else self.digest


@dataclass(frozen=True, slots=True)
class AskedDrift:
    """The drift of the resource's last hook. waiting: the hook does. decision: its answer, as
    `recorded_as` returns it; None: it has none. ignored_until: None: the answer has no such
    time."""

    drift: Drift
    waiting: bool
    decision: Decision | None = None
    ignored_until: datetime | None = None


class DriftStep(StrEnum):
    """What happens to the hook of a resource.

    KEEP: nothing. OPEN: a hook opens; one that waits for another difference closes before. CLOSE: a
    hook that waits closes; its record is deleted. REPAIR: its answer has approved a repair of
    exactly this drift.
    """

    KEEP = "keep"
    OPEN = "open"
    CLOSE = "close"
    REPAIR = "repair"


def drift_step(
    found: Drift, asked: AskedDrift | None, now: datetime, *, holds: bool, changing: bool
) -> DriftStep:
    """Return what happens after an observation. holds: the policy is `hold`. changing: a change of
    the stack is under way, so no hook opens."""
    ignored = asked is not None and asked.ignored_until is not None and now < asked.ignored_until
    if not holds:
        return DriftStep.KEEP if asked is None else DriftStep.CLOSE
    if found.state is ObservedState.UNKNOWN or ignored:
        return DriftStep.KEEP
    if found.state is ObservedState.PRESENT:
        return DriftStep.KEEP if asked is None else DriftStep.CLOSE
    if asked is not None and found.is_same(asked.drift):
        if asked.waiting:
            return DriftStep.KEEP
        if asked.decision is Decision.REJECT and asked.ignored_until is None:
            return DriftStep.KEEP
        if asked.decision is Decision.CONTINUE and found.recorded_at == asked.drift.recorded_at:
            return DriftStep.KEEP if changing else DriftStep.REPAIR
    if changing:
        return DriftStep.CLOSE if asked is not None and asked.waiting else DriftStep.KEEP
    return DriftStep.OPEN


def drift_rule(hold: Json, *, by_operator: bool, excluded: Sequence[str] = ()) -> Rule:
    """Return the rule of a drift hook. hold: `hold` of the policy, which was valid when it was
    stored. excluded: keys of the principals who requested what a repair applies."""
    rule = read_hold(hold, "", Findings())
    return replace(rule, by_operator=by_operator, excluded=tuple(excluded) if rule.exclude else ())


def read_hold(value: Json, place: str, findings: Findings) -> Rule:
    """Read the key `hold` of a convergence policy. Adds findings."""
    empty = Rule(DRIFT, on_timeout=OnTimeout.REJECT)
    if value is None:
        return empty
    if not isinstance(value, Mapping):
        findings.add(place, "must be a map", "Write a map such as {answer_by: [role:operator]}.")
        return empty
    for key in value:
        if key not in KEYS:
            remedy = nearest(str(key), KEYS) or f"Known: {', '.join(KEYS)}."
            findings.add(f"{place}.{key}", "is not a known key", remedy)
    known = {key: value[key] for key in KEYS if value.get(key) is not None}
    before = len(findings.all)
    fields = Reader(findings, HookLimits(NO_DEADLINE, NO_DEADLINE)).fields(known, place)
    if len(findings.all) > before:
        return empty
    return replace(empty, **{key: fields[key] for key in known})


def adoption_refusal(
    state: ObservedState, differences: Sequence[Mapping[str, Json]]
) -> tuple[str, str] | None:
    """Return why drift cannot be adopted, and the remedy; None: it can, if the type can take over
    its values."""
    remedy = "Answer repair, or ignore the drift for a time."
    match state:
        case ObservedState.CHANGED:
            absent = [str(one["path"]) for one in differences if one["observed"] is None]
            if not absent:
                return None
            paths = ", ".join(absent[:MAX_PATHS]) + (" and others" if absent[MAX_PATHS:] else "")
            return (
                f"the object has no value at {paths}",
                "Change the template, answer repair, or ignore the drift for a time.",
            )
        case ObservedState.MISSING:
            return "the resource is missing, so it has no values to adopt", remedy
        case ObservedState.DEGRADED:
            return "the resource does not work, and no property differs", remedy
        case ObservedState.UNKNOWN | ObservedState.PRESENT:
            return "the drift has ended, or its state is unknown", "Observe the stack again."
        case _ as never:
            assert_never(never)


def recorded_as(decision: Decision) -> Decision:
    """Return what an answer to a drift hook does: continue, reject or adopt."""
    return _RECORDED_AS.get(decision, decision)


def is_same_answer(decided: str | None, data: Json, decision: Decision, new_data: Json) -> bool:
    """Whether an answer repeats the one that decided a drift hook. `ignore` is the same as no other
    decision, and with another time it is another answer. decided, data: of the first answer. Raises
    Invalid if the data of the repeated decision is not valid."""
    if decided != decision and {decided, decision} != set(REPAIRS):
        return False
    return ignored_for(decision, new_data) == ignored_for(decision, data)


def ignored_for(decision: Decision, data: Json) -> timedelta | None:
    """Return for how long an answer ignores drift, whatever it is; None: it does not. Raises
    Invalid."""
    if decision is Decision.IGNORE:
        if not isinstance(data, Mapping) or set(data) != {FOR}:
            raise _invalid("data", "must say for how long the drift is ignored", FOR_EXAMPLE)
        return _ignored_time(data[FOR], f"data.{FOR}")
    if data is None:
        return None
    if decision is not Decision.REJECT:
        raise _invalid("data", f"is not valid with the decision {decision}", "Leave it out.")
    ignore = data.get(IGNORE) if isinstance(data, Mapping) and set(data) == {IGNORE} else None
    if not isinstance(ignore, Mapping) or set(ignore) != {FOR}:
        raise _invalid("data", "is not valid at a drift hook", IGNORE_EXAMPLE)
    return _ignored_time(ignore[FOR], f"data.{IGNORE}.{FOR}")


def _ignored_time(value: Json, place: str) -> timedelta:
    time = parse_span(value)
    if time is None:
        reason = f"{quote_value(value)} is not a duration"
        raise _invalid(place, reason, "Send a duration such as 90s, 30m or 2h.")
    if time > MAX_IGNORED:
        reason = f"{quote_value(value)} is longer than {MAX_IGNORED.days} days"
        raise _invalid(place, reason, "Add the path to `ignore` of the policy.")
    return time


def _invalid(place: str, reason: str, remedy: str) -> Invalid:
    return Invalid([Finding(place, reason, remedy, "AnswerInvalid")])
