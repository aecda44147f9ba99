"""Invariants of moves. Each returns a message if the move violates it, else None."""

from collections.abc import Callable

from engine.hot.syntax.data_names import is_data_name
from engine.node.node import ENDED, MustReplace, MustRetry
from engine.node.pending_breakpoints import POINTS
from engine.store.traversals.start import STEPPED
from engine.words import (
    GATES,
    IN_PLACE_OPERATIONS,
    Direction,
    Operation,
    Phase,
    Point,
    State,
    StepMode,
    pre_stack,
)
from tests.model.protocol import Move
from tests.model.state_invariants import LIVE, UNDER_WAY, is_done, nodes_of
from tests.model.system_state import Node, NodePlan, Row, SystemState
from tests.model.traversals import IN_PLACE


def an_outdated_claim_changes_nothing(
    before: SystemState, move: Move, after: SystemState
) -> str | None:
    if move.kind not in ("commit", "repeat") or move.worker is None:
        return None
    node = before.node(move.traversal, move.node)
    if node is not None and node.claim == move.worker.claim:
        return None
    same = _without_wakes(before) == _without_wakes(after)
    return None if same else "a commit with an outdated claim changed the state"


def _without_wakes(system: SystemState) -> SystemState:
    """A state without what a refused commit may change: wake-up times of traversals."""
    without_wakes = tuple(traversal._replace(wake=False) for traversal in system.traversals)
    return system._replace(
        traversals=without_wakes, workers=(), incidents=system.incidents._replace(duplicate=0)
    )


def operations_wait_for_their_hooks(
    before: SystemState, move: Move, after: SystemState
) -> str | None:
    node = _called_node(before, move)
    if node is None:
        return None
    node_plan = before.traversal(move.traversal).graph.nodes[move.node]
    points = POINTS[node.operation, Phase.PRE]
    for rule in node_plan.rules:
        skipped = before.traversal(move.traversal).step_mode is StepMode.RUN and rule.passable
        if (
            rule.point in points
            and not skipped
            and _state_of_hook(before, move, rule.point) != "continue"
        ):
            called = f"{node.operation} of {node_plan.name} is called"
            return f"{called}, and {rule.point} has no approving answer"
    return None


def _called_node(before: SystemState, move: Move) -> Node | None:
    """The node whose operation is called by the worker with its claim."""
    if move.kind != "call" or move.worker is None:
        return None
    node = before.node(move.traversal, move.node)
    return node if node is not None and node.claim == move.worker.claim else None


def _state_of_hook(system: SystemState, move: Move, point: str) -> str | None:
    key = (move.traversal, move.node, point)
    return next((hook.state for hook in system.hooks if hook[:3] == key), None)


def operations_keep_the_order(before: SystemState, move: Move, after: SystemState) -> str | None:
    if _called_node(before, move) is None:
        return None
    traversal = before.traversal(move.traversal)
    node_plan = traversal.graph.nodes[move.node]
    predecessors = [one for one in node_plan.after if traversal.nodes[one] is not None]
    unfinished = [one for one in predecessors if not is_done(traversal, one)]
    if unfinished:
        return (
            f"{node_plan.name} is called before {traversal.graph.nodes[unfinished[0]].name} is done"
        )
    if before.traversal(move.traversal).action in IN_PLACE or not node_plan.name:
        return None  # an in-place action of one resource does not depend on others
    if move.traversal == before.current and node_plan.direction is Direction.FORWARD:
        return _missing_requirement(before, node_plan)
    return _still_used(before, move, node_plan)


def _missing_requirement(system: SystemState, node_plan: NodePlan) -> str | None:
    specs = {spec.name: spec for spec in system.template}
    for name in specs[node_plan.name].requires:
        rows = [row for row in system.rows if row.name == name and row.replaced_by is None]
        if [(row.digest, row.status) for row in rows] != [(specs[name].value, "COMPLETE")]:
            return f"{node_plan.name} is called, and {name}, which it requires, does not exist"
    return None


