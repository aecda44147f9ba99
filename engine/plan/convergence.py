"""Convergence policies: how often a stack is observed, and which differences are no drift. Pure.

A policy has three sources: the section `convergence` in the template and in the environment of the
root stack, and the operator's rules. For each key, the environment wins over the template, and the
operator's last matching rule over both.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from engine.errors import Findings, nearest, one_of, quote_value
from engine.hooks.drift_hooks import read_hold
from engine.hooks.durations import format_duration, parse_span
from engine.hooks.rule_patterns import LEAF, UNMATCHED, Tree, nearest_place, pattern_at, reaches
from engine.hot.syntax.globs import check_globs, matches_glob
from engine.weekly_window import WeeklyWindow, read_window
from engine.words import Json, OnDrift

SECTION = "convergence"
OBSERVE, ON_DRIFT, IGNORE, TOLERATE = "observe", "on_drift", "ignore", "tolerate"
REPAIRS_PER_DAY, WINDOW, HOLD = "repairs_per_day", "window", "hold"
KEYS = (OBSERVE, ON_DRIFT, IGNORE, TOLERATE, REPAIRS_PER_DAY, WINDOW, HOLD)
#: Reactions to drift, which need observations.
REACTIONS = (OnDrift.NOTIFY, OnDrift.HOLD, OnDrift.REPAIR)
#: Keys without effect unless `on_drift` has one of these values.
NEEDED = {
    TOLERATE: REACTIONS,
    REPAIRS_PER_DAY: (OnDrift.REPAIR,),
    WINDOW: (OnDrift.REPAIR,),
    HOLD: (OnDrift.HOLD,),
}
DEFAULT_REPAIRS, MAX_REPAIRS = 5, 1000
NEVER, EVERY = "never", "every"
OBSERVE_EXAMPLE = f"Write {OBSERVE}: {{{EVERY}: 10m}}, or {OBSERVE}: {NEVER}."
IGNORE_EXAMPLE = "Write a map such as {web: [$.tags.*]}: paths by resource name."
#: Returns the resources that a pattern matches, by their path from the root stack, with the paths
#: that their observations compare; None: not known. Unknown resources of a nested stack are one.
ObservedPaths = Callable[[str], Iterable[tuple[str, Collection[str] | None]]]
#: Longer durations get a warning.
MAX_DURATION = timedelta(days=365)
#: Maximum number of resources that a warning names.
MAX_NAMED = 3
CHECK_PATH = "Check it: `headgate stack drift` shows the paths of differences."
#: Maximum number of patterns of resources, and of paths for all of them; characters of a pattern.
MAX_PATTERNS, MAX_LENGTH = 100, 200


@dataclass(frozen=True, slots=True)
class ConvergencePolicy:
    """every: interval of observations; None: only on request. ignore: patterns of the paths of
    differences, by pattern of the resource. tolerate: how long drift must last until it is reported
    or repaired. repairs: maximum number within a day. window: when they may start; None: always.
    by_operator: keys that an operator rule sets. hold: who may answer drift hooks, in the form of
    the environment's; None: all approvers.
    """

    every: timedelta | None = None
    on_drift: OnDrift = OnDrift.IGNORE
    ignore: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tolerate: timedelta = timedelta(0)
    repairs: int = DEFAULT_REPAIRS
    window: WeeklyWindow | None = None
    by_operator: frozenset[str] = frozenset()
    hold: Json = None

    def repairs_in(self, now: datetime) -> timedelta | None:
        """The time until repairs may start; None: never."""
        if self.on_drift is not OnDrift.REPAIR:
            return None
        return self.window.opens_in(now) if self.window else timedelta(0)

    def ignored_paths(self, path: Sequence[str], name: str) -> tuple[str, ...]:
        """The patterns of the differences of a resource that are no drift; see `ignores`. path:
        names of the resources that lead to its stack from the root stack."""
        found: list[str] = []
        for pattern, ignored in self.ignore.items():
            local = pattern_at(pattern, path) if "/" in pattern else pattern
            if local is not None and "/" not in local and matches_glob(name, local):
                found += ignored
        return tuple(found)


def ignores(ignored: Sequence[str], difference: str) -> bool:
    """Whether a difference is no drift. ignored: see `ignored_paths`. difference: the path of a
    property."""
    return any(difference == one or matches_glob(difference, one) for one in ignored)


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
        return ConvergencePolicy(
            every,
            _read_reaction(whole.get(ON_DRIFT), "", Findings()),
            _read_ignore(whole.get(IGNORE), "", Findings()),
            _read_tolerance(whole.get(TOLERATE), "", Findings()),
            _read_repairs(whole.get(REPAIRS_PER_DAY), "", Findings()),
            read_window(whole.get(WINDOW), "", Findings()),
            frozenset(rules),
            whole.get(HOLD),
        )

    def check(
        self, section: Json, project: str, known: Tree, paths: ObservedPaths, findings: Findings
    ) -> None:
        """Add findings about the section of an environment, and warnings. known: the resources of
        the stack."""
        read_section(section, SECTION, findings)
        if not isinstance(section, Mapping):
            return
        self._check_interval(section, findings)
        _check_lengths(section, findings)
        self._check_effect(section, project, findings)
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

    def _check_effect(self, section: Mapping[str, Json], project: str, findings: Findings) -> None:
        """Add findings for keys that contradict others."""
        rules = self._rules_by_key(project)
        if section.get(ON_DRIFT) in REACTIONS and ON_DRIFT not in rules:
            rule = rules.get(OBSERVE)
            observe = rule.section[OBSERVE] if rule else section.get(OBSERVE)
            if observe is None or observe == NEVER:
                reason = "needs observations, but the stack is never observed"
                if rule:
                    remedy = f"Remove it. {rule.place} of the operator says {OBSERVE}: {NEVER}."
                else:
                    remedy = f"Write {OBSERVE}: {{{EVERY}: 10m}}."
                findings.add(f"{SECTION}.{ON_DRIFT}", reason, remedy)
        if ON_DRIFT not in rules:
            _check_needed(section, SECTION, findings)

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


def merge_sections(template: Json, environment: Json) -> Json:
    """Return the section of a stack; None: it has none. template, environment: their sections; one
    that is not a map is returned as it is. A null in the environment removes a key of the
    template."""
    given = [one for one in (template, environment) if one is not None]
    wrong = [one for one in given if not isinstance(one, Mapping)]
    if wrong or not given:
        return wrong[0] if wrong else None
    return {key: value for one in given for key, value in one.items()}


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
    _read_reaction(section.get(ON_DRIFT), f"{place}.{ON_DRIFT}", findings)
    _read_ignore(section.get(IGNORE), f"{place}.{IGNORE}", findings)
    _read_tolerance(section.get(TOLERATE), f"{place}.{TOLERATE}", findings)
    _read_repairs(section.get(REPAIRS_PER_DAY), f"{place}.{REPAIRS_PER_DAY}", findings)
    read_window(section.get(WINDOW), f"{place}.{WINDOW}", findings)
    read_hold(section.get(HOLD), f"{place}.{HOLD}", findings)


def _check_lengths(section: Mapping[str, Json], findings: Findings) -> None:
    """Warn of durations after which nothing is observed or reported any more."""
    every = _read_interval(section.get(OBSERVE), "", Findings())
    tolerate = _read_tolerance(section.get(TOLERATE), "", Findings())
    for key, length, remedy in (
        (f"{OBSERVE}.{EVERY}", every, f"Write a shorter interval, or {OBSERVE}: {NEVER}."),
        (TOLERATE, tolerate, f"Write a shorter time, or {ON_DRIFT}: {OnDrift.IGNORE}."),
    ):
        if length is not None and length > MAX_DURATION:
            longest = format_duration(MAX_DURATION)
            reason = f"is longer than {longest}; until then, drift is not found or reported"
            findings.warn(f"{SECTION}.{key}", reason, remedy, "NoEffect")


def _check_needed(section: Mapping[str, Json], place: str, findings: Findings) -> None:
    for key, reactions in NEEDED.items():
        if section.get(key) is not None and section.get(ON_DRIFT) not in reactions:
            needed = " or ".join(reactions)
            reason = f"has no effect without {ON_DRIFT}: {needed}"
            findings.add(f"{place}.{key}", reason, f"Remove it, or write {ON_DRIFT}: {needed}.")


def _read_reaction(value: Json, place: str, findings: Findings) -> OnDrift:
    if value is None:
        return OnDrift.IGNORE
    known = [one.value for one in OnDrift]
    if value not in known:
        reason = f"{quote_value(value)} is not a reaction to drift"
        findings.add(place, reason, nearest(str(value), known) or f"Known: {', '.join(known)}.")
        return OnDrift.IGNORE
    return OnDrift(value)


def _read_tolerance(value: Json, place: str, findings: Findings) -> timedelta:
    tolerate = parse_span(value)
    if tolerate is None and value is not None:
        reason = f"{quote_value(value)} is not a duration"
        findings.add(place, reason, "Write a duration such as 90s, 10m, 2h or 1d.")
    return tolerate or timedelta(0)


def _read_repairs(value: Json, place: str, findings: Findings) -> int:
    if value is None:
        return DEFAULT_REPAIRS
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_REPAIRS:
        reason = f"{quote_value(value)} is not a number from 1 to {MAX_REPAIRS}"
        findings.add(place, reason, f"For no repairs, write {ON_DRIFT}: {OnDrift.NOTIFY}.")
        return DEFAULT_REPAIRS
    return value


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
    lists = [one for one in value.values() if isinstance(one, list)]
    if (count := sum(map(len, lists))) > MAX_PATTERNS:
        reason = f"has {count} paths; at most {MAX_PATTERNS} are allowed in all"
        findings.add(place, reason, "Combine paths, for example $.tags.*")
        return {}
    texts = [*value, *(text for one in lists for text in one if isinstance(text, str))]
    if (length := max(map(len, texts), default=0)) > MAX_LENGTH:
        reason = f"has a pattern with {length} characters; at most {MAX_LENGTH} are allowed"
        findings.add(place, reason, "Shorten it with *.")
        return {}
    check_globs([(place, one) for one in value], "resources", place, findings)
    ignore: dict[str, Sequence[str]] = {}
    for pattern, paths in value.items():
        here = f"{place}.{pattern}"
        if not isinstance(paths, list) or not all(isinstance(one, str) and one for one in paths):
            findings.add(here, "must be a list of paths", IGNORE_EXAMPLE)
        elif not paths:
            findings.add(here, "is empty, so it ignores nothing", "Add a path, or remove it.")
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
    resource has; warnings, if it is not known what some of these compare."""
    for pattern, ignored in ignore.items():
        place = f"{SECTION}.{IGNORE}.{pattern}"
        if not _reaches(pattern, known):
            reason = f'the pattern "{pattern}" matches no resource'
            findings.add(place, reason, nearest_place(pattern, known))
            continue
        matching = dict(paths(pattern))
        compared = sorted({path for found in matching.values() for path in found or ()})
        unknown = sorted(name for name, found in matching.items() if found is None)
        for one in ignored:
            if any(path == one or matches_glob(path, one) for path in compared):
                continue
            reason = f'the path "{one}" matches no property that is compared'
            if unknown or not matching:
                which = f'the path "{one}" matches no property that is known to be compared'
                those = _join_names(unknown, pattern)
                reason = f"{which}; what is compared of {those} is not known"
                remedy = nearest(one, compared) or CHECK_PATH
                findings.warn(place, reason, remedy, UNMATCHED)
            elif not compared and (inside := _inside(pattern, known)):
                remedy = f'For the resources of its nested stack, write "{inside}".'
                findings.add(place, reason, remedy)
            else:
                findings.add(place, reason, one_of(one, compared, "Compared are"))


def _join_names(resources: Sequence[str], pattern: str) -> str:
    if not resources:
        return pattern
    more = len(resources) - MAX_NAMED
    return f"{', '.join(resources[:MAX_NAMED])}{f' and {more} more' if more > 0 else ''}"


def _inside(pattern: str, known: Tree) -> str:
    """The pattern of the resources of a nested stack; "": the pattern is not the name of one."""
    return f"{pattern}/*" if known.get(pattern, LEAF) != LEAF else ""


def _reaches(pattern: str, known: Tree) -> bool:
    """Whether a pattern matches a resource, or may match one that is not known yet. A name matches
    on every level."""
    return pattern in known or reaches(pattern, known) or _reaches_below(pattern, known)


def _reaches_below(pattern: str, known: Tree) -> bool:
    return "/" not in pattern and any(
        below is None or _reaches(pattern, below) for below in known.values()
    )
