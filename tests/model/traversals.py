"""The statements that start, cancel and end a traversal (engine/store/traversals/start.py and
traversal_end.py), and the part of engine/service that decides between them."""

from collections.abc import Iterator

from engine.hooks.rule import Rule
from engine.node.node import ENDED, Cancelled, InvalidInput, Superseded
from engine.node.node import Node as MachineNode
from engine.node.pending_breakpoints import POINTS
from engine.plan.traversal_result import EndedNode, result_of
from engine.service.traversals.end import ROLLED_BACK
from engine.words import GATES, Action, Direction, Operation, Phase, State, TraversalState
from tests.model.planning import (
    CurrentRows,
    Planned,
    RunningOperation,
    graph_of,
    plan_change,
    plan_in_place_action,
)
from tests.model.store import ENDING, FAILED, LIVE, RUNNING, add_breakpoint_to, is_ending
from tests.model.system_state import Node, ResourceSpec, Row, SystemState, Traversal
from tests.model.worker_decisions import answer_for_type, decide_cached


def end_early(system: SystemState, number: int, state: str) -> SystemState:
    """`end_early` of engine/store/traversals/end.py, of a traversal that is under way."""
    traversal = system.traversal(number)
    nodes = tuple(drop_node(node) for node in traversal.nodes)
    due = any(node is not None and node.wake for node in nodes)
    system = system.with_traversal(number, traversal._replace(nodes=nodes, state=state, wake=due))
    return supersede_hooks(system, number)


def drop_node(node: Node | None) -> Node | None:
    if node is None:
        return None
    step = decide_cached(
        MachineNode(node.operation, node.state, node.phase, (), node.breakpoints_hit), Superseded()
    )
    if isinstance(step, InvalidInput):
        return node
    wake = step.node.state is State.READY
    return node._replace(
        state=step.node.state,
        phase=step.node.phase,
        claim=node.claim + 1,
        wake=wake,
        confirmation=answer_for_type(step) or node.confirmation,
    )


def cancel_operations(system: SystemState) -> SystemState:
    """`cancel_operations` of engine/store/traversals/end.py: the machine decides, `wake_nodes`
    wakes."""
    for number, traversal in enumerate(system.traversals, 1):
        for at, node in enumerate(traversal.nodes):
            cancelled = None if node is None else cancel_node(node)
            if cancelled is not None:
                system = system.with_node(number, at, wake_cancelled(cancelled))
    return system


def cancel_node(node: Node) -> Node | None:
    """The cancelled node; None if the machine refuses."""
    step = decide_cached(
        MachineNode(
            node.operation, node.state, node.phase, (), node.breakpoints_hit,
            cancelled=node.cancelled,
        ),
        Cancelled(),
    )  # fmt: skip
    return None if isinstance(step, InvalidInput) else node._replace(cancelled=step.node.cancelled)


def wake_cancelled(node: Node) -> Node:
    """`wake_nodes`: now, or, while the operation is being called, when that call ends."""
    if node.state is State.RUNNING:
        return node._replace(call_again=True)
    return node._replace(due=node.state is State.PARKED)


def supersede_hooks(system: SystemState, number: int) -> SystemState:
    return system.with_hooks(
        hook._replace(state="superseded")
        if hook.traversal == number and hook.state == "waiting"
        else hook
        for hook in system.hooks
    )


def start_change(
    system: SystemState, action: Action, template: tuple[ResourceSpec, ...]
) -> SystemState:
    """Start a change toward a template, with the plan of the engine."""
    number = system.current + 1
    planned = plan_change(
        template, read_existing(system), number, previous_specs(system), action, system.stack
    )
    return store_rules(insert_traversal(system, action, planned), template)


#: The operation of each in-place action.
IN_PLACE = {
    Action.CHECK: Operation.CHECK,
    Action.SUSPEND: Operation.SUSPEND,
    Action.RESUME: Operation.RESUME,
    Action.SNAPSHOT: Operation.SNAPSHOT,
}


def start_in_place(system: SystemState, action: Action) -> SystemState:
    """`start_action` of engine/service/stacks.py: refused while a traversal is under way."""
    if not system.current or system.traversal(system.current).state in (RUNNING, ENDING):
        return system
    planned = plan_in_place_action(
        IN_PLACE[action],
        system.template,
        read_existing(system),
        previous_specs(system),
        action,
        system.stack,
    )
    return insert_traversal(system, action, planned)


