"""Every hook is decided here, whichever door the answer came through: by somebody, or by its
deadline. Called under the lock on the hooks' stacks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from engine.hooks.rules import decode_rules
from engine.node.inputs import Answered, Expired
from engine.node.machine import Node, Refused, decide
from engine.store.advance import Claim, Work, advance
from engine.store.database import Connection
from engine.store.hooks import Decision as WrittenDecision
from engine.store.hooks import Held, decide_hooks
from engine.words import Decision, HookState, Json, OnTimeout, Operation, Phase, Point, State
from engine.work.steps import write_step
from engine.work.writing import Notice, Result

log: FilteringBoundLogger = structlog.get_logger()

NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of one hook: `said` goes to the machine, the rest is written down."""

    held: Held
    said: Answered | Expired
    by: str
    door: str
    reason: str = ""
    data: Json = None


async def apply(
    conn: Connection,
    verdicts: Sequence[Verdict],
    *,
    new_id: Callable[[], UUID],
    default_timeout: timedelta,
) -> None:
    """Write the verdicts and move the nodes on, in sets. The stacks are locked by the caller."""
    steps = [
        step
        for verdict in verdicts
        if (step := _step(verdict, new_id, default_timeout)) is not None
    ]
    await decide_hooks(conn, [_decision(verdict) for verdict in verdicts])
    await advance(conn, "", timedelta(0), 0, steps)


def _decision(verdict: Verdict) -> WrittenDecision:
    state = HookState.EXPIRED if isinstance(verdict.said, Expired) else HookState.ANSWERED
    return WrittenDecision(
        stack_id=verdict.held.stack_id,
        id=verdict.held.id,
        state=state,
        decision=_word(verdict.said),
        reason=verdict.reason,
        data=verdict.data,
        decided_by=verdict.by,
        door=verdict.door,
    )


def _word(said: Answered | Expired) -> str:
    match said:
        case Answered(decision=decision):
            return decision.value
        case Expired(on_timeout=on_timeout):
            return on_timeout.value
        case _ as never:
            assert_never(never)


def _step(verdict: Verdict, new_id: Callable[[], UUID], default_timeout: timedelta) -> Json | None:
    held = verdict.held
    if held.claim is None:
        return None
    node = Node(
        operation=Operation(held.operation),
        state=State(held.node_state),
        phase=Phase(held.phase),
        rules=decode_rules(held.rules),
        passed=tuple(Point(point) for point in held.passed),
    )
    step = decide(node, verdict.said)
    if isinstance(step, Refused):
        log.error("hook.refused", hook=str(held.id), reason=step.reason)
        return None
    work = _work(held)
    told = Notice(held.notice["properties"], held.notice["changes"])
    result = Result(properties=work.properties, physical_id=work.physical_id, data=work.data or {})
    document = write_step(
        work, step, result, new_id=new_id, default_timeout=default_timeout, notice=lambda: told
    )
    document["events"].insert(0, _event(verdict, work))
    return document


def _event(verdict: Verdict, work: Work) -> Json:
    point = verdict.held.asked.point
    expired = isinstance(verdict.said, Expired)
    return {
        "type": "headgate.hook.expired" if expired else "headgate.hook.answered",
        "resource_name": work.name,
        "resource_type": work.type,
        "physical_id": work.physical_id,
        "action": work.action or "INIT",
        "status": work.status or "COMPLETE",
        "reason": _sentence(verdict, point),
        "data": {
            "hook_id": verdict.held.id,
            "point": point,
            "mode": verdict.held.mode,
            "decision": _word(verdict.said),
            "decided_by": verdict.by,
            "reason": verdict.reason,
        },
    }


def _sentence(verdict: Verdict, point: str) -> str:
    """``Hook pre-create is cleared`` to the letter: Heat's clients look for it."""
    match verdict.said:
        case Answered(decision=Decision.CONTINUE):
            return f"Hook {point} is cleared"
        case Answered(decision=Decision.REJECT):
            why = f": {verdict.reason}" if verdict.reason else ""
            return f"Hook {point} was rejected by {verdict.by}{why}"
        case Expired(on_timeout=on_timeout):
            return f"Hook {point} was not answered in time: {_THEN[on_timeout]}"
        case Answered():
            return f"Hook {point} is cleared"
        case _ as never:
            assert_never(never)


_THEN = {
    OnTimeout.STOP: "stopped",
    OnTimeout.CONTINUE: "went on",
    OnTimeout.REJECT: "rejected",
}


def _work(held: Held) -> Work:
    row = held.resource or {}
    return Work(
        key=Claim(held.stack_id, held.traversal, held.node, held.claim or 0),
        project=held.project,
        stack_name=held.stack_name,
        resource_id=UUID(row["id"]) if row else held.resource_id,
        replacement_id=held.replacement_id,
        name=held.name,
        type=held.type,
        operation=held.operation,
        direction=held.direction,
        phase=held.phase,
        definition=held.definition,
        rules=held.rules,
        passed=held.passed,
        operation_key=held.operation_key,
        progress=None,
        attempts=0,
        started=held.phase == Phase.POST,
        dependents=held.notice.get("dependents"),
        row_type=row.get("type"),
        action=row.get("action"),
        status=row.get("status"),
        physical_id=row.get("physical_id"),
        reference=row.get("reference"),
        properties=row.get("properties"),
        shown=row.get("shown"),
        attributes=row.get("attributes") or {},
        data=row.get("data") or {},
        metadata=row.get("metadata") or {},
        digest=row.get("digest"),
        broken=bool(row.get("broken")),
        protected=bool(row.get("protected")),
        deletion_policy=row.get("deletion_policy"),
        replaced_by=UUID(row["replaced_by"]) if row.get("replaced_by") else None,
        inputs={},
        now=held.now,
    )
