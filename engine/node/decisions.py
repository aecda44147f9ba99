"""The decisions of the node machine, one function each: ``(node, input) -> Step | Refused``.

The table in engine/node/machine.py selects the function by state, phase and input.
"""

from dataclasses import replace
from typing import assert_never

from engine.hooks.rule import is_confirm
from engine.node.breakpoints import open_hook, pending_breakpoints
from engine.node.effects import (
    Call,
    Effect,
    EventKind,
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
    Claimed,
    Expired,
    Input,
    MustConfirm,
    MustReplace,
    MustRetry,
    MustStop,
    MustWait,
    OperationFailed,
    OperationForbidden,
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


def refuse(node: Node, node_input: Input) -> Refused:
    return Refused(
        f"{type(node_input).__name__} is not valid for a node that is {node.state} in {node.phase}"
    )


# Before the operation.


def begin(node: Node, node_input: Claimed) -> Step | Refused:
    """Set the operation, which is known only after properties are resolved."""
    operation = node_input.operation
    if operation is not node.operation and {operation, node.operation} & GATES:
        return Refused(f"{operation} is not valid for a node with the operation {node.operation}")
    if operation is None:
        return _unchanged(node)
    return _before(replace(node, operation=operation))


def _unchanged(node: Node) -> Step:
    """End a node without changes. As in Heat, a short-form breakpoint opens its hook anyway."""
    if node.operation is Operation.DELETE:
        return Step(replace(node, state=State.DONE), (WriteUnchanged(),))
    for rule in pending_breakpoints(node, Operation.UPDATE, Phase.PRE):
        if rule.short:
            return open_hook(replace(node, operation=Operation.UPDATE), rule)
    return Step(replace(node, state=State.DONE), (WriteUnchanged(),))


def _before(node: Node) -> Step:
    """Pass the points before the operation, up to one that blocks; after the last, call it."""
    effects: list[Effect] = []
    for rule in pending_breakpoints(node, node.operation, Phase.PRE):
        at_hook = open_hook(node, rule)
        if rule.holds:
            return Step(at_hook.node, (*effects, *at_hook.effects))
        effects.extend(at_hook.effects)
        node = at_hook.node
    acting = replace(node, state=State.RUNNING, phase=Phase.ACT)
    return Step(acting, (*effects, *_record(node, EventKind.STARTED), Call(node.operation)))


def answer_before(node: Node, node_input: Answered) -> Step | Refused:
    match node_input.decision:
        case Decision.CONTINUE | Decision.STEP | Decision.RUN | Decision.PATCH:
            return Step(replace(node, state=State.READY))
        case Decision.REJECT:
            return _reject(node, node_input)
        case Decision.PROGRESS:
            return refuse(node, node_input)
        case _ as never:
            assert_never(never)


def expire_before(node: Node, node_input: Expired) -> Step:
    match node_input.on_timeout:
        case OnTimeout.CONTINUE:
            return Step(replace(node, state=State.READY))
        case OnTimeout.REJECT:
            return _fail(node, _unanswered(node))
        case OnTimeout.STOP:
            return Step(replace(node, state=State.STOPPED, reason=_unanswered(node)))
        case _ as never:
            assert_never(never)


# The operation, and its outcomes.


def call_again(node: Node, node_input: Claimed) -> Step:
    """Call an operation again that has begun, with its progress and operation key."""
    return Step(node, (Call(node.operation),))


def succeed(node: Node, node_input: Succeeded) -> Step:
    after = _after(replace(node, phase=Phase.POST))
    if node.operation in GATES:
        return after
    return Step(after.node, (WriteDone(), Record(EventKind.COMPLETED), *after.effects))


def wait(node: Node, node_input: MustWait) -> Step:
    parked = replace(node, state=State.PARKED, reason=node_input.reason or None)
    return Step(parked, (WakeAt(node_input.until),))


def retry(node: Node, node_input: MustRetry) -> Step:
    parked = replace(node, state=State.PARKED)
    return Step(
        parked, (WakeAt(node_input.until), *_record(node, EventKind.RETRYING, node_input.reason))
    )


def begin_replacement(node: Node, node_input: MustReplace) -> Step | Refused:
    if node.operation is not Operation.UPDATE:
        return refuse(node, node_input)
    # The replacement is another operation, whose steps may open hooks of the same name.
    passed = tuple(point for point in node.passed if not is_confirm(point))
    return _before(replace(node, operation=Operation.REPLACE, phase=Phase.PRE, passed=passed))


def stop(node: Node, node_input: MustStop) -> Step:
    stopped = replace(node, state=State.STOPPED, reason=node_input.reason)
    return Step(stopped, _stopped_in_operation(stopped))


def fail(node: Node, node_input: OperationFailed) -> Step:
    return _fail(node, node_input.reason)


def deny(node: Node, node_input: OperationForbidden) -> Step:
    """Fail the node; the resource is unchanged, and its status stays."""
    denied = replace(node, state=State.FAILED, reason=node_input.reason)
    return Step(denied, _record(node, EventKind.FAILED, node_input.reason))


# A step inside the operation.


def confirm(node: Node, node_input: MustConfirm) -> Step | Refused:
    """Open a hook if a breakpoint is set; else continue the operation, from its progress."""
    point = point_of(node_input.step)
    if point in REPEATED:
        node = replace(node, passed=tuple(one for one in node.passed if one != point))
    if point in node.passed:
        return Refused(f"{point} has already opened")
    rule = next((rule for rule in node.rules if rule.point == point), None)
    if rule is not None and rule.holds:
        held = open_hook(replace(node, phase=Phase.CONFIRM), rule)
        stopped = held.node.state is State.STOPPED
        return (
            replace(held, effects=(*held.effects, *_stopped_in_operation(held.node)))
            if stopped
            else held
        )
    at_hook = replace(node, passed=(*node.passed, point))
    effects = (OpenHook(rule),) if rule is not None else ()
    on = _notify_type(at_hook, Decision.CONTINUE, NOBODY, "no breakpoint blocks it")
    return Step(on.node, (*effects, *on.effects))


def answer_step(node: Node, node_input: Answered) -> Step | Refused:
    match node_input.decision:
        case Decision.CONTINUE | Decision.STEP | Decision.RUN | Decision.PATCH:
            return _notify_type(node, Decision.CONTINUE, node_input.by, node_input.reason)
        case Decision.REJECT:
            return _notify_type(node, Decision.REJECT, node_input.by, node_input.reason)
        case Decision.PROGRESS:
            return refuse(node, node_input)
        case _ as never:
            assert_never(never)


def expire_step(node: Node, node_input: Expired) -> Step:
    match node_input.on_timeout:
        case OnTimeout.CONTINUE:
            return _notify_type(node, Decision.CONTINUE, NOBODY, "no answer before the deadline")
        case OnTimeout.REJECT:
            return _notify_type(node, Decision.REJECT, NOBODY, _unanswered(node))
        case OnTimeout.STOP:
            stopped = replace(node, state=State.STOPPED, reason=_unanswered(node))
            return Step(stopped, _stopped_in_operation(stopped))
        case _ as never:
            assert_never(never)


def _notify_type(node: Node, decision: Decision, by: str, reason: str) -> Step:
    """Resume the operation with the answer to its last confirmation."""
    ready = replace(node, state=State.READY, phase=Phase.ACT)
    return Step(ready, (NotifyType(step_of(node.passed[-1]), decision, by, reason),))


# After the operation.


def _after(node: Node) -> Step:
    """Pass the points after the operation, up to one that blocks; after the last, end."""
    effects: list[Effect] = []
    for rule in pending_breakpoints(node, node.operation, Phase.POST):
        at_hook = open_hook(node, rule)
        if rule.holds:
            return Step(at_hook.node, (*effects, *at_hook.effects))
        effects.extend(at_hook.effects)
        node = at_hook.node
    if node.operation is Operation.DELETE:
        effects.append(Remove())
    return Step(replace(node, state=State.DONE), tuple(effects))


def answer_after(node: Node, node_input: Answered) -> Step | Refused:
    match node_input.decision:
        case Decision.CONTINUE | Decision.STEP | Decision.RUN | Decision.PATCH:
            return _after(node)
        case Decision.REJECT:
            return _reject(node, node_input)
        case Decision.PROGRESS:
            return refuse(node, node_input)
        case _ as never:
            assert_never(never)


def expire_after(node: Node, node_input: Expired) -> Step:
    match node_input.on_timeout:
        case OnTimeout.CONTINUE:
            return _after(node)
        case OnTimeout.REJECT:
            return _fail(node, _unanswered(node))
        case OnTimeout.STOP:
            return Step(replace(node, state=State.STOPPED, reason=_unanswered(node)))
        case _ as never:
            assert_never(never)


# When the traversal ends before the node.


def drop(node: Node, node_input: Superseded) -> Step:
    return Step(replace(node, state=State.DROPPED, reason=node_input.reason))


def drop_unless_begun(node: Node, node_input: Superseded) -> Step | Refused:
    """Drop a node whose operation has not begun. One with an answered step has begun."""
    begun = any(is_confirm(point) for point in node.passed)
    return refuse(node, node_input) if begun else drop(node, node_input)


def refuse_step(node: Node, node_input: Superseded) -> Step:
    """Reject the step. The operation has begun and is called again, to end by itself."""
    return _notify_type(node, Decision.REJECT, node_input.by, node_input.reason)


# Common parts.


def _reject(node: Node, node_input: Answered) -> Step:
    why = f"{node.passed[-1]} rejected by {node_input.by}"
    return _fail(node, f"{why}: {node_input.reason}" if node_input.reason else why)


def _unanswered(node: Node) -> str:
    return f"no answer at {node.passed[-1]} before its deadline"


def _fail(node: Node, reason: str) -> Step:
    failed = replace(node, state=State.FAILED, reason=reason)
    broken = node.phase is not Phase.PRE and node.operation in BREAKING
    if node.operation in GATES:
        return Step(failed)
    return Step(failed, (WriteFailed(reason, broken), Record(EventKind.FAILED, reason)))


def _stopped_in_operation(stopped: Node) -> tuple[Effect, ...]:
    """Return the effects of a stop during the operation, which leaves the resource tainted."""
    why = stopped.reason or ""
    written = WriteFailed(why, stopped.operation in BREAKING)
    return () if stopped.operation in GATES else (written, Record(EventKind.FAILED, why))


def _record(node: Node, kind: EventKind, reason: str = "") -> tuple[Effect, ...]:
    """Return the effect that records the operation's event; gates have no events."""
    return () if node.operation in GATES else (Record(kind, reason),)
