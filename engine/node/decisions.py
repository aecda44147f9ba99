"""The decisions of the node machine, one function each: ``(node, input) -> Step | InvalidInput``.

The table in engine/node/machine.py selects the function by state, phase and input.
"""

from dataclasses import replace
from typing import assert_never

from engine.hooks.rule import is_confirm
from engine.node.node import (
    BREAKING,
    DECIDED_BY_ENGINE,
    Answered,
    BreakpointAdded,
    CallOperation,
    Cancelled,
    Claimed,
    Effect,
    EventKind,
    Expired,
    Input,
    InvalidInput,
    MustConfirm,
    MustReplace,
    MustRetry,
    MustStop,
    MustWait,
    Node,
    NotifyType,
    OpenHook,
    OperationFailed,
    OperationForbidden,
    Record,
    Remove,
    Step,
    Succeeded,
    Superseded,
    WakeAt,
    WriteDone,
    WriteFailed,
    WriteUnchanged,
)
from engine.node.pending_breakpoints import open_hook, pending_breakpoints
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


def refuse(node: Node, node_input: Input) -> InvalidInput:
    return InvalidInput(
        f"{type(node_input).__name__} is not valid for a node that is {node.state} in {node.phase}"
    )


# Before the operation.


def begin(node: Node, node_input: Claimed) -> Step | InvalidInput:
    """Set the operation, which is known only after properties are resolved."""
    operation = node_input.operation
    if operation is not node.operation and {operation, node.operation} & GATES:
        return InvalidInput(
            f"{operation} is not valid for a node with the operation {node.operation}"
        )
    if operation is None:
        return _end_unchanged(node)
    return _before(replace(node, operation=operation))


def _end_unchanged(node: Node) -> Step:
    """End a node without changes. As in Heat, a short-form breakpoint opens its hook anyway."""
    if node.operation is Operation.DELETE:
        return Step(node.at(State.DONE, node.phase), (WriteUnchanged(),))
    for rule in pending_breakpoints(node, Operation.UPDATE, Phase.PRE):
        if rule.short:
            return open_hook(replace(node, operation=Operation.UPDATE), rule)
    return Step(node.at(State.DONE, node.phase), (WriteUnchanged(),))


def _before(node: Node) -> Step:
    """Pass the points before the operation, up to one that blocks; after the last, call it."""
    effects: list[Effect] = []
    for rule in pending_breakpoints(node, node.operation, Phase.PRE):
        at_hook = open_hook(node, rule)
        if rule.blocks:
            return Step(at_hook.node, (*effects, *at_hook.effects))
        effects.extend(at_hook.effects)
        node = at_hook.node
    acting = node.at(State.RUNNING, Phase.EXECUTE)
    return Step(
        acting, (*effects, *_record(node, EventKind.STARTED), CallOperation(node.operation))
    )


def answer_before(node: Node, node_input: Answered) -> Step | InvalidInput:
    match node_input.decision:
        case Decision.CONTINUE | Decision.STEP | Decision.RUN | Decision.PATCH:
            return _resume_before(node)
        case Decision.REJECT:
            return _reject(node, node_input)
        case Decision.PROGRESS | Decision.ADOPT | Decision.REPAIR | Decision.IGNORE:
            return refuse(node, node_input)
        case _ as never:
            assert_never(never)


def expire_before(node: Node, node_input: Expired) -> Step:
    match node_input.on_timeout:
        case OnTimeout.CONTINUE:
            return _resume_before(node)
        case OnTimeout.REJECT:
            return _fail(node, _unanswered_reason(node))
        case OnTimeout.STOP:
            return Step(replace(node, state=State.STOPPED, reason=_unanswered_reason(node)))
        case _ as never:
            assert_never(never)


def _resume_before(node: Node) -> Step:
    """Let a worker claim the node. If nothing is left to decide before the operation, the claim
    begins it, which saves a transaction: a create stays a create. Other operations depend on the
    resource, and are determined again."""
    decided = node.operation is Operation.CREATE and not node.conditional
    if decided and not pending_breakpoints(node, node.operation, Phase.PRE):
        return Step(node.at(State.READY, Phase.EXECUTE))
    return Step(node.at(State.READY, node.phase))


# The operation, and its outcomes.


def call_again(node: Node, node_input: Claimed) -> Step:
    """Call an operation again that has begun, with its progress and operation key."""
    return Step(node, (CallOperation(node.operation),))


