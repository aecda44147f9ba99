"""Reads and checks rules from documents and requests. Findings have a place and a remedy."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import jsonschema_rs
import orjson

from engine.errors import Findings, nearest, quote_value
from engine.hooks.durations import parse_duration
from engine.hooks.rule import (
    ANY_PROPERTY,
    REQUESTER,
    SUBSCRIPTION,
    TOKEN,
    Escalation,
    HookLimits,
    Rule,
    is_confirm,
)
from engine.hot.environment.environment import HookDeclaration
from engine.hot.functions.function import FunctionError
from engine.hot.schema.schema_cost import PATTERN_OPTIONS, SchemaRefused, schema_cost
from engine.hot.syntax.globs import check_globs, is_glob
from engine.words import CONFIRM, DRIFT, REPEATED, STACK_POINTS, Json, Mode, OnTimeout, Point

#: Keys of a rule besides ``at``, its resources.
KEYS = (
    "on", "mode", "timeout", "on_timeout", "approvals", "answer_by", "exclude", "when", "ask",
    "remind", "escalate", "patch", "at_most", "watch",
)  # fmt: skip
RULE_KEYS = ("at", *KEYS)
#: Keys that apply only to hooks that wait for an answer.
OF_ANSWERS = (
    "approvals", "answer_by", "exclude", "ask", "remind", "escalate", "patch", "at_most", "watch",
)  # fmt: skip
#: The key ``on`` after a client has read YAML 1.1 and sent JSON.
ON_READ_AS_YAML = "true"
POINTS = tuple(point.value for point in Point)
#: Points at which the resource has no object that is observed.
UNWATCHED = frozenset(
    {Point.PRE_CREATE, Point.POST_DELETE, Point.POST_SUSPEND, Point.PRE_RESUME, *REPEATED}
)
#: Points of resources at which a rule can have `watch`.
WATCHED = tuple(one for one in POINTS if one not in UNWATCHED)
#: Maximum number of approvals of a hook.
MAX_APPROVALS = 100
#: Maximum characters of a schema in `ask`.
MAX_SCHEMA_LENGTH = 16_384
_Choice = TypeVar("_Choice", Mode, OnTimeout)
#: Who may answer: a person or all with a role.
WHO = re.compile(r"(?:user|role):[^\s:][^:]*")
#: In `answer_by` and `escalate`.
ANSWERER = re.compile(r"(?:user|role|subscription):[^\s:][^:]*")

#: (condition, its place) -> whether it is true. Raises FunctionError.
Decide = Callable[[Json, str], bool]


@dataclass(frozen=True, slots=True)
class Declaration:
    """A rule and its resources. pattern: a glob on the resource's path; "" for the stack.

    types: globs on resource types, in an operator's rule; empty: any.
    """

    pattern: str
    rule: Rule
    place: str
    types: tuple[str, ...] = ()


def no_conditions(condition: Json, place: str) -> bool:
    raise FunctionError(
        "A condition is not possible here, because there are no parameters", "Remove it."
    )


@dataclass(slots=True)
class Reader:
    """Reads the rules of one document or request; adds errors to `findings`.

    decide: evaluates a rule's `when`. steps: the known confirmation steps; None: any.
    """

    findings: Findings
    limits: HookLimits
    decide: Decide = no_conditions
    steps: Collection[str] | None = ()

    def declarations(self, declared: Iterable[HookDeclaration]) -> list[Declaration]:
        """Return a declaration for each rule and point, without those whose `when` is false."""
        declared = list(declared)
        patterns = [(hook.place, hook.pattern) for hook in declared]
        check_globs(patterns, "resources", "hooks", self.findings)
        return [
            Declaration(hook.pattern, rule, hook.place)
            for hook in declared
            for rule in (self._short(hook) if hook.short else self._full(hook))
        ]

    def check_cleared(self, cleared_breakpoints: Sequence[str], place: str = "hooks.clear") -> None:
        """Check the patterns of breakpoints to skip."""
        texts = [(f"{place}[{number}]", text) for number, text in enumerate(cleared_breakpoints)]
        check_globs(texts, "resources", place, self.findings)
        for here, text in texts:
            _, colon, point = text.rpartition(":")
            if colon and not is_glob(point):
                self._point(point, here)

    def read_requested(self, items: Sequence[Json], place: str = "hooks.add") -> list[Declaration]:
        """Read rules of a request: maps with ``at``, or texts ``resource:point``."""
        hooks: list[HookDeclaration] = []
        for number, item in enumerate(items):
            here = f"{place}[{number}]"
            if isinstance(item, str):
                name, _, point = item.rpartition(":")
                hooks.append(HookDeclaration(name, {"on": point}, here, short=False))
            elif isinstance(item, Mapping):
                rest = {key: value for key, value in item.items() if key != "at"}
                hooks.append(HookDeclaration(str(item.get("at") or ""), rest, here, short=False))
            else:
                remedy = 'Write "resource:point" or a rule.'
                self.findings.add(here, "is neither a rule nor a string", remedy)
        return self.declarations(hooks)

    def fields(self, item: Mapping[str, Json], place: str) -> dict[str, Any]:
        """Return the fields of a rule without its point; those that are not in `item` have their
        default."""
        return self._rule(item, place)

    def _short(self, hook: HookDeclaration) -> list[Rule]:
        point = self._point(hook.item, hook.place)
        if point in STACK_POINTS:
            remedy = "Write it in the top-level list `hooks`, without `at`."
            self.findings.add(hook.place, f"{point} is a point of the whole stack", remedy)
            return []
        return [Rule(point, short=True)] if point else []

    def _full(self, hook: HookDeclaration) -> list[Rule]:
        item, place = hook.item, hook.place
        if not isinstance(item, Mapping):
            remedy = "Write a point, or a map with `on` and `mode`."
            self.findings.add(place, "is not a rule", remedy)
            return []
        if ON_READ_AS_YAML in item and "on" not in item:
            item = {"on" if key == ON_READ_AS_YAML else key: item[key] for key in item}
        for key in item:
            if key not in KEYS:
                remedy = nearest(key, KEYS) or f"Known keys: {', '.join(RULE_KEYS)}."
                self.findings.add(f"{place}.{key}", "is not a key of a rule", remedy)
        before = len(self.findings.all)
        rule = self._rule(item, place)
        points = self._points(item.get("on"), hook)
        self._check_watched(points, watch=rule["watch"], place=place)
        if len(self.findings.all) > before or not self._holds(item, place):
            return []
        return [Rule(point, **rule) for point in points]

    def _points(self, value: Json, hook: HookDeclaration) -> list[str]:
        place = f"{hook.place}.on"
        values = value if isinstance(value, list) and value else [value]
        points = [found for one in values if (found := self._point(one, place)) is not None]
        points = list(dict.fromkeys(points))
        of_stack = [point for point in points if point in STACK_POINTS]
        if hook.pattern and of_stack:
            remedy = "Leave out `at`, and write points of resources in a rule of their own."
            self.findings.add(place, f"{of_stack[0]} is a point of the whole stack", remedy)
        elif not hook.pattern and len(of_stack) < len(points):
            remedy = 'Write a map such as {at: "db_*", on: [pre-update], mode: wait}.'
            self.findings.add(f"{hook.place}.at", "names no resource", remedy)
        return points

    def _point(self, name: Json, place: str) -> str | None:
        known = [*POINTS, *(f"{CONFIRM}{step}" for step in sorted(self.steps or ()))]
        if isinstance(name, str):
            inside = self.steps is None and name.startswith(CONFIRM) and name != CONFIRM
            if inside or name in known or name in STACK_POINTS:
                return name
        reason = f'Invalid hook type "{name}" for resource breakpoint'
        near = nearest(name, [*known, *STACK_POINTS]) if isinstance(name, str) else ""
        remedy = near or f"Acceptable hook types are: {', '.join(known)}."
        if name == DRIFT:
            remedy = "Write on_drift: hold in the section convergence of the environment."
        self.findings.add(
            place,
            reason,
            remedy,
            "InvalidBreakPointHook",
            sentence=f"{reason}, acceptable hook types are: {POINTS}",
        )
        return None

    def _rule(self, item: Mapping[str, Json], place: str) -> dict[str, Any]:
        """Return the fields of a rule without its point."""
        values: dict[str, Any] = {
            "mode": self._one_of(Mode, item.get("mode", Mode.WAIT), f"{place}.mode"),
            "on_timeout": self._one_of(
                OnTimeout, item.get("on_timeout", OnTimeout.STOP), f"{place}.on_timeout"
            ),
            "approvals": self._approvals(item.get("approvals", 1), f"{place}.approvals"),
            "answer_by": self._answerers(item.get("answer_by"), f"{place}.answer_by"),
            "exclude": self._exclude(item.get("exclude"), f"{place}.exclude"),
            "ask": self._ask(item.get("ask"), f"{place}.ask"),
            "escalate": self._escalate(item.get("escalate"), f"{place}.escalate"),
            "patch": self._patch(item.get("patch"), f"{place}.patch"),
            "watch": self._flag(item.get("watch"), f"{place}.watch"),
        }
        for name in ("timeout", "remind", "at_most"):
            values[name] = self._time(item.get(name), f"{place}.{name}")
        self._check_consistency(values, item, place)
        return values

    def _check_consistency(
        self, values: Mapping[str, Any], item: Mapping[str, Json], place: str
    ) -> None:
        """Check fields that are valid alone and contradict each other."""
        people, needed = values["answer_by"], values["approvals"]
        # All subscriptions in the settings count as one principal.
        most_of = {SUBSCRIPTION if one.startswith(SUBSCRIPTION) else one for one in people}
        named = people and not any(one.startswith("role:") for one in people)
        if named and needed is not None and needed > len(most_of):
            reason = f"{needed} principals must approve, but only {len(most_of)} may answer"
            self.findings.add(f"{place}.approvals", reason, "Name more in answer_by, or a role.")
        timeout, at_most = values["timeout"] or self.limits.default_timeout, values["at_most"]
        if at_most is not None and at_most < timeout:
            remedy = f"Both count from the hook's opening, and the timeout is {timeout}."
            self.findings.add(f"{place}.at_most", "is shorter than the timeout", remedy)
        if values["mode"] in (Mode.NOTIFY, Mode.STOP):
            for name in OF_ANSWERS:
                if item.get(name) is not None:
                    reason = f"is not valid with mode {values['mode']}"
                    self.findings.add(
                        f"{place}.{name}", reason, "Only waiting hooks can be answered."
                    )

    def _check_watched(self, points: Sequence[str], *, watch: bool, place: str) -> None:
        """Check that there is an object to observe while the hook waits."""
        wrong = [
            one for one in points if one in STACK_POINTS or one in UNWATCHED or is_confirm(one)
        ]
        if watch and wrong:
            reason = f"is not possible at {wrong[0]}"
            remedy = f"Write a rule of its own with watch, for the points {', '.join(WATCHED)}."
            self.findings.add(f"{place}.watch", reason, remedy)

    def _flag(self, value: Json, place: str) -> bool:
        if value is None or isinstance(value, bool):
            return bool(value)
        self.findings.add(
            place, f"{quote_value(value)} is not a valid value", "Write true or false."
        )
        return False

    def _one_of(self, kind: type[_Choice], value: Json, place: str) -> _Choice | None:
        known = [member.value for member in kind]
        if isinstance(value, str) and value in known:
            return kind(value)
        near = nearest(value, known) if isinstance(value, str) else ""
        remedy = near or f"Write one of {', '.join(known)}."
        self.findings.add(place, f"{quote_value(value)} is not a valid value", remedy)
        return None

    def _time(self, text: Json, place: str) -> timedelta | None:
        if text is None:
            return None
        time = parse_duration(text)
        if time is None:
            self.findings.add(
                place, f"{quote_value(text)} is not a valid time", "Write 90s, 30m, 2h or 1d."
            )
        elif time > self.limits.max_timeout:
            limit = self.limits.max_timeout
            remedy = f"The maximum is {limit}; the operator sets it in [hooks] max_timeout."
            self.findings.add(place, f'"{text}" is more than this server allows', remedy)
        return time

    def _approvals(self, number: Json, place: str) -> int | None:
        if type(number) is int and 1 <= number <= MAX_APPROVALS:
            return number
        remedy = f"Write a number of people from 1 to {MAX_APPROVALS}."
        self.findings.add(place, f"{quote_value(number)} is not a number of approvers", remedy)
        return None

    def _answerers(self, value: Json, place: str) -> tuple[str, ...]:
        items = [] if value is None else value if isinstance(value, list) else [value]
        for number, item in enumerate(items):
            if not (isinstance(item, str) and (item == TOKEN or ANSWERER.fullmatch(item))):
                remedy = (
                    "Write role:NAME, user:NAME, subscription:NAME, or token for holders of the"
                    " hook's token."
                )
                self.findings.add(
                    f"{place}[{number}]", f"{quote_value(item)} is not a user or role", remedy
                )
        if value == []:
            self.findings.add(
                place, "is not a user or role", "Omit it to allow every approver to answer."
            )
        return tuple(str(item) for item in items)

    def _exclude(self, value: Json, place: str) -> str:
        if value in (None, REQUESTER):
            return value or ""
        self.findings.add(
            place, f"{quote_value(value)} is not a valid value", f"Write {REQUESTER}."
        )
        return ""

    def _ask(self, value: Json, place: str) -> str:
        if value is None:
            return ""
        schema = value.get("schema") if isinstance(value, Mapping) else None
        if not isinstance(schema, dict) or set(value) != {"schema"}:
            remedy = "Write {schema: {type: object, properties: {...}, required: [...]}}."
            self.findings.add(place, "has no schema", remedy)
            return ""
        try:
            text = orjson.dumps(schema).decode()
        except TypeError as error:
            self.findings.add(
                f"{place}.schema", f"cannot be stored: {error}", "See json-schema.org."
            )
            return ""
        if len(text) > MAX_SCHEMA_LENGTH:
            reason = f"is longer than {MAX_SCHEMA_LENGTH} characters"
            self.findings.add(f"{place}.schema", reason, "Write a shorter schema.")
            return ""
        try:
            schema_cost(schema)
            # offline: references to other documents are not resolved, by request or by file.
            jsonschema_rs.validator_for(schema, offline=True, pattern_options=PATTERN_OPTIONS)
        except SchemaRefused as refused:
            remedy = "Simplify it; see docs/reference/limits.md and json-schema.org."
            self.findings.add(f"{place}.schema", str(refused), remedy)
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            reason = f"is not a valid JSON schema: {str(error).splitlines()[0]}"
            self.findings.add(f"{place}.schema", reason, "See json-schema.org.")
        return text

    def _escalate(self, value: Json, place: str) -> Escalation | None:
        if value is None:
            return None
        known = isinstance(value, Mapping) and {"after", "to"} >= set(value)
        if not known or value.get("after") is None:
            remedy = "Write {after: 1h, to: [role:admin]}."
            self.findings.add(
                place, "needs `after`, and only `after` and `to` are possible", remedy
            )
            return None
        after = self._time(value["after"], f"{place}.after")
        to = self._answerers(value.get("to"), f"{place}.to")
        return Escalation(after, to) if after else None

    def _patch(self, value: Json, place: str) -> tuple[str, ...]:
        if value in (None, False):
            return ()
        if value is True:
            return (ANY_PROPERTY,)
        if isinstance(value, list) and value and all(isinstance(one, str) and one for one in value):
            return tuple(value)
        remedy = "Write true, or a list of names of properties."
        self.findings.add(
            place, f'"{value}" is not a list of properties that may be changed', remedy
        )
        return ()

    def _holds(self, item: Mapping[str, Json], place: str) -> bool:
        if "when" not in item:
            return True
        try:
            return self.decide(item["when"], f"{place}.when")
        except FunctionError as wrong:
            self.findings.add(f"{place}.when", wrong.reason, wrong.remedy)
            return False
