"""The stack's own nodes (gates) in a plan: one before all others, one after."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.hooks.rule import Rule, line_of
from engine.plan.draft import STACK_TYPE, Plan, PlannedNode
from engine.words import Action, Direction, Operation, ResourceId, StackId, post_stack, pre_stack


def add_gates(
    planned: Plan,
    stack_id: StackId,
    action: Action,
    rules: Sequence[Rule],
    *,
    lifecycle_plugins: bool,
) -> Plan:
    """Return the plan with the gates of the action, for hook rules or for plug-ins that watch it.
    Gates are the last nodes.

    rules: of the stack's points; those of other actions are ignored. The operator's rules for
    create also apply to adopt.
    """
    before = tuple(rule for rule in rules if _is_at(rule, pre_stack, action))
    after = tuple(rule for rule in rules if _is_at(rule, post_stack, action))
    if not (before or after or lifecycle_plugins):
        return planned
    nodes = list(planned.nodes)
    if before or lifecycle_plugins:
        nodes = _wait_for_gate(nodes, _gate(stack_id, Operation.BEGIN, before))
    if after:
        nodes = _wait_for_last_nodes(nodes, _gate(stack_id, Operation.FINISH, after))
    return replace(planned, nodes=tuple(nodes), digest=_digest(planned, (*before, *after)))


def _is_at(rule: Rule, point_of: Callable[[Action], str], action: Action) -> bool:
    if rule.point == point_of(action):
        return True
    adopts = action is Action.ADOPT and rule.by_operator
    return adopts and rule.point == point_of(Action.CREATE)


def _digest(planned: Plan, rules: Sequence[Rule]) -> str:
    digest = hashlib.sha256(planned.digest.encode())
    for rule in rules:
        digest.update(f"{line_of(rule)}\n".encode())
    return digest.hexdigest() if rules else planned.digest


def _gate(stack_id: StackId, operation: Operation, rules: tuple[Rule, ...]) -> PlannedNode:
    return PlannedNode(
        resource_id=ResourceId(stack_id),
        name="",
        type=STACK_TYPE,
        operation=operation,
        direction=Direction.FORWARD,
        rules=rules,
    )


def _wait_for_gate(nodes: list[PlannedNode], gate: PlannedNode) -> list[PlannedNode]:
    """Make all nodes that could start at once wait for the gate."""
    place = len(nodes)
    waiting = [one if one.after else replace(one, after={place}) for one in nodes]
    return [*waiting, gate]


def _wait_for_last_nodes(nodes: list[PlannedNode], gate: PlannedNode) -> list[PlannedNode]:
    """Make the gate wait for all nodes that no other node waits for. A node that is added later
    may be missing, so the nodes before it count as last ones.
    """
    waited_for = {before for node in nodes if node.added_by is None for before in node.after}
    gate.after = {place for place in range(len(nodes)) if place not in waited_for}
    return [*nodes, gate]
