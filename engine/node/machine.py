"""The node machine: ``decide(node, input) -> Step | Refused``, a pure function.

A node is one step of a traversal: a resource and a direction. While it runs, it passes through
phases, in this order:

    pre      hooks before the operation. What the operation is, is only known here: it depends on
             values of other resources. Nothing has been done to the resource.
    act      the operation. It may ask to wait: the node is parked with a timer.
    confirm  a hook inside the operation, which asked for it: `confirm-<step>`. Whatever is
             answered, the operation is called again and told.
    post     hooks after it. The resource is already what it should be; dependents still wait.

`TABLE` has a row for each state, phase and input that fit each other: which decision is taken, and
where it may lead. An input that has no row there is refused, and nothing changes. The states done,
failed, stopped and dropped have no rows: nothing moves a node that has ended. `STORE_MOVES` are the
few moves that no decision is behind. docs/explanation/life-of-a-node.md draws both;
``python -m tools.node_life`` writes it.

Rules that hold for every input, and that the tests check over all reachable states:

1. `Call` appears only when every breakpoint of the phase before it was passed.
2. A breakpoint opens one hook per node and point: what was passed is not asked again. (Steps are
   points of one operation: when an update turns into a replacement, they may be asked again; and
   what an operation comes to again and again, such as a batch, is asked about each time.)
3. After a rejection there is neither a call nor a hook; inside an operation, that is told of it.
4. An input that is accepted changes the node, unless a worker takes up work already begun.
5. A node that has begun to act ends by its operation's outcome, superseded or not; or because a
   step of it, or what it waited for, was to stop. Either way its resource's row says how it ended.
6. An operation that asks to confirm a step is called once with the answer: the decision, or that
   no breakpoint holds it.
7. Rules with `mode: notify` or `dry: true` never block. Every approving decision resumes the node
   in the same way, and `progress` is not a decision.
8. Of a gate nothing is written or recorded: it is of no resource. A gate stays a gate.
9. A traversal that has ended opens no hooks. The store refuses a step that would, and
   `decide_superseded` decides anew what the same input leads to.

What is not here: which nodes exist and wait for whom (engine/plan), and what ends a traversal
(engine/plan/verdict.py).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from engine.node import decisions
from engine.node.effects import OpenHook
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
from engine.node.node import Node, Refused, Step
from engine.words import Mode, Phase, State


class Place(NamedTuple):
    """Where a node is in its life."""

    state: State
    phase: Phase


class Row(NamedTuple):
    """leads_to: every place where the node may be after the decision."""

    decide: Callable[[Node, Any], Step | Refused]
    leads_to: tuple[Place, ...]


class Move(NamedTuple):
    """A move of the store's own. why: a clause."""

    origin: Place
    to: Place
    why: str


def _in(phase: Phase, *states: State) -> tuple[Place, ...]:
    return tuple(Place(state, phase) for state in states)


