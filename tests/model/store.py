"""The SQL function `advance` on the model. Each function names the part that it models.

The functions are small, because tests/model/faults.py replaces single ones.
"""

from engine.hooks.rule import Rule
from engine.node.node import ENDED, BreakpointAdded, InvalidInput
from engine.node.node import Node as MachineNode
from engine.words import Direction, Operation, Phase, State, StepMode
from tests.model.system_state import (
    KEPT,
    Hook,
    LaterNode,
    Node,
    NodePlan,
    NodeView,
    Row,
    SystemState,
    Transition,
    Traversal,
    Worker,
    Write,
)
from tests.model.worker_decisions import decide_cached

RUNNING, ENDING, SUPERSEDED, FAILED = "running", "ending", "superseded", "failed"
ENDS = ("complete", "failed", "stopped")
LIVE = frozenset({State.READY, State.RUNNING, State.PARKED})


def is_current(node: Node | None, worker: Worker) -> bool:
    """`step` in `apply_transitions`: the claim is current, and the node has not ended."""
    return node is not None and node.claim == worker.claim and node.state in LIVE


def apply_transition(system: SystemState, worker: Worker, transition: Transition) -> SystemState:
    """`advance` with one step, claiming nothing. `worker`: the node and the claim."""
    node = system.node(worker.traversal, worker.node)
    if not is_current(node, worker):
        return update_wake(system)
    assert node is not None
    system = write_rows(system, worker, transition.write)
    system = open_hooks(system, worker, transition)
    if replaces_resource(transition):
        system = add_nodes(system, worker)
    system = move_node(system, worker, node, transition)
    system, changes = wake_dependents(system, worker, node, transition)
    return update_wake(update_traversals(system, changes))


def replaces_resource(transition: Transition) -> bool:
    """`nodes` in engine/work/nodes/transition_encoder.py."""
    write = transition.write
    return write is not None and write.kind == "insert" and write.replaces is not None


def add_nodes(system: SystemState, worker: Worker) -> SystemState:
    """The routine `add_nodes`. Here, the node that adds others has not ended yet, and then releases
    them."""
    number, traversal = worker.traversal, system.traversal(worker.traversal)
    if not may_add(traversal):
        return system
    plans = traversal.graph.nodes
    for at in (at for at, one in enumerate(plans) if one.added_by == worker.node):
        system = system.with_node(number, at, added_node(system, number, at))
        for dependent in plans[at].dependents:
            system = wait_for_one_more(system, number, dependent)
    return system


def may_add(traversal: Traversal) -> bool:
    """`t.state = 'running'` in `add_nodes`: a newer change deletes what this one has replaced."""
    return traversal.state == RUNNING


def added_node(system: SystemState, number: int, at: int) -> Node:
    """The row that `add_nodes` inserts."""
    traversal = system.traversal(number)
    return Node(
        state=State.WAITING,
        phase=Phase.PRE,
        operation=Operation.DELETE,
        breakpoints_hit=(),
        pending_dependencies=unfinished_before(traversal, at),
        claim=0,
        wake=False,
        resource=traversal.graph.nodes[at].resource,
    )


def unfinished_before(traversal: Traversal, at: int) -> int:
    before = (traversal.nodes[one] for one in traversal.graph.nodes[at].after)
    return sum(one is not None and one.state is not State.DONE for one in before)


def wait_for_one_more(system: SystemState, number: int, at: int) -> SystemState:
    node = system.node(number, at)
    if node is None or node.state is not State.WAITING:
        return system
    pending = node.pending_dependencies + 1
    return system.with_node(number, at, node._replace(pending_dependencies=pending))


def apply_run(system: SystemState, worker: Worker) -> SystemState:
    """`advance` with the steps of a run: the claimed node, and the later ones if all fit."""
    assert worker.transition is not None
    complete = is_complete(system, worker)
    system = apply_transition(system, worker, worker.transition)
    for later in worker.later if complete else ():
        system = apply_later(system, worker, later)
    return system


