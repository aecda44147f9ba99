"""A claimed node in somebody's hands: taken up, and settled. No I/O; workers bring that."""

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
from engine.node.inputs import Broke, Claimed, Denied, Input, Superseded
from engine.node.machine import decide, decide_superseded
from engine.node.node import Node, Refused, Step
from engine.store.advance import Work
from engine.types.registry import Registry
from engine.words import Direction, Json, Operation, Pace, Phase, State
from engine.work.hook_opening import Notice
from engine.work.prepare import Prepared, Unresolved, prepare
from engine.work.secret_propagation import secret_unchanged
from engine.work.transition_documents import write_step
from engine.work.transition_encoder import Result
from engine.work.visible_properties import keeps_secrets, kept_view, notice

log: FilteringBoundLogger = structlog.get_logger()


@dataclass(slots=True)
class Job:
    """prepared: None when its properties cannot be worked out."""

    work: Work
    node: Node
    prepared: Prepared | None = None


class NodeInput(NamedTuple):
    """What is said to the machine, and what became of the resource."""

    input: Input
    result: Result


def take_up(work: Work, registry: Registry) -> tuple[Job, NodeInput | None]:
    """Prepare a claimed node. What can be said at once, or None: its operation is to be called."""
    job = Job(work, node_of(work))
    as_it_was = Result(properties=work.properties)
    if work.undecryptable:
        return job, NodeInput(Broke(work.undecryptable), as_it_was)
    try:
        job.prepared = prepare(work, registry)
    except (Unresolved, HeadgateError) as error:
        return job, NodeInput(Broke(str(error)), as_it_was)
    if job.prepared.denied is not None:
        return job, NodeInput(Denied(job.prepared.denied), as_it_was)
    if job.node.phase is Phase.ACT:
        return job, None
    return job, NodeInput(Claimed(job.prepared.change.operation), _unchanged(job.prepared))


def _unchanged(prepared: Prepared) -> Result:
    """The result for an unchanged resource, whose definition may hide more values than before."""
    work = prepared.work
    if prepared.change.operation is not None or work.direction == Direction.CLEANUP:
        return Result()
    shown = kept_view(prepared)
    return Result(shown=shown, secret=secret_unchanged(prepared, shown))


def settle(
    job: Job, said: NodeInput, *, new_id: Callable[[], UUID], default_timeout: timedelta
) -> Json | None:
    """The step for the store; None when there is nothing to write, or the machine refuses."""
    step = decide(job.node, said.input)
    return _written(job, said, step, new_id, default_timeout)


def settle_superseded(
    job: Job,
    said: NodeInput,
    ended: Superseded,
    *,
    new_id: Callable[[], UUID],
    default_timeout: timedelta,
) -> Json | None:
    """The step in place of one that the store has refused because the traversal has ended. What
    the operation made is in it as it was in the refused one; no hook is, so it is not refused."""
    step = decide_superseded(job.node, said.input, ended)
    return _written(job, said, step, new_id, default_timeout)


def _written(
    job: Job,
    said: NodeInput,
    step: Step | Refused,
    new_id: Callable[[], UUID],
    default_timeout: timedelta,
) -> Json | None:
    if isinstance(step, Refused):
        log.error("node.refused", resource=job.work.name, reason=step.reason)
        return None
    if any(isinstance(effect, Call) for effect in step.effects) and job.node == step.node:
        return None

    def told() -> Notice:
        return notice(job.prepared) if job.prepared else Notice({}, {})

    return write_step(
        job.work,
        step,
        said.result,
        new_id=new_id,
        default_timeout=default_timeout,
        notice=told,
        sealed=job.prepared is None or keeps_secrets(job.prepared),
    )


def node_of(work: Work) -> Node:
    """What the machine needs of a claimed node."""
    pace = Pace(work.pace) if work.pace else None
    return Node(
        operation=Operation(work.operation),
        state=State.RUNNING,
        phase=Phase(work.phase),
        rules=at_pace(decode_rules(work.rules), pace),
        passed=tuple(work.passed),
        stepping=pace is Pace.STEP,
    )
