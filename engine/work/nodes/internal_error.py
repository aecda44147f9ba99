"""Fails a node after an unexpected exception, without affecting other nodes or the process.

Users see an error ID; the log has the traceback under that ID. The message of the exception is
neither stored nor logged, because it may contain a secret.
"""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from engine.node import decisions
from engine.node.node import Node, OperationFailed, Record, WriteFailed
from engine.plan.draft import may_be_suspended
from engine.store.connection import size_of
from engine.store.traversals.advance import Work
from engine.types.contract import Outcome
from engine.words import Json, Operation, Phase, ResourceAction, State, Status
from engine.work.nodes.hook_opening import ACTION_OF
from engine.work.nodes.job import Job, NodeInput, decide_step
from engine.work.nodes.operation_call import RAISED
from engine.work.nodes.prepare import PreparedNode
from engine.work.nodes.transition_encoder import Result, name_key
from engine.work.nodes.visible_properties import kept_view

log: FilteringBoundLogger = structlog.get_logger()


def report(error: BaseException, error_id: UUID, stage: str) -> str:
    """Log an unexpected exception under an ID; return the reason that users see."""
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
class NodeContext:
    """The data of a node when it fails. outcome: of its operation, so that physical resources
    that it created can be found and deleted.
    """

    work: Work
    prepared: PreparedNode | None = None
    outcome: Outcome | None = None


def fail(
    context: NodeContext, reason: str, *, new_id: Callable[[], UUID], default_timeout: timedelta
) -> Json:
    """Return the step that fails a node, with as much of its data as can be encoded."""
    for result_of in (_with_properties, _with_physical_id, _unchanged_result):
        try:
            job = Job(context.work, _without_rules(context.work))
            node_input = NodeInput(OperationFailed(reason), result_of(context))
            step = decide_step(job, node_input, new_id=new_id, default_timeout=default_timeout)
            size_of(step)
        except RAISED as error:
            report(error, new_id(), "fail")
        else:
            if step is not None:
                return step
    return bare_failure(context, reason)


def _with_properties(context: NodeContext) -> Result:
    result = _with_physical_id(context)
    if context.prepared is not None:
        result.properties, result.masked_properties = (
            context.prepared.properties,
            kept_view(context.prepared),
        )
    return result


def _with_physical_id(context: NodeContext) -> Result:
    result = _unchanged_result(context)
    data = getattr(context.outcome, "data", None)
    result.physical_id = _physical_id(context.outcome)
    result.data = data if isinstance(data, Mapping) else {}
    return result


def _physical_id(outcome: Outcome | None) -> str | None:
    physical_id = getattr(outcome, "physical_id", None)
    return physical_id if isinstance(physical_id, str) else None


def _unchanged_result(context: NodeContext) -> Result:
    return Result(
        properties=context.work.properties, masked_properties=context.work.masked_properties
    )


def _without_rules(work: Work) -> Node:
    return Node(
        operation=Operation(work.operation),
        state=State.RUNNING,
        phase=Phase(work.phase),
        breakpoints_hit=tuple(work.breakpoints_hit),
    )


def bare_failure(context: NodeContext, reason: str) -> Json:
    """Return the step that fails a node without its documents, which may be damaged. The resource
    keeps its columns, with a new physical ID if the operation returned one.

    The machine decides it like every failure. It reads columns that have a check constraint only,
    and refuses no phase, so this function raises nothing.
    """
    work = context.work
    step = decisions.fail(_without_rules(work), OperationFailed(reason))
    resource, events = None, []
    for effect in step.effects:
        match effect:
            case WriteFailed():
                resource = _failed_resource(context, step.node, effect)
            case Record():
                events.append(_failed_event(context, step.node, effect))
    return {
        "stack_id": work.key.stack_id,
        "traversal": work.key.traversal,
        "node": work.key.node,
        "claim": work.key.claim,
        "state": step.node.state,
        "phase": step.node.phase,
        "operation": step.node.operation,
        "operation_key": None,
        "breakpoints_hit": step.node.breakpoints_hit,
        "wake_at": None,
        "progress": None,
        "attempts": work.attempts,
        "reason": step.node.reason,
        "step_mode": work.step_mode,
        "confirmation": None,
        "signal_resource_id": None,
        "resource": resource,
        "snapshot": None,
        "hook": None,
        "events": events,
        "nodes": None,
    }


def _failed_resource(context: NodeContext, node: Node, effect: WriteFailed) -> dict[str, Json]:
    """Return what `apply_transitions` changes in the resource's row. Of a failed replacement, this
    is the row of the old resource, which its operation did not change."""
    work, replaces = context.work, node.operation is Operation.REPLACE
    return {
        "write": "fail",
        "id": work.resource_id,
        "action": _action(work, node.operation),
        "reason": effect.reason,
        "physical_id": None if replaces else _physical_id(context.outcome),
        "tainted": effect.tainted and not replaces,
    }


def _action(work: Work, operation: Operation) -> str:
    """Return the resource's action. A suspended resource keeps its own when a snapshot fails, so
    that a resume selects it; a row that was not read has none."""
    if operation is Operation.REPLACE:
        return ResourceAction.UPDATE
    if operation is Operation.SNAPSHOT and work.action is not None and work.status is not None:
        action = ResourceAction(work.action)
        if may_be_suspended(action, Status(work.status)):
            return action
    return ACTION_OF[operation]


def _failed_event(context: NodeContext, node: Node, effect: Record) -> dict[str, Json]:
    work, operation = context.work, node.operation
    replaced = {"replaced": True} if work.replaced_by is not None else {}
    physical_id = _physical_id(context.outcome)
    key = name_key(work.operation_key, operation) if physical_id is None else {}
    return {
        "type": f"headgate.resource.{operation}.{effect.kind}",
        "resource_name": work.name,
        "resource_type": work.type,
        "physical_id": physical_id or work.physical_id,
        "action": ACTION_OF[operation],
        "status": Status.FAILED,
        "reason": effect.reason,
        "data": {"operation": operation} | key | replaced,
    }
