"""Convergence policies: how often a stack is observed, and which differences are no drift. Pure.

A policy has two sources: the section `convergence` in the environment of the root stack, and the
operator's rules. For each key, the operator's last matching rule wins over the environment.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from engine.errors import Findings, nearest, one_of, quote_value
from engine.hooks.durations import format_duration, parse_span
from engine.hooks.rule_patterns import LEAF, Tree, nearest_place, pattern_at, reaches
from engine.hot.syntax.globs import check_globs, matches_glob
from engine.words import Json

SECTION = "convergence"
OBSERVE, IGNORE = "observe", "ignore"
KEYS = (OBSERVE, IGNORE)
NEVER, EVERY = "never", "every"
OBSERVE_EXAMPLE = f"Write {OBSERVE}: {{{EVERY}: 10m}}, or {OBSERVE}: {NEVER}."
IGNORE_EXAMPLE = "Write a map such as {web: [$.tags.*]}: paths by resource name."
#: Returns the paths that an observation of a resource compares, by its name; None: not known.
ObservedPaths = Callable[[str], Collection[str] | None]
#: Maximum number of patterns of resources, and of paths for each.
MAX_PATTERNS = 100


@dataclass(frozen=True, slots=True)
class ConvergencePolicy:
    """every: interval of observations; None: only on request. ignore: patterns of the paths of
    differences, by pattern of the resource. by_operator: keys that an operator rule sets."""

    every: timedelta | None = None
    ignore: Mapping[str, Sequence[str]] = field(default_factory=dict)
    by_operator: frozenset[str] = frozenset()

    def ignores(self, path: Sequence[str], name: str, difference: str) -> bool:
        """Whether a difference of a resource is no drift. path: names of the resources that lead to
        its stack from the root stack. difference: the path of a property."""
        return any(
            difference == one or matches_glob(difference, one)
            for one in self._ignored_paths(path, name)
        )

    def _ignored_paths(self, path: Sequence[str], name: str) -> Iterable[str]:
        for pattern, ignored in self.ignore.items():
            local = pattern_at(pattern, path) if "/" in pattern else pattern
            if local is not None and "/" not in local and matches_glob(name, local):
                yield from ignored


@dataclass(frozen=True, slots=True)
class OperatorPolicy:
    """A rule of the operator. projects: globs. section: in the form of the environment's. place: in
    the settings."""

    projects: Sequence[str]
    section: Mapping[str, Json]
    place: str


@dataclass(frozen=True, slots=True)
class PolicyRules:
    """The operator's rules, and the shortest interval that an environment may have."""

    operator: Sequence[OperatorPolicy] = ()
    min_interval: timedelta = timedelta(minutes=1)

    def applies_to(self, project: str) -> bool:
        """Whether an operator rule has an interval for a project."""
        policy = self.policy(None, project)
        return policy is not None and policy.every is not None

    def policy(self, section: Mapping[str, Json] | None, project: str) -> ConvergencePolicy | None:
        """The policy of a stack; None: it has none. section: of its environment, which was
        valid when it was stored."""
        rules = self._of_operator(project)
        whole = {**_without_nulls(section or {}), **rules}
        if not whole:
            return None
        every = _read_interval(whole.get(OBSERVE), "", Findings())
        if every is not None and OBSERVE not in rules:
            every = max(every, self.min_interval)
        ignore = _read_ignore(whole.get(IGNORE), "", Findings())
        return ConvergencePolicy(every, ignore, frozenset(rules))

    def check(
        self, section: Json, project: str, known: Tree, paths: ObservedPaths, findings: Findings
    ) -> None:
        """Add findings about the section of an environment, and warnings. known: the resources of
        the stack."""
        read_section(section, SECTION, findings)
        if not isinstance(section, Mapping):
            return
        self._check_interval(section, findings)
        _check_matches(_read_ignore(section.get(IGNORE), "", Findings()), known, paths, findings)
        for key, rule in self._rules_by_key(project).items():
            if section.get(key) is not None and section[key] != rule.section[key]:
                findings.warn(
                    f"{SECTION}.{key}",
                    "has no effect, because a rule of the operator sets it",
                    f"Remove it. {rule.place} applies.",
                    "NoEffect",
                )

    def _check_interval(self, section: Mapping[str, Json], findings: Findings) -> None:
        every = _read_interval(section.get(OBSERVE), "", Findings())
        if every is not None and every < self.min_interval:
            shortest = format_duration(self.min_interval)
            findings.warn(
                f"{SECTION}.{OBSERVE}.{EVERY}",
                f"is shorter than {shortest}, the shortest interval here, which applies instead",
                f"Write {shortest}. The operator sets the shortest: [convergence] min_interval.",
                "NoEffect",
            )

    def _of_operator(self, project: str) -> dict[str, Json]:
        return {key: rule.section[key] for key, rule in self._rules_by_key(project).items()}

    def _rules_by_key(self, project: str) -> dict[str, OperatorPolicy]:
        """By key, the rule that sets it: the last one that applies to the project."""
        return {
            key: rule
            for rule in self.operator
            if any(matches_glob(project, pattern) for pattern in rule.projects)
            for key in rule.section
        }


