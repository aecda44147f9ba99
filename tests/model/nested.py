"""A model of one resource with a nested stack: its operations, and the traversals that they start.

The operations are those of `TemplateResource`, with the real `run_nested`; the parent's nodes move
by the node machine. Each other function names the code that it models. A traversal of the nested
stack is a single unit of work that completes or fails.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from engine.node.machine import decide
from engine.node.node import (
    ENDED,
    Input,
    InvalidInput,
    MustRetry,
    MustStop,
    MustWait,
    Node,
    OperationFailed,
    Succeeded,
    Superseded,
)
from engine.plan.traversal_result import EndedNode, result_of
from engine.service.traversals.nested import _outcome_of_ended
from engine.store.traversals.nested_stacks import NestedStackRecord
from engine.types.contract import Call, Child, Done, Outcome, RunNested, Stopped, Wait
from engine.types.template_resource import TemplateResource
from engine.words import Action, Operation, Phase, ResourceId, StackId, State, TraversalState

LATER = datetime(2026, 1, 1, tzinfo=UTC)
STACK, RESOURCE = StackId(UUID(int=1)), ResourceId(UUID(int=2))
UNDER_WAY = (TraversalState.RUNNING, TraversalState.ENDING)
LIVE = (State.READY, State.RUNNING, State.PARKED)
TYPE = TemplateResource()
METHODS: Mapping[Operation, Callable[[Call], Outcome]] = {
    Operation.CREATE: TYPE.create,
    Operation.UPDATE: TYPE.update,
    Operation.DELETE: TYPE.delete,
    Operation.SUSPEND: TYPE.suspend,
}


class Request(NamedTuple):
    """A request for the parent. action None: end the traversal under way with the state `ends`."""

    action: Action | None
    ends: TraversalState = TraversalState.SUPERSEDED


class Incidents(NamedTuple):
    """How often each may still happen. lease: leases lost, by a worker's end or delay. fail: nested
    traversals that fail. retry: temporary failures. independent: traversals of the nested stack
    that the parent did not start.
    """

    lease: int = 0
    fail: int = 0
    retry: int = 0
    independent: int = 0


class NestedScenario(NamedTuple):
    """known_violations: names of invariants that the engine violates here."""

    name: str
    requests: tuple[Request, ...]
    incidents: Incidents = Incidents()
    workers: int = 2
    known_violations: frozenset[str] = frozenset()


class ParentNode(NamedTuple):
    """The node of a parent's traversal. wake: it has a wake-up time. call_again: the column.
    pending_dependencies: on the operation of an older traversal, whose `successor` is this one.
    """

    operation: Operation
    state: State = State.READY
    claim: int = 0
    wake: bool = True
    call_again: bool = False
    pending_dependencies: bool = False
    successor: int | None = None


class Parent(NamedTuple):
    """A traversal of the parent."""

    action: Action
    state: TraversalState
    node: ParentNode


class Nested(NamedTuple):
    """A traversal of the nested stack. parent: number of the parent's traversal that started it, or
    0. result: of its nodes, once they have ended.
    """

    parent: int
    step: str | None
    state: TraversalState = TraversalState.RUNNING
    result: TraversalState | None = None


class Worker(NamedTuple):
    """A claim. stage: call, end-nested, start (a step) or commit. ended: state of the parent's
    traversal when the node was claimed. found: number of the nested traversal that the worker has
    read.
    """

    traversal: int
    claim: int
    stage: str
    ended: TraversalState
    found: int = 0
    step: str = ""
    input: Input | None = None


class NestedSystemState(NamedTuple):
    """accepted: number of requests accepted."""

    incidents: Incidents
    accepted: int = 0
    parents: tuple[Parent, ...] = ()
    nested: tuple[Nested, ...] = ()
    deleted: bool = False
    workers: tuple[Worker, ...] = ()

    def node(self, number: int) -> ParentNode:
        return self.parents[number - 1].node

    def with_parent(self, number: int, parent: Parent) -> "NestedSystemState":
        parents = (*self.parents[: number - 1], parent, *self.parents[number:])
        return self._replace(parents=parents)

    def with_node(self, number: int, node: ParentNode) -> "NestedSystemState":
        return self.with_parent(number, self.parents[number - 1]._replace(node=node))

    def with_nested(self, changed: Nested) -> "NestedSystemState":
        """Replace the current traversal of the nested stack."""
        return self._replace(nested=(*self.nested[:-1], changed))

    def with_worker(self, worker: Worker) -> "NestedSystemState":
        return self._replace(workers=tuple(sorted((*self.workers, worker), key=repr)))

    def without_worker(self, worker: Worker) -> "NestedSystemState":
        at = self.workers.index(worker)
        return self._replace(workers=(*self.workers[:at], *self.workers[at + 1 :]))

    def spent(self, message: str) -> "NestedSystemState":
        remaining = getattr(self.incidents, message) - 1
        return self._replace(incidents=self.incidents._replace(**{message: remaining}))


class NestedMove(NamedTuple):
    """kind: request, claim, call, end-nested, start, commit, crash, parent-end, work, end or
    independent."""

    kind: str
    traversal: int = 0
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.traversal or ''} {self.detail}"


def initial_state(scenario: NestedScenario) -> NestedSystemState:
    return NestedSystemState(scenario.incidents)


def moves(
    scenario: NestedScenario, system: NestedSystemState
) -> Iterator[tuple[NestedMove, NestedSystemState]]:
    """The enabled moves, each with the state after it."""
    if system.accepted < len(scenario.requests):
        after = accept(system, scenario.requests[system.accepted])
        yield NestedMove("request", system.accepted + 1), after
    if len(system.workers) < scenario.workers:
        yield from claims(system)
    for worker in dict.fromkeys(system.workers):
        yield from worker_moves(system, worker)
    for number, parent in enumerate(system.parents, 1):
        if parent.state is TraversalState.RUNNING and parent.node.state in ENDED:
            yield NestedMove("parent-end", number), end_parent(system, number)
    yield from nested_moves(system)


def is_idle(system: NestedSystemState) -> bool:
    live = any(parent.node.state not in ENDED for parent in system.parents)
    under_way = any(parent.state in UNDER_WAY for parent in system.parents)
    return not (live or under_way or system.workers or is_under_way(system))


def is_under_way(system: NestedSystemState) -> bool:
    return bool(system.nested) and system.nested[-1].state in UNDER_WAY


# The parent's traversals.


def accept(system: NestedSystemState, request: Request) -> NestedSystemState:
    """A request; one under way is superseded, cancelled or stopped. An in-place action is refused
    while another action is under way."""
    number = len(system.parents)
    after = system._replace(accepted=system.accepted + 1)
    under_way = number > 0 and system.parents[-1].state in UNDER_WAY
    if under_way and request.action is Action.SUSPEND:
        return after
    if under_way:
        after = end_early(after, number, request.ends)
    if request.action is None:
        return after
    operation = Operation.SUSPEND if request.action is Action.SUSPEND else Operation.UPDATE
    if request.action is Action.DELETE:
        operation = Operation.DELETE
    older = next((at for at, one in enumerate(after.parents, 1) if one.node.state in LIVE), None)
    node = ParentNode(operation)
    if older is not None:
        node = node._replace(state=State.WAITING, wake=False, pending_dependencies=True)
        after = after.with_node(older, after.node(older)._replace(successor=number + 1))
    parent = Parent(request.action, TraversalState.RUNNING, node)
    return after._replace(parents=(*after.parents, parent))


def end_early(system: NestedSystemState, number: int, state: TraversalState) -> NestedSystemState:
    """`end_early` in engine/store/traversals/end.py: the machine decides, WAKE_WAITING wakes."""
    parent = system.parents[number - 1]
    step = decide(Node(parent.node.operation, parent.node.state, Phase.EXECUTE), Superseded())
    if isinstance(step, InvalidInput):
        return wake_node(system.with_parent(number, parent._replace(state=state)), number)
    node = parent.node._replace(state=step.node.state, claim=parent.node.claim + 1, wake=False)
    return system.with_parent(number, parent._replace(state=state, node=node))


def wake_node(system: NestedSystemState, number: int) -> NestedSystemState:
    """`wake_nodes`: now, or, while the operation is being called, when that call ends."""
    node = system.node(number)
    if node.state is State.PARKED:
        return system.with_node(number, node._replace(wake=True))
    if node.state is State.RUNNING:
        return system.with_node(number, node._replace(call_again=True))
    return system


def end_parent(system: NestedSystemState, number: int) -> NestedSystemState:
    """`end` in engine/service/traversals/end.py, for the parent."""
    parent = system.parents[number - 1]
    node = EndedNode("n", "T", parent.node.operation, parent.node.state, "")
    ended = [node] if parent.node.state in (State.FAILED, State.STOPPED) else []
    state = result_of(parent.action, ended).state
    return system.with_parent(number, parent._replace(state=state))


# Workers.


def claims(system: NestedSystemState) -> Iterator[tuple[NestedMove, NestedSystemState]]:
    """`claim_due`. The lease of a worker that lives can expire, too."""
    for number, parent in enumerate(system.parents, 1):
        node = parent.node
        if not node.wake or node.state not in LIVE:
            continue
        is_claimed = any(one[:2] == (number, node.claim) for one in system.workers)
        if is_claimed and not system.incidents.lease:
            continue
        after = system.spent("lease") if is_claimed else system
        operation = node.operation
        if node.state is State.READY and operation is Operation.UPDATE and not exists(system):
            operation = Operation.CREATE
        claimed = node._replace(
            state=State.RUNNING, claim=node.claim + 1, operation=operation, wake=True
        )
        worker = Worker(number, claimed.claim, "call", parent.state)
        yield (
            NestedMove("claim", number),
            after.with_node(number, claimed).with_worker(worker),
        )


def exists(system: NestedSystemState) -> bool:
    return bool(system.nested) and not system.deleted


def worker_moves(
    system: NestedSystemState, worker: Worker
) -> Iterator[tuple[NestedMove, NestedSystemState]]:
    after, move = system.without_worker(worker), NestedMove(worker.stage, worker.traversal)
    match worker.stage:
        case "call":
            called = call(system, worker)
            detail = called.stage if called.input is None else type(called.input).__name__
            yield move._replace(detail=detail), after.with_worker(called)
            if system.incidents.retry:
                retried = worker._replace(stage="commit", input=MustRetry(LATER, "busy"))
                yield move._replace(detail="retry"), after.spent("retry").with_worker(retried)
        case "end-nested":
            yield move, end_nested_early(after, worker).with_worker(worker._replace(stage="call"))
        case "start":
            yield move, start_step(after, worker)
        case _:
            yield move, commit(after, worker)
    outdated = system.node(worker.traversal).claim != worker.claim
    if outdated or system.incidents.lease:
        died = after if outdated else after.spent("lease")
        yield NestedMove("crash", worker.traversal), died


def find_nested(system: NestedSystemState, number: int) -> NestedStackRecord | None:
    """`Children.find`: a deleted nested stack only if this operation deleted it."""
    if not system.nested:
        return None
    last = system.nested[-1]
    key = UUID(int=last.parent) if last.parent else None
    if system.deleted and last.parent != number:
        return None
    return NestedStackRecord(
        STACK, "n", system.deleted, len(system.nested), 1, last.state, "", key, last.step
    )


def call(system: NestedSystemState, worker: Worker) -> Worker:
    """`NestedStacks.run_operation`, up to its transaction."""
    number, key = worker.traversal, UUID(int=worker.traversal)
    found = find_nested(system, number)
    superseded = worker.ended is not TraversalState.RUNNING
    if found is not None and found.is_run_by(key):
        if superseded:
            return worker._replace(stage="end-nested", found=found.traversal)
        return worker._replace(stage="commit", input=MustWait(None))
    child = None if found is None else child_of(found, key)
    operation = system.node(number).operation
    outcome = METHODS[operation](
        Call("p", STACK, "s", RESOURCE, "n", key, LATER, {}, child=child, superseded=superseded)
    )
    if isinstance(outcome, RunNested):
        found_number = 0 if found is None else found.traversal
        return worker._replace(stage="start", found=found_number, step=outcome.step)
    return worker._replace(stage="commit", input=input_of(outcome))


def child_of(found: NestedStackRecord, key: UUID) -> Child:
    """`Children.read`."""
    step = (found.parent_step or "") if found.parent_operation_key == key else ""
    return Child(StackId(found.id), "n", step, TraversalState(found.state), "ended")


def input_of(outcome: Outcome) -> Input:
    """`judge` in engine/work/nodes/operation_call.py."""
    match outcome:
        case Done():
            return Succeeded()
        case Wait(until=until):
            return MustWait(until)
        case Stopped(reason=reason):
            return MustStop(reason)
        case _:
            return OperationFailed("failed")


def end_nested_early(system: NestedSystemState, worker: Worker) -> NestedSystemState:
    """`_end_child_early`: in the state of the parent's traversal."""
    if not is_under_way(system) or not may_end_nested(system, worker):
        return system
    stopped = worker.ended is TraversalState.STOPPED
    state = TraversalState.STOPPED if stopped else TraversalState.FAILED
    return system.with_nested(system.nested[-1]._replace(state=state))