def succeed(node: Node, node_input: Succeeded) -> Step:
    after = _after(node.at(node.state, Phase.POST))
    if node.operation in GATES:
        return after
    return Step(after.node, (WriteDone(), Record(EventKind.COMPLETED), *after.effects))


def wait(node: Node, node_input: MustWait) -> Step:
    parked = replace(node, state=State.PARKED, reason=node_input.reason or None)
    return Step(parked, (WakeAt(node_input.until),))


def retry(node: Node, node_input: MustRetry) -> Step:
    """Retry the operation later; a cancelled one fails."""
    if node.cancelled:
        return _fail(node, node_input.reason)
    parked = replace(node, state=State.PARKED)
    return Step(
        parked, (WakeAt(node_input.until), *_record(node, EventKind.RETRYING, node_input.reason))
    )


def begin_replacement(node: Node, node_input: MustReplace) -> Step | InvalidInput:
    if node.operation is not Operation.UPDATE:
        return refuse(node, node_input)
    if node.cancelled:
        return _fail(node, "the change was cancelled before the replacement")
    # The replacement is another operation, whose steps may open hooks of the same name.
    breakpoints_hit = tuple(point for point in node.breakpoints_hit if not is_confirm(point))
    return _before(
        replace(node, operation=Operation.REPLACE, phase=Phase.PRE, breakpoints_hit=breakpoints_hit)
    )


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


def confirm(node: Node, node_input: MustConfirm) -> Step | InvalidInput:
    """Open a hook if a breakpoint is set; else continue the operation, from its progress."""
    point = point_of(node_input.step)
    if point in REPEATED:
        node = replace(
            node, breakpoints_hit=tuple(one for one in node.breakpoints_hit if one != point)
        )
    if point in node.breakpoints_hit:
        return InvalidInput(f"{point} has already opened")
    rule = next((rule for rule in node.rules if rule.point == point), None)
    if rule is not None and rule.blocks:
        opened = open_hook(replace(node, phase=Phase.CONFIRM), rule)
        stopped = opened.node.state is State.STOPPED
        return (
            replace(opened, effects=(*opened.effects, *_stopped_in_operation(opened.node)))
            if stopped
            else opened
        )
    at_hook = replace(node, breakpoints_hit=(*node.breakpoints_hit, point))
    effects = (OpenHook(rule),) if rule is not None else ()
    on = _notify_type(at_hook, Decision.CONTINUE, DECIDED_BY_ENGINE, "no breakpoint blocks it")
    return Step(on.node, (*effects, *on.effects))


def answer_step(node: Node, node_input: Answered) -> Step | InvalidInput:
    match node_input.decision:
        case Decision.CONTINUE | Decision.STEP | Decision.RUN | Decision.PATCH:
            return _notify_type(node, Decision.CONTINUE, node_input.by, node_input.reason)
        case Decision.REJECT:
            return _notify_type(node, Decision.REJECT, node_input.by, node_input.reason)
        case Decision.PROGRESS | Decision.ADOPT | Decision.REPAIR | Decision.IGNORE:
            return refuse(node, node_input)
        case _ as never:
            assert_never(never)


def expire_step(node: Node, node_input: Expired) -> Step:
    match node_input.on_timeout:
        case OnTimeout.CONTINUE:
            return _notify_type(
                node, Decision.CONTINUE, DECIDED_BY_ENGINE, "no answer before the deadline"
            )
        case OnTimeout.REJECT:
            return _notify_type(node, Decision.REJECT, DECIDED_BY_ENGINE, _unanswered_reason(node))
        case OnTimeout.STOP:
            stopped = replace(node, state=State.STOPPED, reason=_unanswered_reason(node))
            return Step(stopped, _stopped_in_operation(stopped))
        case _ as never:
            assert_never(never)


def _notify_type(node: Node, decision: Decision, by: str, reason: str) -> Step:
    """Resume the operation with the answer to its last confirmation."""
    ready = replace(node, state=State.READY, phase=Phase.EXECUTE)
    return Step(ready, (NotifyType(step_of(node.breakpoints_hit[-1]), decision, by, reason),))


# After the operation.


def _after(node: Node) -> Step:
    """Pass the points after the operation, up to one that blocks; after the last, end."""
    effects: list[Effect] = []
    for rule in pending_breakpoints(node, node.operation, Phase.POST):
        at_hook = open_hook(node, rule)
        if rule.blocks:
            return Step(at_hook.node, (*effects, *at_hook.effects))
        effects.extend(at_hook.effects)
        node = at_hook.node
    if node.operation is Operation.DELETE:
        effects.append(Remove())
    return Step(node.at(State.DONE, node.phase), tuple(effects))


