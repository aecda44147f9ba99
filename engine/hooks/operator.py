"""The operator's rules: for any project, with precedence over all others, impossible to clear."""

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
    """projects: globs. types: globs on resource types; empty: any. dry: record hooks without
    blocking. item: a full rule, without `at`.
    """

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
    """Return the rules that apply in a stack of a project. A condition that cannot be evaluated
    there is false. path: of a nested stack, from the root stack.

    An unknown confirmation step has no effect on the other points of its rule.
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
    """Return a pattern as it applies in a nested stack: a name applies on every level, a path from
    the root stack, and an empty pattern to the root stack only. None: it does not apply.
    """
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
    """Return True: rules with a condition apply to a change without parameters (delete, check)."""
    return True


def _tolerant(decide: Decide) -> Decide:
    def decided(condition: Json, place: str) -> bool:
        try:
            return decide(condition, place)
        except FunctionError:
            return False

    return decided
