"""The node machine: ``decide(node, input) -> Step | Refused``, a pure function.

A node is one step of a traversal: a resource and a direction. Its life:

    waiting -> ready -> running -> done
                          |  ^ \\-> failed, stopped
                          v  |
                         parked                    (dropped: superseded before it began)

The store alone moves a node from waiting to ready (when the last node it waits for is done) and
from ready or due to running (when a worker claims it, under a lease). Everything else is decided
here. While it runs, a node passes through phases, in this order:

    pre      hooks before the operation. What the operation is, is only known here: it depends on
             values of other resources. Nothing has been done to the resource.
    act      the operation. It may ask to wait: the node is parked with a timer.
    confirm  a hook inside the operation, which asked for it: `confirm-<step>`. Whatever is
             answered, the operation is called again and told.
    post     hooks after it. The resource is already what it should be; dependents still wait.

Rules that hold for every input, and that the tests check over all reachable states:

1. `Call` appears only when every breakpoint of the phase before it was passed.
2. A breakpoint opens one hook per node and point: what was passed is not asked again. (Steps are
   points of one operation: when an update turns into a replacement, they may be asked again; and
   what an operation comes to again and again, such as a batch, is asked about each time.)
3. After a rejection there is neither a call nor a hook; inside an operation, that is told of it.
4. An input that is accepted changes the node, unless a worker takes up work already begun.
5. A node that has begun to act ends by its operation's outcome, superseded or not; or because a
   step of it, or what it waited for, was to stop. Either way its resource's row says how it ended.
6. An operation that asks to confirm a step is told once: what was decided, or that nobody holds it.
7. What only tells, or is only tried out, holds nothing; every answer that lets a node go on lets it
   go on alike, and that somebody is at it is no answer.
8. Of a gate nothing is written or recorded: it is of no resource. A gate stays a gate.

What is not here: which nodes exist and wait for whom (engine/plan), and what ends a traversal
(engine/plan/verdict.py).
"""

from dataclasses import replace
from typing import assert_never