TABLE: Mapping[tuple[State, Phase, type[Input]], Row] = {
    # Not begun.
    (State.WAITING, Phase.PRE, Superseded): Row(decisions.drop, _in(Phase.PRE, State.DROPPED)),
    (State.WAITING, Phase.ACT, Superseded): Row(decisions.drop, _in(Phase.ACT, State.DROPPED)),
    (State.READY, Phase.PRE, Superseded): Row(decisions.drop, _in(Phase.PRE, State.DROPPED)),
    (State.READY, Phase.ACT, Superseded): Row(
        decisions.drop_unless_begun, _in(Phase.ACT, State.DROPPED)
    ),
    # Before the operation.
    (State.RUNNING, Phase.PRE, Claimed): Row(
        decisions.take_up,
        _in(Phase.PRE, State.PARKED, State.STOPPED, State.DONE) + _in(Phase.ACT, State.RUNNING),
    ),
    (State.RUNNING, Phase.PRE, Broke): Row(decisions.fail, _in(Phase.PRE, State.FAILED)),
    (State.RUNNING, Phase.PRE, Denied): Row(decisions.deny, _in(Phase.PRE, State.FAILED)),
    (State.RUNNING, Phase.PRE, Superseded): Row(decisions.drop, _in(Phase.PRE, State.DROPPED)),
    (State.PARKED, Phase.PRE, Answered): Row(
        decisions.answer_before, _in(Phase.PRE, State.READY, State.FAILED)
    ),
    (State.PARKED, Phase.PRE, Expired): Row(
        decisions.expire_before, _in(Phase.PRE, State.READY, State.FAILED, State.STOPPED)
    ),
    (State.PARKED, Phase.PRE, Superseded): Row(decisions.drop, _in(Phase.PRE, State.DROPPED)),
    # The operation, and its outcomes.
    (State.RUNNING, Phase.ACT, Claimed): Row(decisions.call_again, _in(Phase.ACT, State.RUNNING)),
    (State.RUNNING, Phase.ACT, Succeeded): Row(
        decisions.succeed, _in(Phase.POST, State.DONE, State.PARKED, State.STOPPED)
    ),
    (State.RUNNING, Phase.ACT, MustWait): Row(decisions.wait, _in(Phase.ACT, State.PARKED)),
    (State.RUNNING, Phase.ACT, MustRetry): Row(decisions.retry, _in(Phase.ACT, State.PARKED)),
    (State.RUNNING, Phase.ACT, MustConfirm): Row(
        decisions.confirm,
        _in(Phase.CONFIRM, State.PARKED, State.STOPPED) + _in(Phase.ACT, State.READY),
    ),
    (State.RUNNING, Phase.ACT, MustReplace): Row(
        decisions.begin_replacement,
        _in(Phase.PRE, State.PARKED, State.STOPPED) + _in(Phase.ACT, State.RUNNING),
    ),
    (State.RUNNING, Phase.ACT, MustStop): Row(decisions.stop, _in(Phase.ACT, State.STOPPED)),
    (State.RUNNING, Phase.ACT, Broke): Row(decisions.fail, _in(Phase.ACT, State.FAILED)),
    (State.RUNNING, Phase.ACT, Denied): Row(decisions.deny, _in(Phase.ACT, State.FAILED)),
    # A step inside the operation.
    (State.PARKED, Phase.CONFIRM, Answered): Row(
        decisions.answer_step, _in(Phase.ACT, State.READY)
    ),
    (State.PARKED, Phase.CONFIRM, Expired): Row(
        decisions.expire_step, _in(Phase.ACT, State.READY) + _in(Phase.CONFIRM, State.STOPPED)
    ),
    (State.PARKED, Phase.CONFIRM, Superseded): Row(
        decisions.refuse_step, _in(Phase.ACT, State.READY)
    ),
    # After the operation.
    (State.PARKED, Phase.POST, Answered): Row(
        decisions.answer_after,
        _in(Phase.POST, State.DONE, State.PARKED, State.STOPPED, State.FAILED),
    ),
    (State.PARKED, Phase.POST, Expired): Row(
        decisions.expire_after,
        _in(Phase.POST, State.DONE, State.PARKED, State.STOPPED, State.FAILED),
    ),
    (State.PARKED, Phase.POST, Superseded): Row(decisions.drop, _in(Phase.POST, State.DROPPED)),
}

_PLANNED = (Phase.PRE, Phase.ACT)

#: Moves of the store: nothing is decided, so no input is behind them.
STORE_MOVES: tuple[Move, ...] = (
    *(
        Move(Place(State.WAITING, phase), Place(State.READY, phase), "what it waits for is done")
        for phase in _PLANNED
    ),
    *(
        Move(Place(State.WAITING, phase), Place(State.DROPPED, phase), "what it waits for failed")
        for phase in _PLANNED
    ),
    *(
        Move(Place(State.READY, phase), Place(State.RUNNING, phase), "a worker claims it")
        for phase in _PLANNED
    ),
    *(
        Move(Place(state, Phase.ACT), Place(state, Phase.PRE), "stepping begins")
        for state in (State.WAITING, State.READY)
    ),
    Move(Place(State.PARKED, Phase.ACT), Place(State.RUNNING, Phase.ACT), "its timer is due"),
)


def decide(node: Node, said: Input) -> Step | Refused:
    """Decide one step."""
    row = TABLE.get((node.state, node.phase, type(said)))
    return decisions.misfit(node, said) if row is None else row.decide(node, said)


def decide_superseded(node: Node, said: Input, ended: Superseded) -> Step | Refused:
    """Decide one step again, whose traversal has ended meanwhile, so that no hook may open.

    All that the input leads to up to a breakpoint is as before. At the breakpoint, be it one that
    waits or one that stops, the node is superseded; those that hold nothing are passed. Without a
    hook to open, this is what `decide` gives.
    """
    waiting = tuple(
        replace(rule, mode=Mode.WAIT) if rule.mode is Mode.STOP else rule for rule in node.rules
    )
    step = decide(replace(node, rules=waiting), said)
    if isinstance(step, Refused):
        return step
    effects = tuple(effect for effect in step.effects if not isinstance(effect, OpenHook))
    last = Step(replace(step.node, rules=node.rules), effects)
    if len(effects) == len(step.effects):
        return last
    after = decide(last.node, ended)
    if isinstance(after, Refused):
        return last
    return Step(after.node, (*effects, *after.effects))
