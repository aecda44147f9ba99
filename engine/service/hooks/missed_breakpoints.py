"""Breakpoints against the nodes of a running traversal: which nodes have already passed them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from engine.hooks.rule import Rule, decode_rules, encode_rules
from engine.hooks.rule_matching import Breakpoints as Rules
from engine.node.points import POINTS
from engine.store import breakpoints as store
from engine.words import GATES, Json, Operation, Phase, State

WAITS: Final = "it waits there now"
CONTINUED: Final = "it was waiting there and was continued"


@dataclass(frozen=True, slots=True)
class MissedBreakpoint:
    """A node that has already passed a breakpoint. path: of the resource, from the root stack."""

    resource_name: str
    path: str
    point: str
    reason: str


def rules_for(rules: Rules, node: store.Reached, stored: Sequence[Rule] = ()) -> tuple[Rule, ...]:
    """The rules for a node: those of its resource, or of the stack for a stack's own gate."""
    if node.operation in GATES:
        return rules.of_stack(stored)
    return rules.of(node.name, stored)


def points_of(node: store.Reached) -> Sequence[str]:
    """The points at which a stack's gate node has rules."""
    return [rule.point for rule in decode_rules(node.rules)]


def with_rules(node: store.Reached, found: Sequence[Rule]) -> Json:
    """The row of a node with the found rules added. A node that would execute without a `pre` phase
    gets one, unless its operation has started."""
    rules = {rule.point: rule for rule in decode_rules(node.rules)}
    rules |= {rule.point: rule for rule in found if _can_add(rules, rule, node)}
    pending = node.phase == Phase.ACT and not node.started
    phase = Phase.PRE if pending else node.phase
    return row_of(node, rules.values(), phase)


def row_of(node: store.Reached, rules: Iterable[Rule], phase: str) -> Json:
    """A row for `engine.store.breakpoints.set_rules`."""
    return {
        "stack_id": node.stack_id, "traversal": node.traversal, "id": node.id,
        "rules": encode_rules(rules), "phase": phase,
    }  # fmt: skip


def _can_add(rules: Mapping[str, Rule], rule: Rule, node: store.Reached) -> bool:
    """False if the node has passed the point or has an operator rule there."""
    existing = rules.get(rule.point)
    by_operator = existing is not None and existing.by_operator
    return missed_reason(node, rule) is None and not by_operator


def _waits_at(node: store.Reached, point: str) -> bool:
    """Whether a hook of the node is open at the point, which is then the last in `passed`."""
    at_a_hook = node.state == State.PARKED and node.phase != Phase.ACT
    return at_a_hook and bool(node.passed) and node.passed[-1] == point


def with_continued(
    missed: Sequence[MissedBreakpoint], continued: Collection[tuple[str, str]]
) -> list[MissedBreakpoint]:
    """The breakpoints with the reason of those whose hooks the same request has continued.

    continued: path, from the root stack, and point of each of these hooks.
    """
    return [
        replace(one, reason=CONTINUED)
        if one.reason == WAITS and (one.path, one.point) in continued
        else one
        for one in missed
    ]


def missed_reason(node: store.Reached, rule: Rule) -> str | None:
    """Why the node can no longer stop at the rule's point; None if it can."""
    if _waits_at(node, rule.point):
        return WAITS
    if rule.point in node.passed:
        return "it has already passed this point"
    operation = Operation(node.operation)
    points = (*POINTS[operation, Phase.PRE], *POINTS[operation, Phase.POST])
    if node.ended and rule.point in points and node.operation not in GATES:
        return f"it is {node.state}"
    if rule.point not in POINTS[operation, Phase.PRE]:
        return None
    if node.started or node.phase == Phase.POST:
        return "its operation has begun"
    return None
