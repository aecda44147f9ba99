"""The guard around each unit of a worker's work: an exception that is raised for one node fails
that node, and neither the process nor another node.

The person who reads the stack gets an id; the log has the traceback under that id. What the
exception says is not written anywhere: it may hold a secret.
"""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from engine.node.inputs import Broke
from engine.node.node import BREAKING, Node
from engine.store.advance import Work
from engine.store.document_size import size_of
from engine.types.contract import Outcome
from engine.words import GATES, Json, Operation, Phase, State, Status
from engine.work.hook_opening import ACTION_OF
from engine.work.job import Job, NodeInput, settle
from engine.work.operation_call import RAISED
from engine.work.prepare import Prepared
from engine.work.transition_encoder import Result
from engine.work.visible_properties import kept_view

log: FilteringBoundLogger = structlog.get_logger()


def report(error: BaseException, error_id: UUID, stage: str) -> str:
    """Log an unexpected exception under an id; return the reason that people see."""
    cause = error.__cause__ or error
    log.error(
        "internal.error",
        error_id=error_id.hex,
        stage=stage,
        error=type(cause).__name__,
        sqlstate=getattr(cause, "sqlstate", None),
        where="".join(traceback.format_tb(error.__traceback__)),
    )
    return f"internal error {error_id.hex} (see the server's log)"


@dataclass(frozen=True, slots=True)
class Wreck:
    """What is known of a node when it fails. outcome: what its operation gave, so that what it made
    outside can be found and deleted."""

    work: Work
    prepared: Prepared | None = None
    outcome: Outcome | None = None


def fail(
    wreck: Wreck, reason: str, *, new_id: Callable[[], UUID], default_timeout: timedelta
) -> Json:
    """The step that fails a node, whatever its documents hold: with all that is known of it, or
    with less."""
    for result_of in (_begun, _made, _untouched):
        try:
            job = Job(wreck.work, _without_rules(wreck.work))
            said = NodeInput(Broke(reason), result_of(wreck))
            step = settle(job, said, new_id=new_id, default_timeout=default_timeout)
            size_of(step)
        except RAISED as error:
            report(error, new_id(), "fail")
        else:
            if step is not None:
                return step
    return bare_failure(wreck, reason)


def _begun(wreck: Wreck) -> Result:
    made = _made(wreck)
    if wreck.prepared is not None:
        made.properties, made.shown = wreck.prepared.properties, kept_view(wreck.prepared)
    return made


def _made(wreck: Wreck) -> Result:
    result = _untouched(wreck)
    data = getattr(wreck.outcome, "data", None)
    result.physical_id = _physical_id(wreck.outcome)
    result.data = data if isinstance(data, Mapping) else {}
    return result


def _physical_id(outcome: Outcome | None) -> str | None:
    physical_id = getattr(outcome, "physical_id", None)
    return physical_id if isinstance(physical_id, str) else None


def _untouched(wreck: Wreck) -> Result:
    return Result(properties=wreck.work.properties, shown=wreck.work.shown)


def _without_rules(work: Work) -> Node:
    return Node(
        operation=Operation(work.operation),
        state=State.RUNNING,
        phase=Phase(work.phase),
        passed=tuple(work.passed),
    )


def bare_failure(wreck: Wreck, reason: str) -> Json:
    """The step that fails a node and reads none of its documents: the last resort. The resource
    keeps what it has, and learns its physical id."""
    work, made = wreck.work, _physical_id(wreck.outcome)
    action = ACTION_OF.get(work.operation, work.operation.upper())
    resource = {
        "write": "fail",
        "id": work.resource_id,
        "action": "UPDATE" if work.operation == Operation.REPLACE else action,
        "reason": reason,
        "physical_id": None if work.operation == Operation.REPLACE else made,
        "broken": work.phase != Phase.PRE and work.operation in BREAKING,
    }
    event = {
        "type": f"headgate.resource.{work.operation}.failed",
        "resource_name": work.name,
        "resource_type": work.type,
        "physical_id": made or work.physical_id,
        "action": action,
        "status": Status.FAILED,
        "reason": reason,
        "data": {"operation": work.operation},
    }
    gate = work.operation in GATES
    return {
        "stack_id": work.key.stack_id,
        "traversal": work.key.traversal,
        "node": work.key.node,
        "claim": work.key.claim,
        "state": State.FAILED,
        "phase": work.phase,
        "operation": work.operation,
        "passed": work.passed,
        "wake_at": None,
        "progress": None,
        "attempts": work.attempts,
        "reason": reason,
        "confirmed": None,
        "awaits": None,
        "resource": None if gate else resource,
        "kept": None,
        "hook": None,
        "events": [] if gate else [event],
    }
