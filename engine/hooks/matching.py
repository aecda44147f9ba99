"""Which rule applies where.

For one resource and point exactly one rule applies: the operator overrides a live breakpoint, that
a request, a request the environment, the environment the template; among rules of one source the
later one wins.
"""

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

from engine.errors import Findings, nearest
from engine.hooks.reading import Declaration
from engine.hooks.rule import Rule, in_order


def check_patterns(
    said: Iterable[Declaration], names: Sequence[str], findings: Findings
) -> list[str]:
    """Refuse full rules that can match nothing; return a warning for each such short one."""
    warnings: list[str] = []
    for declaration in said:
        pattern = declaration.pattern
        if not pattern or any(fnmatchcase(name, pattern) for name in names):
            continue
        reason = f'the breakpoint pattern "{pattern}" matches no resource'
        remedy = nearest(pattern, names) or (
            f"Resources are: {', '.join(sorted(names)[:8]) or 'none'}."
        )
        if declaration.rule.short:
            if "/" not in pattern:
                warnings.append(f"{declaration.place}: {reason}. {remedy}")
        else:
            findings.add(declaration.place, reason, remedy, "InvalidBreakPointHook")
    return list(dict.fromkeys(warnings))


def _unknown_type(name: str) -> str | None:
    return None


class Breakpoints:
    """All rules that hold for a change, ready to be asked."""

    def __init__(
        self,
        *sources: Sequence[Declaration],
        cleared: Sequence[str] = (),
        operator: Sequence[Declaration] = (),
        type_of: Callable[[str], str | None] = _unknown_type,
    ) -> None:
        """sources: the strongest first. cleared: ``resource``, ``resource:point`` or ``*``.

        operator: stronger than all of them, and not to be cleared. type_of: a resource's type.
        """
        self._type_of = type_of
        self._sources = [source for source in sources if source]
        self._operator = [one for one in operator if one.pattern]
        self._of_stack = [one for one in operator if not one.pattern]
        self._cleared = [_clear_pattern(text) for text in cleared]

    def of(self, name: str, stored: Sequence[Rule] = ()) -> tuple[Rule, ...]:
        """The rules for a resource, one per point, in the order of the points.

        stored: those that were kept with the resource; they hold when nothing newer does.
        """
        if not self._sources and not stored and not self._operator:
            return ()
        return self._chosen(name, stored, self._operator)

    def of_stack(self, stored: Sequence[Rule] = ()) -> tuple[Rule, ...]:
        """The rules for the stack as a whole, one per point."""
        return self._chosen("", stored, self._of_stack)

    def _chosen(
        self, name: str, stored: Sequence[Rule], operator: Sequence[Declaration]
    ) -> tuple[Rule, ...]:
        # What the operator says now is in `operator`; what it said once is not kept.
        chosen: dict[str, Rule] = {rule.point: rule for rule in stored if not rule.by_operator}
        for source in reversed(self._sources):
            for declaration in source:
                if _matches(declaration, name):
                    chosen[declaration.rule.point] = declaration.rule
        for point in [point for point in chosen if self._is_cleared(name, point)]:
            del chosen[point]
        for declaration in operator:
            if _matches(declaration, name) and self._is_type(declaration, name):
                chosen[declaration.rule.point] = declaration.rule
        return tuple(chosen[point] for point in in_order(chosen))

    def _is_type(self, declaration: Declaration, name: str) -> bool:
        if not declaration.types:
            return True
        type_name = self._type_of(name)
        return type_name is not None and any(
            fnmatchcase(type_name, pattern) for pattern in declaration.types
        )

    def _is_cleared(self, name: str, point: str) -> bool:
        return any(
            fnmatchcase(name, pattern) and fnmatchcase(point, on) for pattern, on in self._cleared
        )


def _matches(declaration: Declaration, name: str) -> bool:
    if not name or not declaration.pattern:
        return name == declaration.pattern
    return fnmatchcase(name, declaration.pattern)


def _clear_pattern(text: str) -> tuple[str, str]:
    name, colon, point = text.rpartition(":")
    return (name, point) if colon else (text, "*")
