"""The node machine: ``decide(node, input) -> Step | InvalidInput``, a pure function.

A node is one step of a traversal: a resource and a direction. While it runs, it passes through
phases, in this order:

    pre      hooks before the operation. The operation is determined here, because it depends on
             values of other resources. The resource is unchanged.
    execute  the operation. It may ask to wait: the node is parked with a timer.
    confirm  a hook inside the operation, at the operation's request: `confirm-<step>`. The
             operation is then called again with the answer.
    post     hooks after the operation. The resource is up to date; dependents still wait.

`TABLE` has a row for each valid combination of state, phase and input: the decision function and
the places to which it may lead. Other inputs are refused, and nothing changes. The states done,
failed, stopped and dropped have no rows: a node that has ended never changes. `STORE_MOVES` are the
few moves without a decision; docs/decisions/0011-moves-of-the-store.md has the reason.
docs/explanation/life-of-a-node.md draws both; ``python -m tools.node_life`` writes it.

Rules for every input, which tests check in all reachable states:

1. `CallOperation` appears only after every breakpoint of phase pre has passed.
2. A breakpoint opens one hook per node and point. (Steps are points of one operation: after an
   update turns into a replacement, they may open hooks again. Repeated points, such as a batch,
   open a hook each time. Where a rule does not block, stepping opens a second hook, which does.)
3. After a rejection there is neither a call nor a hook; an operation that has begun gets the
   rejection.
4. An accepted input changes the node, except when a worker continues an operation that has begun.
5. A node whose operation has begun ends by the operation's outcome, superseded or not; or because a
   step, or something it waited for, stopped. Its resource's row then has the result.
6. An operation that asks to confirm a step is called once with the answer: the decision, or that
   no breakpoint blocks it.
7. Rules with `mode: notify` or `dry: true` never block. Every approving decision resumes the node
   in the same way, and `progress` is not a decision.
8. A gate writes and records nothing, because it has no resource. Its operation stays a gate's.
9. A cancelled operation is neither retried nor turned into a replacement. The store wakes it, if
   its type is cancellable, and its type ends it. Deletes and gates are never cancelled.
10. A traversal that has ended opens no hooks. The store refuses a step that would, and
    `decide_superseded` decides again on the same input.

engine/plan decides which nodes exist and their order, and engine/plan/traversal_result.py the
result of a traversal.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from engine.node import decisions
from engine.node.node import (
    Answered,
    BreakpointAdded,
    CallOperation,
    Cancelled,
    Claimed,
    Effect,
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
from engine.words import Mode, Operation, Phase, State


class Place(NamedTuple):
    """A state and a phase of a node."""

    state: State
    phase: Phase


class Row(NamedTuple):
    """A row of the table. leads_to: all places in which the node may be after the decision.
    effects: all that it may have."""

    decide: Callable[[Node, Any], Step | InvalidInput]
    leads_to: tuple[Place, ...]
    effects: tuple[type[Effect], ...] = ()


class StoreMove(NamedTuple):
    """A move that the store makes without a decision. why: a clause."""

    origin: Place
    to: Place
    why: str


def _in(phase: Phase, *states: State) -> tuple[Place, ...]:
    return tuple(Place(state, phase) for state in states)


#: The effects of a failure.
_FAILURE = (WriteFailed, Record)

TABLE: Mapping[tuple[State, Phase, type[Input]], Row] = {
    # Not begun.
    (State.WAITING, Phase.PRE, Superseded): Row(decisions.drop, _in(Phase.PRE, State.DROPPED)),
    (State.WAITING, Phase.EXECUTE, Superseded): Row(
        decisions.drop, _in(Phase.EXECUTE, State.DROPPED)
    ),
    (State.READY, Phase.PRE, Superseded): Row(decisions.drop, _in(Phase.PRE, State.DROPPED)),
    (State.READY, Phase.EXECUTE, Superseded): Row(
        decisions.drop_unless_begun, _in(Phase.EXECUTE, State.DROPPED)
    ),
    **{
        (state, Phase.EXECUTE, BreakpointAdded): Row(decisions.enter_pre, _in(Phase.PRE, state))
        for state in (State.WAITING, State.READY)
    },
    # Before the operation.
    (State.RUNNING, Phase.PRE, Claimed): Row(
        decisions.begin,
        _in(Phase.PRE, State.PARKED, State.STOPPED, State.DONE) + _in(Phase.EXECUTE, State.RUNNING),
        (OpenHook, Record, CallOperation, WriteUnchanged),
    ),
    (State.RUNNING, Phase.PRE, OperationFailed): Row(
        decisions.fail, _in(Phase.PRE, State.FAILED), _FAILURE
    ),
    (State.RUNNING, Phase.PRE, OperationForbidden): Row(
        decisions.deny, _in(Phase.PRE, State.FAILED), (Record,)
    ),
    (State.RUNNING, Phase.PRE, Superseded): Row(decisions.drop, _in(Phase.PRE, State.DROPPED)),
    (State.RUNNING, Phase.PRE, BreakpointAdded): Row(
        decisions.give_back, _in(Phase.PRE, State.READY)
    ),
    (State.PARKED, Phase.PRE, Answered): Row(
        decisions.answer_before,
        _in(Phase.PRE, State.READY, State.FAILED) + _in(Phase.EXECUTE, State.READY),
        _FAILURE,
    ),
    (State.PARKED, Phase.PRE, Expired): Row(
        decisions.expire_before,
        _in(Phase.PRE, State.READY, State.FAILED, State.STOPPED) + _in(Phase.EXECUTE, State.READY),
        _FAILURE,
    ),
    (State.PARKED, Phase.PRE, Superseded): Row(decisions.drop, _in(Phase.PRE, State.DROPPED)),
    # The operation, and its outcomes.
    (State.RUNNING, Phase.EXECUTE, Claimed): Row(
        decisions.call_again, _in(Phase.EXECUTE, State.RUNNING), (CallOperation,)
    ),
    (State.RUNNING, Phase.EXECUTE, Succeeded): Row(
        decisions.succeed,
        _in(Phase.POST, State.DONE, State.PARKED, State.STOPPED),
        (WriteDone, Remove, Record, OpenHook),
    ),
    (State.RUNNING, Phase.EXECUTE, MustWait): Row(
        decisions.wait, _in(Phase.EXECUTE, State.PARKED), (WakeAt,)
    ),
    (State.RUNNING, Phase.EXECUTE, MustRetry): Row(
        decisions.retry, _in(Phase.EXECUTE, State.PARKED, State.FAILED), (WakeAt, *_FAILURE)
    ),
    (State.RUNNING, Phase.EXECUTE, MustConfirm): Row(
        decisions.confirm,
        _in(Phase.CONFIRM, State.PARKED, State.STOPPED) + _in(Phase.EXECUTE, State.READY),
        (OpenHook, NotifyType, *_FAILURE),
    ),
    (State.RUNNING, Phase.EXECUTE, MustReplace): Row(
        decisions.begin_replacement,
        _in(Phase.PRE, State.PARKED, State.STOPPED)
        + _in(Phase.EXECUTE, State.RUNNING, State.FAILED),
        (OpenHook, CallOperation, *_FAILURE),
    ),
    (State.RUNNING, Phase.EXECUTE, MustStop): Row(
        decisions.stop, _in(Phase.EXECUTE, State.STOPPED), _FAILURE
    ),
    (State.RUNNING, Phase.EXECUTE, OperationFailed): Row(
        decisions.fail, _in(Phase.EXECUTE, State.FAILED), _FAILURE
    ),
    (State.RUNNING, Phase.EXECUTE, OperationForbidden): Row(
        decisions.deny, _in(Phase.EXECUTE, State.FAILED), (Record,)
    ),
    # The operation is cancelled.
    **{
        (state, Phase.EXECUTE, Cancelled): Row(decisions.cancel, _in(Phase.EXECUTE, state))
        for state in (State.READY, State.RUNNING, State.PARKED)
    },
    # A step inside the operation.
    (State.PARKED, Phase.CONFIRM, Answered): Row(
        decisions.answer_step, _in(Phase.EXECUTE, State.READY), (NotifyType,)
    ),
    (State.PARKED, Phase.CONFIRM, Expired): Row(
        decisions.expire_step,
        _in(Phase.EXECUTE, State.READY) + _in(Phase.CONFIRM, State.STOPPED),
        (NotifyType, *_FAILURE),
    ),
    (State.PARKED, Phase.CONFIRM, Superseded): Row(
        decisions.refuse_step, _in(Phase.EXECUTE, State.READY), (NotifyType,)
    ),
    # After the operation.
    (State.PARKED, Phase.POST, Answered): Row(
        decisions.answer_after,
        _in(Phase.POST, State.DONE, State.PARKED, State.STOPPED, State.FAILED),
        (Remove, OpenHook, *_FAILURE),
    ),
    (State.PARKED, Phase.POST, Expired): Row(
        decisions.expire_after,
        _in(Phase.POST, State.DONE, State.PARKED, State.STOPPED, State.FAILED),
        (Remove, OpenHook, *_FAILURE),
    ),
    (State.PARKED, Phase.POST, Superseded): Row(decisions.drop, _in(Phase.POST, State.DROPPED)),
}

_PLANNED = (Phase.PRE, Phase.EXECUTE)

#: Moves of the store, without an input and a decision.
STORE_MOVES: tuple[StoreMove, ...] = (
    *(
        StoreMove(
            Place(State.WAITING, phase), Place(State.READY, phase), "its dependencies are done"
        )
        for phase in _PLANNED
    ),
    *(
        StoreMove(Place(State.READY, phase), Place(State.RUNNING, phase), "a worker claims it")
        for phase in _PLANNED
    ),
    StoreMove(
        Place(State.PARKED, Phase.EXECUTE), Place(State.RUNNING, Phase.EXECUTE), "its timer is due"
    ),
)


def stepping_moves() -> list[tuple[Operation, Place, Place]]:
    """What `decide` says for all nodes that have not begun when stepping begins: operation, place
    before and place after."""
    nodes = [
        Node(operation, state, phase, stepping=True)
        for operation in Operation
        for state, phase, node_input in TABLE
        if node_input is BreakpointAdded
    ]
    return [
        (node.operation, Place(node.state, node.phase), Place(step.node.state, step.node.phase))
        for node in nodes
        if isinstance(step := decide(node, BreakpointAdded()), Step)
    ]


def decide(node: Node, node_input: Input) -> Step | InvalidInput:
    """Decide one step."""
    row = TABLE.get((node.state, node.phase, type(node_input)))
    return decisions.refuse(node, node_input) if row is None else row.decide(node, node_input)


def decide_superseded(node: Node, node_input: Input, ended: Superseded) -> Step | InvalidInput:
    """Decide a step again after its traversal has ended, so that no hook may open.

    The effects before a breakpoint stay the same. At a breakpoint that waits or stops, the node is
    superseded; breakpoints that do not block are passed. Without a hook, the result is that of
    `decide`.
    """
    waiting = tuple(
        replace(rule, mode=Mode.WAIT) if rule.mode is Mode.STOP else rule for rule in node.rules
    )
    step = decide(replace(node, rules=waiting), node_input)
    if isinstance(step, InvalidInput):
        return step
    effects = tuple(effect for effect in step.effects if not isinstance(effect, OpenHook))
    last = Step(replace(step.node, rules=node.rules), effects)
    if len(effects) == len(step.effects):
        return last
    after = decide(last.node, ended)
    if isinstance(after, InvalidInput):
        return last
    return Step(after.node, (*effects, *after.effects))