def _still_used(system: SystemState, move: Move, node_plan: NodePlan) -> str | None:
    """Dependents of a replaced resource use its replacement."""
    node, removed = system.node(move.traversal, move.node), system.row(node_plan.resource)
    if (
        node is None
        or node.operation is not Operation.DELETE
        or removed is None
        or removed.replaced_by
    ):
        return None
    for row, _, uses in system.physical_resources:
        if (
            node_plan.resource in uses
            and row not in system.retained
            and not _is_freed(system, row, node_plan)
        ):
            return f"{node_plan.name} is deleted, and another resource still uses it"
    return None


def _is_freed(system: SystemState, user: int, node_plan: NodePlan) -> bool:
    """A dependent that is up to date and no longer requires the resource does not use it. Its row
    records that at its next change."""
    row = system.row(user)
    return row is not None and any(
        spec.name == row.name and spec.value == row.digest and node_plan.name not in spec.requires
        for spec in system.template
    )


def removed_resources_are_deleted_last(
    before: SystemState, move: Move, after: SystemState
) -> str | None:
    """A failed update leaves the resources that it would remove."""
    node = _called_node(before, move)
    if node is None or node.operation is not Operation.DELETE:
        return None
    traversal = before.traversal(move.traversal)
    node_plan = traversal.graph.nodes[move.node]
    if node_plan.only_if_replaced:
        return None
    for at, one in enumerate(traversal.graph.nodes):
        # Nodes that have ended are archived when another change follows.
        archived = traversal.nodes[at] is None
        changes = one.direction is Direction.FORWARD and one.name
        if changes and not archived and not is_done(traversal, at):
            return f"{node_plan.name} is deleted before {one.name} has changed"
    return None


def a_cancelled_operation_begins_nothing(
    before: SystemState, move: Move, after: SystemState
) -> str | None:
    """A worker that knows of the cancellation neither waits, nor retries, nor replaces."""
    if move.kind != "call" or move.worker is None or move.worker.view is None:
        return None
    view = move.worker.view
    if not view.cancelled or not isinstance(move.input, MustRetry | MustReplace):
        return None
    commits = [worker for worker in after.workers if worker[:3] == move.worker[:3]]
    if any(one.transition and one.transition.state is not State.FAILED for one in commits):
        return f"{view.operation} is cancelled, and continues after {type(move.input).__name__}"
    return None


def retained_resources_are_not_deleted(
    before: SystemState, move: Move, after: SystemState
) -> str | None:
    node = _called_node(before, move)
    if node is None or node.operation is not Operation.DELETE:
        return None
    row = before.row(node.resource)
    stays = row is not None and row.policy == "Retain"
    return f"{row.name} must be retained, and is deleted" if row and stays else None


def removed_resources_wait_for_their_hooks(
    before: SystemState, move: Move, after: SystemState
) -> str | None:
    """Breakpoints stay with a resource that leaves the template."""
    node = _called_node(before, move)
    if node is None or node.operation is not Operation.DELETE:
        return None
    graph = before.traversal(move.traversal).graph
    node_plan = graph.nodes[move.node]
    row = before.row(node_plan.resource)
    if (
        row is None
        or row.replaced_by
        or any(spec.name == node_plan.name for spec in graph.template)
    ):
        return None
    rules = next((spec.rules for spec in graph.before if spec.name == node_plan.name), ())
    has_rule = any(rule.point == Point.PRE_DELETE for rule in rules)
    if has_rule and _state_of_hook(before, move, Point.PRE_DELETE) != "continue":
        return f"{node_plan.name} is deleted before its hook was answered"
    return None


def restricted_operations_are_not_called(
    before: SystemState, move: Move, after: SystemState
) -> str | None:
    node = _called_node(before, move)
    if node is None:
        return None
    node_plan = before.traversal(move.traversal).graph.nodes[move.node]
    is_restricted = node.operation in node_plan.restricted
    return f"{node.operation} of {node_plan.name} is restricted" if is_restricted else None


def an_ended_traversal_begins_nothing(
    before: SystemState, move: Move, after: SystemState
) -> str | None:
    for number, at, node_plan, node in nodes_of(after):
        if number > len(before.traversals) or after.traversal(number).state in UNDER_WAY:
            continue
        was = before.node(number, at)
        begins = was is not None and was.phase is Phase.PRE and node.phase is Phase.EXECUTE
        if begins:
            return f"{node_plan.name} of traversal {number}, which has ended, begins"
        if (
            was is not None
            and len(node.breakpoints_hit) > len(was.breakpoints_hit)
            and node.state is State.PARKED
        ):
            return f"{node_plan.name} of traversal {number}, which has ended, opens a hook"
    return None


