"""The model of a stack tree: the model of a stack, once for each stack, and what connects them.

A stack of the tree moves as in protocol.py. Added here are the operations of resources with a
nested stack, the wake-ups between parents and nested stacks, and answers that step through the
tree. Each function names the code that it models.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from engine.hooks.answers import Approval, FinalAnswer
from engine.hooks.rule import Rule
from engine.hooks.step_mode import RUN_TO, StepModeChange, step_mode_change
from engine.node.node import (
    ENDED,
    Answered,
    Expired,
    Input,
    MustConfirm,
    MustStop,
    MustWait,
    OperationFailed,
    Succeeded,
)
from engine.service.traversals.nested import _outcome_of_ended
from engine.store.traversals.nested_stacks import NestedStackRecord
from engine.types.contract import Call, Child, Confirm, Done, Failed, Outcome, RunNested, Stopped
from engine.types.template_resource import TemplateResource
from engine.words import (
    Action,
    Decision,
    Mode,
    OnTimeout,
    Operation,
    Phase,
    Point,
    ResourceId,
    StackId,
    State,
    StepKind,
    StepMode,
    TraversalState,
    word_of,
)
from tests.model import groups, protocol, store, traversals
from tests.model.protocol import Move
from tests.model.step_expectations import NOTHING_EXPECTED, StepExpectations
from tests.model.system_state import (
    EMPTY,
    Hook,
    Incidents,
    Request,
    ResourceSpec,
    Scenario,
    SystemState,
    Worker,
)
from tests.model.worker_decisions import (
    FAILED_LEAVING_RESOURCE,
    STOPPED_LEAVING_RESOURCE,
    decide_transition,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STACK, RESOURCE = StackId(UUID(int=1)), ResourceId(UUID(int=2))
UNDER_WAY = (store.RUNNING, store.ENDING)
ROOT = 0
TYPE = TemplateResource()
METHODS: Mapping[Operation, Callable[[Call], Outcome]] = {
    Operation.CREATE: TYPE.create,
    Operation.UPDATE: TYPE.update,
    Operation.DELETE: TYPE.delete,
}


class TreeScenario(NamedTuple):
    """As `Scenario`. Requests are for the root stack; incidents and workers are for all stacks."""

    name: str
    requests: tuple[Request, ...]
    incidents: Incidents = Incidents()
    workers: int = 1
    sequential: bool = False
    known_violations: frozenset[str] = frozenset()

    @property
    def root(self) -> Scenario:
        return Scenario(self.name, self.requests, self.incidents, self.workers, self.sequential)


class Position(NamedTuple):
    """The position of a stack in the tree: the number of its parent, and the resource that owns it.
    Stacks are numbered, parents first; the root stack is 0."""

    parent: int
    name: str


class ParentStep(NamedTuple):
    """The step of the parent's operation that started a traversal."""

    traversal: int
    node: int
    key: int
    step: str


class RunTo(NamedTuple):
    """A breakpoint before the create of a resource in a nested stack."""

    parent: int
    traversal: int
    nested: int
    name: str


class TreeState(NamedTuple):
    """stacks: EMPTY before they are created. parent_steps: of the traversals of each stack.
    step_into: (stack, traversal, node) of nodes with the column. run_to: breakpoints for nested
    traversals, in the column nested_breakpoints of the parent's. expected: a record of the model.
    """

    positions: tuple[Position, ...]
    incidents: Incidents
    stacks: tuple[SystemState, ...]
    parent_steps: tuple[tuple[ParentStep | None, ...], ...]
    step_into: frozenset[tuple[int, int, int]] = frozenset()
    run_to: frozenset[RunTo] = frozenset()
    expected: StepExpectations = NOTHING_EXPECTED

    def stack(self, number: int) -> SystemState:
        """The stack, with the incidents that may still happen."""
        return self.stacks[number]._replace(incidents=self.incidents)

    def with_stack(self, number: int, changed: SystemState) -> "TreeState":
        stored = changed._replace(incidents=Incidents())
        stacks = (*self.stacks[:number], stored, *self.stacks[number + 1 :])
        return self._replace(stacks=stacks, incidents=changed.incidents)

    def nested_in(self, number: int, name: str) -> int | None:
        """The number of the stack that a resource owns."""
        position = Position(number, name)
        return self.positions.index(position) if position in self.positions else None

    def parent_step(self, number: int) -> ParentStep | None:
        """Of the current traversal."""
        return self.parent_steps[number][-1] if self.parent_steps[number] else None

    def started(self, number: int, by: ParentStep | None) -> "TreeState":
        steps = (*self.parent_steps[number], by)
        return self._replace(
            parent_steps=(*self.parent_steps[:number], steps, *self.parent_steps[number + 1 :])
        )


