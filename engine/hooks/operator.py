"""Operator rules: they apply to any project, take precedence over all others, and users cannot
clear them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from engine.errors import Findings
from engine.hooks.rule import HookLimits, in_order
from engine.hooks.rule_patterns import pattern_at
from engine.hooks.rule_reader import Decide, Declaration, Reader
from engine.hot.environment.environment import HookDeclaration
from engine.hot.functions.function import FunctionError
from engine.hot.syntax.globs import globs_overlap, matches_glob
from engine.words import Json, Mode

UPDATE_POINT, RESTORE_POINT, ROLLBACK_POINT = (
    "pre-stack-update",
    "pre-stack-restore",
    "pre-stack-rollback",
)


@dataclass(frozen=True, slots=True)
class OperatorRule:
    """projects: globs. types: globs on resource types; empty: any. dry: record hooks without
    blocking. item: a full rule, without `at`. nested: a rule for the whole stack applies to nested
    stacks, too.
    """

    projects: Sequence[str]
    pattern: str
    types: Sequence[str]
    item: Mapping[str, Json]
    place: str
    dry: bool = False
    nested: bool = False


def operator_declarations(
    rules: Sequence[OperatorRule],
    project: str,
    limits: HookLimits,
    decide: Decide,
    path: Sequence[str] = (),
    *,
    by_parent: bool = False,
) -> list[Declaration]:
    """Return the rules that apply in a stack of a project. A condition that cannot be evaluated
    there is false. path: of a nested stack, from the root stack. by_parent: the change of a parent
    stack started this one.

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
        and (pattern := _pattern_at(rule, path, by_parent=by_parent)) is not None
        for one in read_operator_rule(rule, Findings(), limits, None, _tolerant(decide))
    ]


def has_rule_for(rules: Sequence[OperatorRule], project: str, type_name: str) -> bool:
    """Whether a rule can apply to a resource of this type, or to its stack, in the project."""
    return any(
        any(matches_glob(project, one) for one in rule.projects)
        and (not rule.types or any(matches_glob(type_name, one) for one in rule.types))
        for rule in rules
    )


def _pattern_at(rule: OperatorRule, path: Sequence[str], *, by_parent: bool) -> str | None:
    """Return the pattern of a rule as it applies in a nested stack: a name applies on every level,
    a path from the root stack, and an empty pattern to the stack in which the change begins, or
    with `nested` on every level. None: it does not apply.
    """
    if not rule.pattern:
        return rule.pattern if rule.nested or not by_parent else None
    return pattern_at(rule.pattern, path) if "/" in rule.pattern else rule.pattern


def read_operator_rule(
    rule: OperatorRule,
    findings: Findings,
    limits: HookLimits,
    steps: Sequence[str] | None,
    decide: Decide,
) -> list[Declaration]:
    hook = HookDeclaration(rule.pattern, dict(rule.item), rule.place, short=False)
    return Reader(findings, limits, decide, steps).declarations([hook])


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two operator rules that block at the same point, of which only the later one applies.

    ignored, applied: their places. points: those that both name.
    """

    ignored: str
    applied: str
    points: Sequence[str]

    @property
    def reason(self) -> str:
        points = ", ".join(self.points)
        return (
            f"{self.ignored} and {self.applied} can match the same stack or resource at {points}:"
            f" there, {self.applied} applies, because it comes later"
        )

    @property
    def remedy(self) -> str:
        return "Write both as one rule; or check that the more specific rule is the later one"


def overlaps(rules: Sequence[OperatorRule]) -> list[Overlap]:
    """Return the pairs of blocking rules that can match the same stack or resource. Conditions
    (`when`) are not compared.
    """
    return [
        Overlap(first.place, second.place, shared)
        for first, second in combinations(_blocking(rules), 2)
        if (shared := in_order(set(first.item["on"]) & set(second.item["on"])))
        and _any_overlap(first.projects, second.projects)
        and (not first.types or not second.types or _any_overlap(first.types, second.types))
        and _patterns_overlap(first.pattern, second.pattern)
    ]


@dataclass(frozen=True, slots=True)
class Gap:
    """A rule that blocks updates of whole stacks, and other points at which no rule blocks although
    an action there can apply a template that was never approved.
    """

    rule: str
    points: Sequence[str]

    @property
    def reason(self) -> str:
        points = " and ".join(self.points)
        return (
            f"{self.rule} blocks at {UPDATE_POINT}, and no rule blocks at {points}: a restore or a"
            " rollback can apply a template that was never approved"
        )

    @property
    def remedy(self) -> str:
        return f"Add {' and '.join(self.points)} to `on`; see docs/how-to/guard-every-stack.md"


def gaps(rules: Sequence[OperatorRule]) -> list[Gap]:
    """Return the rules that block updates of whole stacks while a restore or a rollback of the same
    projects is not blocked. Conditions (`when`) are not compared.
    """
    blocking = [one for one in _blocking(rules) if not one.pattern]
    return [
        Gap(rule.place, missing)
        for rule in blocking
        if UPDATE_POINT in rule.item["on"]
        and (
            missing := [
                point
                for point in (RESTORE_POINT, ROLLBACK_POINT)
                if not any(
                    point in other.item["on"] and _any_overlap(rule.projects, other.projects)
                    for other in blocking
                )
            ]
        )
    ]


def _blocking(rules: Sequence[OperatorRule]) -> list[OperatorRule]:
    return [one for one in rules if not one.dry and one.item.get("mode") != Mode.NOTIFY]


def _any_overlap(first: Sequence[str], second: Sequence[str]) -> bool:
    return any(globs_overlap(one, other) for one, other in product(first, second))


def _patterns_overlap(first: str, second: str) -> bool:
    """Return whether two patterns of resources can match the same one; "" is the stack. A name
    matches on every level, so it is compared with the last part of a path.
    """
    one, other = first.split("/"), second.split("/")
    if bool(first) != bool(second) or (len(one) != len(other) and min(len(one), len(other)) > 1):
        return False
    parts = min(len(one), len(other))
    return all(globs_overlap(*pair) for pair in zip(one[-parts:], other[-parts:], strict=True))


def always(condition: Json, place: str) -> bool:
    """Return True: rules with a condition apply to a change without parameters (delete, check)."""
    return True


def _tolerant(decide: Decide) -> Decide:
    def decide_or_false(condition: Json, place: str) -> bool:
        try:
            return decide(condition, place)
        except FunctionError:
            return False

    return decide_or_false