def may_end_nested(system: NestedSystemState, worker: Worker) -> bool:
    """`_end_child_early` ends only the traversal that the worker has read."""
    return len(system.nested) == worker.found


def start_step(system: NestedSystemState, worker: Worker) -> NestedSystemState:
    """The transaction of `_start`."""
    number = worker.traversal
    waiting = worker._replace(stage="commit", input=MustWait(None))
    if not has_claim(system, worker):
        return system.with_worker(waiting)
    state = parent_state(system, number)
    if state is not TraversalState.RUNNING:
        outcome = _outcome_of_ended(state, find_nested(system, number))
        return system.with_worker(worker._replace(stage="commit", input=input_of(outcome)))
    after = system
    if is_under_way(system):
        after = system.with_nested(system.nested[-1]._replace(state=TraversalState.SUPERSEDED))
    after = after._replace(nested=(*after.nested, Nested(number, worker.step)), deleted=False)
    return after.with_worker(waiting)


def parent_state(system: NestedSystemState, number: int) -> TraversalState:
    """The state of the parent's traversal, under the lock."""
    return system.parents[number - 1].state


def has_claim(system: NestedSystemState, worker: Worker) -> bool:
    """HELD: the worker still has the claim."""
    node = system.node(worker.traversal)
    return node.claim == worker.claim and node.state is State.RUNNING


