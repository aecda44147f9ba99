"""What a breakpoint on a live stack does to nodes: which ones it comes in time for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.hooks.matching import Breakpoints as Rules
from engine.hooks.rule import Rule, decode_rules, encode_rules
from engine.node.points import POINTS
from engine.store import breakpoints as store
from engine.words import GATES, Json, Operation, Phase


@dataclass(frozen=True, slots=True)
class Late:
    """A node that a breakpoint came too late for, and why. path: from the outermost stack."""

    resource_name: str
    path: str
    point: str
    why: str


def rules_for(asking: Rules, node: store.Reached, stored: Sequence[Rule] = ()) -> tuple[Rule, ...]:
    if node.operation in GATES:
        return asking.of_stack(stored)
    return asking.of(node.name, stored)


def points_of(node: store.Reached) -> Sequence[str]:
    """Of the stack's points those that the gate asks at: its own action's are in its rules."""
    return [rule.point for rule in decode_rules(node.rules)]


def with_rules(node: store.Reached, found: Sequence[Rule]) -> Json:
    """The node's rules with those that were found; one that was to begin at once asks first."""
    rules = {rule.point: rule for rule in decode_rules(node.rules)}
    rules |= {rule.point: rule for rule in found if _may_stand(rules, rule, node)}
    asks = node.phase == Phase.ACT and not node.started
    phase = Phase.PRE if asks else node.phase
    return row_of(node, rules.values(), phase)


def row_of(node: store.Reached, rules: Iterable[Rule], phase: str) -> Json:
    """As `set_rules` takes it."""
    return {
        "stack_id": node.stack_id, "traversal": node.traversal, "id": node.id,
        "rules": encode_rules(rules), "phase": phase,
    }  # fmt: skip


def _may_stand(rules: Mapping[str, Rule], rule: Rule, node: store.Reached) -> bool:
    """What is behind the node is behind it; and nothing takes the operator's place."""
    there = rules.get(rule.point)
    return too_late(node, rule) is None and not (there is not None and there.by_operator)


def too_late(node: store.Reached, rule: Rule) -> str | None:
    """Why the node will not stop there; None: it will, if it comes there."""
    if rule.point in node.passed:
        return "it has asked there already"
    operation = Operation(node.operation)
    points = (*POINTS[operation, Phase.PRE], *POINTS[operation, Phase.POST])
    if node.ended and rule.point in points and node.operation not in GATES:
        return f"it is {node.state}"
    if rule.point not in POINTS[operation, Phase.PRE]:
        return None
    if node.started or node.phase == Phase.POST:
        return "its operation has begun"
    return None
