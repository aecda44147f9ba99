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
from engine.hooks.rule import decode_rules, rules_in_force
from engine.node.machine import decide
from engine.node.node import DECIDED_BY_ENGINE, Answered, Expired, InvalidInput, Node
from engine.principal import Principal
from engine.store.connection import Connection
from engine.store.hooks.locked_hooks import LockedHook, decide_hooks
from engine.store.traversals.advance import Claim, Work, advance
from engine.words import (
    GATES,
    Decision,
    HookState,
    Json,
    OnTimeout,
    Operation,
    Phase,
    State,
    Status,
    StepKind,
    StepMode,
    word_of,
)
from engine.work.nodes.hook_opening import NotificationData
from engine.work.nodes.transition_encoder import Result, creates_replacement, write_step

log: FilteringBoundLogger = structlog.get_logger()

__all__ = ["DECIDED_BY_ENGINE", "Verdict", "apply", "entry_of", "hook_event"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision of one hook. input: of the node machine; the other fields are stored."""

    hook: LockedHook
    input: Answered | Expired
    by: Principal
    channel: str
    reason: str = ""
    data: Json = None
    address: str = ""
    digest: str = ""
    how: StepKind = StepKind.OVER

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
    entries = [entry_of(verdict, verdict.word) for verdict in verdicts]
    await decide_hooks(conn, [_decision(verdict) for verdict in verdicts], entries)
    advanced = await advance(conn, "", timedelta(0), 0, steps)
    if advanced.refused:
        raise RuntimeError("a hook was waiting in a traversal that had ended")
    return steps


def entry_of(verdict: Verdict, kind: str) -> Entry:
    """Return the entry of the audit log."""
    hook, expired = verdict.hook, isinstance(verdict.input, Expired)
    return Entry(
        stack_id=hook.stack_id,
        hook_id=hook.id,
        kind=f"expired-{kind}" if expired else kind,
        by=verdict.by.name,
        principal=verdict.by.id,
        token_id=verdict.by.token_id,
        channel=verdict.channel,
        at=hook.now,
        address=verdict.address,
        reason=verdict.reason,
        digest=verdict.digest or hook.digest,
        data=verdict.data,
    )


def _decision(verdict: Verdict) -> Json:
    """Return the row for `decide_hooks`."""
    expired = isinstance(verdict.input, Expired)
    return {
        "stack_id": verdict.hook.stack_id,
        "id": verdict.hook.id,
        "state": HookState.EXPIRED if expired else HookState.ANSWERED,
        "decision": verdict.word,
        "reason": verdict.reason,
        "data": verdict.data,
        "decided_by": verdict.by.name,
        "decided_by_id": verdict.by.id,
        "channel": verdict.channel,
    }


def _step(verdict: Verdict, new_id: Callable[[], UUID], default_timeout: timedelta) -> Json | None:
    hook = verdict.hook
    if hook.claim is None:
        return None
    step_mode = StepMode(hook.step_mode) if hook.step_mode else None
    node = Node(
        operation=Operation(hook.operation),
        state=State(hook.node_state),
        phase=Phase(hook.phase),
        rules=rules_in_force(decode_rules(hook.rules), step_mode),
        breakpoints_hit=tuple(hook.breakpoints_hit),
        stepping=step_mode is StepMode.STEP,
        conditional=_is_conditional(verdict),
    )
    step = decide(node, verdict.input)
    if isinstance(step, InvalidInput):
        log.error("hook.refused", hook=str(hook.id), reason=step.reason)
        return None
    work = _work(hook)
    notification = NotificationData(
        hook.notification.get("properties") or {}, hook.notification.get("changes") or {}
    )
    result = Result(
        properties=work.properties,
        data={} if creates_replacement(node) else work.data or {},
        progress=hook.progress,
        attempts=hook.attempts or 0,
    )
    document = write_step(
        work,
        step,
        result,
        new_id=new_id,
        default_timeout=default_timeout,
        notification=lambda: notification,
    )
    document["events"].insert(0, _event(verdict))
    return document


def _is_conditional(verdict: Verdict) -> bool:
    """See `Node`. A definition that cannot be decrypted fails the node when it is claimed."""
    definition, given = verdict.hook.definition, verdict.input
    patched = isinstance(given, Answered) and given.decision is Decision.PATCH
    return (
        definition is None
        or patched
        or bool(verdict.hook.patched or definition.get("preconditions"))
    )


def _event(verdict: Verdict) -> Json:
    expired = isinstance(verdict.input, Expired)
    kind = "headgate.hook.expired" if expired else "headgate.hook.answered"
    data = {"decision": verdict.word, "decided_by": verdict.by.name, "reason": verdict.reason}
    return hook_event(verdict.hook, kind, _event_reason(verdict, verdict.hook.point), data)


def hook_event(hook: LockedHook, kind: str, reason: str, data: Mapping[str, Json]) -> Json:
    """Return an event about a hook, as `advance` and `record_events` take it."""
    row = hook.resource or {}
    gate = hook.operation in GATES
    return {
        "stack_id": hook.stack_id,
        "type": kind,
        "resource_name": hook.name or None,
        "resource_type": None if gate else hook.type,
        "physical_id": row.get("physical_id"),
        "action": hook.notification["action"] if gate else row.get("action") or "INIT",
        "status": Status.IN_PROGRESS if gate else row.get("status") or "COMPLETE",
        "reason": reason,
        "data": {"hook_id": hook.id, "point": hook.point, "mode": hook.mode, **data},
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


#: The fields of `Work` that a locked hook has, and those that the resource's row has.
_OF_HOOK = (
    "project", "stack_name", "replacement_id", "name", "type", "operation", "direction", "phase",
    "definition", "rules", "breakpoints_hit", "operation_key", "progress", "now", "step_mode",
    "patched",
)  # fmt: skip
_OF_ROW = (
    "action", "status", "physical_id", "reference", "properties", "masked_properties",
    "secret_attributes", "digest", "deletion_policy", "lifecycle",
)  # fmt: skip


def _work(hook: LockedHook) -> Work:
    row: Json = hook.resource or {}
    return Work(
        **{name: getattr(hook, name) for name in _OF_HOOK},
        **{name: row.get(name) for name in _OF_ROW},
        key=Claim(hook.stack_id, hook.traversal, hook.node, hook.claim or 0),
        resource_id=UUID(row["id"]) if row else hook.resource_id,
        attempts=hook.attempts or 0,
        started=hook.phase == Phase.POST,
        dependents=hook.notification.get("dependents"),
        row_type=row.get("type"),
        attributes=row.get("attributes") or {},
        data=row.get("data") or {},
        metadata=row.get("metadata") or {},
        tainted=bool(row.get("tainted")),
        protected=bool(row.get("protected")),
        replaced_by=UUID(row["replaced_by"]) if row.get("replaced_by") else None,
        inputs={},
        path=hook.stack_path,
    )