def commit(system: NestedSystemState, worker: Worker) -> NestedSystemState:
    """`advance` with the step of the node."""
    number, node = worker.traversal, system.node(worker.traversal)
    assert worker.input is not None
    if node.claim != worker.claim or node.state not in LIVE:
        return system
    step = decide(Node(node.operation, State.RUNNING, Phase.EXECUTE), worker.input)
    assert not isinstance(step, InvalidInput)
    timed = isinstance(worker.input, MustRetry)
    ended = step.node.state in ENDED
    moved = node._replace(
        state=step.node.state,
        claim=node.claim + 1,
        wake=not ended and (timed or wakes_at_once(node)),
        call_again=False,
        successor=None if ended else node.successor,
    )
    after = system.with_node(number, moved)
    if ended and node.successor is not None:
        waiting = after.node(node.successor)
        if waiting.state is State.WAITING:
            ready = waiting._replace(state=State.READY, wake=True, pending_dependencies=False)
            after = after.with_node(node.successor, ready)
    return after


def wakes_at_once(node: ParentNode) -> bool:
    """`n.call_again and s.state = 'parked'` in `apply_transitions`."""
    return node.call_again


# The nested stack.


def nested_moves(system: NestedSystemState) -> Iterator[tuple[NestedMove, NestedSystemState]]:
    if not system.nested:
        return
    last = system.nested[-1]
    if last.state is TraversalState.RUNNING:
        done = last._replace(state=TraversalState.ENDING, result=TraversalState.COMPLETE)
        yield NestedMove("work", detail="complete"), system.with_nested(done)
        if system.incidents.fail:
            failed = done._replace(result=TraversalState.FAILED)
            yield NestedMove("work", detail="failed"), system.spent("fail").with_nested(failed)
    if last.state is TraversalState.ENDING:
        yield NestedMove("end"), end_nested(system)
    if system.incidents.independent and exists(system) and not is_under_way(system):
        after = system.spent("independent")
        yield NestedMove("independent"), after._replace(nested=(*after.nested, Nested(0, None)))


