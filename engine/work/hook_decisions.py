"""Applies the decisions of hooks, from answers of any channel and from deadlines.

The caller holds the lock on the hooks' stacks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from engine.hooks.hash_chain import Entry
from engine.hooks.rule import at_pace, decode_rules
from engine.node.inputs import Answered, Expired
from engine.node.machine import decide
from engine.node.node import NOBODY, Node, Refused
from engine.principal import Principal
from engine.store.advance import Claim, Work, advance
from engine.store.audit_log import record
from engine.store.connection import Connection
from engine.store.hooks import Decision as WrittenDecision
from engine.store.hooks import Held, decide_hooks
from engine.words import (
    GATES,
    Decision,
    HookState,
    How,
    Json,
    OnTimeout,
    Operation,
    Pace,
    Phase,
    State,
    Status,
    word_of,
)
from engine.work.hook_opening import Notice
from engine.work.transition_documents import write_step
from engine.work.transition_encoder import Result

log: FilteringBoundLogger = structlog.get_logger()

__all__ = ["NOBODY", "Verdict", "apply", "entry_of", "hook_event"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision of one hook. input: of the node machine; the other fields are stored."""

    held: Held
    input: Answered | Expired
    by: Principal
    door: str
    reason: str = ""
    data: Json = None
    address: str = ""
    digest: str = ""
    how: How = How.OVER

    @property
    def word(self) -> str:
        """The decision as stored and audited."""
        match self.input:
            case Answered(decision=decision):
                return word_of(decision, self.how)
            case Expired(on_timeout=on_timeout):
                return on_timeout.value
            case _ as never:
                assert_never(never)


async def apply(
    conn: Connection,
    verdicts: Sequence[Verdict],
    *,
    new_id: Callable[[], UUID],
    default_timeout: timedelta,
) -> Sequence[Json]:
    """Write decisions and the next steps of their nodes, in sets. The caller locks the stacks.

    Returns the steps, for metrics.
    """
    steps = [
        step
        for verdict in verdicts
        if (step := _step(verdict, new_id, default_timeout)) is not None
    ]
    await decide_hooks(conn, [_decision(verdict) for verdict in verdicts])
    await record(conn, [entry_of(verdict, verdict.word) for verdict in verdicts])
    advanced = await advance(conn, "", timedelta(0), 0, steps)
    if advanced.refused:
        raise RuntimeError("a hook was waiting in a traversal that had ended")
    return steps


def entry_of(verdict: Verdict, kind: str) -> Entry:
    """Return the entry of the audit log."""
    held, expired = verdict.held, isinstance(verdict.input, Expired)
    return Entry(
        stack_id=held.stack_id,
        hook_id=held.id,
        kind=f"expired-{kind}" if expired else kind,
        by=verdict.by.name,
        principal=verdict.by.id,
        token_id=verdict.by.token_id,
        door=verdict.door,
        at=held.now,
        address=verdict.address,
        reason=verdict.reason,
        digest=verdict.digest or held.asked.digest,
        data=verdict.data,
    )


def _decision(verdict: Verdict) -> WrittenDecision:
    state = HookState.EXPIRED if isinstance(verdict.input, Expired) else HookState.ANSWERED
    return WrittenDecision(
        stack_id=verdict.held.stack_id,
        id=verdict.held.id,
        state=state,
        decision=verdict.word,
        reason=verdict.reason,
        data=verdict.data,
        decided_by=verdict.by.name,
        decided_by_id=verdict.by.id,
        door=verdict.door,
    )


def _step(verdict: Verdict, new_id: Callable[[], UUID], default_timeout: timedelta) -> Json | None:
    held = verdict.held
    if held.claim is None:
        return None
    node = Node(
        operation=Operation(held.operation),
        state=State(held.node_state),
        phase=Phase(held.phase),
        rules=at_pace(decode_rules(held.rules), Pace(held.pace) if held.pace else None),
        passed=tuple(held.passed),
    )
    step = decide(node, verdict.input)
    if isinstance(step, Refused):
        log.error("hook.refused", hook=str(held.id), reason=step.reason)
        return None
    work = _work(held)
    notice = Notice(held.notice.get("properties") or {}, held.notice.get("changes") or {})
    result = Result(
        properties=work.properties,
        physical_id=work.physical_id,
        data=work.data or {},
        progress=held.progress,
        attempts=held.attempts or 0,
    )
    document = write_step(
        work, step, result, new_id=new_id, default_timeout=default_timeout, notice=lambda: notice
    )
    document["events"].insert(0, _event(verdict))
    return document


def _event(verdict: Verdict) -> Json:
    expired = isinstance(verdict.input, Expired)
    kind = "headgate.hook.expired" if expired else "headgate.hook.answered"
    data = {"decision": verdict.word, "decided_by": verdict.by.name, "reason": verdict.reason}
    return hook_event(verdict.held, kind, _event_reason(verdict, verdict.held.asked.point), data)


def hook_event(held: Held, kind: str, reason: str, data: Mapping[str, Json]) -> Json:
    """Return an event about a hook, as `advance` and `record_events` take it."""
    row = held.resource or {}
    gate = held.operation in GATES
    return {
        "stack_id": held.stack_id,
        "type": kind,
        "resource_name": held.name or None,
        "resource_type": None if gate else held.type,
        "physical_id": row.get("physical_id"),
        "action": held.notice["action"] if gate else row.get("action") or "INIT",
        "status": Status.IN_PROGRESS if gate else row.get("status") or "COMPLETE",
        "reason": reason,
        "data": {"hook_id": held.id, "point": held.asked.point, "mode": held.mode, **data},
    }


def _event_reason(verdict: Verdict, point: str) -> str:
    """Return the event's reason. Heat's clients search for ``Hook pre-create is cleared``."""
    match verdict.input:
        case Answered(decision=Decision.CONTINUE):
            return f"Hook {point} is cleared"
        case Answered(decision=Decision.REJECT):
            why = f": {verdict.reason}" if verdict.reason else ""
            return f"Hook {point} was rejected by {verdict.by}{why}"
        case Expired(on_timeout=on_timeout):
            return f"Hook {point} was not answered in time: {_EFFECTS[on_timeout]}"
        case Answered():
            return f"Hook {point} is cleared"
        case _ as never:
            assert_never(never)


_EFFECTS = {
    OnTimeout.STOP: "stopped",
    OnTimeout.CONTINUE: "continued",
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
        progress=held.progress,
        attempts=held.attempts or 0,
        started=held.phase == Phase.POST,
        dependents=held.notice.get("dependents"),
        row_type=row.get("type"),
        action=row.get("action"),
        status=row.get("status"),
        physical_id=row.get("physical_id"),
        reference=row.get("reference"),
        properties=row.get("properties"),
        shown=row.get("shown"),
        secret=row.get("secret"),
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
        patched=held.patched,
        path=held.stack_path,
    )
