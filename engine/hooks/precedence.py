"""Decides which of two hook rules wins.

At most one rule applies at a point of a resource. Precedence: the operator's rules, live
breakpoints, the request, the environment, the template; within one source the later rule wins. An
operator rule that only notifies replaces no operator rule that blocks, and a dry-run rule replaces
no rule that blocks. Points whose breakpoints the request clears have the operator's rules only.

engine/hooks/rule_patterns.py has the patterns.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import itemgetter

from engine.hooks.rule import Rule, in_order
from engine.hooks.rule_reader import Declaration
from engine.hot.syntax.globs import NamePatterns, is_glob, matches_glob
from engine.hot.syntax.keyed_names import other_names


def _unknown_type(name: str) -> str | None:
    return None


class Breakpoints:
    """The rules of a change, by resource."""

    def __init__(
        self,
        *sources: Sequence[Declaration],
        cleared_breakpoints: Sequence[str] = (),
        operator: Sequence[Declaration] = (),
        type_of: Callable[[str], str | None] = _unknown_type,
        excluded: Sequence[str] = (),
    ) -> None:
        """sources: in descending precedence. cleared_breakpoints: ``resource``,
        ``resource:point`` or ``*``.

        operator: precede all sources and cannot be cleared. type_of: a resource's type.
        excluded: for the rules that exclude the requester (`Rule.excluded`).
        """
        self._type_of = type_of
        self._excluded = tuple(excluded)
        self._sources = [_Source(source) for source in sources if source]
        self._operator = _Source([one for one in operator if one.pattern])
        self._of_stack = _Source([one for one in operator if not one.pattern])
        by_point = _by_point(cleared_breakpoints)
        self._cleared = {on: names for on, names in by_point.items() if not is_glob(on)}
        self._cleared_globs = {on: names for on, names in by_point.items() if is_glob(on)}

    def find_rules(self, name: str, stored: Sequence[Rule] = ()) -> tuple[Rule, ...]:
        """Return the rules of a resource, one per point, in the order of the points.

        stored: rules stored with the resource; they have the lowest precedence.
        """
        if not self._sources and not stored and not self._operator.some:
            return ()
        return self._choose_rules(name, stored, self._operator)

    def find_stack_rules(self, stored: Sequence[Rule] = ()) -> tuple[Rule, ...]:
        """Return the rules for the stack as a whole, one per point."""
        return self._choose_rules("", stored, self._of_stack)

    def _choose_rules(
        self, name: str, stored: Sequence[Rule], operator: "_Source"
    ) -> tuple[Rule, ...]:
        # The current rules of the operator are in `operator`; earlier ones no longer apply.
        chosen: dict[str, Rule] = {rule.point: rule for rule in stored if not rule.by_operator}
        for source in reversed(self._sources):
            for declaration in source.find_declarations(name):
                chosen[declaration.rule.point] = declaration.rule
        for point in [point for point in chosen if self._is_cleared(name, point)]:
            del chosen[point]
        for declaration in operator.find_declarations(name):
            rule = declaration.rule
            if self._is_type(declaration, name) and _replaces(rule, chosen.get(rule.point)):
                chosen[rule.point] = rule
        return tuple(self._excluding(chosen[point]) for point in in_order(chosen))

    def _excluding(self, rule: Rule) -> Rule:
        return replace(rule, excluded=self._excluded) if rule.exclude else rule

    def _is_type(self, declaration: Declaration, name: str) -> bool:
        if not declaration.types:
            return True
        type_name = self._type_of(name)
        return type_name is not None and any(
            matches_glob(type_name, pattern) for pattern in declaration.types
        )

    def _is_cleared(self, name: str, point: str) -> bool:
        here = self._cleared.get(point)
        return (here is not None and here.matches(name)) or any(
            matches_glob(point, on) and names.matches(name)
            for on, names in self._cleared_globs.items()
        )


def _replaces(rule: Rule, present: Rule | None) -> bool:
    """Return whether an operator rule applies instead of the present rule of its point: it never
    removes a block that it does not set itself, except that `notify` replaces rules of a project.
    """
    if rule.blocks or present is None or not present.blocks:
        return True
    return not (rule.dry or present.by_operator)


class _Source:
    """Declarations of one source, indexed by resource name or glob; "" is the stack."""

    def __init__(self, declarations: Sequence[Declaration]) -> None:
        self.some = bool(declarations)
        self._by_name: dict[str, list[tuple[int, Declaration]]] = {}
        self._by_glob: dict[str, list[tuple[int, Declaration]]] = {}
        for number, one in enumerate(declarations):
            table = self._by_glob if is_glob(one.pattern) else self._by_name
            table.setdefault(one.pattern, []).append((number, one))

    def find_declarations(self, name: str) -> list[Declaration]:
        """Return those that match a name, in the order of the source."""
        found = list(self._by_name.get(name, ()))
        for other in other_names(name):
            found += self._by_name.get(other, ())
        if name:
            for glob, entries in self._by_glob.items():
                if matches_glob(name, glob):
                    found += entries
        return [one for _, one in sorted(found, key=itemgetter(0))]


def _by_point(cleared_breakpoints: Iterable[str]) -> dict[str, NamePatterns]:
    """The names and patterns of cleared breakpoints, by the pattern of their points."""
    names: dict[str, list[str]] = {}
    for text in cleared_breakpoints:
        name, colon, point = text.rpartition(":")
        names.setdefault(point if colon else "*", []).append(name if colon else text)
    return {point: NamePatterns(found) for point, found in names.items()}
