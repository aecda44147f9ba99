"""Judges answers to hooks: rights, decisions and data. The caller locks the hook's stack."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import assert_never

from engine.errors import AnswerRefused, Conflict, Decided, Finding, Forbidden, Invalid
from engine.hooks.answer_data import DataCheck
from engine.hooks.automation import Automation, refusal
from engine.hooks.deadline import HookClock, extend, has_expired, latest_deadline
from engine.hooks.member_choice import BadChoice, chosen
from engine.hooks.rule import ANY_PROPERTY, Limits, Rule, answerers, may_answer, own_names
from engine.principal import Principal
from engine.words import GOES_ON, Decision, HookState, How, Json, OnTimeout, word_of

#: Points at which an answer may change a resource's properties.
PATCHABLE = frozenset({"pre-create", "pre-update", "pre-replace"})


@dataclass(frozen=True, slots=True)
class Asked:
    """A hook as stored. approved_by: keys of the principals who have approved so far. seen: the
    preview of an operation that asks for a confirmation.
    """

    state: HookState
    resource_name: str
    point: str
    digest: str
    clock: HookClock
    decision: str | None
    decided_by: str | None
    decided_at: datetime | None
    rule: Rule
    requested_by: Principal
    assigned: str | None = None
    escalated: bool = False
    approved_by: Sequence[str] = ()
    data: Json = None
    properties: Json = None
    seen: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Given:
    """An answer. by: the recorded principal. automation: the subscription that answered with the
    hook's token; None: a principal answered by right of a role.

    properties: of a patch. extend: of progress, the time from now. how: of a step.
    check: result of validating the data, before the hook was locked.
    """

    decision: Decision
    by: Principal
    automation: Automation | None = None
    digest: str = ""
    data: Json = None
    properties: Mapping[str, Json] | None = None
    extend: timedelta | None = None
    how: How = How.OVER
    check: DataCheck | None = None

    @property
    def person(self) -> Principal:
        """The principal that counts for `approvals`."""
        return self.by if self.automation is None else self.automation.person


class Same:
    """The same answer was given before: it is accepted, and nothing changes."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """It decides the hook."""

    decision: Decision


@dataclass(frozen=True, slots=True)
class Counted:
    """It is an approval; `missing` more principals must approve."""

    missing: int


@dataclass(frozen=True, slots=True)
class Extended:
    """Progress was reported. clock: with the new deadline."""

    clock: HookClock


Judgement = Accepted | Counted | Extended | Same


def judge(hook: Asked, given: Given, now: datetime, limits: Limits) -> Judgement | AnswerRefused:
    """Return the effect of an answer; AnswerRefused (returned, not raised) if it is too late.

    Raises Forbidden (MayNotAnswer) without the right to answer, Invalid for a wrong answer,
    Conflict (HookChanged) if `ask` has changed since the data was validated.
    """
    check_right(hook, given)
    match hook.state:
        case HookState.WAITING:
            return _judge_waiting(hook, given, now, limits)
        case HookState.ANSWERED if _is_same(hook, given):
            return Same()
        case HookState.ANSWERED | HookState.EXPIRED | HookState.SUPERSEDED:
            return _refused(hook, *_REFUSALS[hook.state](hook))
        case _ as never:
            assert_never(never)


def may_hand_over(hook: Asked, given: Given, now: datetime) -> AnswerRefused | None:
    """Return why a waiting hook cannot be handed over, or None. It needs the right to answer, but
    no data.

    Raises Forbidden (MayNotAnswer).
    """
    check_right(hook, given)
    if hook.state is not HookState.WAITING:
        return _refused(hook, *_REFUSALS[hook.state](hook))
    return _refused(hook, *_expired(hook)) if has_expired(hook.clock, now) else None


def check_right(hook: Asked, given: Given) -> None:
    """Check the right to answer. Raises Forbidden (MayNotAnswer)."""
    requester = hook.requested_by
    if given.automation is not None:
        why = refusal(hook.rule, given.automation, requester, escalated=hook.escalated)
    else:
        # A hand-over does not change the requester.
        handed_over = hook.assigned in given.by.written
        rule = replace(hook.rule, answer_by=()) if handed_over else hook.rule
        why = may_answer(rule, given.by, requester, escalated=hook.escalated)
    if why is not None:
        of = hook.resource_name or "the stack"
        remedy = "Ask a principal who may, or have the hook handed over."
        wanted = answerers(hook.rule, escalated=hook.escalated)
        if names := own_names(given.by, (*wanted, hook.assigned or "")):
            remedy += f' "user:{given.by.name}" is another principal: rules name you {names}.'
        raise Forbidden(
            f"hook {hook.point} of {of} is not yours to answer: {why}",
            remedy=remedy,
            code="MayNotAnswer",
        )


def _is_same(hook: Asked, given: Given) -> bool:
    if given.decision is Decision.PATCH and (given.properties or {}) != hook.properties:
        return False
    return hook.decision == word_of(given.decision, given.how)


def _judge_waiting(
    hook: Asked, given: Given, now: datetime, limits: Limits
) -> Judgement | AnswerRefused:
    if has_expired(hook.clock, now):
        return _refused(hook, *_expired(hook))
    if given.digest and given.digest != hook.digest:
        why = "the hook has changed since you saw it: the digest differs"
        return _refused(hook, "DigestChanged", why, "Read the hook again, then answer it.")
    _check_allowed(hook, given)
    if given.decision is Decision.PROGRESS:
        return _extended(hook, given, now, limits)
    if given.decision in GOES_ON:
        _check_data(hook.rule, given.check)
        _check_choice(hook, given.data)
        if given.person.is_in(hook.approved_by):
            return Same()
        missing = hook.rule.approvals - len(hook.approved_by) - 1
        if missing > 0:
            return Counted(missing)
    return Accepted(given.decision)


def _check_allowed(hook: Asked, given: Given) -> None:
    allowed = decisions(hook.rule, hook.point)
    if given.decision not in allowed:
        words = ", ".join(allowed)
        raise _wrong("decision", f'"{given.decision}" is not allowed here', f"Allowed: {words}.")
    properties = given.properties
    if (properties is not None) != (given.decision is Decision.PATCH) or properties == {}:
        remedy = "Send `properties` with the decision patch, and with no other."
        raise _wrong("properties", "are not valid with this decision", remedy)
    if properties and ANY_PROPERTY not in hook.rule.patch:
        for name in properties:
            if name not in hook.rule.patch:
                remedy = f"An answer may change: {', '.join(hook.rule.patch)}."
                raise _wrong(f"properties.{name}", "may not be changed by an answer", remedy)


def decisions(rule: Rule, point: str) -> list[Decision]:
    """Return the decisions that an answer to a waiting hook may have."""
    return [one for one in rule.allows() if one is not Decision.PATCH or point in PATCHABLE]


def _check_data(rule: Rule, check: DataCheck | None) -> None:
    """Check the data of an answer that resumes the node. Raises Conflict or Invalid."""
    if not rule.ask:
        return
    if check is None or check.ask != rule.ask:
        raise Conflict(
            "the hook's `ask` changed while the answer was checked",
            place="data",
            remedy="Read the hook again, then answer it.",
            code="HookChanged",
        )
    if check.findings:
        raise Invalid(check.findings)


def _check_choice(hook: Asked, data: Json) -> None:
    """Check that chosen members are among the candidates. Raises Invalid."""
    names = chosen(hook.point, hook.seen, data)
    if isinstance(names, BadChoice):
        raise _wrong(names.place, names.reason, names.remedy)


def _extended(hook: Asked, given: Given, now: datetime, limits: Limits) -> Extended:
    at_most = hook.rule.at_most or limits.max_timeout
    longer = given.extend or hook.rule.timeout or limits.default_timeout
    clock = extend(hook.clock, longer, at_most, now)
    if clock is None:
        latest = latest_deadline(hook.clock, at_most)
        reason = f"the hook may wait until {latest:%Y-%m-%d %H:%M:%S} UTC, and not longer"
        raise _wrong("extend", reason, "Answer the hook before that.")
    return Extended(clock)


def _wrong(place: str, reason: str, remedy: str) -> Invalid:
    return Invalid([Finding(place, reason, remedy, "AnswerInvalid")])


def _answered(hook: Asked) -> tuple[str, str, str]:
    why = f"it was already answered: {hook.decision} by {hook.decided_by}"
    return (
        "HookAlreadyAnswered",
        why,
        "The first answer is final; update the stack to change its result.",
    )


def _expired(hook: Asked) -> tuple[str, str, str]:
    why = "its deadline passed without an answer"
    # The rule decides at the deadline, even if its decision is not written yet.
    decision = hook.decision or hook.rule.on_timeout
    if decision == OnTimeout.STOP:
        return "StackStopped", why, "The stack stopped there; update the stack to resume."
    return "HookExpired", why, f"Its rule then decided: {decision}."


def _superseded(hook: Asked) -> tuple[str, str, str]:
    why = "a newer change of the stack superseded it"
    return "HookSuperseded", why, "Answer the hooks of the newer change, if it has any."


_REFUSALS: dict[HookState, Callable[[Asked], tuple[str, str, str]]] = {
    HookState.ANSWERED: _answered,
    HookState.EXPIRED: _expired,
    HookState.SUPERSEDED: _superseded,
}


def _refused(hook: Asked, code: str, why: str, remedy: str) -> AnswerRefused:
    of = hook.resource_name or "the stack"
    reason = f"hook {hook.point} of {of} can't be answered: {why}"
    decided = Decided(hook.decision, hook.decided_by, hook.decided_at)
    return AnswerRefused(code, reason, remedy=remedy, decided=decided)
