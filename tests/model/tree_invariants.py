"""Invariants of stack trees. Each returns a message if the move violates it, else None."""

from collections import Counter
from collections.abc import Callable, Iterator

from engine.node.node import ENDED
from engine.node.pending_breakpoints import POINTS
from engine.store.traversals.start import STEPPED
from engine.words import Action, Operation, Phase, Point, State, StepMode
from tests.model import move_invariants, store
from tests.model.protocol import rule_of
from tests.model.stack_tree import (
    ROOT,
    UNDER_WAY,
    ParentStep,
    TreeMove,
    TreeState,
    change_of,
    is_under_way,
)
from tests.model.state_invariants import (
    LIVE,
    LocatedNode,
    a_hook_continues_with_all_its_approvals,
    nodes_of,
)
from tests.model.system_state import Hook, ResourceSpec

Invariant = Callable[[TreeState, TreeMove, TreeState], str | None]


def in_change(tree: TreeState) -> Iterator[int]:
    """The stacks that the change of the root stack runs."""
    if not tree.stacks[ROOT].current:
        return
    ended = {-1}
    for number in sorted(change_of(tree, ROOT)):
        runs = tree.stacks[number].traversal(tree.stacks[number].current).state == store.RUNNING
        parent = tree.positions[number].parent
        if (number == ROOT or parent not in ended) and runs:
            yield number
        else:
            ended.add(number)


def step_modes_follow_the_answers(
    before: TreeState, move: TreeMove, after: TreeState
) -> str | None:
    """Whether a nested stack stops does not depend on when an answer arrives: before or after the
    nested stack has begun."""
    for number in in_change(after):
        system = after.stacks[number]
        mode, expected = system.traversal(system.current).step_mode, after.expected.mode(number)
        if mode is not expected:
            return f"stack {number} has the step mode {mode}, and {expected} was expected"
    return None


def _begun(before: TreeState, after: TreeState, number: int) -> Iterator[LocatedNode]:
    """The operations that the move begins in a stack."""
    system = before.stacks[number]
    for traversal, at, node_plan, node in nodes_of(after.stacks[number]):
        was = system.node(traversal, at) if traversal <= len(system.traversals) else None
        if was is not None and node.begun and not was.begun and node.operation in STEPPED:
            yield traversal, at, node_plan, node


def stepping_stops_before_every_operation(
    before: TreeState, move: TreeMove, after: TreeState
) -> str | None:
    """Where stepping is expected, an operation begins only after an answer to its last hook."""
    stepped = [one for one in in_change(before) if before.expected.mode(one) is StepMode.STEP]
    for number in stepped:
        for traversal, at, node_plan, node in _begun(before, after, number):
            point = POINTS[node.operation, Phase.PRE][-1]
            hooks = [
                one for one in before.stacks[number].hooks if one[:3] == (traversal, at, point)
            ]
            if not any(hook.state == "continue" for hook in hooks):
                return f"{node.operation} of {node_plan.name} begins without a stop at {point}"
    return None


def _opened(before: TreeState, after: TreeState, number: int) -> set[Hook]:
    return set(after.stacks[number].hooks) - set(before.stacks[number].hooks)


def only_stepping_stops(before: TreeState, move: TreeMove, after: TreeState) -> str | None:
    """Stepping over a nested stack never stops inside; and nothing stops after stepping ended."""
    for number in in_change(before):
        for hook in _opened(before, after, number):
            stops = hook.stepped and hook.state == "waiting"
            if stops and before.expected.mode(number) is not StepMode.STEP:
                return f"stack {number} stops at {hook.point}, and does not step"
    return None


def an_operation_stops_once(before: TreeState, move: TreeMove, after: TreeState) -> str | None:
    for number, system in enumerate(after.stacks):
        stops = Counter(hook[:2] for hook in system.hooks if hook.stepped)
        if any(count > 1 for count in stops.values()):
            return f"an operation of stack {number} stops twice"
    return None


