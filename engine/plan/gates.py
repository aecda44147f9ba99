"""The stack's own nodes (gates) in a plan: one before all others, one after."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.hooks.rule import Rule, line_of
from engine.plan.draft import Plan, PlannedNode
from engine.words import (
    Action,
    Direction,
    Operation,
    ResourceId,
    StackId,
    post_stack,
    pre_stack,
)

#: Type of the nodes that belong to the stack instead of a resource.
STACK_TYPE = "Headgate::Stack"


def gated(
    planned: Plan, stack_id: StackId, action: Action, rules: Sequence[Rule], *, watched: bool
) -> Plan:
    """Return the plan with the gates of the action, for hook rules or for plug-ins that watch it.

    rules: of the stack's points; those of other actions are ignored. The operator's rules for
    create also apply to adopt.
    """
    before = tuple(rule for rule in rules if _is_at(rule, pre_stack, action))
    after = tuple(rule for rule in rules if _is_at(rule, post_stack, action))
    if not (before or after or watched):
        return planned
    nodes = list(planned.nodes)
    if before or watched:
        nodes = _behind(nodes, _gate(stack_id, Operation.BEGIN, before))
    if after:
        nodes = _before(nodes, _gate(stack_id, Operation.FINISH, after))
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


def _behind(nodes: list[PlannedNode], gate: PlannedNode) -> list[PlannedNode]:
    """Make all nodes that could start at once wait for the gate."""
    place = len(nodes)
    waiting = [one if one.after else replace(one, after={place}) for one in nodes]
    return [*waiting, gate]


def _before(nodes: list[PlannedNode], gate: PlannedNode) -> list[PlannedNode]:
    """Make the gate wait for all nodes that no other node waits for."""
    waited_for = {before for node in nodes for before in node.after}
    gate.after = {place for place in range(len(nodes)) if place not in waited_for}
    return [*nodes, gate]