def an_ended_node_never_changes(before: SystemState, move: Move, after: SystemState) -> str | None:
    for number, at, node_plan, node in nodes_of(before):
        now = after.node(number, at)
        if node.state in ENDED and now is not None and now.state is not node.state:
            return f"{node_plan.name} was {node.state} and is {now.state}"
    return None


def an_in_place_action_changes_no_definition(
    before: SystemState, move: Move, after: SystemState
) -> str | None:
    if move.kind not in ("commit", "repeat") or not move.traversal:
        return None
    if before.traversal(move.traversal).action not in IN_PLACE:
        return None
    was = {row.id: _definition(row) for row in before.rows}
    now = {row.id: _definition(row) for row in after.rows}
    return None if was == now else f"a check changes {was} to {now}"


def _definition(row: Row) -> tuple[str, str | None, bool, str]:
    return row.digest, row.value, row.has_physical_id, row.policy


def an_in_place_action_waits_for_running_operations(
    before: SystemState, move: Move, after: SystemState
) -> str | None:
    """Operations of older traversals on a resource end before an in-place action is called."""
    node = _called_node(before, move)
    if node is None or node.operation not in IN_PLACE_OPERATIONS:
        return None
    running = any(
        other.resource == node.resource and other.state in LIVE and other.phase is Phase.EXECUTE
        for number, _, _, other in nodes_of(before)
        if number < move.traversal
    )
    return "a resource is checked while an older operation is under way on it" if running else None


def in_place_actions_keep_the_order(
    before: SystemState, move: Move, after: SystemState
) -> str | None:
    """Resources are suspended before those they use, and resumed after them."""
    node = _called_node(before, move)
    row = None if node is None else before.row(node.resource)
    if node is None or row is None:
        return None
    if node.operation is Operation.SUSPEND:
        users = [one for one in before.rows if row.id in one.requires and one.has_physical_id]
        if any((one.action, one.status) != ("SUSPEND", "COMPLETE") for one in users):
            return f"{row.name} is suspended before a resource that uses it"
    if node.operation is Operation.RESUME:
        used = [one for one in before.rows if one.id in row.requires]
        if any(one.action == "SUSPEND" for one in used):
            return f"{row.name} is resumed before a resource that it uses"
    return None


def a_stack_hook_blocks_every_node(
    before: SystemState, move: Move, after: SystemState
) -> str | None:
    node = _called_node(before, move)
    if node is None or node.operation in GATES or move.traversal != before.current:
        return None
    point = pre_stack(before.traversal(move.traversal).action)
    has_rule = any(rule.point == point for rule in before.stack)
    answered = any(
        hook.traversal == move.traversal and hook.point == point and hook.state == "continue"
        for hook in before.hooks
    )
    return (
        f"{node.operation} is called before {point} was answered"
        if has_rule and not answered
        else None
    )


def the_machine_accepts_every_outcome(
    before: SystemState, move: Move, after: SystemState
) -> str | None:
    """An outcome that the machine refuses fails the node with an internal error."""
    if move.kind != "call" or move.worker is None:
        return None
    key = (*move.worker[:3], "commit")
    accepted = any(worker[:4] == key for worker in after.workers)
    return None if accepted else f"the machine refuses {type(move.input).__name__}"


