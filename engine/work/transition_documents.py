"""Encodes steps of the node machine: one JSON document per node for the store.

The SQL function ``advance`` (engine/store/routines/5_advance.sql) reads the documents and defines
their fields.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from uuid import UUID

from engine.node.node import Step
from engine.store.advance import Work
from engine.store.encryption import Hidden, Scope
from engine.words import Json
from engine.work.hook_opening import Notice
from engine.work.transition_encoder import Result, TransitionEncoder

#: Columns of a resource or of its snapshot that may contain a secret.
_SECRET_COLUMNS = frozenset({"reference", "properties", "attributes", "data", "metadata"})


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
    """Return the document for `advance`. notice: called only if a hook opens. sealed: encrypt the
    resource's values; False only if none of them is secret.
    """
    node = step.node
    encoder = TransitionEncoder(work, node, result)
    for effect in step.effects:
        encoder.apply(effect, new_id, default_timeout, notice)
    return {
        "stack_id": work.key.stack_id,
        "traversal": work.key.traversal,
        "node": work.key.node,
        "claim": work.key.claim,
        "state": node.state,
        "phase": node.phase,
        "operation": node.operation,
        "passed": node.passed,
        "wake_at": encoder.wake_at,
        "progress": _progress(work, result.progress, sealed),
        "attempts": result.attempts,
        "reason": node.reason,
        "confirmed": encoder.confirmed,
        "awaits": result.awaits,
        "resource": _sealed(work, "resource", encoder.resource) if sealed else encoder.resource,
        "kept": _sealed(work, "resource_snapshot", encoder.kept) if sealed else encoder.kept,
        "hook": encoder.hooks or None,
        "events": encoder.events,
    }


def _progress(work: Work, progress: Json, sealed: bool) -> Json:
    return Hidden(progress, _scope(work, "node.progress")) if sealed and progress else progress


def _sealed(work: Work, table: str, row: Mapping[str, Json] | None) -> Json:
    if row is None:
        return None
    return {name: Hidden(value, _scope(work, f"{table}.{name}"))
            if value and name in _SECRET_COLUMNS else value
            for name, value in row.items()}  # fmt: skip


def _scope(work: Work, column: str) -> Scope:
    return Scope(work.project, work.key.stack_id, column)
