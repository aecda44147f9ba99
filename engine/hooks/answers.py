"""Judges answers to hooks: decisions and data. The caller locks the hook's stack.

engine/hooks/answer_rights.py decides who may answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import assert_never

from engine.errors import AnswerRefused, Conflict, Finding, HookDecision, Invalid
from engine.hooks import drift_hooks
from engine.hooks.answer_data import DataCheck
from engine.hooks.answer_rights import Automation, StoredHook, check_right
from engine.hooks.deadline import HookClock, extend, has_expired, latest_deadline
from engine.hooks.member_choice import InvalidChoice, chosen_members
from engine.hooks.rule import ANY_PROPERTY, HookLimits, Rule
from engine.principal import Principal
from engine.words import (
    DRIFT,
    RESUMING_DECISIONS,
    AnswerChannel,
    Decision,
    HookState,
    Json,
    OnTimeout,
    StepKind,
    word_of,
)

#: Points at which an answer may change a resource's properties.
PATCHABLE = frozenset({"pre-create", "pre-update", "pre-replace"})
#: Decisions at no other point than `drift`.
ABOUT_DRIFT = frozenset({Decision.ADOPT, Decision.REPAIR, Decision.IGNORE})


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a hook.

    by: the principal, for the audit log. channel: the answer channel. automation: the subscription
    that authorizes an answer with the hook's token; None if the role of `by` authorizes it.
    properties: for a patch. extend: for progress, by how much to extend the deadline. how: for a
    step. address: of the client. credential: the cloud credential for the rest of the change.
    """

    decision: Decision
    by: Principal
    channel: AnswerChannel
    reason: str = ""
    digest: str = ""
    data: Json = None
    properties: Mapping[str, Json] | None = None
    extend: timedelta | None = None
    automation: Automation | None = None
    address: str = ""
    credential: str = field(default="", repr=False)
    how: StepKind = StepKind.OVER

    @property
    def word(self) -> str:
        """The decision as the audit log records it."""
        return word_of(self.decision, self.how)

    @property
    def person(self) -> Principal:
        """The principal that counts for `approvals`."""
        return self.by if self.automation is None else self.automation.person


class RepeatedAnswer:
    """The same answer was recorded before: it is accepted, and nothing changes."""


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """It decides the hook."""

    decision: Decision


@dataclass(frozen=True, slots=True)
class Approval:
    """It is an approval; `missing` more principals must approve."""

    missing: int


@dataclass(frozen=True, slots=True)
class DeadlineExtension:
    """Progress was reported. clock: with the new deadline."""

    clock: HookClock


AnswerEffect = FinalAnswer | Approval | DeadlineExtension | RepeatedAnswer


def judge(
    hook: StoredHook, answer: Answer, check: DataCheck | None, now: datetime, limits: HookLimits
) -> AnswerEffect | AnswerRefused:
    """Return the effect of an answer; AnswerRefused (returned, not raised) if it is too late.

    check: the result of validating the data, before the hook was locked.

    Raises Forbidden (MayNotAnswer) without the right to answer, Invalid for a wrong answer,
    Conflict (HookChanged) if `ask` has changed since the data was validated.
    """
    check_right(hook, answer.by, answer.automation)
    match hook.state:
        case HookState.WAITING:
            return _judge_waiting(hook, answer, check, now, limits)
        case HookState.ANSWERED if _is_same(hook, answer):
            return RepeatedAnswer()
        case HookState.ANSWERED | HookState.EXPIRED | HookState.SUPERSEDED:
            return _build_refusal(hook, *_REFUSALS[hook.state](hook))
        case _ as never:
            assert_never(never)


def may_hand_over(hook: StoredHook, answer: Answer, now: datetime) -> AnswerRefused | None:
    """Return why a waiting hook cannot be handed over, or None. It needs the right to answer, but
    no data.

    Raises Forbidden (MayNotAnswer).
    """
    check_right(hook, answer.by, answer.automation)
    if hook.state is not HookState.WAITING:
        return _build_refusal(hook, *_REFUSALS[hook.state](hook))
    return _build_refusal(hook, *_describe_expired(hook)) if has_expired(hook.clock, now) else None


def _is_same(hook: StoredHook, answer: Answer) -> bool:
    """Whether an answer repeats the one that decided the hook, with its content. If several
    principals approve, each approval has data of its own."""
    if answer.decision is Decision.PATCH and not _is_same_json(
        answer.properties or {}, hook.patched
    ):
        return False
    if hook.point == DRIFT:
        return drift_hooks.is_same_answer(hook.decision, hook.data, answer.decision, answer.data)
    has_own_data = hook.rule.approvals > 1 and answer.decision in RESUMING_DECISIONS
    return hook.decision == answer.word and (has_own_data or _is_same_json(answer.data, hook.data))