def an_operation_has_the_answer_to_its_question(
    before: SystemState, move: Move, after: SystemState
) -> str | None:
    """An operation that has a step confirmed is called again with the answer."""
    node = _called_node(before, move)
    if node is None or node.progress % 2 == 0:
        return None
    node_plan = before.traversal(move.traversal).graph.nodes[move.node]
    step = node_plan.confirms[node.progress // 2]
    if node.confirmation is None or node.confirmation[0] != step:
        return f"{node_plan.name} is called without the answer to its step {step}"
    return None


def stepping_stops_before_every_operation(
    before: SystemState, move: Move, after: SystemState
) -> str | None:
    """After `step`, an operation begins only when its last hook before it was answered."""
    for number, at, node_plan, node in nodes_of(after):
        was = before.node(number, at) if number <= len(before.traversals) else None
        if was is None or node.operation not in STEPPED or not node.begun:
            continue
        replaces = was.operation is not node.operation and node.state is State.RUNNING
        begins = not was.begun or (replaces and node.phase is Phase.EXECUTE)
        if not begins or before.traversal(number).step_mode is not StepMode.STEP:
            continue
        point = POINTS[node.operation, Phase.PRE][-1]
        hooks = [hook for hook in before.hooks if hook[:3] == (number, at, point)]
        if not any(hook.state == "continue" for hook in hooks):
            return f"{node.operation} of {node_plan.name} begins without a stop at {point}"
    return None


def only_stepping_opens_its_hooks(
    before: SystemState, move: Move, after: SystemState
) -> str | None:
    for hook in set(after.hooks) - set(before.hooks):
        mode = before.traversal(hook.traversal).step_mode
        if hook.stepped and hook.state == "waiting" and mode is not StepMode.STEP:
            return f"{hook.point} opens for stepping, which has ended"
    return None


def a_snapshot_has_the_current_value(
    before: SystemState, move: Move, after: SystemState
) -> str | None:
    for _, row_id, value in after.snapshots - before.snapshots:
        row = before.row(row_id)
        if row is None or row.value != value:
            return f"the snapshot of row {row_id} has {value}"
    return None


def updates_find_no_suspended_resource(
    before: SystemState, move: Move, after: SystemState
) -> str | None:
    node = _called_node(before, move)
    if node is None or node.operation is not Operation.UPDATE:
        return None
    return "a suspended resource is updated" if node.resource in before.suspended else None


def data_is_only_read(before: SystemState, move: Move, after: SystemState) -> str | None:
    node = _called_node(before, move)
    name = before.traversal(move.traversal).graph.nodes[move.node].name if node else ""
    if node is None or not is_data_name(name) or node.operation is Operation.ADOPT:
        return None
    return f"{node.operation} of {name} is called"


def a_run_writes_only_what_may_begin(
    before: SystemState, move: Move, after: SystemState
) -> str | None:
    """A node that ends without being claimed waits for no hook and no other node, and its traversal
    is neither over nor in stepping mode."""
    for number, at, node_plan, node in nodes_of(after):
        was = before.node(number, at) if number <= len(before.traversals) else None
        if was is None or was.state is not State.WAITING or node.state is not State.DONE:
            continue
        traversal = before.traversal(number)
        if any(rule.point in POINTS[node.operation, Phase.PRE] for rule in node_plan.rules):
            return f"{node_plan.name} is done in a run, and a breakpoint is set before it"
        if not all(is_done(after.traversal(number), one) for one in node_plan.after):
            return f"{node_plan.name} is done before what it requires"
        if traversal.state != "running" or traversal.step_mode is StepMode.STEP:
            return f"{node_plan.name} is done in a run of a traversal that is over or in steps"
    return None


MOVE_INVARIANTS: tuple[Callable[[SystemState, Move, SystemState], str | None], ...] = (
    an_outdated_claim_changes_nothing,
    operations_wait_for_their_hooks,
    operations_keep_the_order,
    retained_resources_are_not_deleted,
    removed_resources_wait_for_their_hooks,
    restricted_operations_are_not_called,
    an_ended_traversal_begins_nothing,
    an_ended_node_never_changes,
    an_in_place_action_changes_no_definition,
    an_in_place_action_waits_for_running_operations,
    in_place_actions_keep_the_order,
    a_stack_hook_blocks_every_node,
    the_machine_accepts_every_outcome,
    an_operation_has_the_answer_to_its_question,
    stepping_stops_before_every_operation,
    only_stepping_opens_its_hooks,
    a_snapshot_has_the_current_value,
    updates_find_no_suspended_resource,
    data_is_only_read,
    a_run_writes_only_what_may_begin,
    a_cancelled_operation_begins_nothing,
    removed_resources_are_deleted_last,
)
