"""May this answer still decide this hook? Asked under the lock on the hook's stack."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from engine.errors import AnswerRefused, Decided
from engine.words import Decision, HookState


@dataclass(frozen=True, slots=True)
class Asked:
    """A hook as the store has it now."""

    state: HookState
    resource_name: str
    point: str
    digest: str
    deadline: datetime
    decision: str | None
    decided_by: str | None
    decided_at: datetime | None


class Same:
    """The same answer was given before: fine, and nothing changes."""


@dataclass(frozen=True, slots=True)
class Accepted:
    decision: Decision


def judge(
    hook: Asked, decision: Decision, digest: str, now: datetime
) -> Accepted | Same | AnswerRefused:
    """A refusal is a value: it is told to a person, with who decided what, and when."""
    match hook.state:
        case HookState.WAITING:
            return _judge_waiting(hook, decision, digest, now)
        case HookState.ANSWERED if hook.decision == decision:
            return Same()
        case HookState.ANSWERED | HookState.EXPIRED | HookState.SUPERSEDED:
            code, why, remedy = _REFUSALS[hook.state](hook)
            return _refused(hook, code, why, remedy)
        case _ as never:
            assert_never(never)


def _judge_waiting(
    hook: Asked, decision: Decision, digest: str, now: datetime
) -> Accepted | AnswerRefused:
    if now >= hook.deadline:
        return _refused(hook, *_expired(hook))
    if digest and digest != hook.digest:
        why = "what was seen is not what is waiting now: the digest differs"
        return _refused(hook, "DigestChanged", why, "Look at the hook again, then answer it.")
    return Accepted(decision)


def _answered(hook: Asked) -> tuple[str, str, str]:
    why = f"it was already answered: {hook.decision} by {hook.decided_by}"
    return "HookAlreadyAnswered", why, "The first answer stands; update the stack to change course."


def _expired(hook: Asked) -> tuple[str, str, str]:
    why = "nobody answered it before its deadline"
    if hook.decision in (None, "stop"):
        return "StackStopped", why, "The stack was stopped there; update the stack to go on."
    return "HookExpired", why, f"Its rule then decided: {hook.decision}."


def _superseded(hook: Asked) -> tuple[str, str, str]:
    why = "a newer change of the stack superseded it"
    return "HookSuperseded", why, "Answer the hooks of the newer change, if it has any."


_REFUSALS: dict[HookState, Callable[[Asked], tuple[str, str, str]]] = {
    HookState.ANSWERED: _answered,
    HookState.EXPIRED: _expired,
    HookState.SUPERSEDED: _superseded,
}


def _refused(hook: Asked, code: str, why: str, remedy: str) -> AnswerRefused:
    reason = f"hook {hook.point} of {hook.resource_name} can't be answered: {why}"
    decided = Decided(hook.decision, hook.decided_by, hook.decided_at)
    return AnswerRefused(code, reason, remedy=remedy, decided=decided)