def end_nested(system: NestedSystemState) -> NestedSystemState:
    """`end` in engine/service/traversals/end.py: it wakes the parent's node."""
    last = system.nested[-1]
    assert last.result is not None
    after = system.with_nested(last._replace(state=last.result))
    if last.step == "delete" and last.result is TraversalState.COMPLETE:
        after = after._replace(deleted=True)
    return wake_parent(after, last)


def wake_parent(system: NestedSystemState, ended: Nested) -> NestedSystemState:
    """`wake_parent` in engine/store/traversals/nested_stacks.py."""
    return wake_node(system, ended.parent) if ended.parent else system


# Invariants. Each returns a message if the move violates it, else None.


def every_parked_node_is_woken(
    before: NestedSystemState, move: NestedMove, after: NestedSystemState
) -> str | None:
    """A node without a wake-up time waits for a nested traversal of its own that is under way."""
    for number, parent in enumerate(after.parents, 1):
        if parent.node.state is not State.PARKED or parent.node.wake:
            continue
        if not (is_under_way(after) and after.nested[-1].parent == number):
            return f"the node of traversal {number} waits for nothing"
    return None


def no_nested_traversal_outlives_its_operation(
    before: NestedSystemState, move: NestedMove, after: NestedSystemState
) -> str | None:
    if not is_under_way(after) or not (parent := after.nested[-1].parent):
        return None
    ended = after.node(parent).state in ENDED
    return f"the nested traversal of {parent} is under way after its operation" if ended else None


