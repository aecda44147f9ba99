"""The points of each operation, in one table for the machine and for planning; the breakpoints that
a node has not passed yet, and the hooks that they open.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from engine.hooks.rule import Rule, step_rule
from engine.node.node import Node, OpenHook, Step
from engine.words import GATES, Action, Mode, Operation, Phase, Point, State, post_stack, pre_stack

#: The points of an operation by phase, in the order in which their hooks open.
POINTS: Mapping[tuple[Operation, Phase], tuple[str, ...]] = {
    (Operation.CREATE, Phase.PRE): (Point.PRE_CREATE,),
    (Operation.CREATE, Phase.POST): (Point.POST_CREATE,),
    (Operation.UPDATE, Phase.PRE): (Point.PRE_UPDATE,),
    (Operation.UPDATE, Phase.POST): (Point.POST_UPDATE,),
    (Operation.REPLACE, Phase.PRE): (
        Point.PRE_UPDATE, Point.PRE_REPLACE, Point.PRE_CREATE,
    ),
    (Operation.REPLACE, Phase.POST): (
        Point.POST_CREATE, Point.POST_REPLACE, Point.POST_UPDATE,
    ),
    (Operation.DELETE, Phase.PRE): (Point.PRE_DELETE,),
    (Operation.DELETE, Phase.POST): (Point.POST_DELETE,),
    (Operation.CHECK, Phase.PRE): (Point.PRE_CHECK,),
    (Operation.CHECK, Phase.POST): (Point.POST_CHECK,),
    (Operation.SUSPEND, Phase.PRE): (Point.PRE_SUSPEND,),
    (Operation.SUSPEND, Phase.POST): (Point.POST_SUSPEND,),
    (Operation.RESUME, Phase.PRE): (Point.PRE_RESUME,),
    (Operation.RESUME, Phase.POST): (Point.POST_RESUME,),
    # As in Heat, adopt and snapshot have no points; but see `OF_OPERATOR`.
    (Operation.ADOPT, Phase.PRE): (),
    (Operation.ADOPT, Phase.POST): (),
    (Operation.SNAPSHOT, Phase.PRE): (),
    (Operation.SNAPSHOT, Phase.POST): (),
    # Gates. Their node has only the rules of its own action.
    (Operation.BEGIN, Phase.PRE): tuple(pre_stack(action) for action in Action),
    (Operation.BEGIN, Phase.POST): (),
    (Operation.FINISH, Phase.PRE): tuple(post_stack(action) for action in Action),
    (Operation.FINISH, Phase.POST): (),
}  # fmt: skip

#: Further points, for rules of the operator only: an adoption passes those of a create.
OF_OPERATOR: Mapping[tuple[Operation, Phase], tuple[str, ...]] = {
    (Operation.ADOPT, Phase.PRE): (Point.PRE_CREATE,),
    (Operation.ADOPT, Phase.POST): (Point.POST_CREATE,),
}


def rules_at(rules: Iterable[Rule], operation: Operation, phase: Phase) -> list[Rule]:
    """Return the rules that apply to a phase of an operation, in the order of their points."""
    by_point = {rule.point: rule for rule in rules}
    at = (operation, phase)
    found = [by_point[point] for point in POINTS[at] if point in by_point]
    others = [by_point[point] for point in OF_OPERATOR.get(at, ()) if point in by_point]
    return [*found, *(rule for rule in others if rule.by_operator)]


_STATE_AT: Mapping[Mode, State] = {
    Mode.WAIT: State.PARKED,
    Mode.STOP: State.STOPPED,
}


def open_hook(node: Node, rule: Rule) -> Step:
    """Open the hook of a rule; the node waits or stops there if the rule blocks."""
    at_hook = replace(
        node,
        state=_STATE_AT[rule.mode] if rule.blocks else node.state,
        breakpoints_hit=(*(one for one in node.breakpoints_hit if one != rule.point), rule.point),
        reason=f"breakpoint {rule.point}" if rule.blocks and rule.mode is Mode.STOP else None,
    )
    return Step(at_hook, (OpenHook(rule),))


def pending_breakpoints(node: Node, operation: Operation, phase: Phase) -> list[Rule]:
    """Return the rules that apply in this phase and have opened no hook yet, in order.

    The breakpoint of stepping is the last: a rule that does not block opens its own hook before.
    """
    if not node.rules and not node.stepping:
        return []
    found = rules_at(node.rules, operation, phase)
    if node.stepping and phase is Phase.PRE and operation not in GATES:
        blocked = {rule.point for rule in found if rule.blocks}
        found += [step_rule(one) for one in POINTS[operation, phase][-1:] if one not in blocked]
    return [rule for rule in found if rule.point not in node.breakpoints_hit]
