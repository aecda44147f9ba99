"""Breakpoints: what somebody declared, turned into rules, and which rule applies where.

Called by planning. A rule says at which resources (a glob on the path) and points a node is told
about, held or stopped. For one resource and point exactly one rule applies: a request overrides
the environment, the environment the template; among rules of one source the later one wins.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import TypeVar

from engine.errors import Findings, nearest
from engine.hot.environment import DeclaredHook
from engine.words import Json, Mode, OnTimeout, Point

RULE_KEYS = ("at", "on", "mode", "timeout", "on_timeout")
#: What the key ``on`` becomes in clients that read YAML 1.1 and send JSON.
ON_READ_AS_YAML = "true"
POINTS = tuple(point.value for point in Point)
_Choice = TypeVar("_Choice", Mode, OnTimeout)
_DURATION = re.compile(r"(\d+)\s*([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True, slots=True)
class Rule:
    """What happens at one point. timeout None: the default of the settings.

    short: Heat's short form, which asks before an update even when nothing changes.
    """

    point: Point
    mode: Mode = Mode.WAIT
    timeout: timedelta | None = None
    on_timeout: OnTimeout = OnTimeout.STOP
    short: bool = False


@dataclass(frozen=True, slots=True)
class Declaration:
    """A rule and the resources it is for: a glob on the resource's path."""

    pattern: str
    rule: Rule
    place: str


@dataclass(frozen=True, slots=True)
class Limits:
    default_timeout: timedelta
    max_timeout: timedelta


def parse_duration(text: Json) -> timedelta | None:
    """Read ``90s``, ``30m``, ``2h`` or ``1d``; None when it is none of them or zero."""
    match = _DURATION.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None or len(match[1]) > 9:
        return None
    return timedelta(**{_UNITS[match[2]]: int(match[1])}) or None


def declarations(
    declared: Iterable[DeclaredHook], findings: Findings, limits: Limits
) -> list[Declaration]:
    """Read what an environment, template or request declared; what is wrong goes to findings."""
    read: list[Declaration] = []
    for hook in declared:
        rules = (
            _short_rules(hook.item, hook.place, findings)
            if hook.short
            else _full_rules(hook.item, hook.place, findings, limits)
        )
        read.extend(Declaration(hook.pattern, rule, hook.place) for rule in rules)
    return read


def request_declarations(
    items: Sequence[Json], findings: Findings, limits: Limits
) -> list[Declaration]:
    """Read the rules that came with a request: maps with ``at``, or text ``resource:point``."""
    hooks: list[DeclaredHook] = []
    for number, item in enumerate(items):
        place = f"hooks.add[{number}]"
        if isinstance(item, str):
            name, _, point = item.rpartition(":")
            hooks.append(DeclaredHook(pattern=name, item={"on": point}, place=place, short=False))
        elif isinstance(item, Mapping):
            rest = {key: value for key, value in item.items() if key != "at"}
            hooks.append(DeclaredHook(str(item.get("at", "")), rest, place, short=False))
        else:
            findings.add(place, "is neither a rule nor a text", 'Write "resource:point" or a rule.')
    for hook in hooks:
        if not hook.pattern:
            remedy = 'Write "resource:point", or a rule with `at`.'
            findings.add(hook.place, "names no resource", remedy)
    return declarations((hook for hook in hooks if hook.pattern), findings, limits)


def _short_rules(item: Json, place: str, findings: Findings) -> list[Rule]:
    point = _point(item, place, findings)
    return [Rule(point, short=True)] if point else []


def _full_rules(item: Json, place: str, findings: Findings, limits: Limits) -> list[Rule]:
    if not isinstance(item, Mapping):
        findings.add(place, "is no rule", "Write a point, or a map with `on` and `mode`.")
        return []
    if ON_READ_AS_YAML in item and "on" not in item:
        item = {"on" if key == ON_READ_AS_YAML else key: item[key] for key in item}
    for key in item:
        if key not in RULE_KEYS:
            remedy = nearest(key, RULE_KEYS) or f"A rule knows: {', '.join(RULE_KEYS)}."
            findings.add(f"{place}.{key}", "is not known in a rule", remedy)
    asked = item.get("on")
    points = [
        _point(point, f"{place}.on", findings)
        for point in (asked if isinstance(asked, list) and asked else [asked])
    ]
    mode = _one_of(Mode, item.get("mode", Mode.WAIT), f"{place}.mode", findings)
    on_timeout = _one_of(
        OnTimeout, item.get("on_timeout", OnTimeout.STOP), f"{place}.on_timeout", findings
    )
    timeout = _timeout(item.get("timeout"), f"{place}.timeout", findings, limits)
    if mode is None or on_timeout is None:
        return []
    return [Rule(point, mode, timeout, on_timeout) for point in points if point is not None]