def stepping_ends_with_its_hooks(before: TreeState, move: TreeMove, after: TreeState) -> str | None:
    """No hook of stepping waits where stepping has ended with `step-out` or `run`."""
    if move.move.hook is None or (move.move.how == "over" and not _runs(move)):
        return None
    if _expects(after, move.stack) is StepMode.STEP:
        return None
    for number, level in change_of(after, move.stack).items():
        system = after.stacks[number]
        for hook in system.hooks if level >= 0 and is_under_way(after, number) else ():
            if hook.state == "waiting" and hook.stepped:
                return f"{hook.point} of stack {number} waits, and stepping has ended there"
    return None


def _runs(move: TreeMove) -> bool:
    return getattr(move.move.input, "decision", "") == "run"


def _expects(tree: TreeState, number: int) -> StepMode | None:
    return tree.expected.mode(number)


def an_answer_leaves_earlier_changes_alone(
    before: TreeState, move: TreeMove, after: TreeState
) -> str | None:
    """A nested traversal that a superseded change has started is not stepped by answers in the
    newer one."""
    for number, system in enumerate(before.stacks):
        by, parent = before.parent_step(number), before.positions[number].parent
        if move.kind != "hook" or by is None or move.stack not in {*in_change(before)}:
            continue
        if by.traversal != before.stacks[parent].current and after.stacks[number] != system:
            return f"an answer in stack {move.stack} changes stack {number} of an earlier change"
    return None


def run_leaves_no_hook_that_it_skips(
    before: TreeState, move: TreeMove, after: TreeState
) -> str | None:
    for number in in_change(after):
        system = after.stacks[number]
        for hook in system.hooks:
            if hook.state != "waiting" or after.expected.mode(number) is not StepMode.RUN:
                continue
            node_plan = system.traversal(hook.traversal).graph.nodes[hook.node]
            if rule_of(node_plan, hook).passable:
                return f"{hook.point} of stack {number} waits in spite of run"
    return None


def a_stop_of_run_to_is_answered(before: TreeState, move: TreeMove, after: TreeState) -> str | None:
    """The operation to which a change runs begins after an answer to its hook, or with `run`."""
    for one in before.run_to:
        by = after.parent_step(one.nested)
        system = after.stacks[one.nested]
        runs = after.expected.mode(one.nested) is StepMode.RUN
        if by is None or by.traversal != one.traversal or runs:
            continue
        for traversal, at, node_plan, node in nodes_of(system):
            was = before.stacks[one.nested].node(traversal, at) if traversal <= len(
                before.stacks[one.nested].traversals) else None  # fmt: skip
            begins = node.begun and not (was is not None and was.begun)
            if node_plan.name != one.name or traversal != system.current or not begins:
                continue
            hooks = {hook.state for hook in system.hooks if hook[:2] == (traversal, at)}
            if not hooks & {"continue", "step", "run"}:
                return f"{node_plan.name} begins without a stop, and the change runs to it"
    return None


def running_to_a_resource_ends_stepping(
    before: TreeState, move: TreeMove, after: TreeState
) -> str | None:
    """No hook of stepping waits after a change has run to a resource."""
    if move.kind != "request" or after.run_to == before.run_to:
        return None
    for number in in_change(after):
        for hook in after.stacks[number].hooks:
            if hook.state == "waiting" and hook.stepped:
                return f"{hook.point} of stack {number} waits, and stepping has ended there"
    return None


def hooks_continue_with_all_their_approvals(
    before: TreeState, move: TreeMove, after: TreeState
) -> str | None:
    found = map(a_hook_continues_with_all_its_approvals, after.stacks)
    return next((message for message in found if message is not None), None)


