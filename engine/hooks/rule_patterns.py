"""The patterns of hook rules: which resources a pattern matches, in a stack and in nested stacks,
and findings for patterns that match none.

engine/hooks/precedence.py decides which of several matching rules applies.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from engine.errors import BODY, Finding, Findings, nearest
from engine.hooks.rule import decode_rule
from engine.hooks.rule_reader import Declaration
from engine.hot.syntax.globs import is_glob, matches_glob
from engine.hot.syntax.keyed_names import base_name, possible_names
from engine.words import STACK_POINTS, Json

#: Resource names, each with the tree of its nested stack; None: that is not known yet.
Tree = Mapping[str, "Tree | None"]
LEAF: Tree = {}
#: Maximum number of warnings about patterns without a match: the nearest name of each is searched.
MAX_WARNINGS = 20
#: Code of these warnings.
UNMATCHED = "UnmatchedPattern"


def check_patterns(
    declarations: Iterable[Declaration], known: Tree, findings: Findings
) -> list[Finding]:
    """Add findings for full rules that match no resource; return warnings for short ones.

    A rule with several points is several declarations in one place, and is reported once.
    """
    warnings: dict[Finding, None] = {}
    reached: dict[str, bool] = {}
    rules = {(one.place, one.pattern): one for one in declarations}
    for declaration in rules.values():
        pattern = declaration.pattern
        if pattern not in reached:
            reached[pattern] = not pattern or pattern in known or reaches(pattern, known)
        if reached[pattern]:
            continue
        reason = f'the breakpoint pattern "{pattern}" matches no resource'
        if not declaration.rule.short:
            remedy = nearest_place(pattern, known)
            findings.add(declaration.place, reason, remedy, "InvalidBreakPointHook")
        elif len(warnings) < MAX_WARNINGS:
            remedy = nearest_place(pattern, known)
            warnings[Finding(declaration.place, reason, remedy, UNMATCHED)] = None
        else:
            more = "Other breakpoint patterns match no resource either."
            warnings[Finding("", more, "", UNMATCHED)] = None
    return list(warnings)


def check_cleared(cleared_breakpoints: Sequence[str], known: Tree) -> list[Finding]:
    """Return warnings for breakpoints to skip that are at no resource."""
    warnings = []
    for number, text in enumerate(cleared_breakpoints[:MAX_WARNINGS]):
        name, colon, point = text.rpartition(":")
        pattern = name if colon else text
        everywhere = pattern in ("", "*") or (point if colon else text) in STACK_POINTS
        if not everywhere and pattern not in known and not reaches(pattern, known):
            reason = f'"{pattern}" matches no resource, so no breakpoint is skipped'
            remedy = nearest_place(pattern, known)
            warnings.append(Finding(f"hooks.clear[{number}]", reason, remedy, UNMATCHED, BODY))
    return warnings


def reaches(pattern: str, known: Tree) -> bool:
    """Return whether a path pattern matches a resource, or may match one that is not known yet."""
    head, slash, rest = pattern.partition("/")
    found = [known[name] for name in possible_names(head) if name in known]
    if not found and (base := base_name(head)) is not None and base in known:
        # The keys of a template whose stack does not exist are known later.
        keyed = any(name.startswith(f'{base}["') for name in known)
        found = [] if keyed else [known[base]]
    if is_glob(head):
        found += [below for name, below in known.items() if matches_glob(name, head)]
    return any(not slash or below is None or reaches(rest, below) for below in found)


def nearest_place(pattern: str, known: Tree) -> str:
    """Return a remedy for a path pattern without a match: the nearest path, or the known ones."""
    places = sorted(_paths_at_mismatch(pattern, known))
    return nearest(pattern, places) or f"Resources are: {', '.join(places[:8]) or 'none'}."


def _paths_at_mismatch(pattern: str, known: Tree) -> Iterator[str]:
    """Yield the paths at the level at which the pattern ceases to match."""
    head, _, rest = pattern.partition("/")
    found = [name for name in known if matches_glob(name, head) and known[name]] if rest else []
    for name in found:
        yield from (f"{name}/{below}" for below in _paths_at_mismatch(rest, known[name] or LEAF))
    if not found:
        yield from known


def matches_resource(name: str, pattern: str) -> bool:
    """Return whether a resource's name, or its path if the pattern is for paths, matches."""
    return matches_glob(name, pattern)


def pattern_inside(pattern: str, resource: str) -> str | None:
    """Return the part of a path pattern for the nested stack of a resource; None: no match."""
    head, slash, rest = pattern.partition("/")
    return rest if slash and rest and matches_glob(resource, head) else None


def pattern_at(pattern: str, path: Iterable[str]) -> str | None:
    """Return the part of a path pattern for the nested stack at a path; None: no match."""
    rest: str | None = pattern
    for name in path:
        rest = pattern_inside(rest, name) if rest is not None else None
    return rest


def declarations_of_parent(
    rows: Iterable[Mapping[str, Json]], resource: str
) -> list[tuple[Declaration, bool]]:
    """Return the rules that a stack passes on to the nested stack of a resource, each with True if
    it applies to the current change only. rows: {pattern, rule, requested}."""
    return [
        (
            Declaration(pattern, decode_rule(one["rule"]), f"a breakpoint at {one['pattern']}"),
            one["requested"],
        )
        for one in rows
        if (pattern := pattern_inside(one["pattern"], resource)) is not None
    ]


def declarations_at(declarations: Iterable[Declaration], path: Sequence[str]) -> list[Declaration]:
    """Return the declarations that apply in the nested stack at a path."""
    return [
        replace(one, pattern=pattern)
        for one in declarations
        if (pattern := pattern_at(one.pattern, path)) is not None
    ]


def cleared_inside(cleared_breakpoints: Iterable[str], resource: str) -> list[str]:
    """Return the patterns of cleared breakpoints that apply in a resource's nested stack.

    ``*`` alone clears all, on every level; as the last part of a path it clears that level.
    """
    below = {
        text: text if text == "*" else pattern_inside(text, resource)
        for text in cleared_breakpoints
    }
    return ["*:*" if found == "*" != text else found for text, found in below.items() if found]
