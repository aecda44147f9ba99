"""Prepares a claimed node and encodes its next step. No I/O."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import HeadgateError
from engine.hooks.rule import at_pace, decode_rules
from engine.node.effects import Call
from engine.node.inputs import Claimed, Input, OperationFailed, OperationForbidden, Superseded
from engine.node.machine import decide, decide_superseded
from engine.node.node import Node, Refused, Step
from engine.store.advance import Work
from engine.types.registry import Registry
from engine.words import Direction, Json, Operation, Pace, Phase, State
from engine.work.hook_opening import Notice
from engine.work.prepare import Prepared, Unresolved, prepare
from engine.work.secret_propagation import public_secret_reason, secret_unchanged
from engine.work.transition_documents import write_step
from engine.work.transition_encoder import Result
from engine.work.visible_properties import keeps_secrets, kept_view, notice

log: FilteringBoundLogger = structlog.get_logger()


@dataclass(slots=True)
class Job:
    """A claimed node. prepared: None if its properties cannot be resolved."""

    work: Work
    node: Node
    prepared: Prepared | None = None


class NodeInput(NamedTuple):
    """An input of the node machine, and the state of the resource to write with its step."""

    input: Input
    result: Result


def prepare_claim(work: Work, registry: Registry) -> tuple[Job, NodeInput | None]:
    """Prepare a claimed node. Return its input, or None if its operation must be called first."""
    job = Job(work, node_of(work))
    unchanged = Result(properties=work.properties)
    if work.undecryptable:
        return job, NodeInput(OperationFailed(work.undecryptable), unchanged)
    try:
        job.prepared = prepare(work, registry)
    except (Unresolved, HeadgateError) as error:
        return job, NodeInput(OperationFailed(str(error)), unchanged)
    if job.prepared.denied is not None:
        return job, NodeInput(OperationForbidden(job.prepared.denied), unchanged)
    begun = work.progress is not None or job.node.phase not in (Phase.PRE, Phase.ACT)
    if not begun and (reason := public_secret_reason(job.prepared)):
        return job, NodeInput(OperationFailed(reason), unchanged)
    if job.node.phase is Phase.ACT:
        return job, None
    return job, NodeInput(Claimed(job.prepared.change.operation), _unchanged(job.prepared))


def _unchanged(prepared: Prepared) -> Result:
    """Return the result for an unchanged resource. Its definition may make more values secret."""
    work = prepared.work
    if prepared.change.operation is not None or work.direction == Direction.CLEANUP:
        return Result()
    shown = kept_view(prepared)
    return Result(shown=shown, secret=secret_unchanged(prepared, shown))


def settle(
    job: Job, node_input: NodeInput, *, new_id: Callable[[], UUID], default_timeout: timedelta
) -> Json | None:
    """Return the step for the store; None if nothing changes or the machine refuses the input."""
    step = decide(job.node, node_input.input)
    return _step_document(job, node_input, step, new_id, default_timeout)


def settle_superseded(
    job: Job,
    node_input: NodeInput,
    ended: Superseded,
    *,
    new_id: Callable[[], UUID],
    default_timeout: timedelta,
) -> Json | None:
    """Return the step that replaces one refused because its traversal has ended.

    It has the same result of the operation and opens no hook, so the store accepts it.
    """
    step = decide_superseded(job.node, node_input.input, ended)
    return _step_document(job, node_input, step, new_id, default_timeout)


def _step_document(
    job: Job,
    node_input: NodeInput,
    step: Step | Refused,
    new_id: Callable[[], UUID],
    default_timeout: timedelta,
) -> Json | None:
    if isinstance(step, Refused):
        log.error("node.refused", resource=job.work.name, reason=step.reason)
        return None
    if any(isinstance(effect, Call) for effect in step.effects) and job.node == step.node:
        return None

    def make_notice() -> Notice:
        return notice(job.prepared) if job.prepared else Notice({}, {})

    return write_step(
        job.work,
        step,
        node_input.result,
        new_id=new_id,
        default_timeout=default_timeout,
        notice=make_notice,
        sealed=job.prepared is None or keeps_secrets(job.prepared),
    )


def node_of(work: Work) -> Node:
    """Return a claimed node as the machine reads it."""
    pace = Pace(work.pace) if work.pace else None
    return Node(
        operation=Operation(work.operation),
        state=State.RUNNING,
        phase=Phase(work.phase),
        rules=at_pace(decode_rules(work.rules), pace),
        passed=tuple(work.passed),
        stepping=pace is Pace.STEP,
    )