def every_live_node_is_woken(before: TreeState, move: TreeMove, after: TreeState) -> str | None:
    """A node that is due has a wake-up time; else it waits for a hook, or for a nested stack that
    is under way and wakes it."""
    for number, system in enumerate(after.stacks):
        hooks = {hook[:2] for hook in system.hooks if hook.state == "waiting"}
        for traversal, at, node_plan, node in nodes_of(system):
            if node.wake and not system.traversal(traversal).wake:
                return f"the wake-up of stack {number} leaves out {node_plan.name}"
            if node.state not in LIVE or node.wake or (traversal, at) in hooks:
                continue
            nested = after.nested_in(number, node_plan.name)
            by = None if nested is None else after.parent_step(nested)
            runs = nested is not None and is_under_way(after, nested)
            if not (runs and by is not None and by[:2] == (traversal, at)):
                return f"{node_plan.name} of stack {number} waits for nothing"
    return None


def a_waiting_hook_blocks_a_node(before: TreeState, move: TreeMove, after: TreeState) -> str | None:
    for number, system in enumerate(after.stacks):
        for hook in system.hooks:
            if hook.state != "waiting":
                continue
            node = system.node(hook.traversal, hook.node)
            at_hook = node is not None and node.state is State.PARKED and not node.wake
            current = hook.traversal == system.current and is_under_way(after, number)
            if not (at_hook and current):
                return f"{hook.point} of stack {number} waits, and blocks nothing"
    return None


def no_nested_traversal_outlives_its_operation(
    before: TreeState, move: TreeMove, after: TreeState
) -> str | None:
    for number, position in enumerate(after.positions):
        by = after.parent_step(number)
        if by is None or not is_under_way(after, number):
            continue
        node = after.stacks[position.parent].node(by.traversal, by.node)
        if node is None or node.state in ENDED:
            return f"stack {number} is under way after the operation that started it"
    return None


def an_ended_traversal_waits_for_no_nested_stack(
    before: TreeState, move: TreeMove, after: TreeState
) -> str | None:
    """When a change ends early, its nested traversals end, too, and close their hooks."""
    for number, system in enumerate(after.stacks):
        for traversal, _, node_plan, node in nodes_of(system):
            ended = system.traversal(traversal).state not in UNDER_WAY
            if ended and node.state is State.PARKED and not node.wake:
                return f"{node_plan.name} of stack {number} waits, and its traversal has ended"
    return None


def a_complete_root_has_complete_nested_stacks(
    before: TreeState, move: TreeMove, after: TreeState
) -> str | None:
    root = after.stacks[ROOT]
    if not root.current or root.traversal(root.current).state != "complete":
        return None
    for number, system in enumerate(after.stacks):
        if root.traversal(root.current).action is Action.DELETE:
            if system.current and not system.deleted:
                return f"the root stack is deleted, and stack {number} is not"
            continue
        expected = {spec.name: (spec.value, "COMPLETE") for spec in system.template}
        if {row.name: (row.value, row.status) for row in system.rows} != expected:
            return f"the root stack is complete, and stack {number} is not"
    return None


def operations_wait_for_their_hooks(
    before: TreeState, move: TreeMove, after: TreeState
) -> str | None:
    """Also those of the members of a group, which get their rules with each batch."""
    number = move.stack
    return move_invariants.operations_wait_for_their_hooks(
        before.stacks[number], move.move, after.stacks[number]
    )


def _updated_groups(tree: TreeState) -> Iterator[tuple[int, ParentStep, ResourceSpec]]:
    """The nested stacks of groups whose last traversal an update of the group has started: the
    stack, the parent's step and the group."""
    for number, position in enumerate(tree.positions):
        by = tree.parent_step(number)
        if by is None:
            continue
        parent = tree.stacks[position.parent]
        node, graph = parent.node(by.traversal, by.node), parent.traversal(by.traversal).graph
        specs = (one for one in graph.template if one.name == position.name and one.batch)
        if node is not None and node.operation is Operation.UPDATE:
            yield from ((number, by, spec) for spec in specs)


def _begun_members(tree: TreeState, number: int) -> set[str]:
    """The members whose updates the current traversal of a group's nested stack has begun."""
    system = tree.stacks[number]
    return {
        node_plan.name
        for traversal, _, node_plan, node in nodes_of(system)
        if traversal == system.current and node.begun and node.operation is Operation.UPDATE
    }