def insert_traversal(system: SystemState, action: Action, planned: Planned) -> SystemState:
    """`start_traversal` of engine/store/traversals/start.py."""
    number = system.current + 1
    traversal = Traversal(
        action,
        RUNNING if planned.active_nodes else ENDING,
        planned.active_nodes,
        True,
        planned.graph,
        planned.nodes,
    )
    rows = [
        row._replace(digest="") if row.id in planned.out_of_date else row for row in system.rows
    ]
    system = system._replace(current=number, traversals=(*system.traversals, traversal)).with_rows(
        [*rows, *planned.rows]
    )
    system = archive_nodes(system)
    for (older, node), successor in planned.successors:
        system = set_successor(system, older, node, successor)
    return system


def previous_specs(system: SystemState) -> tuple[ResourceSpec, ...]:
    """The last definition of each resource."""
    if not system.current:
        return ()
    graph = system.traversal(system.current).graph
    specs = {spec.name: spec for spec in (*graph.before, *graph.template)}
    return tuple(specs.values())


def set_successor(system: SystemState, older: int, at: int, successor: int) -> SystemState:
    """SET_SUCCESSORS."""
    node = system.node(older, at)
    if node is None:
        return system
    return system.with_node(older, at, node._replace(successor=successor))


def read_existing(system: SystemState) -> CurrentRows:
    """READ_CURRENT: rows with their operations, and rows that these will create."""
    running = dict(running_operations(system))
    row_ids = {row.id for row in system.rows}
    future_rows = [
        (_replacement_row(system, one), one)
        for resource, one in running.items()
        if resource not in row_ids and one.replacement is not None
    ]
    return (*((row, running.get(row.id)) for row in system.rows), *future_rows)


def running_operations(system: SystemState) -> Iterator[tuple[int, RunningOperation]]:
    for number, traversal in enumerate(system.traversals, 1):
        for at, node in enumerate(traversal.nodes):
            if (
                node is not None
                and node.state in LIVE
                and node.phase is Phase.EXECUTE
                and node.operation not in GATES
            ):
                node_plan = traversal.graph.nodes[at]
                running = RunningOperation(
                    (number, at), node.operation, node_plan.replacement, node_plan.requires or (),
                    node_plan.rules,
                )  # fmt: skip
                yield node.resource, running


def _replacement_row(system: SystemState, running: RunningOperation) -> Row:
    """The second half of READ_CURRENT: the new row of a node whose row was deleted."""
    number, at = running.node
    assert running.replacement is not None
    name = system.traversal(number).graph.nodes[at].name
    return Row(running.replacement, name, "INIT", "COMPLETE", "", rules=running.rules)


def archive_nodes(system: SystemState) -> SystemState:
    """ARCHIVE_PAGE and `start_traversal`; the replay archives after each change.

    Hooks of such nodes stay in the database; here only those that wait do.
    """
    for number, traversal in enumerate(system.traversals[:-1], 1):
        nodes = tuple(
            node._replace(successor=None) if node is not None and node.state in LIVE else None
            for node in traversal.nodes
        )
        system = system.with_traversal(number, traversal._replace(nodes=nodes))
    return system.with_hooks(
        hook
        for hook in system.hooks
        if hook.state == "waiting" or system.node(hook.traversal, hook.node) is not None
    )


def store_rules(system: SystemState, template: tuple[ResourceSpec, ...]) -> SystemState:
    """`store_rules` of engine/service/traversals: breakpoints stay with their resources."""
    specs = {spec.name: spec for spec in template}
    has_rules = any(spec.rules for spec in template)
    if not has_rules and not any(row.rules for row in system.rows):
        return system
    return system.with_rows(
        row._replace(rules=specs[row.name].rules)
        if row.name in specs and row.replaced_by is None
        else row
        for row in system.rows
    )