def is_complete(system: SystemState, worker: Worker) -> bool:
    """`complete_run` in `apply_transitions`."""
    first = system.node(worker.traversal, worker.node)
    return is_current(first, worker) and all(fits(system, worker, later) for later in worker.later)


def fits(system: SystemState, worker: Worker, later: LaterNode) -> bool:
    """The conditions for later nodes in `matched` of `apply_transitions`, and `may_run`."""
    node = system.node(worker.traversal, later.node)
    traversal = system.traversal(worker.traversal)
    return (
        node is not None
        and node.claim == later.claim
        and is_later_run_node(node, traversal.graph.nodes[later.node].rules)
        and has_runs(traversal.state, traversal.step_mode)
        and traversal.step_mode is later.view.step_mode
    )


def is_run_node(node: Node, rules: tuple[Rule, ...]) -> bool:
    """`is_run_node` of the store."""
    return node.operation is Operation.CREATE and node.phase is Phase.EXECUTE and not rules


def is_later_run_node(node: Node, rules: tuple[Rule, ...]) -> bool:
    """`is_later_run_node` of the store."""
    waits = node.state is State.WAITING and node.pending_dependencies == 1
    return waits and is_run_node(node, rules)


def has_runs(traversal_state: str, step_mode: StepMode | None) -> bool:
    """`has_runs` of the store."""
    return traversal_state == RUNNING and step_mode is not StepMode.STEP


def apply_later(system: SystemState, worker: Worker, later: LaterNode) -> SystemState:
    """A later node of a run, which is ready now. Its operation key is the worker's."""
    node = system.node(worker.traversal, later.node)
    assert node is not None and later.transition is not None
    begun = node._replace(state=State.RUNNING, key=later.claim, begun=True)
    claim = Worker(worker.traversal, later.node, later.claim, "commit", later.view)
    system = system.with_node(worker.traversal, later.node, begun)
    return apply_transition(system, claim, later.transition)


def later_nodes(system: SystemState, number: int, at: int) -> tuple[LaterNode, ...]:
    """The routine `later_nodes`, for a node before it is claimed."""
    node, traversal = system.node(number, at), system.traversal(number)
    node_plan = traversal.graph.nodes[at]
    assert node is not None
    first = node_plan.computes and is_run_node(node, node_plan.rules)
    if node.state is State.RUNNING or not first:
        return ()
    if not has_runs(traversal.state, traversal.step_mode):
        return ()
    found: list[LaterNode] = []
    reached = [at]
    for before in reached:
        for one in traversal.graph.nodes[before].dependents:
            waiting, of_graph = system.node(number, one), traversal.graph.nodes[one]
            if (
                waiting is not None
                and of_graph.computes
                and is_later_run_node(waiting, of_graph.rules)
            ):
                reached.append(one)
                found.append(LaterNode(one, waiting.claim, view_node(system, number, one)))
    return tuple(found)


def refuses(system: SystemState, worker: Worker, transition: Transition) -> bool:
    """`refused` in `apply_transitions`."""
    if not is_current(system.node(worker.traversal, worker.node), worker):
        return False
    other_mode, state = is_of_other_mode(system, worker), system.traversal(worker.traversal).state
    return is_refused(state, transition.state, other_mode=other_mode, hooks=bool(transition.hooks))


def is_refused(traversal_state: str, state: State, *, other_mode: bool, hooks: bool) -> bool:
    """`is_refused` of the store: a traversal that has ended opens no hooks. A step for another step
    mode opens no hook and begins no operation."""
    if traversal_state != RUNNING:
        return hooks
    return other_mode and (state is State.RUNNING or hooks)


def is_of_other_mode(system: SystemState, worker: Worker) -> bool:
    """`s.step_mode is distinct from t.step_mode` in `apply_transitions`."""
    step_mode = system.traversal(worker.traversal).step_mode
    return worker.view is not None and worker.view.step_mode is not step_mode