class TreeMove(NamedTuple):
    """A move of a stack. A call without an outcome calls the operation of a nested stack."""

    stack: int
    move: Move

    @property
    def kind(self) -> str:
        return self.move.kind


def positions_of(scenario: TreeScenario) -> tuple[Position, ...]:
    """The positions of all stacks of a scenario, whose templates differ in values only."""
    found, templates = [Position(-1, "")], [scenario.requests[0].template]
    for number, template in enumerate(templates):
        for spec in template:
            if spec.nested:
                found.append(Position(number, spec.name))
                templates.append(spec.nested)
    return tuple(found)


def initial_state(scenario: TreeScenario) -> TreeState:
    positions = positions_of(scenario)
    empty = EMPTY._replace(incidents=Incidents())
    return TreeState(
        positions, scenario.incidents, (empty,) * len(positions), ((),) * len(positions)
    )


def moves(scenario: TreeScenario, tree: TreeState) -> Iterator[tuple[TreeMove, TreeState]]:
    """The enabled moves, each with the state after it."""
    for move, after in _moves(scenario, tree):
        yield move, archive_nodes(tree, after)


def archive_nodes(before: TreeState, after: TreeState) -> TreeState:
    """`archive_graphs`, which the replay calls when a traversal begins or a stack is deleted: it
    archives the ended nodes of earlier traversals, of all stacks."""
    if all(
        (system.current, system.deleted) == (was.current, was.deleted)
        for was, system in zip(before.stacks, after.stacks, strict=True)
    ):
        return after
    for number in range(len(after.stacks)):
        system = after.stack(number)
        for at, traversal in enumerate(system.traversals[:-1], 1):
            live = tuple(
                one if one is not None and one.state in store.LIVE else None
                for one in traversal.nodes
            )
            system = system.with_traversal(at, traversal._replace(nodes=live))
        hooks = [
            hook
            for hook in system.hooks
            if hook.state == "waiting" or system.node(hook.traversal, hook.node) is not None
        ]
        after = after.with_stack(number, system.with_hooks(hooks))
    return after


def _moves(scenario: TreeScenario, tree: TreeState) -> Iterator[tuple[TreeMove, TreeState]]:
    for move, system in protocol.request_moves(scenario.root, tree.stack(ROOT)):
        if path := scenario.requests[tree.stacks[ROOT].accepted].run_to:
            yield TreeMove(ROOT, move), run_to(tree.with_stack(ROOT, system), path)
        else:
            yield TreeMove(ROOT, move), after_request(tree, system)
    is_busy = sum(len(system.workers) for system in tree.stacks) >= scenario.workers
    for number in range(len(tree.stacks)):
        system = tree.stack(number)
        for move, after in () if is_busy else protocol.claim_moves(system):
            yield TreeMove(number, move), tree.with_stack(number, with_claim(system, after))
        for worker in dict.fromkeys(system.workers):
            yield from worker_moves(tree, number, worker)
        for hook in system.hooks:
            if hook.state == "waiting":
                yield from hook_moves(tree, number, hook)


def is_idle(tree: TreeState) -> bool:
    return all(protocol.is_idle(system) for system in tree.stacks)


def after_request(tree: TreeState, system: SystemState) -> TreeState:
    """A request was accepted for the root stack."""
    after = tree.with_stack(ROOT, wake_waiting(tree, ROOT, system))
    if system.current == tree.stacks[ROOT].current:
        return after
    return after.started(ROOT, None)._replace(expected=NOTHING_EXPECTED)


def run_to(tree: TreeState, path: str) -> TreeState:
    """`Hooks.run_to`, to a resource in a nested stack."""
    owner, name = path.split("/")
    nested = tree.nested_in(ROOT, owner)
    assert nested is not None
    levels, current = change_of(tree, ROOT), tree.stacks[ROOT].current
    pending = _is_pending(tree, ROOT, owner)
    pending = pending or (nested in levels and _is_pending(tree, nested, name))
    if not is_under_way(tree, ROOT) or not pending:
        return tree
    after = tree
    if nested in levels:
        system = traversals.set_breakpoint(tree.stack(nested), name, run_to_rule())
        after = tree.with_stack(nested, system)
    if after != tree or nested not in levels:  # else the node has missed it
        after = after._replace(run_to=tree.run_to | {RunTo(ROOT, current, nested, name)})
    after = set_step_modes(after, RUN_TO, levels)
    for number in levels:
        for hook in tree.stacks[number].hooks if is_under_way(tree, number) else ():
            if hook.state == "waiting" and RUN_TO.resumes(_rule(tree, number, hook)):
                after = apply_decision(after, number, hook, RUN_TO.decision)
    return after._replace(expected=after.expected.after_run_to())


