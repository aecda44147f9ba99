"""The operator's own rules: in any project, stronger than all others, and not to be cleared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from engine.errors import Findings
from engine.hooks.rule import Limits
from engine.hooks.rule_matching import led
from engine.hooks.rule_reader import Decide, Declaration, Reader
from engine.hot.environment.environment import HookDeclaration
from engine.hot.functions.function import FunctionError
from engine.hot.syntax.globs import matches_glob
from engine.words import Json


@dataclass(frozen=True, slots=True)
class OperatorRule:
    """projects: globs. types: globs on resource types; empty: any. dry: only record what it would
    have held. item: a full rule, without `at`."""

    projects: Sequence[str]
    pattern: str
    types: Sequence[str]
    item: Mapping[str, Json]
    place: str
    dry: bool = False


def operator_declarations(
    rules: Sequence[OperatorRule],
    project: str,
    limits: Limits,
    decide: Decide,
    path: Sequence[str] = (),
) -> list[Declaration]:
    """Those that hold in a stack of a project. A condition that cannot be decided there does not
    hold. path: of the resources that lead to the stack, when it is inside another.

    A step that no type names guards nothing, and keeps no other point of its rule from guarding.
    """
    return [
        replace(
            one,
            pattern=pattern,
            rule=replace(one.rule, by_operator=True, dry=rule.dry),
            types=tuple(rule.types),
        )
        for rule in rules
        if any(matches_glob(project, pattern) for pattern in rule.projects)
        and (pattern := _pattern_at(rule.pattern, path)) is not None
        for one in read_operator_rule(rule, Findings(), limits, None, _tolerant(decide))
    ]


def _pattern_at(pattern: str, path: Sequence[str]) -> str | None:
    """What a pattern is in a stack inside: a name is meant at every level, a path from the
    outermost stack; and a whole stack is the outermost. None: it says nothing there."""
    if not pattern:
        return None if path else pattern
    return led(pattern, path) if "/" in pattern else pattern


def read_operator_rule(
    rule: OperatorRule,
    findings: Findings,
    limits: Limits,
    steps: Sequence[str] | None,
    decide: Decide,
) -> list[Declaration]:
    hook = HookDeclaration(rule.pattern, dict(rule.item), rule.place, short=False)
    return Reader(findings, limits, decide, steps).declarations([hook])


def always(condition: Json, place: str) -> bool:
    """For a change without parameters (a delete, a check): who guards, guards it then, too."""
    return True


def _tolerant(decide: Decide) -> Decide:
    def decided(condition: Json, place: str) -> bool:
        try:
            return decide(condition, place)
        except FunctionError:
            return False

    return decided