def _is_same_json(one: Json, other: Json) -> bool:
    """In Python, true and 1 are equal; in JSON, they are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(
            _is_same_json(item, other[key]) for key, item in one.items()
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same_json, one, other))
    return bool(one == other)


def _judge_waiting(
    hook: StoredHook, answer: Answer, check: DataCheck | None, now: datetime, limits: HookLimits
) -> AnswerEffect | AnswerRefused:
    if has_expired(hook.clock, now):
        return _build_refusal(hook, *_describe_expired(hook))
    if answer.digest and answer.digest != hook.digest:
        why = "the hook has changed since you read it: the digest differs"
        return _build_refusal(hook, "DigestChanged", why, "Read the hook again, then answer it.")
    _check_allowed(hook, answer)
    if answer.decision is Decision.PROGRESS:
        return _extend_deadline(hook, answer, now, limits)
    if answer.decision in RESUMING_DECISIONS or answer.decision is Decision.REPAIR:
        _check_data(hook.rule, check)
        _check_choice(hook, answer.data)
        if answer.person.is_in(hook.approved_by):
            return RepeatedAnswer()
        missing = hook.rule.approvals - len(hook.approved_by) - 1
        if missing > 0:
            return Approval(missing)
    return FinalAnswer(answer.decision)


def _check_allowed(hook: StoredHook, answer: Answer) -> None:
    allowed = allowed_decisions(hook.rule, hook.point, hook.operator_approval)
    if answer.decision not in allowed:
        if answer.decision in allowed_decisions(hook.rule, hook.point, None):
            why = f"is not allowed after an operator rule has approved at {hook.operator_approval}"
            remedy = "Change the template; or ask the operator to set `patch = true` in that rule."
            raise _wrong("decision", f'"{answer.decision}" {why}', remedy)
        if answer.decision is Decision.ADOPT and hook.point == DRIFT:
            why = f"is not allowed, because the {hook.rule.approvals} approvals are of a repair"
            remedy = "Change the template, or answer repair, ignore or reject."
            raise _wrong("decision", f'"{answer.decision}" {why}', remedy)
        words = ", ".join(allowed)
        raise _wrong("decision", f'"{answer.decision}" is not allowed here', f"Allowed: {words}.")
    if hook.point == DRIFT:
        drift_hooks.ignored_for(answer.decision, answer.data)
    properties = answer.properties
    if (properties is not None) != (answer.decision is Decision.PATCH) or properties == {}:
        remedy = "Send `properties` with the decision patch, and with no other."
        raise _wrong("properties", "are not valid with this decision", remedy)
    if properties and ANY_PROPERTY not in hook.rule.patch:
        for name in properties:
            if name not in hook.rule.patch:
                remedy = f"An answer may change: {', '.join(hook.rule.patch)}."
                raise _wrong(f"properties.{name}", "may not be changed by an answer", remedy)


def allowed_decisions(rule: Rule, point: str, operator_approval: str | None) -> list[Decision]:
    """Return the decisions that an answer to a waiting hook may have. operator_approval: see
    `StoredHook`."""
    if point == DRIFT:
        return [one for one in drift_hooks.DECISIONS if one in rule.allows()]
    patchable = point in PATCHABLE and operator_approval is None
    refused = ABOUT_DRIFT if patchable else {*ABOUT_DRIFT, Decision.PATCH}
    return [one for one in rule.allows() if one not in refused]


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


def _check_choice(hook: StoredHook, data: Json) -> None:
    """Check that chosen members are among the candidates. Raises Invalid."""
    names = chosen_members(hook.point, hook.seen, data)
    if isinstance(names, InvalidChoice):
        raise _wrong(names.place, names.reason, names.remedy)


def _extend_deadline(
    hook: StoredHook, answer: Answer, now: datetime, limits: HookLimits
) -> DeadlineExtension:
    at_most = hook.rule.at_most or limits.max_timeout
    longer = answer.extend or hook.rule.timeout or limits.default_timeout
    clock = extend(hook.clock, longer, at_most, now)
    if clock is None:
        latest = latest_deadline(hook.clock, at_most)
        reason = f"the latest possible deadline of the hook is {latest:%Y-%m-%d %H:%M:%S} UTC"
        raise _wrong("extend", reason, "Answer the hook before that time.")
    return DeadlineExtension(clock)


def _wrong(place: str, reason: str, remedy: str) -> Invalid:
    return Invalid([Finding(place, reason, remedy, "AnswerInvalid")])


def _describe_answered(hook: StoredHook) -> tuple[str, str, str]:
    why = f"it was already answered: {hook.decision} by {hook.decided_by}"
    return (
        "HookAlreadyAnswered",
        why,
        "The first answer is final; update the stack to change its result.",
    )


def _describe_expired(hook: StoredHook) -> tuple[str, str, str]:
    why = "its deadline passed without an answer"
    # The rule decides at the deadline, even if its decision is not written yet.
    decision = hook.decision or hook.rule.on_timeout
    if decision == OnTimeout.STOP:
        return "StackStopped", why, "The stack stopped there; its reason says how to continue."
    return "HookExpired", why, f"Its rule then decided: {decision}."


def _describe_superseded(hook: StoredHook) -> tuple[str, str, str]:
    if hook.point == DRIFT:
        why = "the drift has changed or ended, or a change of the stack concerns the resource"
        return "HookSuperseded", why, "Show the drift of the stack, and answer the newer hook."
    why = "a newer change of the stack superseded it"
    return "HookSuperseded", why, "Answer the hooks of the newer change, if it has any."


_REFUSALS: dict[HookState, Callable[[StoredHook], tuple[str, str, str]]] = {
    HookState.ANSWERED: _describe_answered,
    HookState.EXPIRED: _describe_expired,
    HookState.SUPERSEDED: _describe_superseded,
}


def _build_refusal(hook: StoredHook, code: str, why: str, remedy: str) -> AnswerRefused:
    of = hook.resource_name or "the stack"
    reason = f"hook {hook.point} of {of} cannot be answered: {why}"
    decided = HookDecision(hook.decision, hook.decided_by, hook.decided_at)
    return AnswerRefused(code, reason, remedy=remedy, decided=decided)