def set_step_mode(system: SystemState, number: int, step_mode: StepMode | None) -> SystemState:
    """SET_STEP_MODES: operations that have not begun stop before they do."""
    system = system.with_traversal(number, system.traversal(number)._replace(step_mode=step_mode))
    if step_mode is not StepMode.STEP:
        return system
    for at, node in enumerate(system.traversal(number).nodes):
        if node is not None:
            moved = add_breakpoint_to(node, stepping=True)
            system = system.with_node(number, at, moved)
    return system


def add_breakpoint_to(node: Node, rules: tuple[Rule, ...] = (), *, stepping: bool = False) -> Node:
    """The node after the machine's decision; the same if it refuses."""
    machine_node = MachineNode(
        node.operation, node.state, node.phase, rules, node.breakpoints_hit, stepping=stepping
    )
    step = decide_cached(machine_node, BreakpointAdded())
    if isinstance(step, InvalidInput):
        return node
    moved = node._replace(phase=step.node.phase)
    return moved if step.node.state is node.state else give_back(moved, step.node.state)


def give_back(node: Node, state: State) -> Node:
    """`given_back` in SET_RULES: the claim of its worker ends, and the node is due."""
    return node._replace(state=state, claim=next_claim(node.claim), wake=True)


def move_node(
    system: SystemState, worker: Worker, node: Node, transition: Transition
) -> SystemState:
    """`moved` in `apply_transitions`."""
    changed = node._replace(
        state=transition.state,
        phase=transition.phase,
        operation=transition.operation,
        breakpoints_hit=transition.breakpoints_hit,
        claim=next_claim(node.claim),
        wake=transition.wake
        or transition.state in (State.RUNNING, State.READY)
        or is_called_again(node, transition),
        key=operation_key(node, transition),
        attempts=transition.attempts,
        begun=node.begun or starts_operation(transition.state, transition.phase),
        progress=transition.progress,
        group_progress=transition.group_progress,
        confirmation=transition.confirmation,
        outcomes=node.outcomes + transition.outcome,
        call_again=False,
        due=is_called_again(node, transition),
    )
    return system.with_node(worker.traversal, worker.node, changed)


def starts_operation(state: State, phase: Phase) -> bool:
    """`starts_operation` of the store, for a node whose operation has not started."""
    return state is State.RUNNING and phase is Phase.EXECUTE


def is_called_again(node: Node, transition: Transition) -> bool:
    """`is_called_again` of the store: a node that is parked in its operation is due at once."""
    parks = transition.state is State.PARKED and transition.phase is Phase.EXECUTE
    return node.call_again and parks


def next_claim(claim: int) -> int:
    """`claim = n.claim + 1` in `moved`: a transition is applied once."""
    return claim + 1


def operation_key(node: Node, transition: Transition) -> int | None:
    """`operation_key_after` of the store: another operation has another key."""
    another = transition.operation is not node.operation
    if transition.phase is not Phase.EXECUTE:
        return None if another else node.key
    return node.claim if another else key_or_new(node, node.claim)


def key_or_new(node: Node, number: int) -> int:
    """`coalesce(n.operation_key, gen_random_uuid())`, in `moved` and `claimed`."""
    return number if node.key is None else node.key


def open_hooks(system: SystemState, worker: Worker, transition: Transition) -> SystemState:
    """`hooked` in `apply_transitions`."""
    if not transition.hooks:
        return system
    new_hooks = [
        Hook(worker.traversal, worker.node, point, state, stepped=stepped)
        for point, state, stepped in transition.hooks
    ]
    return system.with_hooks([*system.hooks, *new_hooks])