def run_to_rule() -> Rule:
    """`run_to_declarations`, of one point."""
    return Rule(Point.PRE_CREATE, Mode.WAIT, protocol.TEN_MINUTES)


def _is_pending(tree: TreeState, number: int, name: str) -> bool:
    """Whether a node of the resource has not ended."""
    system = tree.stacks[number]
    plans = system.traversal(system.current).graph.nodes if system.current else ()
    nodes = (system.node(system.current, at) for at, plan in enumerate(plans) if plan.name == name)
    return any(node is not None and node.state not in ENDED for node in nodes)


def wake_waiting(tree: TreeState, number: int, after: SystemState) -> SystemState:
    """WAKE_WAITING, of traversals that have ended early: it wakes their waiting operations."""
    for at, traversal in enumerate(tree.stacks[number].traversals, 1):
        if traversal.state in UNDER_WAY and after.traversal(at).state not in UNDER_WAY:
            for node, node_plan in enumerate(traversal.graph.nodes):
                if tree.nested_in(number, node_plan.name) is not None:
                    after = wake_node(after, at, node)
    return after


def wake_node(system: SystemState, traversal: int, at: int) -> SystemState:
    """`wake_nodes`: now, or, while the operation is being called, when that call ends."""
    node = system.node(traversal, at)
    if node is None or node.phase is not Phase.EXECUTE:
        return system
    if node.state is State.RUNNING:
        return system.with_node(traversal, at, node._replace(call_again=True))
    if node.state is not State.PARKED:
        return system
    system = system.with_node(traversal, at, node._replace(wake=True, call_again=False))
    return system.with_traversal(traversal, system.traversal(traversal)._replace(wake=True))


# Workers.


def with_claim(before: SystemState, after: SystemState) -> SystemState:
    """A claim, whose worker reads whether its traversal has ended."""
    claim = next((one for one in after.workers if one not in before.workers), None)
    if claim is None or claim.view is None:
        return after
    ended = after.traversal(claim.traversal).state != store.RUNNING
    view = claim.view._replace(superseded=ended)
    return after.without_worker(claim).with_worker(claim._replace(view=view))


def worker_moves(
    tree: TreeState, number: int, worker: Worker
) -> Iterator[tuple[TreeMove, TreeState]]:
    system = tree.stack(number)
    nested = None
    if worker.stage == "call":
        name = system.traversal(worker.traversal).graph.nodes[worker.node].name
        nested = tree.nested_in(number, name)
    if nested is not None:
        move = Move("call", worker.traversal, worker.node, worker)
        yield TreeMove(number, move), call_nested(tree, number, worker, nested)
        return
    for move, after in protocol.worker_moves(system, worker):
        moved = tree.with_stack(number, after)
        if move.kind == "end" and after.traversals != system.traversals:
            moved = wake_parent(moved, number)
        yield TreeMove(number, move), moved


def wake_parent(tree: TreeState, number: int) -> TreeState:
    """`wake_parent` in engine/store/traversals/nested_stacks.py, and in `complete_traversals`."""
    by = tree.parent_step(number)
    if by is None:
        return tree
    parent = tree.positions[number].parent
    return tree.with_stack(parent, wake_node(tree.stack(parent), by.traversal, by.node))


def call_nested(tree: TreeState, number: int, worker: Worker, nested: int) -> TreeState:
    """`NestedStacks.run_operation`."""
    assert worker.view is not None and worker.view.key is not None
    key, superseded = (worker.traversal, worker.node, worker.view.key), worker.view.superseded
    group = group_of(tree, number, worker)
    found = find_nested(tree, nested, key)
    if found is not None and found.is_run_by(_uuid(key)):
        if not superseded:
            return with_outcome(tree, number, worker, MustWait(None))
        tree = end_nested_early(tree, number, worker, nested)
        found = find_nested(tree, nested, key)
    child = None if found is None else child_of(found, key)
    call = Call(
        "p", STACK, "s", RESOURCE, "n", _uuid(key), NOW, {}, child=child, superseded=superseded
    )
    if group is None:
        outcome = METHODS[worker.view.operation](call)
    else:
        outcome = groups.call_operation(group, worker.view, call, tree.stack(nested))
        worker = groups.with_progress(worker, outcome)
    if isinstance(outcome, RunNested):
        state = TraversalState(tree.stacks[number].traversal(worker.traversal).state)
        if may_start(state):
            tree = start_nested(tree, number, worker, nested, outcome)
            return with_outcome(tree, number, worker, MustWait(None))
        outcome = _outcome_of_ended(state, found)
    return with_outcome(tree, number, worker, input_of(outcome))


