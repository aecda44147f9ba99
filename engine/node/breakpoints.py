"""The breakpoints that a node has not passed yet, and the hooks that they open."""

from collections.abc import Mapping
from dataclasses import replace

from engine.hooks.rule import Rule, step_rule
from engine.node.effects import OpenHook
from engine.node.node import Node, Step
from engine.node.points import POINTS, rules_at
from engine.words import GATES, Mode, Operation, Phase, State

_STATE_AT: Mapping[Mode, State] = {
    Mode.WAIT: State.PARKED,
    Mode.STOP: State.STOPPED,
}


def open_hook(node: Node, rule: Rule) -> Step:
    """Open the hook of a rule; the node waits or stops there if the rule blocks."""
    at_hook = replace(
        node,
        state=_STATE_AT[rule.mode] if rule.holds else node.state,
        passed=(*node.passed, rule.point),
        reason=f"breakpoint {rule.point}" if rule.holds and rule.mode is Mode.STOP else None,
    )
    return Step(at_hook, (OpenHook(rule),))


def pending_breakpoints(node: Node, operation: Operation, phase: Phase) -> list[Rule]:
    """Return the rules that apply in this phase and have opened no hook yet, in order."""
    by_point = {rule.point: rule for rule in node.rules}
    if node.stepping and phase is Phase.PRE and operation not in GATES:
        for point in POINTS[operation, phase][-1:]:
            if point not in by_point or not by_point[point].holds:
                by_point[point] = step_rule(point)
    found = rules_at(by_point.values(), operation, phase)
    return [rule for rule in found if rule.point not in node.passed]