def wake_dependents(
    system: SystemState, worker: Worker, node: Node, transition: Transition
) -> tuple[SystemState, list[tuple[int, int]]]:
    """`wake_dependents`; with it the parts of `traversal_changes`."""
    changes = [(worker.traversal, -1 if transition.state in ENDED else 0)]
    released = released_by(system, worker, node, transition)
    if node.successor is not None and transition.state in ENDED:
        changes.append((system.current, -1))
    for traversal, one in released:
        waiting = system.node(traversal, one)
        if waiting is None or waiting.state is not State.WAITING:
            continue
        pending_dependencies = waiting.pending_dependencies - 1
        ready = State.READY if pending_dependencies == 0 else State.WAITING
        changed = waiting._replace(
            pending_dependencies=pending_dependencies, state=ready, wake=pending_dependencies == 0
        )
        if traversal != worker.traversal:
            changed = changed._replace(resource=resource_after(system, transition, traversal, one))
        system = system.with_node(traversal, one, changed)
        if pending_dependencies == 0:
            changes.append((traversal, 1))
    return system, changes


def released_by(
    system: SystemState, worker: Worker, node: Node, transition: Transition
) -> list[tuple[int, int]]:
    """`freed`: the dependents, and the node of the newer traversal that waits."""
    dependents = system.traversal(worker.traversal).graph.nodes[worker.node].dependents
    released = (
        [(worker.traversal, one) for one in dependents] if transition.state is State.DONE else []
    )
    if node.successor is not None and transition.state in ENDED:
        released.append((system.current, node.successor))
    return released


def resource_after(system: SystemState, transition: Transition, number: int, at: int) -> int:
    """`freed.replacement_id`: a node that waited for an operation continues with it."""
    node, node_plan = system.node(number, at), system.traversal(number).graph.nodes[at]
    assert node is not None
    inserts = transition.write is not None and transition.write.kind == "insert"
    if inserts and node_plan.direction is Direction.FORWARD:
        assert transition.write is not None
        return transition.write.row.id
    return node.resource


def update_traversals(system: SystemState, changes: list[tuple[int, int]]) -> SystemState:
    """`traversal_changes`: a traversal without active nodes is ending."""
    for number in {number for number, _ in changes}:
        traversal = system.traversal(number)
        active_nodes = traversal.active_nodes + sum(
            change for one, change in changes if one == number
        )
        ends = traversal.state == RUNNING and active_nodes == 0
        state = ENDING if ends else traversal.state
        system = system.with_traversal(
            number, traversal._replace(active_nodes=active_nodes, state=state, wake=True)
        )
    return system


def update_wake(system: SystemState) -> SystemState:
    """`update_traversals`, for every traversal that `advance` touched."""
    for number, traversal in enumerate(system.traversals, 1):
        if traversal.wake and traversal.state != ENDING:
            due = any(node is not None and node.wake for node in traversal.nodes)
            if not due and not (system.timed and is_working(traversal)):
                system = system.with_traversal(number, traversal._replace(wake=False))
    return system


def is_working(traversal: Traversal) -> bool:
    """`working_since`: time counts unless all active nodes wait for hooks or nested stacks."""
    blocked = sum(
        node is not None and node.state is State.PARKED and not node.wake
        for node in traversal.nodes
    )
    return traversal.state == RUNNING and traversal.active_nodes > blocked


def is_ending(traversal: Traversal) -> bool:
    """`p_ends` in `claim_due`: no active node, or the time limit is reached."""
    return traversal.state == ENDING or (traversal.timed_out and is_working(traversal))


def write_rows(system: SystemState, worker: Worker, row_write: Write | None) -> SystemState:
    """`written`, `removed`, `replaced` and `inserted` in `apply_transitions`."""
    if row_write is None:
        return system
    node_plan = system.traversal(worker.traversal).graph.nodes[worker.node]
    rows = list(system.rows)
    if row_write.kind == "update":
        rows = [_update_row(system, row, row_write.row, node_plan) for row in rows]
    if row_write.snapshot:
        snapshot = (worker.traversal, row_write.row.id, row_write.row.value)
        system = system._replace(snapshots=system.snapshots | {snapshot})
    if row_write.kind == "remove":
        rows = [row for row in rows if row.id != row_write.row.id]
        rows = replace_requirement(rows, row_write.row)
        if row_write.row.policy == "Retain" and any(
            resource[0] == row_write.row.id for resource in system.physical_resources
        ):
            system = system._replace(retained=system.retained | {row_write.row.id})
    if row_write.kind in ("insert", "leave"):
        rows = [
            _mark_replaced(row, row_write) if row.id == row_write.replaces else row for row in rows
        ]
        requires = _ids(system, node_plan.requires or ())
        rules = _stored_rules(system, node_plan, row_write)
        rows = [*rows, row_write.row._replace(requires=requires, rules=rules)]
    return system.with_rows(rows)