from engine.hooks.rule import is_confirm
from engine.node.asking import ahead, ask
from engine.node.effects import (
    Call,
    Effect,
    Moment,
    OpenHook,
    Record,
    Remove,
    TellType,
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
from engine.node.node import BREAKING, DROPPED_WHEN_SUPERSEDED, NOBODY, Node, Refused, Step
from engine.words import (
    CONFIRM,
    GATES,
    REPEATED,
    Decision,
    OnTimeout,
    Operation,
    Phase,
    State,
    point_of,
)


def decide(node: Node, said: Input) -> Step | Refused:
    """Decide one step."""
    match said:
        case Superseded():
            return _superseded(node)
        case Claimed(operation=operation) if node.state is State.RUNNING:
            return _claimed(node, operation)
        case (
            Succeeded() | MustWait() | MustRetry() | MustConfirm() | MustReplace() | MustStop()
        ) if _acts(node):
            return _outcome(node, said)
        case Broke(reason=reason) if node.state is State.RUNNING:
            return _fail(node, reason)
        case Denied(reason=reason) if node.state is State.RUNNING:
            return _deny(node, reason)
        case Answered() | Expired() if _asks(node):
            return _decided(node, said)
        case (
            Claimed() | Succeeded() | MustWait() | MustRetry() | MustConfirm() | MustReplace()
            | MustStop() | Broke() | Denied() | Answered() | Expired()
        ):  # fmt: skip
            return _misfit(node, said)
        case _ as never:
            assert_never(never)


def _misfit(node: Node, said: Input) -> Refused:
    return Refused(f"{type(said).__name__} does not fit a node {node.state} in {node.phase}")


def _outcome(
    node: Node, said: Succeeded | MustWait | MustRetry | MustConfirm | MustReplace | MustStop
) -> Step | Refused:
    match said:
        case Succeeded():
            return _succeeded(node)
        case MustWait(until=until, reason=reason):
            parked = replace(node, state=State.PARKED, reason=reason or None)
            return Step(parked, (WakeAt(until),))
        case MustRetry(until=until, reason=reason):
            parked = replace(node, state=State.PARKED)
            return Step(parked, (WakeAt(until), *_record(node, Moment.RETRYING, reason)))
        case MustConfirm(step=step):
            return _confirm(node, step)
        case MustReplace() if node.operation is Operation.UPDATE:
            # Its steps are steps of another operation now, and may be asked about again.
            passed = tuple(point for point in node.passed if not is_confirm(point))
            replacing = replace(node, operation=Operation.REPLACE, phase=Phase.PRE, passed=passed)
            return _before(replacing)
        case MustReplace():
            return _misfit(node, said)
        case MustStop(reason=reason):
            stopped = replace(node, state=State.STOPPED, reason=reason)
            return Step(stopped, _left_midway(stopped))
        case _ as never:
            assert_never(never)


def _decided(node: Node, said: Answered | Expired) -> Step | Refused:
    match said:
        case Answered(decision=decision, by=by, reason=reason):
            return _answered(node, decision, by, reason)
        case Expired(on_timeout=on_timeout):
            return _expired(node, on_timeout)
        case _ as never:
            assert_never(never)


def _record(node: Node, moment: Moment, reason: str = "") -> tuple[Effect, ...]:
    """The operation's event; a gate is of no resource, and has none."""
    return () if node.operation in GATES else (Record(moment, reason),)


def _acts(node: Node) -> bool:
    return node.state is State.RUNNING and node.phase is Phase.ACT


def _asks(node: Node) -> bool:
    return node.state is State.PARKED and node.phase is not Phase.ACT


def _claimed(node: Node, operation: Operation | None) -> Step | Refused:
    if node.phase is Phase.ACT:
        return Step(node, (Call(node.operation),))
    if node.phase is not Phase.PRE:
        return Refused(f"a node in {node.phase} is not for a worker")
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


def _succeeded(node: Node) -> Step:
    after = _after(replace(node, phase=Phase.POST))
    if node.operation in GATES:
        return after
    return Step(after.node, (WriteDone(), Record(Moment.COMPLETED), *after.effects))


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


def _answered(node: Node, decision: Decision, by: str, reason: str) -> Step | Refused:
    if decision is Decision.PROGRESS:
        return _misfit(node, Answered(decision, by, reason))
    if node.phase is Phase.CONFIRM:
        said = Decision.REJECT if decision is Decision.REJECT else Decision.CONTINUE
        return _told(node, said, by, reason)
    match decision:
        case Decision.CONTINUE | Decision.STEP | Decision.RUN | Decision.PATCH:
            return _go_on(node)
        case Decision.REJECT:
            why = f"{node.passed[-1]} rejected by {by}"
            return _fail(node, f"{why}: {reason}" if reason else why)
        case _ as never:
            assert_never(never)


def _expired(node: Node, on_timeout: OnTimeout) -> Step:
    why = f"nobody answered {node.passed[-1]} in time"
    match on_timeout:
        case OnTimeout.CONTINUE:
            return _go_on(node)
        case OnTimeout.REJECT if node.phase is Phase.CONFIRM:
            return _told(node, Decision.REJECT, NOBODY, why)
        case OnTimeout.REJECT:
            return _fail(node, why)
        case OnTimeout.STOP:
            return _stop(node, why)
        case _ as never:
            assert_never(never)


def _stop(node: Node, why: str) -> Step:
    """In the middle of its operation nobody knows what state the resource is in."""
    stopped = replace(node, state=State.STOPPED, reason=why)
    return Step(stopped, _left_midway(stopped) if node.phase is Phase.CONFIRM else ())


def _left_midway(stopped: Node) -> tuple[Effect, ...]:
    why = stopped.reason or ""
    written = WriteFailed(why, stopped.operation in BREAKING)
    return () if stopped.operation in GATES else (written, Record(Moment.FAILED, why))


def _confirm(node: Node, step: str) -> Step | Refused:
    """Ask, where a breakpoint says so; else the operation goes on at once, from its progress."""
    point = point_of(step)
    if point in REPEATED:
        node = replace(node, passed=tuple(one for one in node.passed if one != point))
    if point in node.passed:
        return Refused(f"{point} was asked already")
    rule = next((rule for rule in node.rules if rule.point == point), None)
    if rule is not None and rule.holds:
        held = ask(replace(node, phase=Phase.CONFIRM), rule)
        stopped = held.node.state is State.STOPPED
        return replace(held, effects=(*held.effects, *_left_midway(held.node))) if stopped else held
    asked = replace(node, passed=(*node.passed, point))
    told = (OpenHook(rule),) if rule is not None else ()
    on = _told(asked, Decision.CONTINUE, NOBODY, "no breakpoint holds it")
    return Step(on.node, (*told, *on.effects))


def _told(node: Node, decision: Decision, by: str, reason: str) -> Step:
    """Back to the operation, with the answer to what it asked last."""
    step = node.passed[-1].removeprefix(CONFIRM)
    ready = replace(node, state=State.READY, phase=Phase.ACT)
    return Step(ready, (TellType(step, decision, by, reason),))


def _go_on(node: Node) -> Step:
    if node.phase is Phase.CONFIRM:
        return _told(node, Decision.CONTINUE, NOBODY, "nobody answered in time")
    if node.phase is Phase.POST:
        return _after(node)
    return Step(replace(node, state=State.READY))


def _fail(node: Node, reason: str) -> Step:
    failed = replace(node, state=State.FAILED, reason=reason)
    broken = node.phase is not Phase.PRE and node.operation in BREAKING
    if node.operation in GATES:
        return Step(failed)
    return Step(failed, (WriteFailed(reason, broken), Record(Moment.FAILED, reason)))


def _deny(node: Node, reason: str) -> Step:
    """Refused before anything was done: the resource stays what it is, and is not FAILED."""
    denied = replace(node, state=State.FAILED, reason=reason)
    return Step(denied, _record(node, Moment.FAILED, reason))


def _superseded(node: Node) -> Step | Refused:
    if (node.state, node.phase) in DROPPED_WHEN_SUPERSEDED and not _is_midway(node):
        return Step(replace(node, state=State.DROPPED, reason="superseded"))
    if node.state is State.PARKED and node.phase is Phase.CONFIRM:
        return _told(node, Decision.REJECT, NOBODY, "superseded")
    return Refused(f"a node {node.state} in {node.phase} ends by its outcome")


def _is_midway(node: Node) -> bool:
    """Ready to be told what was answered to a step of its operation, which it has begun."""
    ready = node.state is State.READY and node.phase is Phase.ACT
    return ready and any(is_confirm(point) for point in node.passed)