def a_step_starts_once(
    before: NestedSystemState, move: NestedMove, after: NestedSystemState
) -> str | None:
    steps = [(one.parent, one.step) for one in after.nested if one.parent]
    return "a step has started twice" if len(set(steps)) < len(steps) else None


def an_ended_traversal_starts_no_nested_one(
    before: NestedSystemState, move: NestedMove, after: NestedSystemState
) -> str | None:
    if len(after.nested) == len(before.nested) or not (parent := after.nested[-1].parent):
        return None
    running = before.parents[parent - 1].state is TraversalState.RUNNING
    return None if running else f"traversal {parent} has ended and starts a nested one"


def one_operation_at_a_time(
    before: NestedSystemState, move: NestedMove, after: NestedSystemState
) -> str | None:
    acting = [one for one in after.parents if one.node.state in (State.RUNNING, State.PARKED)]
    return "two operations are under way" if len(acting) > 1 else None


def only_its_own_operation_ends_a_nested_traversal_early(
    before: NestedSystemState, move: NestedMove, after: NestedSystemState
) -> str | None:
    if move.kind != "end-nested" or before.nested == after.nested:
        return None
    parent = before.nested[-1].parent
    return (
        None
        if parent == move.traversal
        else f"traversal {move.traversal} ends the nested traversal of {parent}"
    )


def a_complete_parent_has_a_complete_nested_stack(
    before: NestedSystemState, move: NestedMove, after: NestedSystemState
) -> str | None:
    if not after.parents or after.parents[-1].state is not TraversalState.COMPLETE:
        return None
    if move.kind != "parent-end":
        return None
    if after.parents[-1].action is Action.DELETE:
        return "the nested stack is not deleted" if exists(after) else None
    steps = [one.state for one in after.nested if one.parent == len(after.parents)]
    last_complete = exists(after) and steps[-1:] == [TraversalState.COMPLETE]
    return None if last_complete else "the parent is complete, and its nested stack is not"


INVARIANTS = (
    every_parked_node_is_woken,
    no_nested_traversal_outlives_its_operation,
    a_step_starts_once,
    an_ended_traversal_starts_no_nested_one,
    one_operation_at_a_time,
    only_its_own_operation_ends_a_nested_traversal_early,
    a_complete_parent_has_a_complete_nested_stack,
)


def violated_invariants(
    before: NestedSystemState, move: NestedMove, after: NestedSystemState
) -> dict[str, str]:
    """The messages of the invariants that a move violates, by name."""
    found = {rule.__name__: rule(before, move, after) for rule in INVARIANTS}
    return {name: message for name, message in found.items() if message is not None}


CREATE, UPDATE, DELETE = Request(Action.CREATE), Request(Action.UPDATE), Request(Action.DELETE)
SUSPEND = Request(Action.SUSPEND)
CANCEL = Request(None, TraversalState.FAILED)
STOP = Request(None, TraversalState.STOPPED)

SUPERSEDED = NestedScenario(
    "a nested stack, updated twice", (CREATE, UPDATE, UPDATE), Incidents(lease=1, fail=1)
)
DELETED = NestedScenario(
    "a nested stack, deleted while its parent is superseded",
    (CREATE, DELETE, UPDATE),
    Incidents(lease=1, fail=1),
)
CANCELLED = NestedScenario(
    "a nested stack, cancelled, updated and stopped",
    (CREATE, CANCEL, UPDATE, STOP),
    Incidents(lease=1),
)
INDEPENDENT_CHANGE = NestedScenario(
    "a nested stack that is also updated independently",
    (CREATE, UPDATE, SUSPEND),
    Incidents(independent=1, lease=1),
    # If an independent traversal begins between the end of a step and the next call of the
    # operation, the step starts again.
    known_violations=frozenset({"a_step_starts_once"}),
)
RETRIED = NestedScenario(
    "an operation that is retried while its nested stack ends",
    (CREATE, UPDATE, DELETE),
    Incidents(retry=1, fail=1),
)
ALL = (SUPERSEDED, DELETED, CANCELLED, INDEPENDENT_CHANGE, RETRIED)