def cancel(system: SystemState, ends: str) -> SystemState:
    """`cancel` and `stop` of engine/service/actions/cancel.py; ends: how."""
    current = system.traversal(system.current)
    if current.state not in (RUNNING, ENDING):
        return system
    if ends == "stopped":
        return end_early(system, system.current, "stopped")
    if current.action is Action.DELETE:
        return system
    if ends == "failed":
        return cancel_operations(end_early(system, system.current, FAILED))
    if current.action is not Action.UPDATE:
        return system
    return roll_back(cancel_operations(end_early(system, system.current, FAILED)))


def set_breakpoint(system: SystemState, name: str, rule: Rule) -> SystemState:
    """`Breakpoints.add` of engine/service/hooks/breakpoints.py, while the resource is created."""
    traversal = system.traversal(system.current)
    plans = traversal.graph.nodes
    at = next(
        at
        for at, node_plan in enumerate(plans)
        if node_plan.name == name and node_plan.direction is Direction.FORWARD
    )
    node = system.node(system.current, at)
    if traversal.state not in (RUNNING, ENDING) or node is None or node.state in ENDED:
        return system
    if has_missed(node, rule):
        return system
    others = (one for one in plans[at].rules if one.point != rule.point)
    ruled = plans[at]._replace(rules=(*others, rule))
    graph = graph_of(
        (*plans[:at], ruled, *plans[at + 1 :]), traversal.graph.template, traversal.graph.before
    )
    moved = add_breakpoint_to(node, ruled.rules)
    wake = traversal.wake or moved.state is not node.state
    system = system.with_traversal(system.current, traversal._replace(graph=graph, wake=wake))
    return system.with_node(system.current, at, moved)


def has_missed(node: Node, rule: Rule) -> bool:
    """`missed_reason`, of a node that has not ended. A node that is updated may still be
    replaced."""
    if rule.point in node.breakpoints_hit:
        return True
    is_before = rule.point in POINTS[node.operation, Phase.PRE]
    return is_before and (node.begun or node.phase is Phase.POST)


def roll_back(system: SystemState) -> SystemState:
    """`roll_back` of engine/service/traversals/end.py."""
    template = () if system.last_complete is None else system.last_complete.template
    return start_change(system, Action.ROLLBACK, template)


def end_traversal(system: SystemState, number: int) -> SystemState:
    """`end` of engine/service/traversals/end.py, with the real `result_of`."""
    traversal = system.traversal(number)
    if number != system.current or not is_ending(traversal):
        return system
    if traversal.state == RUNNING:
        state = TraversalState.FAILED
        system = cancel_operations(end_early(system, number, state.value))
    else:
        state = result_of(traversal.action, _failed_nodes(traversal)).state
        system = _write_result(system, number, state)
    if traversal.action is Action.DELETE and state is TraversalState.COMPLETE:
        return mark_deleted(system)
    rolls_back = traversal.action in ROLLED_BACK and system.rolls_back
    return roll_back(system) if rolls_back and state is TraversalState.FAILED else system


def _failed_nodes(traversal: Traversal) -> list[EndedNode]:
    return [
        EndedNode(traversal.graph.nodes[at].name, "T", node.operation, node.state, "")
        for at, node in enumerate(traversal.nodes)
        if node is not None and node.state in (State.FAILED, State.STOPPED)
    ]


def _write_result(system: SystemState, number: int, state: TraversalState) -> SystemState:
    """`end_traversal` of engine/store/traversals/end.py."""
    traversal = system.traversal(number)
    nodes = tuple(
        drop_node(node) if node and node.state is State.WAITING else node
        for node in traversal.nodes
    )
    ended = traversal._replace(state=state.value, wake=False, nodes=nodes)
    if state is TraversalState.COMPLETE and traversal.action not in (Action.DELETE, *IN_PLACE):
        system = system._replace(last_complete=traversal.graph)
    return system.with_traversal(number, ended)


def mark_deleted(system: SystemState) -> SystemState:
    """MARK_DELETED."""
    for number, traversal in enumerate(system.traversals, 1):
        nodes = (None,) * len(traversal.nodes)
        system = system.with_traversal(number, traversal._replace(nodes=nodes))
    snapshots = frozenset(
        one for one in system.snapshots if system.traversal(one[0]).action is not Action.SNAPSHOT
    )
    return system._replace(deleted=True, rows=(), snapshots=snapshots)