def may_start(state: TraversalState) -> bool:
    """Whether a traversal in this state may start nested ones."""
    return state is TraversalState.RUNNING


def group_of(tree: TreeState, number: int, worker: Worker) -> ResourceSpec | None:
    """The group that an operation creates or updates. Groups delete their nested stack in the same
    way as other types."""
    graph = tree.stacks[number].traversal(worker.traversal).graph
    name = graph.nodes[worker.node].name
    return next((one for one in graph.template if one.name == name and one.batch), None)


def _uuid(key: tuple[int, int, int]) -> UUID:
    traversal, node, claim = key
    return UUID(int=traversal * 10_000 + node * 100 + claim + 1)


def find_nested(
    tree: TreeState, nested: int, key: tuple[int, int, int]
) -> NestedStackRecord | None:
    """`Children.find`: a deleted nested stack only if this operation deleted it."""
    system, by = tree.stacks[nested], tree.parent_step(nested)
    if by is None or (system.deleted and by[:3] != key):
        return None
    state = system.traversal(system.current).state
    return NestedStackRecord(
        STACK, "n", system.deleted, system.current, 1, state, "", _uuid(by[:3]), by.step
    )


def child_of(found: NestedStackRecord, key: tuple[int, int, int]) -> Child:
    """`Children.read`."""
    step = (found.parent_step or "") if found.parent_operation_key == _uuid(key) else ""
    return Child(StackId(found.id), "n", step, TraversalState(found.state), "ended")


def input_of(outcome: Outcome) -> Input:
    """`judge` in engine/work/nodes/operation_call.py."""
    match outcome:
        case Done():
            return Succeeded()
        case Confirm(step=step):
            return MustConfirm(step)
        case Stopped(physical_id=physical_id):
            return STOPPED_LEAVING_RESOURCE if physical_id else MustStop("stopped")
        case Failed(physical_id=physical_id):
            return FAILED_LEAVING_RESOURCE if physical_id else OperationFailed("failed")
        case _:
            raise NotImplementedError(outcome)


def with_outcome(tree: TreeState, number: int, worker: Worker, outcome: Input) -> TreeState:
    """The worker has the outcome, and the step to commit."""
    assert worker.view is not None
    system = tree.stack(number)
    node_plan = system.traversal(worker.traversal).graph.nodes[worker.node]
    transition = decide_transition(node_plan, worker.view, outcome)
    commits = worker._replace(stage="commit", transition=transition)
    calls = next(one for one in system.workers if one[:3] == worker[:3] and one.stage == "call")
    return tree.with_stack(number, system.without_worker(calls).with_worker(commits))


def end_nested_early(tree: TreeState, number: int, worker: Worker, nested: int) -> TreeState:
    """`_end_child_early`: in the state of the parent's traversal."""
    assert worker.view is not None
    system = tree.stack(nested)
    is_stopped = tree.stacks[number].traversal(worker.traversal).state == TraversalState.STOPPED
    state = TraversalState.STOPPED if is_stopped else TraversalState.FAILED
    ended = traversals.end_early(system, system.current, state.value)
    if worker.view.cancelled:
        ended = traversals.cancel_operations(ended)
    return tree.with_stack(nested, wake_waiting(tree, nested, ended))


def start_nested(
    tree: TreeState, number: int, worker: Worker, nested: int, command: RunNested
) -> TreeState:
    """The transaction of `_start`."""
    assert worker.view is not None and worker.view.key is not None
    system, graph = tree.stack(nested), tree.stacks[number].traversal(worker.traversal).graph
    if system.current and system.traversal(system.current).state in UNDER_WAY:
        ended = traversals.end_early(system, system.current, store.SUPERSEDED)
        system = wake_waiting(tree, nested, ended)
    if worker.view.operation is Operation.DELETE:
        cancelled = traversals.cancel_operations(system)
        system = traversals.start_change(cancelled, Action.DELETE, ())
    else:
        action = Action.UPDATE if system.current else Action.CREATE
        spec = next(one for one in graph.template if one.name == graph.nodes[worker.node].name)
        template = groups.template_of(spec, command) if spec.batch else spec.nested
        started = traversals.start_change(system, action, template)
        system = with_run_to(tree, (number, worker.traversal, nested), started)
    mode = mode_of_nested(tree, number, worker)
    with_mode = tree.with_stack(nested, store.set_step_mode(system, system.current, mode))
    by = ParentStep(worker.traversal, worker.node, worker.view.key, command.step)
    expected = tree.expected.after_start(number, nested)
    return with_mode.started(nested, by)._replace(expected=expected)


