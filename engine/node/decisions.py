"""The decisions of the node machine, one function each: ``(node, input) -> Step | Refused``.

Which of them is taken, in which state and phase and upon which input, is the table in
engine/node/machine.py; no function here is called for any other.
"""

from dataclasses import replace
from typing import assert_never

from engine.hooks.rule import is_confirm
from engine.node.asking import ahead, ask
from engine.node.effects import (
    Call,
    Effect,
    Moment,
    NotifyType,
    OpenHook,
    Record,
    Remove,
    WakeAt,
    WriteDone,
    WriteFailed,
    WriteUnchanged,
)
from engine.node.inputs import (
    Answered,
    Broke,
    Claimed,
    Denied,
    Expired,
    Input,
    MustConfirm,
    MustReplace,
    MustRetry,
    MustStop,
    MustWait,
    Succeeded,
    Superseded,
)
from engine.node.node import BREAKING, NOBODY, Node, Refused, Step
from engine.words import (
    GATES,
    REPEATED,
    Decision,
    OnTimeout,
    Operation,
    Phase,
    State,
    point_of,
    step_of,
)


def misfit(node: Node, said: Input) -> Refused:
    return Refused(f"{type(said).__name__} does not fit a node {node.state} in {node.phase}")


# Before the operation.


def take_up(node: Node, said: Claimed) -> Step | Refused:
    """What the operation is, is only known now."""
    operation = said.operation
    if operation is not node.operation and {operation, node.operation} & GATES:
        return Refused(f"{operation} is not for a node that is to {node.operation}")
    if operation is None:
        return _unchanged(node)
    return _before(replace(node, operation=operation))


def _unchanged(node: Node) -> Step:
    """Nothing to do; but Heat's short form asks before an update all the same, and so do we."""
    if node.operation is Operation.DELETE:
        return Step(replace(node, state=State.DONE), (WriteUnchanged(),))
    for rule in ahead(node, Operation.UPDATE, Phase.PRE):
        if rule.short:
            return ask(replace(node, operation=Operation.UPDATE), rule)
    return Step(replace(node, state=State.DONE), (WriteUnchanged(),))


def _before(node: Node) -> Step:
    """Pass the points before the operation, up to one that holds; behind the last one, act."""
    told: list[Effect] = []
    for rule in ahead(node, node.operation, Phase.PRE):
        asked = ask(node, rule)
        if rule.holds:
            return Step(asked.node, (*told, *asked.effects))
        told.extend(asked.effects)
        node = asked.node
    acting = replace(node, state=State.RUNNING, phase=Phase.ACT)
    return Step(acting, (*told, *_record(node, Moment.STARTED), Call(node.operation)))


def answer_before(node: Node, said: Answered) -> Step | Refused:
    match said.decision:
        case Decision.CONTINUE | Decision.STEP | Decision.RUN | Decision.PATCH:
            return Step(replace(node, state=State.READY))
        case Decision.REJECT:
            return _reject(node, said)
        case Decision.PROGRESS:
            return misfit(node, said)
        case _ as never:
            assert_never(never)


def expire_before(node: Node, said: Expired) -> Step:
    match said.on_timeout:
        case OnTimeout.CONTINUE:
            return Step(replace(node, state=State.READY))
        case OnTimeout.REJECT:
            return _fail(node, _unanswered(node))
        case OnTimeout.STOP:
            return Step(replace(node, state=State.STOPPED, reason=_unanswered(node)))
        case _ as never:
            assert_never(never)


# The operation, and its outcomes.


def call_again(node: Node, said: Claimed) -> Step:
    """Work already begun is taken up: the operation is called with its progress and its key."""
    return Step(node, (Call(node.operation),))


def succeed(node: Node, said: Succeeded) -> Step:
    after = _after(replace(node, phase=Phase.POST))
    if node.operation in GATES:
        return after
    return Step(after.node, (WriteDone(), Record(Moment.COMPLETED), *after.effects))


def wait(node: Node, said: MustWait) -> Step:
    parked = replace(node, state=State.PARKED, reason=said.reason or None)
    return Step(parked, (WakeAt(said.until),))


def retry(node: Node, said: MustRetry) -> Step:
    parked = replace(node, state=State.PARKED)
    return Step(parked, (WakeAt(said.until), *_record(node, Moment.RETRYING, said.reason)))


def begin_replacement(node: Node, said: MustReplace) -> Step | Refused:
    if node.operation is not Operation.UPDATE:
        return misfit(node, said)
    # Its steps are steps of another operation now, and may be asked about again.
    passed = tuple(point for point in node.passed if not is_confirm(point))
    return _before(replace(node, operation=Operation.REPLACE, phase=Phase.PRE, passed=passed))


def stop(node: Node, said: MustStop) -> Step:
    stopped = replace(node, state=State.STOPPED, reason=said.reason)
    return Step(stopped, _left_midway(stopped))


def fail(node: Node, said: Broke) -> Step:
    return _fail(node, said.reason)


def deny(node: Node, said: Denied) -> Step:
    """Refused before anything was done: the resource stays what it is, and is not FAILED."""
    denied = replace(node, state=State.FAILED, reason=said.reason)
    return Step(denied, _record(node, Moment.FAILED, said.reason))


# A step inside the operation.


