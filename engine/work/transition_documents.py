"""From what the machine decided to what the store is told: one JSON document per node.

The documents are read by the SQL function ``advance`` (engine/store/routines/5_advance.sql),
which names their fields.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from uuid import UUID

from engine.node.node import Step
from engine.store.advance import Work
from engine.store.encryption import Hidden, Scope
from engine.words import Json
from engine.work.hook_opening import Notice
from engine.work.transition_encoder import Result, Writer

#: What may hold a secret, of a resource's row or of what it keeps for a snapshot.
_SECRETIVE = frozenset({"reference", "properties", "attributes", "data", "metadata"})


def write_step(
    work: Work,
    step: Step,
    result: Result,
    *,
    new_id: Callable[[], UUID],
    default_timeout: timedelta,
    notice: Callable[[], Notice],
    sealed: bool = True,
) -> Json:
    """The document for `advance`. notice is asked only when a hook opens. sealed: what the resource
    keeps may be secret; False only where it is known that it is not."""
    node = step.node
    writer = Writer(work, node, result)
    for effect in step.effects:
        writer.apply(effect, new_id, default_timeout, notice)
    return {
        "stack_id": work.key.stack_id,
        "traversal": work.key.traversal,
        "node": work.key.node,
        "claim": work.key.claim,
        "state": node.state,
        "phase": node.phase,
        "operation": node.operation,
        "passed": node.passed,
        "wake_at": writer.wake_at,
        "progress": _progress(work, result.progress, sealed),
        "attempts": result.attempts,
        "reason": node.reason,
        "confirmed": writer.confirmed,
        "awaits": result.awaits,
        "resource": _sealed(work, "resource", writer.resource) if sealed else writer.resource,
        "kept": _sealed(work, "resource_snapshot", writer.kept) if sealed else writer.kept,
        "hook": writer.hooks or None,
        "events": writer.events,
    }


def _progress(work: Work, progress: Json, sealed: bool) -> Json:
    return Hidden(progress, _scope(work, "node.progress")) if sealed and progress else progress


def _sealed(work: Work, table: str, row: Mapping[str, Json] | None) -> Json:
    if row is None:
        return None
    return {name: Hidden(value, _scope(work, f"{table}.{name}"))
            if value and name in _SECRETIVE else value
            for name, value in row.items()}  # fmt: skip


def _scope(work: Work, column: str) -> Scope:
    return Scope(work.project, work.key.stack_id, column)
