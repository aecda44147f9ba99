"""A hook rule: what happens at one point of a resource or stack.

engine/hooks/rule_reader.py reads rules from documents and requests,
engine/hooks/precedence.py selects them in planning, and the node machine applies them. They are
stored as JSON with nodes, resources and hooks.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any

from engine.words import CONFIRM, REPEATED, Decision, Json, Mode, OnTimeout, Point, StepMode

#: In `patch`: an answer may change any property.
ANY_PROPERTY = "*"
#: In `answer_by`: any holder of the token in the hook's notification.
TOKEN = "token"  # noqa: S105 - a keyword, not a secret
#: In `answer_by`: ``subscription:NAME``, a subscription in the server's settings.
SUBSCRIPTION = "subscription"
REQUESTER = "requester"


@dataclass(frozen=True, slots=True)
class Escalation:
    """after: time from the hook's opening. to: who may answer as well after that."""

    after: timedelta
    to: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """What happens at one point: a `Point` or ``confirm-<step>``.

    timeout: None: the default in the settings. short: Heat's short form, which opens a hook before
    an update even if nothing changes. approvals: the number of different principals that must
    approve. answer_by: ``role:operator``, ``user:dba``, ``subscription:policy``, ``token``; empty:
    all who have the right to answer. exclude: ``requester``, or "". excluded: with ``requester``,
    the keys of the principals who requested the template versions that the change applies, if it
    has no version of its own.
    ask: a JSON schema, as text, for an answer's data; "": none.
    patch: names of properties that an answer may change. at_most: the longest wait with all
    extensions; None: the maximum in the settings. by_operator: only the operator can remove it.
    dry: it never blocks, and its hooks are recorded. stepped: stepping set it. watch: the resource
    is observed while the hook waits, see engine/hooks/hook_watch.py.
    """

    point: str
    mode: Mode = Mode.WAIT
    timeout: timedelta | None = None
    on_timeout: OnTimeout = OnTimeout.STOP
    short: bool = False
    approvals: int = 1
    answer_by: tuple[str, ...] = ()
    exclude: str = ""
    ask: str = ""
    remind: timedelta | None = None
    escalate: Escalation | None = None
    patch: tuple[str, ...] = ()
    at_most: timedelta | None = None
    by_operator: bool = False
    dry: bool = False
    stepped: bool = False
    excluded: tuple[str, ...] = ()
    watch: bool = False

    @property
    def blocks(self) -> bool:
        """Whether it blocks a node that reaches its point."""
        return self.mode is not Mode.NOTIFY and not self.dry

    @property
    def passable(self) -> bool:
        """Whether `run` may pass it: no particular principal or data is required to answer it."""
        restricted = self.approvals > 1 or self.answer_by or self.exclude or self.ask
        return not (restricted or self.by_operator)

    def allows(self) -> tuple[Decision, ...]:
        """Return the decisions that an answer may have. Several approvals must be of the same
        result, so an answer cannot choose another one then."""
        if self.mode is not Mode.WAIT:
            return ()
        alone = self.approvals == 1
        refused = {
            *({Decision.PATCH} if not self.patch or not alone else ()),
            *({Decision.ADOPT} if not alone else ()),
        }
        return tuple(one for one in Decision if one not in refused)


@dataclass(frozen=True, slots=True)
class HookLimits:
    """Default and maximum timeout of hooks."""

    default_timeout: timedelta
    max_timeout: timedelta


def step_rule(point: str) -> Rule:
    """Return the breakpoint that stepping sets before an operation."""
    return Rule(point, stepped=True)


def rules_in_force(rules: tuple[Rule, ...], step_mode: StepMode | None) -> tuple[Rule, ...]:
    """Return the rules that apply in a traversal with this step mode."""
    if step_mode is not StepMode.RUN:
        return rules
    return tuple(rule for rule in rules if not rule.passable or rule.mode is Mode.NOTIFY)


def encode_rules(rules: Collection[Rule]) -> Json:
    """Return rules as JSON for the store, without default values; None for no rules."""
    return [encode_rule(rule) for rule in rules] if rules else None


def encode_rule(rule: Rule) -> dict[str, Json]:
    return {
        name: _ENCODE.get(name, _keep_value)(value)
        for name in _NAMES
        if (value := getattr(rule, name)) != getattr(_DEFAULT, name)
    }


def line_of(rule: Rule) -> str:
    """Return the rule as one line of JSON; different rules have different lines."""
    return json.dumps(encode_rule(rule), sort_keys=True)


def decode_rules(stored: Json) -> tuple[Rule, ...]:
    return tuple(decode_rule(item) for item in stored or ())


def decode_rule(item: Mapping[str, Json]) -> Rule:
    values = {name: value for name, value in item.items() if name in _NAMES}
    for name in values.keys() & _DECODE.keys():
        if values[name] is not None:
            values[name] = _DECODE[name](values[name])
    return Rule(**values)


_NAMES = tuple(one.name for one in fields(Rule))
_DEFAULT = Rule("")


def _keep_value(value: Any) -> Json:
    return value


def _seconds(value: timedelta | None) -> Json:
    return None if value is None else value.total_seconds()


def _duration(seconds: Json) -> timedelta:
    return timedelta(seconds=seconds)


_TIMES = ("timeout", "remind", "at_most")
_LISTS = ("answer_by", "patch", "excluded")
_ENCODE: Mapping[str, Any] = {
    **dict.fromkeys(_TIMES, _seconds),
    **dict.fromkeys(_LISTS, list),
    "escalate": lambda value: {"after": value.after.total_seconds(), "to": list(value.to)},
}
_DECODE: Mapping[str, Any] = {
    **dict.fromkeys(_TIMES, _duration),
    **dict.fromkeys(_LISTS, tuple),
    "mode": Mode,
    "on_timeout": OnTimeout,
    "escalate": lambda value: Escalation(_duration(value["after"]), tuple(value["to"])),
}

_ORDER = {point.value: place for place, point in enumerate(Point)}


def in_order(points: Iterable[str]) -> list[str]:
    """Return points in the order in which nodes reach them; confirmations last, by name."""
    return sorted(points, key=lambda point: (_ORDER.get(point, len(_ORDER)), point))


def is_confirm(point: str) -> bool:
    """Return whether the point is inside an operation."""
    return point.startswith(CONFIRM) or point in REPEATED