def read_section(section: Json, place: str, findings: Findings) -> None:
    """Add findings about a section that need neither resources nor the operator's rules."""
    if not isinstance(section, Mapping):
        findings.add(place, "must be a map", OBSERVE_EXAMPLE)
        return
    for key in section:
        if key not in KEYS:
            remedy = nearest(str(key), KEYS) or f"Known: {', '.join(KEYS)}."
            findings.add(f"{place}.{key}", "is not a known key", remedy)
    _read_interval(section.get(OBSERVE), f"{place}.{OBSERVE}", findings)
    _read_ignore(section.get(IGNORE), f"{place}.{IGNORE}", findings)


def _read_interval(value: Json, place: str, findings: Findings) -> timedelta | None:
    if value is None or value == NEVER:
        return None
    if not isinstance(value, Mapping) or set(value) != {EVERY}:
        findings.add(place, f"{quote_value(value)} is not an interval", OBSERVE_EXAMPLE)
        return None
    every = parse_span(value[EVERY])
    if every is None:
        reason = f"{quote_value(value[EVERY])} is not a duration"
        findings.add(f"{place}.{EVERY}", reason, "Write a duration such as 90s, 10m, 2h or 1d.")
    return every


def _read_ignore(value: Json, place: str, findings: Findings) -> dict[str, Sequence[str]]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(one, str) and one for one in value):
        findings.add(place, "must be a map", IGNORE_EXAMPLE)
        return {}
    if len(value) > MAX_PATTERNS:
        reason = f"has {len(value)} patterns; at most {MAX_PATTERNS} are allowed"
        findings.add(place, reason, "Combine patterns, for example web*.")
        return {}
    check_globs([(place, one) for one in value], "resources", place, findings)
    ignore: dict[str, Sequence[str]] = {}
    for pattern, paths in value.items():
        here = f"{place}.{pattern}"
        if not isinstance(paths, list) or not all(isinstance(one, str) and one for one in paths):
            findings.add(here, "must be a list of paths", IGNORE_EXAMPLE)
        elif not paths:
            findings.add(here, "is empty, so it ignores nothing", "Add a path, or remove it.")
        elif len(paths) > MAX_PATTERNS:
            reason = f"has {len(paths)} paths; at most {MAX_PATTERNS} are allowed"
            findings.add(here, reason, "Combine paths, for example $.tags.*")
        else:
            check_globs([(here, one) for one in paths], "paths", here, findings)
            ignore[pattern] = list(paths)
    return ignore


def _without_nulls(section: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in section.items() if value is not None}


def _check_matches(
    ignore: Mapping[str, Sequence[str]], known: Tree, paths: ObservedPaths, findings: Findings
) -> None:
    """Add findings for patterns of resources without a match, and for paths that no matching
    resource has."""
    for pattern, ignored in ignore.items():
        place = f"{SECTION}.{IGNORE}.{pattern}"
        if not _reaches(pattern, known):
            reason = f'the pattern "{pattern}" matches no resource'
            findings.add(place, reason, nearest_place(pattern, known))
            continue
        names = [name for name, below in known.items() if below == LEAF]
        matching = [paths(name) for name in names if matches_glob(name, pattern)]
        if not matching or None in matching or _reaches_below(pattern, known):
            continue
        compared = sorted({path for one in matching for path in one or ()})
        for one in ignored:
            if not any(path == one or matches_glob(path, one) for path in compared):
                reason = f'the path "{one}" matches no property that is compared'
                findings.add(place, reason, one_of(one, compared, "Compared are"))


def _reaches(pattern: str, known: Tree) -> bool:
    """Whether a pattern matches a resource, or may match one that is not known yet. A name matches
    on every level."""
    return pattern in known or reaches(pattern, known) or _reaches_below(pattern, known)


def _reaches_below(pattern: str, known: Tree) -> bool:
    return "/" not in pattern and any(
        below is None or _reaches(pattern, below) for below in known.values()
    )