def with_run_to(tree: TreeState, start: tuple[int, int, int], system: SystemState) -> SystemState:
    """A nested traversal that begins, with the breakpoints that its parent's has for it."""
    for one in sorted(tree.run_to):
        if one[:3] == start:
            system = traversals.set_breakpoint(system, one.name, run_to_rule())
    return system


def mode_of_nested(tree: TreeState, number: int, worker: Worker) -> StepMode | None:
    """The step mode of a new traversal in `start_traversal`."""
    if (number, worker.traversal, worker.node) in tree.step_into:
        return StepMode.STEP
    parent = tree.stacks[number].traversal(worker.traversal).step_mode
    return StepMode.RUN if parent is StepMode.RUN else None


# Answers.


def change_of(tree: TreeState, number: int) -> dict[int, int]:
    """`read_stack_tree`: the stacks that belong to the change of a stack, with their levels."""
    levels = {number: 0}
    at = number
    while (by := tree.parent_step(at)) is not None:
        parent = tree.positions[at].parent
        if tree.stacks[parent].current != by.traversal:
            break
        levels[parent] = levels[at] - 1
        at = parent
    for nested, position in enumerate(tree.positions):
        level = levels.get(position.parent, -1)
        by = tree.parent_step(nested)
        if level < 0 or by is None or tree.stacks[nested].deleted:
            continue
        if by.traversal == tree.stacks[position.parent].current:
            levels[nested] = level + 1
    return levels


def hook_moves(tree: TreeState, number: int, hook: Hook) -> Iterator[tuple[TreeMove, TreeState]]:
    """`Hooks.answer`, and `Timers.expire_due` with `on_timeout` of the rule."""
    if tree.incidents.refusal:
        expired = Expired(_rule(tree, number, hook).on_timeout)
        move = Move("hook", hook.traversal, hook.node, input=expired, hook=hook)
        yield TreeMove(number, move), expire_hook(tree, number, hook, expired)
    if _rule(tree, number, hook).approvals > 1:
        yield from approval_moves(tree, number, hook)
    for decision, how in _answers(tree, number, hook):
        spent = "refusal" if decision is Decision.REJECT else "step"
        before = tree
        if decision is not Decision.CONTINUE:
            before = tree._replace(incidents=tree.stack(number).spent(spent).incidents)
        answer = Answered(decision, "ann")
        move = Move("hook", hook.traversal, hook.node, input=answer, hook=hook, how=how)
        yield TreeMove(number, move), decide_hook(before, number, hook, decision, how)


def approval_moves(
    tree: TreeState, number: int, hook: Hook
) -> Iterator[tuple[TreeMove, TreeState]]:
    """Approvals of a hook that needs several; the last one continues it."""
    rule = _rule(tree, number, hook)
    for by in protocol.PRINCIPALS[: rule.approvals]:
        outcome = Answered(Decision.CONTINUE, by)
        move = Move("hook", hook.traversal, hook.node, input=outcome, hook=hook)
        judged = protocol.judge_approval(hook, rule, by)
        if not isinstance(judged, (FinalAnswer, Approval)):
            continue  # the same principal again: nothing changes
        system, approved = protocol.record_approval(tree.stack(number), hook, by)
        after = tree.with_stack(number, system)
        if isinstance(judged, FinalAnswer):
            after = decide_hook(after, number, approved, Decision.CONTINUE, StepKind.OVER)
        yield TreeMove(number, move), after


def expire_hook(tree: TreeState, number: int, hook: Hook, expired: Expired) -> TreeState:
    """A deadline changes no step mode."""
    system = tree.stack(number).spent("refusal")
    mode = system.traversal(hook.traversal).step_mode
    state = OnTimeout(expired.on_timeout).value
    return tree.with_stack(number, protocol.apply_decision(system, hook, expired, state, mode))