def a_batch_changes_no_more_members(
    before: TreeState, move: TreeMove, after: TreeState
) -> str | None:
    """No step of an update changes more members than the policy allows at once. Members that a
    superseded change still operates on are out of service, too."""
    for number, _, group in _updated_groups(after):
        begun = _begun_members(after, number)
        if not begun - _begun_members(before, number):
            continue
        others = {
            node_plan.name
            for traversal, _, node_plan, node in nodes_of(after.stacks[number])
            if traversal != after.stacks[number].current and node.begun and node.state in LIVE
        }
        if len(members := begun | others) > group.batch:
            return f"a batch of {group.batch} changes the members {sorted(members)}"
    return None


def each_batch_waits_for_its_answer(
    before: TreeState, move: TreeMove, after: TreeState
) -> str | None:
    """With a rule for `pre-batch`, each batch has an approving answer of its own, except
    after `run`. Members that an earlier change has not created are no batch."""
    for number, by, group in _updated_groups(after):
        parent = after.stacks[after.positions[number].parent]
        runs = parent.traversal(by.traversal).step_mode is StepMode.RUN
        if runs or not any(rule.point == Point.PRE_BATCH for rule in group.rules):
            continue
        rows = {
            row.name
            for row in after.stacks[number].rows
            if row.value == group.value and row.action == "UPDATE"
        }
        changed = rows | _begun_members(after, number)
        key = (by.traversal, by.node, Point.PRE_BATCH)
        approved = [hook for hook in parent.hooks if hook[:3] == key and hook.state == "continue"]
        if len(changed) > group.batch * len(approved):
            return f"{len(approved)} batches are approved, and {sorted(changed)} are changed"
    return None


def a_complete_group_has_its_members(
    before: TreeState, move: TreeMove, after: TreeState
) -> str | None:
    """No batch is left out: all members have the value of the group."""
    root = after.stacks[ROOT]
    if not root.current or root.traversal(root.current).state != "complete":
        return None
    for group in root.template:
        number = after.nested_in(ROOT, group.name)
        if group.batch and number is not None:
            found = {row.name: row.value for row in after.stacks[number].rows}
            if found != {one.name: group.value for one in group.nested}:
                return f"{group.name} is complete, and its members are {found}"
    return None


def only_a_running_traversal_starts_nested_ones(
    before: TreeState, move: TreeMove, after: TreeState
) -> str | None:
    """A change that is superseded between two batches begins no other one."""
    for number, position in enumerate(after.positions):
        by = after.parent_step(number)
        if by is None or after.stacks[number].current == before.stacks[number].current:
            continue
        if after.stacks[position.parent].traversal(by.traversal).state != store.RUNNING:
            return f"traversal {by.traversal}, which has ended, starts one of stack {number}"
    return None


INVARIANTS: tuple[Invariant, ...] = (
    operations_wait_for_their_hooks,
    a_batch_changes_no_more_members,
    each_batch_waits_for_its_answer,
    a_complete_group_has_its_members,
    only_a_running_traversal_starts_nested_ones,
    step_modes_follow_the_answers,
    stepping_stops_before_every_operation,
    only_stepping_stops,
    an_operation_stops_once,
    stepping_ends_with_its_hooks,
    an_answer_leaves_earlier_changes_alone,
    run_leaves_no_hook_that_it_skips,
    a_stop_of_run_to_is_answered,
    running_to_a_resource_ends_stepping,
    hooks_continue_with_all_their_approvals,
    every_live_node_is_woken,
    a_waiting_hook_blocks_a_node,
    no_nested_traversal_outlives_its_operation,
    an_ended_traversal_waits_for_no_nested_stack,
    a_complete_root_has_complete_nested_stacks,
)


def violated_invariants(before: TreeState, move: TreeMove, after: TreeState) -> dict[str, str]:
    """The messages of the invariants that a move violates, by name."""
    found = {rule.__name__: rule(before, move, after) for rule in INVARIANTS}
    return {name: message for name, message in found.items() if message is not None}
