"""The effects of answers to hooks about drift.

A repair is an update with locks of its own, so an answer does not start it: it is recorded, and the
observer starts it after it has observed the stack once more. An adoption is written with the
answer, and the observation that follows reports that the drift has ended.
"""

from collections.abc import Sequence

from engine.hooks.drift_hooks import REPAIRS, ignored_for, recorded_as
from engine.node.node import Answered
from engine.store.connection import Connection
from engine.store.hooks.drift_hooks import record_drift_answers
from engine.store.hooks.locked_hooks import LockedHook, record_events
from engine.store.observer import observation_schedule
from engine.words import DRIFT, Decision, Json
from engine.work.hook_decisions import Verdict

#: Answers after which the stack is observed once more.
_OBSERVED = (*REPAIRS, Decision.ADOPT)


def about_drift(hook: LockedHook) -> bool:
    return hook.point == DRIFT


async def record_answers(conn: Connection, verdicts: Sequence[Verdict]) -> None:
    """Record the answers to drift hooks with their drift, and as events; request the observations
    before approved repairs and after adoptions. The caller has decided the hooks, whose stacks it
    has locked."""
    answers: list[Json] = []
    events: list[Json] = []
    for verdict in verdicts:
        decided = verdict.input
        if not isinstance(decided, Answered):
            continue
        ignored = ignored_for(decided.decision, verdict.data)
        answers.append({
            "stack_id": verdict.hook.stack_id,
            "hook_id": verdict.hook.id,
            "decision": recorded_as(decided.decision),
            "ignored_for": ignored.total_seconds() if ignored else None,
            "decided_by": verdict.by.name,
            "decided_by_id": verdict.by.id,
        })  # fmt: skip
        events.append(_answered_event(verdict))
    await record_drift_answers(conn, answers)
    await record_events(conn, events)
    observed = {one.hook.stack_id for one in verdicts if one.word in _OBSERVED}
    for stack_id in sorted(observed):
        await observation_schedule.request(conn, stack_id)


def _answered_event(verdict: Verdict) -> Json:
    reason = f"Hook {DRIFT} is cleared"
    if verdict.word == Decision.REJECT:
        why = f": {verdict.reason}" if verdict.reason else ""
        reason = f"Hook {DRIFT} was rejected by {verdict.by}{why}"
    elif verdict.word == Decision.IGNORE:
        until = verdict.data["for"]
        reason = f"{verdict.by} ignores drift of {verdict.hook.resource_name} for {until}"
    elif verdict.word == Decision.ADOPT:
        reason = f"{verdict.by} adopted the observed values of {verdict.hook.resource_name}"
    data = {"decision": verdict.word, "decided_by": verdict.by.name, "reason": verdict.reason}
    return drift_event(verdict.hook, "headgate.hook.answered", reason, data)


def drift_event(hook: LockedHook, kind: str, reason: str, data: Json) -> Json:
    """An event about a drift hook, as `record_events` takes it."""
    notification = hook.notification
    return {
        "stack_id": hook.stack_id,
        "type": kind,
        "resource_name": hook.resource_name,
        "resource_type": notification["type"],
        "physical_id": notification["physical_id"],
        "action": notification["action"],
        "status": notification["status"],
        "reason": reason,
        "data": {"hook_id": hook.id, "point": hook.point, "mode": hook.mode, **data},
    }
