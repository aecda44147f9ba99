"""The worker protocol as a state machine: the enabled moves of a state, each with the next state.

To add an operation, an outcome or a request, add a `Move`, return it from `moves`, and name the
engine code that it stands for. The statements themselves are in tests/model/store.py
and traversals.py.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from engine.errors import AnswerRefused
from engine.hooks.answer_rights import StoredHook
from engine.hooks.answers import Answer, Approval, FinalAnswer, judge
from engine.hooks.deadline import HookClock
from engine.hooks.rule import HookLimits, Rule, step_rule
from engine.hooks.step_mode import UNCHANGED, step_mode_change
from engine.node.node import (
    Answered,
    Expired,
    Input,
    MustConfirm,
    MustReplace,
    MustRetry,
    MustWait,
    OperationFailed,
    Succeeded,
)
from engine.principal import principal_of_name
from engine.words import (
    GATES,
    IN_PLACE_OPERATIONS,
    Action,
    AnswerChannel,
    Decision,
    HookState,
    Mode,
    OnTimeout,
    Operation,
    Phase,
    Point,
    State,
    StepKind,
    StepMode,
)
from tests.model import store, traversals
from tests.model.system_state import (
    EMPTY,
    INCOMPLETE,
    Hook,
    LaterNode,
    Node,
    NodePlan,
    Scenario,
    SystemState,
    Worker,
)
from tests.model.worker_decisions import (
    FAILED_LEAVING_RESOURCE,
    FORBIDDEN_OUTCOME,
    after_answer,
    begin_claim,
    decide_superseded_transition,
    decide_transition,
)

LATER = datetime(2026, 1, 1, tzinfo=UTC)
#: The outcome of a repeated call, by the recorded effect of the operation.
RECORDED_OUTCOMES: dict[str, Input] = {
    "Succeeded": Succeeded(),
    "OperationFailed": OperationFailed("failed"),
    "Left": FAILED_LEAVING_RESOURCE,
    "MustReplace": MustReplace(),
    "OperationForbidden": FORBIDDEN_OUTCOME,
}
#: Two principals answer where a rule needs several approvals.
PRINCIPALS = ("ann", "bob")
TEN_MINUTES = timedelta(minutes=10)
LIMITS = HookLimits(TEN_MINUTES, TEN_MINUTES)
CONTINUE = Answered(Decision.CONTINUE, "ann")
REJECT = Answered(Decision.REJECT, "ann")


class Move(NamedTuple):
    """A step of the model ("action" in TLA+). kind: request, timeout, claim, call, run, commit,
    repeat, crash, hook or end."""

    kind: str
    traversal: int = 0
    node: int = 0
    worker: Worker | None = None
    input: Input | None = None
    hook: Hook | None = None
    how: StepKind = StepKind.OVER


def initial_state(scenario: Scenario) -> SystemState:
    timed = scenario.incidents.timeout > 0
    return EMPTY._replace(
        incidents=scenario.incidents,
        rolls_back=scenario.rolls_back,
        timed=timed,
        stack=scenario.stack,
    )


def moves(scenario: Scenario, system: SystemState) -> Iterator[tuple[Move, SystemState]]:
    """The enabled moves, each with the state after it."""
    yield from request_moves(scenario, system)
    yield from time_limit_moves(system)
    if len(system.workers) < scenario.workers:
        yield from claim_moves(system)
    for worker in dict.fromkeys(system.workers):
        yield from worker_moves(system, worker)
    for hook in system.hooks:
        if hook.state == "waiting":
            yield from hook_moves(system, hook)


def request_moves(scenario: Scenario, system: SystemState) -> Iterator[tuple[Move, SystemState]]:
    """Requests to the engine (engine/service/stacks.py), at any time."""
    if system.accepted == len(scenario.requests) or system.deleted:
        return
    if scenario.sequential and not is_idle(system):
        return
    request = scenario.requests[system.accepted]
    after = system._replace(accepted=system.accepted + 1)
    state = system.traversal(system.current).state if system.current else ""
    running = state in (store.RUNNING, store.ENDING)
    if request.run_to:
        pass  # stack_tree.py has the move
    elif request.breakpoint:
        rule = Rule(Point.PRE_CREATE, Mode.WAIT, TEN_MINUTES)
        after = traversals.set_breakpoint(after, request.breakpoint, rule)
    elif request.action is None:
        after = traversals.cancel(after, request.ends)
    elif request.action in traversals.IN_PLACE:
        after = traversals.start_in_place(after, request.action)
    elif not (request.action is Action.DELETE and _deletes(system)):
        if running:
            after = traversals.end_early(after, system.current, store.SUPERSEDED)
        if request.action is Action.DELETE:
            after = traversals.cancel_operations(after)
        after = traversals.start_change(after, request.action, request.template)
    yield Move("request"), after


def time_limit_moves(system: SystemState) -> Iterator[tuple[Move, SystemState]]:
    """A traversal reaches its time limit; the next worker that claims work ends it."""
    if not system.current or not system.incidents.timeout:
        return
    current = system.traversal(system.current)
    if store.is_working(current) and not current.timed_out:
        after = system.spent("timeout").with_traversal(
            system.current, current._replace(timed_out=True)
        )
        yield Move("timeout", system.current, -1), after


def is_idle(system: SystemState) -> bool:
    """Return whether no work is left and no worker has a claim."""
    if system.workers or any(hook.state == "waiting" for hook in system.hooks):
        return False
    if system.current and system.traversal(system.current).state not in store.ENDS:
        return False
    return not any(
        node is not None and node.state in store.LIVE
        for traversal in system.traversals
        for node in traversal.nodes
    )


def _deletes(system: SystemState) -> bool:
    current = system.traversal(system.current)
    return current.action is Action.DELETE and current.state in (store.RUNNING, store.ENDING)


def claim_moves(system: SystemState) -> Iterator[tuple[Move, SystemState]]:
    """The second half of `advance`: a node that is due, or a traversal that is over.

    A running node is due when its lease has expired. That counts as an incident, unless its worker
    has crashed, which was one.
    """
    for number, traversal in enumerate(system.traversals, 1):
        if store.is_ending(traversal) and traversal.wake and not _is_being_ended(system, number):
            yield Move("claim", number, -1), system.with_worker(Worker(number, -1, 0, "end"))
        for at, node in enumerate(traversal.nodes):
            if node is None or not store.is_due(system, number, at):
                continue
            move, later = Move("claim", number, at), store.later_nodes(system, number, at)
            if node.state is not State.RUNNING or not _is_claimed(system, number, at, node.claim):
                yield move, start_claimed(store.claim_node(system, number, at), number, at, later)
            elif system.incidents.lease:
                expired = system.spent("lease")
                yield move, start_claimed(store.claim_node(expired, number, at), number, at)


def _is_being_ended(system: SystemState, number: int) -> bool:
    return any(worker.stage == "end" and worker.traversal == number for worker in system.workers)


def _is_claimed(system: SystemState, number: int, at: int, claim: int) -> bool:
    return any(
        worker[:3] == (number, at, claim) and worker.stage != "committed"
        for worker in system.workers
    )


def start_claimed(
    system: SystemState, number: int, at: int, later: tuple[LaterNode, ...] = ()
) -> SystemState:
    """`NodeRunner.run_node`: in phase execute the worker calls the operation, else it commits."""
    node = system.node(number, at)
    assert node is not None
    view = store.view_node(system, number, at)
    worker = Worker(number, at, node.claim, "call", view, later=later)
    if node.phase is Phase.EXECUTE:
        return system.with_worker(worker)
    transition = begin_claim(system.traversal(number).graph.nodes[at], view)
    return (
        system
        if transition is None
        else system.with_worker(worker._replace(stage="commit", transition=transition))
    )


def worker_moves(system: SystemState, worker: Worker) -> Iterator[tuple[Move, SystemState]]:
    """The moves of a worker with its claim, and its crash."""
    move = Move("", worker.traversal, worker.node, worker)
    match worker.stage:
        case "end":
            yield (
                move._replace(kind="end"),
                traversals.end_traversal(system.without_worker(worker), worker.traversal),
            )
        case "call":
            yield from calls(system, worker)
            if worker.later:
                yield run(system, worker)
        case "commit":
            assert worker.transition is not None
            yield move._replace(kind="commit"), commit(system.without_worker(worker), worker)
            # A refused step has no effect, so only an applied one is repeated.
            if system.incidents.duplicate and not store.refuses(system, worker, worker.transition):
                unacknowledged = commit(system.without_worker(worker).spent("duplicate"), worker)
                repeated = unacknowledged.with_worker(worker._replace(stage="committed"))
                yield move._replace(kind="commit", input=CONTINUE), repeated
        case _:
            yield move._replace(kind="repeat"), commit(system.without_worker(worker), worker)
    if worker.stage == "committed" or not _has_current_claim(system, worker):
        yield move._replace(kind="crash"), system.without_worker(worker)
    elif system.incidents.lease:
        yield move._replace(kind="crash"), system.spent("lease").without_worker(worker)


def _has_current_claim(system: SystemState, worker: Worker) -> bool:
    node = None if worker.stage == "end" else system.node(worker.traversal, worker.node)
    return worker.stage == "end" or (node is not None and node.claim == worker.claim)


def calls(system: SystemState, worker: Worker) -> Iterator[tuple[Move, SystemState]]:
    """The operation takes effect under its key, and the worker has its outcome."""
    assert worker.view is not None
    for outcome, incidents in outcomes(system, worker):
        if incidents and not getattr(system.incidents, incidents):
            continue
        node_plan = system.traversal(worker.traversal).graph.nodes[worker.node]
        transition = decide_transition(node_plan, worker.view, outcome)
        after = system.without_worker(worker)
        if transition is not None:
            commits = worker._replace(stage="commit", transition=transition, later=())
            after = after.with_worker(commits)
        after = record_effect(after.spent(incidents) if incidents else after, worker, outcome)
        yield Move("call", worker.traversal, worker.node, worker, outcome), after


def run(system: SystemState, worker: Worker) -> tuple[Move, SystemState]:
    """`Runs.execute`: the operations of a run succeed, and the worker holds their steps. Those of
    the later nodes have no effect before they are written."""
    assert worker.view is not None
    plans, succeeded = system.traversal(worker.traversal).graph.nodes, Succeeded()
    transition = decide_transition(plans[worker.node], worker.view, succeeded)
    later = tuple(
        one._replace(
            transition=decide_transition(plans[one.node]._replace(rules=()), one.view, succeeded)
        )
        for one in worker.later
    )
    commits = worker._replace(stage="commit", transition=transition, later=later)
    after = record_effect(system.without_worker(worker).with_worker(commits), worker, succeeded)
    return Move("run", worker.traversal, worker.node, worker, succeeded), after


def outcomes(system: SystemState, worker: Worker) -> Iterator[tuple[Input, str]]:
    """The outcomes of an operation, each with the incident that it needs.

    Called again under its key, an operation finds its effect and returns the same outcome.
    """
    assert worker.view is not None
    view, node = worker.view, system.node(worker.traversal, worker.node)
    node_plan = system.traversal(worker.traversal).graph.nodes[worker.node]
    called = (worker.view.key, worker.view.operation)
    for key, operation, outcome in node.effects if node else ():
        if (key, operation) == called:
            yield RECORDED_OUTCOMES[outcome], ""
            return
    if worker.view.operation is Operation.CHECK and not _is_intact(system, node):
        yield OperationFailed("failed"), ""
        return
    awaits = view.progress % 2 == 1
    rejected = awaits and view.confirmation is not None and not view.confirmation[1]
    if rejected:
        yield OperationFailed("rejected"), ""
    elif after_answer(view) < 2 * len(_steps(node_plan, view.operation)):
        yield MustConfirm(_steps(node_plan, view.operation)[after_answer(view) // 2]), ""
    else:
        yield Succeeded(), ""
    if view.operation in GATES:
        return
    if view.cancelled:
        yield OperationFailed("failed"), ""
    else:
        yield OperationFailed("failed"), "fail"
        yield MustWait(LATER), "wait"
    yield MustRetry(LATER, "again"), "retry"
    if worker.view.operation in (Operation.CREATE, Operation.REPLACE):
        yield FAILED_LEAVING_RESOURCE, "leave"
    if view.operation is Operation.UPDATE and not rejected:
        yield FORBIDDEN_OUTCOME if "replace" in node_plan.restricted else MustReplace(), "replace"


def _steps(node_plan: NodePlan, operation: Operation) -> tuple[str, ...]:
    """The steps that an operation has confirmed."""
    can_ask = operation in (Operation.CREATE, Operation.UPDATE, Operation.REPLACE)
    return node_plan.confirms if can_ask else ()


def _is_intact(system: SystemState, node: Node | None) -> bool:
    """Return whether the physical resource exists and is complete."""
    values = {row: value for row, value, _ in system.physical_resources}
    return node is not None and values.get(node.resource, INCOMPLETE) != INCOMPLETE


def record_effect(system: SystemState, worker: Worker, outcome: Input) -> SystemState:
    """Record the effect of an operation, also if its worker has lost the claim."""
    node = system.node(worker.traversal, worker.node)
    if node is None or worker.view is None:
        return system
    if worker.view.cancelled and isinstance(outcome, MustRetry):
        outcome = OperationFailed("failed")  # it is not retried
    if not isinstance(outcome, MustRetry):
        system = perform_step(system, worker)
        node = system.node(worker.traversal, worker.node) or node
    if isinstance(outcome, MustWait | MustRetry | MustConfirm):
        return system
    key = -1 if worker.view.key is None else worker.view.key
    effect = (
        key,
        worker.view.operation,
        "Left" if outcome == FAILED_LEAVING_RESOURCE else type(outcome).__name__,
    )
    if effect not in node.effects:
        system = change_physical(system, worker, node, outcome)
    return system.with_node(
        worker.traversal, worker.node, node._replace(effects=node.effects | {effect})
    )


def perform_step(system: SystemState, worker: Worker) -> SystemState:
    """Perform the step to confirm, unless its answer rejects it."""
    view, node = worker.view, system.node(worker.traversal, worker.node)
    assert view is not None and node is not None
    accepted = view.confirmation is None or view.confirmation[1]
    if view.progress % 2 == 0 or not accepted:
        return system
    at = view.progress // 2
    steps = system.traversal(worker.traversal).graph.nodes[worker.node].confirms
    performed = (view.key or 0, at, steps[at])
    return system.with_node(
        worker.traversal, worker.node, node._replace(steps=node.steps | {performed})
    )


def change_physical(system: SystemState, worker: Worker, node: Node, outcome: Input) -> SystemState:
    """Change the physical resources. A failed replacement leaves one only if it reports that; any
    other failure leaves an incomplete one."""
    if isinstance(outcome, MustReplace) or outcome == FORBIDDEN_OUTCOME:
        return system
    assert worker.view is not None
    if worker.view.operation in IN_PLACE_OPERATIONS | GATES:
        return change_power(system, worker.view.operation, node, outcome)
    node_plan = system.traversal(worker.traversal).graph.nodes[worker.node]
    succeeded, operation, row = isinstance(outcome, Succeeded), worker.view.operation, node.resource
    if operation is Operation.DELETE and succeeded:
        return system.with_physical_resource(row, None)
    if operation is Operation.UPDATE and all(one[0] != row for one in system.physical_resources):
        return system  # the worker has lost its claim, and the resource is deleted
    if operation is Operation.REPLACE and not succeeded and outcome != FAILED_LEAVING_RESOURCE:
        return system
    if operation is Operation.ADOPT and not succeeded:
        return system
    new = operation is Operation.CREATE and system.row(row) is None
    if new or operation is Operation.REPLACE:
        row = node_plan.replacement or 0
    return system.with_physical_resource(
        row, node_plan.value if succeeded else INCOMPLETE, worker.view.uses
    )


def change_power(
    system: SystemState, operation: Operation, node: Node, outcome: Input
) -> SystemState:
    """Suspend or resume a physical resource."""
    if operation is Operation.SUSPEND and isinstance(outcome, Succeeded):
        return system._replace(suspended=system.suspended | {node.resource})
    if operation is Operation.RESUME and isinstance(outcome, Succeeded):
        return system._replace(suspended=system.suspended - {node.resource})
    return system


def commit(system: SystemState, worker: Worker) -> SystemState:
    """`advance` with the worker's step. The worker keeps the claim of a node that stays running,
    and decides a refused step again."""
    assert worker.transition is not None
    if store.refuses(system, worker, worker.transition):
        return store.update_wake(system).with_worker(decide_again(system, worker))
    was_current = store.is_current(system.node(worker.traversal, worker.node), worker)
    after = record_run(system, worker, store.apply_run(system, worker))
    node = after.node(worker.traversal, worker.node)
    if was_current and node is not None and node.state is State.RUNNING:
        return start_claimed(after, worker.traversal, worker.node)
    return after


def record_run(before: SystemState, worker: Worker, after: SystemState) -> SystemState:
    """Record the effects of the later nodes that were written."""
    for later in worker.later:
        was, node = (
            before.node(worker.traversal, later.node),
            after.node(worker.traversal, later.node),
        )
        if was is None or node is None or node.outcomes == was.outcomes:
            continue
        view = later.view._replace(key=later.claim)
        claim = Worker(worker.traversal, later.node, later.claim, "commit", view)
        after = record_effect(after, claim, Succeeded())
    return after


def decide_again(system: SystemState, worker: Worker) -> Worker:
    """`decide_again` in engine/work/nodes/job.py."""
    assert worker.view is not None and worker.transition is not None
    node_input = worker.transition.input
    assert node_input is not None
    traversal = system.traversal(worker.traversal)
    node_plan = traversal.graph.nodes[worker.node]
    if traversal.state != store.RUNNING:
        transition = decide_superseded_transition(node_plan, worker.view, node_input)
        return worker._replace(stage="commit", transition=transition)
    view = worker.view._replace(step_mode=traversal.step_mode)
    repeated = decide_transition(node_plan, view, node_input)
    assert repeated is not None
    return worker._replace(stage="commit", view=view, transition=repeated)


def hook_moves(system: SystemState, hook: Hook) -> Iterator[tuple[Move, SystemState]]:
    """`Hooks.answer`, and `Timers.expire_due` with `on_timeout` of the rule."""
    node_plan = system.traversal(hook.traversal).graph.nodes[hook.node]
    move = Move("hook", hook.traversal, hook.node, hook=hook)
    rule = rule_of(node_plan, hook)
    for by in PRINCIPALS[: rule.approvals]:
        outcome = Answered(Decision.CONTINUE, by)
        match judge_approval(hook, rule, by):
            case FinalAnswer():
                approved = record_approval(system, hook, by)
                after = decide_hook(*approved, node_plan, outcome, "continue")
                yield move._replace(input=outcome), after
            case Approval():
                yield move._replace(input=outcome), record_approval(system, hook, by)[0]
            case _:
                pass  # the same principal again: nothing changes
    if system.incidents.step and rule.approvals == 1:
        for decision in (Decision.STEP, Decision.RUN):
            after = decide_hook(
                system.spent("step"), hook, node_plan, Answered(decision, "ann"), decision.value
            )
            yield move._replace(input=Answered(decision, "ann")), after
    if not system.incidents.refusal:
        return
    spent = system.spent("refusal")
    yield move._replace(input=REJECT), decide_hook(spent, hook, node_plan, REJECT, "reject")
    then = rule.on_timeout
    after = decide_hook(spent, hook, node_plan, Expired(then), OnTimeout(then).value)
    yield move._replace(input=Expired(then)), after


def rule_of(node_plan: NodePlan, hook: Hook) -> Rule:
    """The rule that opened a hook."""
    if hook.stepped:
        return step_rule(hook.point)
    return next(rule for rule in node_plan.rules if rule.point == hook.point)


def judge_approval(hook: Hook, rule: Rule, by: str) -> object:
    """`Engine.answer`, judged by the real rules."""
    stored = StoredHook(
        state=HookState.WAITING,
        resource_name="",
        point=hook.point,
        digest="",
        clock=HookClock(LATER, TEN_MINUTES, LATER + TEN_MINUTES),
        decision=None,
        decided_by=None,
        decided_at=None,
        rule=rule,
        requested_by=principal_of_name("eve"),
        approved_by=hook.approved,
    )
    answer = Answer(Decision.CONTINUE, principal_of_name(by), AnswerChannel.API)
    judged = judge(stored, answer, None, LATER, LIMITS)
    assert not isinstance(judged, AnswerRefused)
    return judged


def record_approval(system: SystemState, hook: Hook, by: str) -> tuple[SystemState, Hook]:
    """Record an approval in the audit log; omitted for rules that need only one."""
    node_plan = system.traversal(hook.traversal).graph.nodes[hook.node]
    needed = rule_of(node_plan, hook).approvals
    keys = {*hook.approved, principal_of_name(by).key} if needed > 1 else set()
    approved = hook._replace(approved=tuple(sorted(keys)))
    return system.with_hooks(approved if one == hook else one for one in system.hooks), approved


def decide_hook(
    system: SystemState, hook: Hook, node_plan: NodePlan, outcome: Input, decision_name: str
) -> SystemState:
    """`_decide` in engine/service/hooks/answering.py: the step mode, then `apply` for the hook and
    for those that continue with it."""
    change = step_mode_change(decision_name, rule_of(node_plan, hook))
    if isinstance(outcome, Expired):
        change = UNCHANGED
    before = system.traversal(hook.traversal).step_mode
    if before in change.own:
        system = store.set_step_mode(system, hook.traversal, change.own[before])
    others = [
        other
        for other in system.hooks
        if other.state == "waiting" and other != hook and change.resumes(_rule(system, other))
    ]
    system = apply_decision(
        system, hook, outcome, decision_name, mode_at_hook(system, hook, before)
    )
    for other in others:
        mode = system.traversal(other.traversal).step_mode
        answer = Answered(change.decision, "ann")
        system = apply_decision(system, other, answer, change.decision.value, mode)
    return system


def mode_at_hook(system: SystemState, hook: Hook, before: StepMode | None) -> StepMode | None:
    """The step mode after the answer. before: the mode when the hook was locked."""
    return system.traversal(hook.traversal).step_mode


def _rule(system: SystemState, hook: Hook) -> Rule:
    return rule_of(system.traversal(hook.traversal).graph.nodes[hook.node], hook)


def apply_decision(
    system: SystemState, hook: Hook, outcome: Input, decision_name: str, step_mode: StepMode | None
) -> SystemState:
    """`apply` in engine/work/hook_decisions.py: DECIDE_HOOKS, then `advance` with the step."""
    state = "continue" if decision_name in (Decision.STEP, Decision.RUN) else decision_name
    node_plan = system.traversal(hook.traversal).graph.nodes[hook.node]
    node = system.node(hook.traversal, hook.node)
    hooks = [one._replace(state=state) if one == hook else one for one in system.hooks]
    after = system.with_hooks(hooks)
    if node is None:
        return after
    view = store.view_at_hook(system, hook.traversal, hook.node)._replace(step_mode=step_mode)
    transition = decide_transition(node_plan, view, outcome, node.state)
    if transition is None:
        return after
    worker = Worker(hook.traversal, hook.node, node.claim, "commit", view, transition)
    return store.apply_transition(after, worker, transition)