def answer_after(node: Node, node_input: Answered) -> Step | InvalidInput:
    match node_input.decision:
        case Decision.CONTINUE | Decision.STEP | Decision.RUN | Decision.PATCH:
            return _after(node)
        case Decision.REJECT:
            return _reject(node, node_input)
        case Decision.PROGRESS | Decision.ADOPT | Decision.REPAIR | Decision.IGNORE:
            return refuse(node, node_input)
        case _ as never:
            assert_never(never)


def expire_after(node: Node, node_input: Expired) -> Step:
    match node_input.on_timeout:
        case OnTimeout.CONTINUE:
            return _after(node)
        case OnTimeout.REJECT:
            return _fail(node, _unanswered_reason(node))
        case OnTimeout.STOP:
            return Step(replace(node, state=State.STOPPED, reason=_unanswered_reason(node)))
        case _ as never:
            assert_never(never)


# When the traversal ends before the node.


def drop(node: Node, node_input: Superseded) -> Step:
    return Step(replace(node, state=State.DROPPED, reason=node_input.reason))


def drop_unless_begun(node: Node, node_input: Superseded) -> Step | InvalidInput:
    """Drop a node whose operation has not begun."""
    return refuse(node, node_input) if _has_begun(node) else drop(node, node_input)


def enter_pre(node: Node, node_input: BreakpointAdded) -> Step | InvalidInput:
    """Enter phase pre, where hooks open, if a breakpoint blocks or records the operation and the
    operation has not begun."""
    begun = node.state is not State.WAITING and _has_begun(node)
    if begun or not pending_breakpoints(node, node.operation, Phase.PRE):
        return refuse(node, node_input)
    return Step(node.at(node.state, Phase.PRE))


def give_back(node: Node, node_input: BreakpointAdded) -> Step | InvalidInput:
    """Take a node back from its worker, which has read the rules before and has not called the
    operation. A step mode needs no such move: the store refuses steps of another one."""
    if not node.rules:
        return refuse(node, node_input)
    return Step(node.at(State.READY, node.phase))


def _has_begun(node: Node) -> bool:
    """Return whether the operation of a node in phase execute has begun. The operation of a ready
    node has begun if a step of it was answered."""
    return node.state is not State.READY or any(map(is_confirm, node.breakpoints_hit))


def refuse_step(node: Node, node_input: Superseded) -> Step:
    """Reject the step. The operation has begun and is called again, to end by itself."""
    return _notify_type(node, Decision.REJECT, node_input.by, node_input.reason)


def cancel(node: Node, node_input: Cancelled) -> Step | InvalidInput:
    """Cancel an operation that has begun. A delete continues, because the change that cancels it
    needs its result, and gates have no operation."""
    never = node.operation is Operation.DELETE or node.operation in GATES
    if never or node.cancelled or not _has_begun(node):
        return refuse(node, node_input)
    return Step(replace(node, cancelled=True))


# Common parts.


def _reject(node: Node, node_input: Answered) -> Step:
    why = f"{node.breakpoints_hit[-1]} rejected by {node_input.by}"
    return _fail(node, f"{why}: {node_input.reason}" if node_input.reason else why)


def _unanswered_reason(node: Node) -> str:
    return f"no answer at {node.breakpoints_hit[-1]} before its deadline"


def _fail(node: Node, reason: str) -> Step:
    failed = replace(node, state=State.FAILED, reason=reason)
    tainted = node.phase is not Phase.PRE and node.operation in BREAKING
    if node.operation in GATES:
        return Step(failed)
    return Step(failed, (WriteFailed(reason, tainted), Record(EventKind.FAILED, reason)))


def _stopped_in_operation(stopped: Node) -> tuple[Effect, ...]:
    """Return the effects of a stop during the operation, which leaves the resource tainted."""
    why = stopped.reason or ""
    written = WriteFailed(why, stopped.operation in BREAKING)
    return () if stopped.operation in GATES else (written, Record(EventKind.FAILED, why))


def _record(node: Node, kind: EventKind, reason: str = "") -> tuple[Effect, ...]:
    """Return the effect that records the operation's event; gates have no events."""
    return () if node.operation in GATES else (Record(kind, reason),)