def confirm(node: Node, said: MustConfirm) -> Step | Refused:
    """Open a hook if a breakpoint is set; else continue the operation, from its progress."""
    point = point_of(said.step)
    if point in REPEATED:
        node = replace(node, passed=tuple(one for one in node.passed if one != point))
    if point in node.passed:
        return Refused(f"{point} has already opened")
    rule = next((rule for rule in node.rules if rule.point == point), None)
    if rule is not None and rule.holds:
        held = ask(replace(node, phase=Phase.CONFIRM), rule)
        stopped = held.node.state is State.STOPPED
        return replace(held, effects=(*held.effects, *_left_midway(held.node))) if stopped else held
    asked = replace(node, passed=(*node.passed, point))
    told = (OpenHook(rule),) if rule is not None else ()
    on = _tell_type(asked, Decision.CONTINUE, NOBODY, "no breakpoint holds it")
    return Step(on.node, (*told, *on.effects))


def answer_step(node: Node, said: Answered) -> Step | Refused:
    match said.decision:
        case Decision.CONTINUE | Decision.STEP | Decision.RUN | Decision.PATCH:
            return _tell_type(node, Decision.CONTINUE, said.by, said.reason)
        case Decision.REJECT:
            return _tell_type(node, Decision.REJECT, said.by, said.reason)
        case Decision.PROGRESS:
            return misfit(node, said)
        case _ as never:
            assert_never(never)


def expire_step(node: Node, said: Expired) -> Step:
    match said.on_timeout:
        case OnTimeout.CONTINUE:
            return _tell_type(node, Decision.CONTINUE, NOBODY, "no answer before the deadline")
        case OnTimeout.REJECT:
            return _tell_type(node, Decision.REJECT, NOBODY, _unanswered(node))
        case OnTimeout.STOP:
            stopped = replace(node, state=State.STOPPED, reason=_unanswered(node))
            return Step(stopped, _left_midway(stopped))
        case _ as never:
            assert_never(never)


def _tell_type(node: Node, decision: Decision, by: str, reason: str) -> Step:
    """Back to the operation, with the answer to what it asked last."""
    ready = replace(node, state=State.READY, phase=Phase.ACT)
    return Step(ready, (NotifyType(step_of(node.passed[-1]), decision, by, reason),))


# After the operation.


def _after(node: Node) -> Step:
    """Pass the points after the operation, up to one that holds; behind the last one, done."""
    told: list[Effect] = []
    for rule in ahead(node, node.operation, Phase.POST):
        asked = ask(node, rule)
        if rule.holds:
            return Step(asked.node, (*told, *asked.effects))
        told.extend(asked.effects)
        node = asked.node
    if node.operation is Operation.DELETE:
        told.append(Remove())
    return Step(replace(node, state=State.DONE), tuple(told))


def answer_after(node: Node, said: Answered) -> Step | Refused:
    match said.decision:
        case Decision.CONTINUE | Decision.STEP | Decision.RUN | Decision.PATCH:
            return _after(node)
        case Decision.REJECT:
            return _reject(node, said)
        case Decision.PROGRESS:
            return misfit(node, said)
        case _ as never:
            assert_never(never)


def expire_after(node: Node, said: Expired) -> Step:
    match said.on_timeout:
        case OnTimeout.CONTINUE:
            return _after(node)
        case OnTimeout.REJECT:
            return _fail(node, _unanswered(node))
        case OnTimeout.STOP:
            return Step(replace(node, state=State.STOPPED, reason=_unanswered(node)))
        case _ as never:
            assert_never(never)


# When the traversal ends before the node.


def drop(node: Node, said: Superseded) -> Step:
    return Step(replace(node, state=State.DROPPED, reason=said.reason))


def drop_unless_begun(node: Node, said: Superseded) -> Step | Refused:
    """Ready to act: for the first time, or with the answer to a step of its operation."""
    begun = any(is_confirm(point) for point in node.passed)
    return misfit(node, said) if begun else drop(node, said)


def refuse_step(node: Node, said: Superseded) -> Step:
    """The operation has begun and is called once more, to come to its own end."""
    return _tell_type(node, Decision.REJECT, said.by, said.reason)


# Common parts.


def _reject(node: Node, said: Answered) -> Step:
    why = f"{node.passed[-1]} rejected by {said.by}"
    return _fail(node, f"{why}: {said.reason}" if said.reason else why)


def _unanswered(node: Node) -> str:
    return f"no answer at {node.passed[-1]} before its deadline"


def _fail(node: Node, reason: str) -> Step:
    failed = replace(node, state=State.FAILED, reason=reason)
    broken = node.phase is not Phase.PRE and node.operation in BREAKING
    if node.operation in GATES:
        return Step(failed)
    return Step(failed, (WriteFailed(reason, broken), Record(Moment.FAILED, reason)))


def _left_midway(stopped: Node) -> tuple[Effect, ...]:
    """In the middle of its operation it is unknown what state the resource is in."""
    why = stopped.reason or ""
    written = WriteFailed(why, stopped.operation in BREAKING)
    return () if stopped.operation in GATES else (written, Record(Moment.FAILED, why))


def _record(node: Node, moment: Moment, reason: str = "") -> tuple[Effect, ...]:
    """The operation's event; a gate is of no resource, and has none."""
    return () if node.operation in GATES else (Record(moment, reason),)
