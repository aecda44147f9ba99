"""Selects the hook rule for a resource and point.

At most one rule applies. Precedence: the operator's rules, live breakpoints, the request, the
environment, the template; within one source the later rule wins.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from engine.errors import Findings, nearest
from engine.hooks.rule import Rule, in_order
from engine.hooks.rule_reader import Declaration
from engine.hot.syntax.globs import is_glob, matches_glob

#: Resource names, each with the tree of its nested stack; None: that is not known yet.
Tree = Mapping[str, "Tree | None"]
LEAF: Tree = {}


def check_patterns(
    declarations: Iterable[Declaration], known: Tree, findings: Findings
) -> list[str]:
    """Add findings for full rules that match no resource; return warnings for short ones.

    A rule with several points is several declarations in one place, and is reported once.
    """
    warnings: list[str] = []
    rules = {(one.place, one.pattern): one for one in declarations}
    for declaration in rules.values():
        pattern = declaration.pattern
        if not pattern or pattern in known or reaches(pattern, known):
            continue
        reason = f'the breakpoint pattern "{pattern}" matches no resource'
        remedy = nearest_place(pattern, known)
        if declaration.rule.short:
            warnings.append(f"{declaration.place}: {reason}. {remedy}")
        else:
            findings.add(declaration.place, reason, remedy, "InvalidBreakPointHook")
    return list(dict.fromkeys(warnings))


def reaches(pattern: str, known: Tree) -> bool:
    """Return whether a path pattern matches a resource, or may match one that is not known yet."""
    head, inside, rest = pattern.partition("/")
    found = [known[head]] if head in known else []
    if is_glob(head):
        found += [below for name, below in known.items() if matches_glob(name, head)]
    return any(not inside or below is None or reaches(rest, below) for below in found)


def nearest_place(pattern: str, known: Tree) -> str:
    """Return a remedy for a path pattern without a match: the nearest path, or the known ones."""
    places = sorted(_beside(pattern, known))
    return nearest(pattern, places) or f"Resources are: {', '.join(places[:8]) or 'none'}."


def _beside(pattern: str, known: Tree) -> Iterator[str]:
    """Yield the paths at the level at which the pattern ceases to match."""
    head, _, rest = pattern.partition("/")
    found = [name for name in known if matches_glob(name, head) and known[name]] if rest else []
    for name in found:
        yield from (f"{name}/{below}" for below in _beside(rest, known[name] or LEAF))
    if not found:
        yield from known


def inside(pattern: str, resource: str) -> str | None:
    """Return the part of a path pattern for the nested stack of a resource; None: no match."""
    head, slash, rest = pattern.partition("/")
    return rest if slash and rest and matches_glob(resource, head) else None


def led(pattern: str, path: Iterable[str]) -> str | None:
    """Return the part of a path pattern for the nested stack at a path; None: no match."""
    rest: str | None = pattern
    for name in path:
        rest = inside(rest, name) if rest is not None else None
    return rest


def led_to(declarations: Iterable[Declaration], path: Sequence[str]) -> list[Declaration]:
    """Return the declarations that apply in the nested stack at a path."""
    return [
        replace(one, pattern=pattern)
        for one in declarations
        if (pattern := led(one.pattern, path)) is not None
    ]


def _unknown_type(name: str) -> str | None:
    return None


class Breakpoints:
    """The rules of a change, by resource."""

    def __init__(
        self,
        *sources: Sequence[Declaration],
        cleared: Sequence[str] = (),
        operator: Sequence[Declaration] = (),
        type_of: Callable[[str], str | None] = _unknown_type,
    ) -> None:
        """sources: in descending precedence. cleared: ``resource``, ``resource:point`` or ``*``.

        operator: precede all sources and cannot be cleared. type_of: a resource's type.
        """
        self._type_of = type_of
        self._sources = [_Source(source) for source in sources if source]
        self._operator = _Source([one for one in operator if one.pattern])
        self._of_stack = _Source([one for one in operator if not one.pattern])
        self._cleared = [_clear_pattern(text) for text in cleared]

    def of(self, name: str, stored: Sequence[Rule] = ()) -> tuple[Rule, ...]:
        """Return the rules of a resource, one per point, in the order of the points.

        stored: rules stored with the resource; they have the lowest precedence.
        """
        if not self._sources and not stored and not self._operator.some:
            return ()
        return self._chosen(name, stored, self._operator)

    def of_stack(self, stored: Sequence[Rule] = ()) -> tuple[Rule, ...]:
        """Return the rules for the stack as a whole, one per point."""
        return self._chosen("", stored, self._of_stack)

    def _chosen(self, name: str, stored: Sequence[Rule], operator: "_Source") -> tuple[Rule, ...]:
        # The current rules of the operator are in `operator`; earlier ones no longer apply.
        chosen: dict[str, Rule] = {rule.point: rule for rule in stored if not rule.by_operator}
        for source in reversed(self._sources):
            for declaration in source.of(name):
                chosen[declaration.rule.point] = declaration.rule
        for point in [point for point in chosen if self._is_cleared(name, point)]:
            del chosen[point]
        for declaration in operator.of(name):
            if self._is_type(declaration, name):
                chosen[declaration.rule.point] = declaration.rule
        return tuple(chosen[point] for point in in_order(chosen))

    def _is_type(self, declaration: Declaration, name: str) -> bool:
        if not declaration.types:
            return True
        type_name = self._type_of(name)
        return type_name is not None and any(
            matches_glob(type_name, pattern) for pattern in declaration.types
        )

    def _is_cleared(self, name: str, point: str) -> bool:
        return any(
            matches_glob(name, pattern) and matches_glob(point, on) for pattern, on in self._cleared
        )


class _Source:
    """Declarations of one source, indexed by resource name or glob; "" is the stack."""

    def __init__(self, declarations: Sequence[Declaration]) -> None:
        self.some = bool(declarations)
        self._by_name: dict[str, list[tuple[int, Declaration]]] = {}
        self._by_glob: dict[str, list[tuple[int, Declaration]]] = {}
        for number, one in enumerate(declarations):
            table = self._by_glob if is_glob(one.pattern) else self._by_name
            table.setdefault(one.pattern, []).append((number, one))

    def of(self, name: str) -> list[Declaration]:
        """Return those that match a name, in the order of the source."""
        found = list(self._by_name.get(name, ()))
        if name:
            for glob, entries in self._by_glob.items():
                if matches_glob(name, glob):
                    found += entries
        return [one for _, one in sorted(found, key=itemgetter(0))]


def cleared_inside(cleared: Iterable[str], resource: str) -> list[str]:
    """Return the patterns of cleared breakpoints that apply in a resource's nested stack.

    ``*`` alone clears all, on every level; as the last part of a path it clears that level.
    """
    below = {text: text if text == "*" else inside(text, resource) for text in cleared}
    return ["*:*" if found == "*" != text else found for text, found in below.items() if found]


def _clear_pattern(text: str) -> tuple[str, str]:
    name, colon, point = text.rpartition(":")
    return (name, point) if colon else (text, "*")