def _answers(tree: TreeState, number: int, hook: Hook) -> Iterator[tuple[Decision, StepKind]]:
    needs_one = _rule(tree, number, hook).approvals == 1
    if needs_one:
        yield Decision.CONTINUE, StepKind.OVER
    if tree.incidents.step and needs_one:
        yield Decision.STEP, StepKind.OVER
        yield Decision.RUN, StepKind.OVER
        name = tree.stacks[number].traversal(hook.traversal).graph.nodes[hook.node].name
        if tree.nested_in(number, name) is not None:
            yield Decision.STEP, StepKind.INTO
        if min(change_of(tree, number).values()) < 0:
            yield Decision.STEP, StepKind.OUT
    if tree.incidents.refusal:
        yield Decision.REJECT, StepKind.OVER


def decide_hook(
    tree: TreeState, number: int, hook: Hook, decision: Decision, how: StepKind
) -> TreeState:
    """`_decide` in engine/service/hooks/answering.py."""
    rule = _rule(tree, number, hook)
    change, levels = step_mode_change(word_of(decision, how), rule), change_of(tree, number)
    after = tree
    if decision is Decision.STEP:
        after = set_step_into(after, (number, hook.traversal, hook.node), into=how is StepKind.INTO)
    after = set_step_modes(after, change, levels)
    others = [
        (nested, other)
        for nested, level in levels.items()
        if level >= 0 and is_under_way(tree, nested)
        for other in tree.stacks[nested].hooks
        if other.state == "waiting"
        and (nested, other) != (number, hook)
        and change.resumes(_rule(tree, nested, other))
    ]
    after = apply_decision(after, number, hook, decision)
    for nested, other in others:
        after = apply_decision(after, nested, other, change.decision)
    if ROOT not in levels:
        return after  # a newer change of the root stack has begun
    name = tree.stacks[number].traversal(hook.traversal).graph.nodes[hook.node].name
    expected = tree.expected.after_answer(
        tree.positions, levels, number, tree.nested_in(number, name), decision, how,
        is_stepped=hook.stepped,
    )  # fmt: skip
    return after._replace(expected=expected)


def is_under_way(tree: TreeState, number: int) -> bool:
    system = tree.stacks[number]
    return bool(system.current) and system.traversal(system.current).state in UNDER_WAY


def set_step_into(tree: TreeState, node: tuple[int, int, int], *, into: bool) -> TreeState:
    """`set_step_into` and `clear_node` of engine/store/hooks/step_modes.py: whether the next
    nested traversal that the node starts is in step mode."""
    return tree._replace(step_into=tree.step_into | {node} if into else tree.step_into - {node})


def set_step_modes(tree: TreeState, change: StepModeChange, levels: Mapping[int, int]) -> TreeState:
    """`set_step_mode` in engine/service/hooks/answering.py."""
    for number, level in levels.items():
        system, modes = tree.stack(number), change.at(level)
        mode = system.traversal(system.current).step_mode
        if is_under_way(tree, number) and mode in modes:
            system = store.set_step_mode(system, system.current, modes[mode])
            tree = tree.with_stack(number, system)
    return clear_step_into(tree, change, levels)


def clear_step_into(
    tree: TreeState, change: StepModeChange, levels: Mapping[int, int]
) -> TreeState:
    """`clear_all` and `clear_owners` of engine/store/hooks/step_modes.py."""
    left = set(tree.step_into)
    for number, level in levels.items():
        current, by = tree.stacks[number].current, tree.parent_step(number)
        if not is_under_way(tree, number):
            continue
        if level >= 0 and change.ends_stepping(1):
            left = {one for one in left if one[:2] != (number, current)}
        parent = tree.positions[number].parent
        if level <= 0 and by is not None and parent in levels and change.ends_stepping(level):
            left.discard((parent, by.traversal, by.node))
    return tree._replace(step_into=frozenset(left))


def apply_decision(tree: TreeState, number: int, hook: Hook, decision: Decision) -> TreeState:
    """`apply` in engine/work/hook_decisions.py, in the step mode after the answer."""
    system = tree.stack(number)
    mode = system.traversal(hook.traversal).step_mode
    answer = Answered(decision, "ann")
    return tree.with_stack(
        number, protocol.apply_decision(system, hook, answer, decision.value, mode)
    )


def _rule(tree: TreeState, number: int, hook: Hook) -> Rule:
    node_plan = tree.stacks[number].traversal(hook.traversal).graph.nodes[hook.node]
    return protocol.rule_of(node_plan, hook)
