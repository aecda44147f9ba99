"""From what the machine decided to what the store is told: one JSON document per node.

The documents are read by the SQL function ``advance`` (engine/store/routines/4_advance.sql),
which names their fields.
"""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from engine.node.node import Step
from engine.store.advance import Work
from engine.words import Json
from engine.work.opening import Notice
from engine.work.writing import Result, Writer


def write_step(
    work: Work,
    step: Step,
    result: Result,
    *,
    new_id: Callable[[], UUID],
    default_timeout: timedelta,
    notice: Callable[[], Notice],
) -> Json:
    """The document for `advance`. notice is asked only when a hook opens."""
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
        "progress": result.progress,
        "attempts": result.attempts,
        "reason": node.reason,
        "confirmed": writer.confirmed,
        "resource": writer.resource,
        "kept": writer.kept,
        "hook": writer.hooks or None,
        "events": writer.events,
    }