def _stored_rules(system: SystemState, node_plan: NodePlan, row_write: Write) -> tuple[Rule, ...]:
    """The rules stored with the replaced row."""
    replaced = None if row_write.replaces is None else system.row(row_write.replaces)
    return node_plan.rules if replaced is None else replaced.rules


def _mark_replaced(row: Row, row_write: Write) -> Row:
    """`replaced`. "leave": the failed replacement left a physical resource; the old row stays."""
    if row_write.kind == "insert":
        return row._replace(replaced_by=row_write.row.id)
    return row._replace(replaced_by=None, action="UPDATE", status="FAILED")


def _update_row(system: SystemState, row: Row, written: Row, node_plan: NodePlan) -> Row:
    if row.id != written.id:
        return row
    requires = row.requires if node_plan.requires is None else _ids(system, node_plan.requires)
    digest = row.digest if written.digest == KEPT else written.digest
    return written._replace(
        requires=requires, replaced_by=row.replaced_by, rules=row.rules, digest=digest
    )


def _ids(system: SystemState, names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(row.id for row in system.rows if row.name in names and row.replaced_by is None)


def replace_requirement(rows: list[Row], removed: Row) -> list[Row]:
    """The last update of `apply_transitions`: dependents use the replacement."""
    if removed.replaced_by is None:
        return rows
    return [
        row._replace(
            requires=tuple(
                sorted(removed.replaced_by if one == removed.id else one for one in row.requires)
            )
        )
        for row in rows
    ]


def claim_node(system: SystemState, number: int, at: int) -> SystemState:
    """`claimed` in `claim_due`, for one node that is due."""
    node = system.node(number, at)
    assert node is not None
    key = key_or_new(node, node.claim) if node.phase is Phase.EXECUTE else node.key
    claimed = node._replace(
        state=State.RUNNING,
        claim=claim_when_claimed(node),
        wake=True,
        key=key,
        begun=node.begun or starts_operation(State.RUNNING, node.phase),
        due=False,
    )
    return update_wake(system.with_node(number, at, claimed))


def claim_when_claimed(node: Node) -> int:
    """`claim = n.claim + 1` in `claimed`."""
    return node.claim + 1


def is_due(system: SystemState, number: int, at: int) -> bool:
    """`p_due` and `candidate` in `claim_due`: the traversal and the node are due."""
    node, traversal = system.node(number, at), system.traversal(number)
    return traversal.wake and node is not None and node.wake and not is_ending(traversal)


def view_node(system: SystemState, number: int, at: int) -> NodeView:
    """`read_claimed`: the rows for a node it gives a worker."""
    node = system.node(number, at)
    assert node is not None
    row = system.row(node.resource)
    uses = frozenset(_ids(system, system.traversal(number).graph.nodes[at].uses))
    return NodeView(
        node.operation,
        node.phase,
        node.breakpoints_hit,
        node.key,
        row,
        node.attempts,
        uses,
        node.progress,
        node.confirmation,
        system.traversal(number).step_mode,
        node.begun,
        node.cancelled,
        group_progress=node.group_progress,
    )


def view_at_hook(system: SystemState, number: int, at: int) -> NodeView:
    """READ_HOOKS: after a replacement, the row is the new one."""
    view = view_node(system, number, at)
    if view.phase is Phase.POST and view.operation is Operation.REPLACE:
        node_plan = system.traversal(number).graph.nodes[at]
        return view._replace(row=system.row(node_plan.replacement or 0))
    return view
