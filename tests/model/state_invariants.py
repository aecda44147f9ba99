"""Invariants of states. Each returns a message if the state violates it, else None.

They derive `pending_dependencies` and `active_nodes` from the graph.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from engine.hooks.rule import is_confirm
from engine.hot.syntax.data_names import is_data_name
from engine.words import (
    GATES,
    REPEATED,
    Action,
    Direction,
    Operation,
    Phase,
    State,
    StepMode,
    point_of,
    post_stack,
)
from tests.model.protocol import rule_of
from tests.model.store import is_working
from tests.model.system_state import Hook, Node, NodePlan, SystemState, Traversal
from tests.model.traversals import IN_PLACE

LIVE = frozenset({State.READY, State.RUNNING, State.PARKED})
UNDER_WAY = ("running", "ending")

LocatedNode = tuple[int, int, NodePlan, Node]


def nodes_of(system: SystemState) -> Iterator[LocatedNode]:
    for number, traversal in enumerate(system.traversals, 1):
        for at, node in enumerate(traversal.nodes):
            if node is not None:
                yield number, at, traversal.graph.nodes[at], node


def awaited_nodes(system: SystemState) -> set[int]:
    """Nodes of the current traversal that wait for running operations of older ones."""
    return {
        node.successor
        for number, _, _, node in nodes_of(system)
        if number < system.current and node.successor is not None and node.state in LIVE
    }


def waits_equal_the_unfinished_predecessors(system: SystemState) -> str | None:
    if not system.current:
        return None
    traversal = system.traversal(system.current)
    older = awaited_nodes(system)
    for at, node in enumerate(traversal.nodes):
        if traversal.state not in UNDER_WAY or node is None:
            continue
        unfinished = [
            one
            for one in traversal.graph.nodes[at].after
            if not (is_done(traversal, one) or is_not_added(traversal, one))
        ]
        expected = len(unfinished) + (at in older)
        if node.pending_dependencies != expected:
            return f"a node waits for {expected} others and counts {node.pending_dependencies}"
        if (node.state is State.WAITING) != (expected > 0):
            return f"a node {node.state} waits for {expected}"
    return None


def is_done(traversal: Traversal, at: int) -> bool:
    node = traversal.nodes[at]
    return node is not None and node.state is State.DONE


def is_not_added(traversal: Traversal, at: int) -> bool:
    """A delete of a resource that has not been replaced."""
    return traversal.nodes[at] is None and traversal.graph.nodes[at].added_by is not None


def active_equals_the_active_nodes(system: SystemState) -> str | None:
    older = awaited_nodes(system)
    for number, traversal in enumerate(system.traversals, 1):
        if traversal.state not in UNDER_WAY:
            continue
        active_nodes = sum(
            node.state in LIVE or (node.state is State.WAITING and at in older)
            for at, node in enumerate(traversal.nodes)
            if node is not None
        )
        if active_nodes != traversal.active_nodes:
            return (
                f"traversal {number} has {active_nodes} active nodes"
                f" and counts {traversal.active_nodes}"
            )
        if (active_nodes == 0) != (traversal.state == "ending"):
            return f"traversal {number} is {traversal.state} with {active_nodes} active nodes"
    return None


def every_live_node_is_woken(system: SystemState) -> str | None:
    """Every lease expires, no timer is lost, and a node parked at a hook has an open hook."""
    waiting = {(hook.traversal, hook.node) for hook in system.hooks if hook.state == "waiting"}
    for number, at, node_plan, node in nodes_of(system):
        has_timer = node.state in LIVE and not (
            node.state is State.PARKED and node.phase is not Phase.EXECUTE
        )
        if node.wake != has_timer:
            return (
                f"{node_plan.name} is {node.state} in {node.phase}, and its wake-up is {node.wake}"
            )
        if node.wake and not system.traversal(number).wake:
            return f"the wake-up of traversal {number} leaves out its node {node_plan.name}"
        if node.state in LIVE and not has_timer and (number, at) not in waiting:
            return f"{node_plan.name} is parked, and no hook of it waits"
    return None


def every_ending_traversal_is_ended(system: SystemState) -> str | None:
    for number, traversal in enumerate(system.traversals, 1):
        if system.timed and is_working(traversal) and not traversal.wake:
            return f"no worker checks the time limit of traversal {number}"
        if traversal.state == "ending" and not traversal.wake:
            return f"traversal {number} is ending, and no worker ends it"
    return None


def every_waiting_hook_blocks_a_node(system: SystemState) -> str | None:
    for hook in system.hooks:
        if hook.state != "waiting":
            continue
        if hook.traversal != system.current:
            return "a hook of a superseded traversal waits"
        if system.traversal(hook.traversal).state != "running":
            return "a hook of an ended traversal waits"
        node = system.node(hook.traversal, hook.node)
        if (
            node is None
            or node.state is not State.PARKED
            or node.breakpoints_hit[-1:] != (hook.point,)
        ):
            return "a waiting hook blocks no node"
    return None


def _is_after_replacement(system: SystemState, hook: Hook) -> bool:
    """Steps of a replacement open hooks again after those of its update."""
    node = system.node(hook.traversal, hook.node)
    replaces = node is not None and node.operation is Operation.REPLACE
    return replaces and is_confirm(hook.point)


def a_point_opens_one_hook(system: SystemState) -> str | None:
    """Stepping opens its own hook beside that of a rule that does not block."""
    hooks = Counter(
        (*hook[:3], hook.stepped)
        for hook in system.hooks
        if hook.point not in REPEATED and not _is_after_replacement(system, hook)
    )
    return "a point opened two hooks" if any(count > 1 for count in hooks.values()) else None


def an_ended_traversal_only_finishes_operations(system: SystemState) -> str | None:
    for number, _, node_plan, node in nodes_of(system):
        under_way = system.traversal(number).state in UNDER_WAY
        if not under_way and node.state in LIVE and node.phase is not Phase.EXECUTE:
            return f"{node_plan.name} of ended traversal {number} is {node.state} in {node.phase}"
        if not under_way and node.state is State.READY and not node.begun:
            return f"{node_plan.name} of ended traversal {number} is ready"
    return None


def an_operation_ends_with_an_outcome(system: SystemState) -> str | None:
    """A node whose operation has begun is not dropped."""
    for _, _, node_plan, node in nodes_of(system):
        executing = node.begun and node.phase in (Phase.EXECUTE, Phase.CONFIRM)
        if executing and node.state is State.DROPPED:
            return f"{node.operation} of {node_plan.name} has begun, and its node is dropped"
    return None


def an_operation_takes_effect_once(system: SystemState) -> str | None:
    for _, _, node_plan, node in nodes_of(system):
        called = {(key, operation) for key, operation, _ in node.effects}
        keys, operations = {key for key, _ in called}, {operation for _, operation in called}
        if len(keys) != len(called) or len(operations) != len(called) or -1 in keys:
            return f"{node_plan.name} took effect as {sorted(called)}"
        if node.outcomes > 1:
            return f"{node.outcomes} outcomes of one operation on {node_plan.name} were written"
    return None


def a_claim_has_one_holder(system: SystemState) -> str | None:
    claims = Counter(worker[:3] for worker in system.workers)
    return (
        "two workers have the same claim" if any(count > 1 for count in claims.values()) else None
    )


def a_resource_has_one_operation_at_a_time(system: SystemState) -> str | None:
    executing = Counter(
        node.resource
        for _, _, _, node in nodes_of(system)
        if node.state in LIVE and node.phase is Phase.EXECUTE and node.operation not in GATES
    )
    return "two operations on one row" if any(count > 1 for count in executing.values()) else None


def a_name_has_one_current_row(system: SystemState) -> str | None:
    names = Counter(row.name for row in system.rows if row.replaced_by is None)
    twice = [name for name, count in names.items() if count > 1]
    return f"two current rows have the name {twice[0]}" if twice else None


def a_complete_stack_equals_its_template(system: SystemState) -> str | None:
    if not _template_is_applied(system):
        return None
    expected = {spec.name: (spec.value, spec.value, "COMPLETE") for spec in system.template}
    actual = {row.name: (row.digest, row.value, row.status) for row in system.rows}
    if len(actual) != len(system.rows):
        return "a stack is complete, and a replaced row remains"
    if actual != expected:
        return f"a stack is complete with {actual}, and {expected} was expected"
    return None


def a_complete_stack_equals_its_physical_resources(system: SystemState) -> str | None:
    """The physical resources equal the rows, apart from retained ones."""
    if not _template_is_applied(system):
        return None
    rows = tuple((row.id, row.value) for row in system.rows)
    physical = tuple(
        resource[:2] for resource in system.physical_resources if resource[0] not in system.retained
    )
    if rows != physical:
        return (
            f"a stack is complete with {rows},"
            f" and the physical resources are {system.physical_resources}"
        )
    return None


def _template_is_applied(system: SystemState) -> bool:
    """An in-place action that succeeds does not apply the template."""
    current = system.traversal(system.current) if system.current else None
    return current is not None and current.state == "complete" and current.action not in IN_PLACE


def every_update_reads_the_data(system: SystemState) -> str | None:
    if not _template_is_applied(system):
        return None
    current = system.traversal(system.current)
    read = {one.name for one in current.graph.nodes if one.direction is Direction.FORWARD}
    data = [one.name for one in system.template if one.data]
    unread = [name for name in data if name not in read]
    return f"an update is complete and has not read {unread[0]}" if unread else None


def a_rollback_leads_to_the_last_complete_version(system: SystemState) -> str | None:
    if not system.current or system.traversal(system.current).action is not Action.ROLLBACK:
        return None
    last_complete = () if system.last_complete is None else system.last_complete.template
    return (
        None
        if system.template == last_complete
        else f"the rollback does not lead to {last_complete}"
    )


def retained_physical_resources_exist(system: SystemState) -> str | None:
    deleted = system.retained - {resource[0] for resource in system.physical_resources}
    return (
        f"the rows {sorted(deleted)} were deleted with their retained physical resources"
        if deleted
        else None
    )


def an_in_place_action_reaches_every_resource(system: SystemState) -> str | None:
    current = system.traversal(system.current) if system.current else None
    if current is None or current.state != "complete":
        return None
    owned = [row for row in system.rows if not is_data_name(row.name)]
    has_physical_id = {row.id for row in owned if row.has_physical_id}
    intact = {row.id for row in system.rows if row.has_physical_id and not row.tainted}
    if current.action is Action.SUSPEND and (not_suspended := has_physical_id - system.suspended):
        return f"the suspend completed, and the rows {sorted(not_suspended)} are not suspended"
    if current.action is Action.RESUME and (suspended := intact & system.suspended):
        return f"the resume completed, and the rows {sorted(suspended)} are suspended"
    if current.action is Action.SNAPSHOT:
        found = {row for number, row, _ in system.snapshots if number == system.current}
        if has_physical_id - found:
            return f"the snapshot completed without the rows {sorted(has_physical_id - found)}"
    return None


def a_stack_completes_after_its_hook(system: SystemState) -> str | None:
    current = system.traversal(system.current) if system.current else None
    if current is None or current.state != "complete":
        return None
    point = post_stack(current.action)
    has_rule = any(rule.point == point for rule in system.stack)
    answered = any(
        hook.traversal == system.current and hook.point == point and hook.state == "continue"
        for hook in system.hooks
    )
    return f"the stack completed before {point} was answered" if has_rule and not answered else None


def a_hook_continues_with_all_its_approvals(system: SystemState) -> str | None:
    for hook in system.hooks:
        node = system.traversal(hook.traversal).graph.nodes[hook.node]
        needed = next((rule.approvals for rule in node.rules if rule.point == hook.point), 1)
        approvals = len(set(hook.approved))
        if needed > 1 and hook.state in ("continue", "step", "run") and approvals < needed:
            return f"{hook.point} continued with {approvals} of {needed} approvals"
        if hook.state == "waiting" and approvals >= needed > 1:
            return f"{hook.point} waits although it has {approvals} of {needed} approvals"
    return None


def a_step_is_performed_only_when_accepted(system: SystemState) -> str | None:
    """Each performance of a step with a blocking rule has an answer that accepts it."""
    for number, at, node_plan, node in nodes_of(system):
        performed = Counter(step for _, _, step in node.steps)
        for step, times in performed.items():
            point = point_of(step)
            if not any(rule.point == point and rule.blocks for rule in node_plan.rules):
                continue
            accepted = sum(
                hook[:3] == (number, at, point) and hook.state == "continue"
                for hook in system.hooks
            )
            if accepted < times and system.traversal(number).step_mode is not StepMode.RUN:
                return f"{step} of {node_plan.name} is performed, and {point} did not accept it"
    return None


def run_leaves_no_hook_that_it_skips(system: SystemState) -> str | None:
    for hook in system.hooks:
        traversal = system.traversal(hook.traversal)
        if hook.state != "waiting" or traversal.step_mode is not StepMode.RUN:
            continue
        rule = rule_of(traversal.graph.nodes[hook.node], hook)
        if rule.passable:
            return f"{hook.point} waits, and the step mode is run"
    return None


def a_cancelled_operation_is_called_at_once(system: SystemState) -> str | None:
    """A cancelled operation that waits is due, and one that is being called is called again."""
    for number, _, node_plan, node in nodes_of(system):
        parked = node.state is State.PARKED and node.phase is Phase.EXECUTE
        if node.cancelled and parked and not (node.due and system.traversal(number).wake):
            return f"{node.operation} of {node_plan.name} is cancelled, and waits for its timer"
    return None


def only_a_cancelled_change_cancels_operations(system: SystemState) -> str | None:
    """An update that supersedes another one, or a stop, cancels none."""
    current = system.traversal(system.current) if system.current else None
    for number, traversal in enumerate(system.traversals, 1):
        cancelled = any(node is not None and node.cancelled for node in traversal.nodes)
        by_delete = current is not None and current.action is Action.DELETE
        if cancelled and not by_delete and not _was_cancelled_since(system, number):
            return f"an operation of traversal {number} is cancelled, which is {traversal.state}"
    return None


def _was_cancelled_since(system: SystemState, number: int) -> bool:
    return any(
        traversal.state == "failed" or traversal.action is Action.DELETE
        for traversal in system.traversals[number - 1 :]
    )


def a_delete_cancels_all_operations(system: SystemState) -> str | None:
    """Operations of earlier traversals that a delete waits for are cancelled, except deletes."""
    if not system.current or system.traversal(system.current).action is not Action.DELETE:
        return None
    for number, _, node_plan, node in nodes_of(system):
        begun = node.state in LIVE and node.phase is Phase.EXECUTE
        excepted = node.operation in GATES or node.operation is Operation.DELETE
        if number < system.current and begun and not excepted and not node.cancelled:
            return f"{node.operation} of {node_plan.name} is not cancelled by the delete"
    return None


STATE_INVARIANTS: tuple[Callable[[SystemState], str | None], ...] = (
    waits_equal_the_unfinished_predecessors,
    active_equals_the_active_nodes,
    every_live_node_is_woken,
    every_ending_traversal_is_ended,
    every_waiting_hook_blocks_a_node,
    a_point_opens_one_hook,
    an_ended_traversal_only_finishes_operations,
    an_operation_ends_with_an_outcome,
    an_operation_takes_effect_once,
    a_claim_has_one_holder,
    a_resource_has_one_operation_at_a_time,
    a_name_has_one_current_row,
    a_complete_stack_equals_its_template,
    a_complete_stack_equals_its_physical_resources,
    every_update_reads_the_data,
    a_rollback_leads_to_the_last_complete_version,
    retained_physical_resources_exist,
    an_in_place_action_reaches_every_resource,
    a_stack_completes_after_its_hook,
    a_hook_continues_with_all_its_approvals,
    a_step_is_performed_only_when_accepted,
    run_leaves_no_hook_that_it_skips,
    a_cancelled_operation_is_called_at_once,
    only_a_cancelled_change_cancels_operations,
    a_delete_cancels_all_operations,
)
