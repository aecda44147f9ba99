"""The breakpoints that are ahead of a node, and the node at one of them."""

from collections.abc import Mapping
from dataclasses import replace

from engine.hooks.rule import Rule, step_rule
from engine.node.effects import OpenHook
from engine.node.node import Node, Step
from engine.node.points import POINTS, asked_at
from engine.words import GATES, Mode, Operation, Phase, State

_STATE_AT: Mapping[Mode, State] = {
    Mode.WAIT: State.PARKED,
    Mode.STOP: State.STOPPED,
}


def ask(node: Node, rule: Rule) -> Step:
    asked = replace(
        node,
        state=_STATE_AT[rule.mode] if rule.holds else node.state,
        passed=(*node.passed, rule.point),
        reason=f"breakpoint {rule.point}" if rule.holds and rule.mode is Mode.STOP else None,
    )
    return Step(asked, (OpenHook(rule),))


def ahead(node: Node, operation: Operation, phase: Phase) -> list[Rule]:
    by_point = {rule.point: rule for rule in node.rules}
    if node.stepping and phase is Phase.PRE and operation not in GATES:
        for point in POINTS[operation, phase][-1:]:
            if point not in by_point or not by_point[point].holds:
                by_point[point] = step_rule(point)
    found = asked_at(by_point.values(), operation, phase)
    return [rule for rule in found if rule.point not in node.passed]