def _point(name: Json, place: str, findings: Findings) -> Point | None:
    if isinstance(name, str) and name in POINTS:
        return Point(name)
    said = f'Invalid hook type "{name}" for resource breakpoint'
    remedy = (nearest(name, POINTS) if isinstance(name, str) else "") or (
        f"Acceptable hook types are: {', '.join(POINTS)}."
    )
    findings.add(place, said, remedy, "InvalidBreakPointHook")
    return None


def _one_of(kind: type[_Choice], value: Json, place: str, findings: Findings) -> _Choice | None:
    known = [member.value for member in kind]
    if isinstance(value, str) and value in known:
        return kind(value)
    remedy = (nearest(value, known) if isinstance(value, str) else "") or (
        f"Write one of {', '.join(known)}."
    )
    findings.add(place, f'"{value}" is not known here', remedy)
    return None


def _timeout(text: Json, place: str, findings: Findings, limits: Limits) -> timedelta | None:
    if text is None:
        return None
    timeout = parse_duration(text)
    if timeout is None:
        findings.add(place, f'"{text}" is no time', "Write 90s, 30m, 2h or 1d.")
    elif timeout > limits.max_timeout:
        findings.add(
            place,
            f'"{text}" is more than this server allows',
            f"The most is {limits.max_timeout}; the operator sets it in [hooks] max_timeout.",
        )
    return timeout


def check_patterns(
    said: Iterable[Declaration], names: Sequence[str], findings: Findings
) -> list[str]:
    """Refuse full rules that can match nothing; return a warning for each such short one."""
    warnings: list[str] = []
    for declaration in said:
        if any(fnmatchcase(name, declaration.pattern) for name in names):
            continue
        reason = f'the breakpoint pattern "{declaration.pattern}" matches no resource'
        remedy = nearest(declaration.pattern, names) or (
            f"Resources are: {', '.join(sorted(names)[:8]) or 'none'}."
        )
        if declaration.rule.short:
            if "/" not in declaration.pattern:
                warnings.append(f"{declaration.place}: {reason}. {remedy}")
        else:
            findings.add(declaration.place, reason, remedy, "InvalidBreakPointHook")
    return list(dict.fromkeys(warnings))


class Breakpoints:
    """All rules that a request, its environment and its template declare, ready to be asked."""

    def __init__(self, *sources: Sequence[Declaration], cleared: Sequence[str] = ()) -> None:
        """sources: the strongest first. cleared: ``resource``, ``resource:point`` or ``*``."""
        self._sources = [source for source in sources if source]
        self._cleared = [_clear_pattern(text) for text in cleared]

    def of(self, name: str, stored: Sequence[Rule] = ()) -> tuple[Rule, ...]:
        """The rules for a resource, one per point, in the order of the points.

        stored: those that were kept with the resource; they hold when nothing newer does.
        """
        if not self._sources and not stored:
            return ()
        chosen: dict[Point, Rule] = {rule.point: rule for rule in stored}
        for source in reversed(self._sources):
            for declaration in source:
                if fnmatchcase(name, declaration.pattern):
                    chosen[declaration.rule.point] = declaration.rule
        return tuple(
            chosen[point]
            for point in Point
            if point in chosen and not self._is_cleared(name, point)
        )

    def _is_cleared(self, name: str, point: Point) -> bool:
        return any(
            fnmatchcase(name, pattern) and fnmatchcase(point, on) for pattern, on in self._cleared
        )


def _clear_pattern(text: str) -> tuple[str, str]:
    name, colon, point = text.rpartition(":")
    return (name, point) if colon else (text, "*")


def encode_rules(rules: Sequence[Rule]) -> Json:
    """Rules as JSON for the store; None for none."""
    return [
        {
            "point": rule.point.value,
            "mode": rule.mode.value,
            "timeout": rule.timeout.total_seconds() if rule.timeout else None,
            "on_timeout": rule.on_timeout.value,
            "short": rule.short,
        }
        for rule in rules
    ] or None


def decode_rules(stored: Json) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            Point(item["point"]),
            Mode(item["mode"]),
            timedelta(seconds=item["timeout"]) if item["timeout"] else None,
            OnTimeout(item["on_timeout"]),
            item["short"],
        )
        for item in stored or ()
    )


def with_default(rule: Rule, limits: Limits) -> Rule:
    """The rule with its timeout filled in."""
    return rule if rule.timeout else replace(rule, timeout=limits.default_timeout)
