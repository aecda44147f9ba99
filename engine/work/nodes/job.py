"""Prepares a claimed node and encodes its next step. No I/O."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import HeadgateError
from engine.hooks.rule import decode_rules, rules_in_force
from engine.node.machine import decide, decide_superseded
from engine.node.node import (
    CallOperation,
    Claimed,
    Input,
    InvalidInput,
    Node,
    OperationFailed,
    OperationForbidden,
    Step,
    Superseded,
)
from engine.plan.resource_change import was_never_created
from engine.store.traversals.advance import RefusedStep, Work
from engine.types.registry import TypeRegistry
from engine.words import Direction, Json, Operation, Phase, State, StepMode, TraversalState
from engine.work.nodes.assertions import failed_precondition
from engine.work.nodes.hook_opening import NotificationData
from engine.work.nodes.prepare import PreparedNode, UnresolvedProperties, actual_state, prepare
from engine.work.nodes.secret_propagation import public_secret_reason, secret_unchanged
from engine.work.nodes.transition_encoder import Result, write_step
from engine.work.nodes.visible_properties import keeps_secrets, kept_view, notification_data

log: FilteringBoundLogger = structlog.get_logger()


@dataclass(slots=True)
class Job:
    """A claimed node. prepared: None if its properties cannot be resolved."""

    work: Work
    node: Node
    prepared: PreparedNode | None = None


class NodeInput(NamedTuple):
    """An input of the node machine, and the state of the resource to write with its step."""

    input: Input
    result: Result


def prepare_claim(work: Work, registry: TypeRegistry) -> tuple[Job, NodeInput | None]:
    """Prepare a claimed node. Return its input, or None if its operation must be called first."""
    job = Job(work, node_of(work))
    unchanged = Result(properties=work.properties)
    if work.undecryptable:
        return _before_operation(job), NodeInput(OperationFailed(work.undecryptable), unchanged)
    try:
        job.prepared = prepare(work, registry)
    except (UnresolvedProperties, HeadgateError) as error:
        return _before_operation(job), NodeInput(OperationFailed(str(error)), unchanged)
    if job.prepared.denied is not None:
        forbidden = OperationForbidden(job.prepared.denied)
        return _before_operation(job), NodeInput(forbidden, unchanged)
    if (failed := failed_precondition(job.prepared)) is not None:
        return _before_operation(job), NodeInput(OperationFailed(failed), unchanged)
    begun = work.progress is not None or job.node.phase not in (Phase.PRE, Phase.EXECUTE)
    if not begun and (reason := public_secret_reason(job.prepared)):
        return _before_operation(job), NodeInput(OperationFailed(reason), unchanged)
    if job.node.phase is Phase.EXECUTE:
        return job, None
    return job, NodeInput(Claimed(job.prepared.change.operation), _unchanged_result(job.prepared))


def _before_operation(job: Job) -> Job:
    """Return the job as it fails before its operation is decided: a resource that was never created
    is planned as an update, but what fails is its create."""
    actual = actual_state(job.work)
    if job.node.operation is Operation.UPDATE and actual is not None and was_never_created(actual):
        job.node = replace(job.node, operation=Operation.CREATE)
    return job


def _unchanged_result(prepared: PreparedNode) -> Result:
    """Return the result for an unchanged resource. Its definition may make more values secret."""
    work = prepared.work
    if prepared.change.operation is not None or work.direction == Direction.CLEANUP:
        return Result()
    shown = kept_view(prepared)
    return Result(masked_properties=shown, secret_attributes=secret_unchanged(prepared, shown))


def decide_step(
    job: Job, node_input: NodeInput, *, new_id: Callable[[], UUID], default_timeout: timedelta
) -> Json | None:
    """Return the step for the store; None if nothing changes or the machine refuses the input."""
    step = decide(job.node, node_input.input)
    return _step_document(job, node_input, step, new_id, default_timeout)


def decide_again(
    job: Job,
    node_input: NodeInput,
    refused: RefusedStep,
    *,
    new_id: Callable[[], UUID],
    default_timeout: timedelta,
) -> Json | None:
    """Return the step that replaces a refused one, from the same input and result.

    If the traversal has ended, it opens no hook; else it follows the current step mode.
    """
    if refused.traversal_state == TraversalState.RUNNING:
        job.work.step_mode = refused.step_mode
        job.node = node_of(job.work)
        step = decide(job.node, node_input.input)
    else:
        ended = Superseded(reason=refused.reason)
        step = decide_superseded(job.node, node_input.input, ended)
    return _step_document(job, node_input, step, new_id, default_timeout)


def _step_document(
    job: Job,
    node_input: NodeInput,
    step: Step | InvalidInput,
    new_id: Callable[[], UUID],
    default_timeout: timedelta,
) -> Json | None:
    if isinstance(step, InvalidInput):
        log.error("node.refused", resource=job.work.name, reason=step.reason)
        return None
    if any(isinstance(effect, CallOperation) for effect in step.effects) and job.node == step.node:
        return None

    def make_notification() -> NotificationData:
        return notification_data(job.prepared) if job.prepared else NotificationData({}, {})

    return write_step(
        job.work,
        step,
        node_input.result,
        new_id=new_id,
        default_timeout=default_timeout,
        notification=make_notification,
        # An operation may return secret values although nothing in the definition is secret.
        encrypt=job.prepared is None
        or keeps_secrets(job.prepared)
        or bool(node_input.result.secret_attributes),
    )


def node_of(work: Work) -> Node:
    """Return a claimed node as the machine reads it."""
    step_mode = StepMode(work.step_mode) if work.step_mode else None
    return Node(
        operation=Operation(work.operation),
        state=State.RUNNING,
        phase=Phase(work.phase),
        rules=rules_in_force(decode_rules(work.rules), step_mode),
        breakpoints_hit=tuple(work.breakpoints_hit),
        stepping=step_mode is StepMode.STEP,
        cancelled=work.cancelled,
    )
