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
from engine.node.inputs import Broke, Claimed, Denied, Input
from engine.node.machine import decide
from engine.node.node import Node, Refused
from engine.store.advance import Work
from engine.types.registry import Registry
from engine.words import Json, Operation, Pace, Phase, State
from engine.work.notices import keeps_secrets, notice
from engine.work.opening import Notice
from engine.work.prepare import Prepared, Unresolved, prepare
from engine.work.steps import write_step
from engine.work.writing import Result

log: FilteringBoundLogger = structlog.get_logger()


@dataclass(slots=True)
class Job:
    """prepared: None when its properties cannot be worked out."""

    work: Work
    node: Node
    prepared: Prepared | None = None


class Said(NamedTuple):
    """What is said to the machine, and what became of the resource."""

    input: Input
    result: Result


def take_up(work: Work, registry: Registry) -> tuple[Job, Said | None]:
    """Prepare a claimed node. What can be said at once, or None: its operation is to be called."""
    job = Job(work, node_of(work))
    as_it_was = Result(properties=work.properties)
    try:
        job.prepared = prepare(work, registry)
    except (Unresolved, HeadgateError) as error:
        return job, Said(Broke(str(error)), as_it_was)
    if job.prepared.denied is not None:
        return job, Said(Denied(job.prepared.denied), as_it_was)
    if job.node.phase is Phase.ACT:
        return job, None
    return job, Said(Claimed(job.prepared.change.operation), Result())


def settle(
    job: Job, said: Said, *, new_id: Callable[[], UUID], default_timeout: timedelta
) -> Json | None:
    """The step for the store; None when there is nothing to write, or the machine refuses."""
    step = decide(job.node, said.input)
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
