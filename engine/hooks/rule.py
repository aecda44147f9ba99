"""A rule: what happens at one point of a resource or stack. Written in documents and requests
(engine/hooks/rule_reader.py), matched by planning (engine/hooks/rule_matching.py), obeyed by the
node machine, and stored as JSON with nodes, resources and hooks.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any

from engine.principal import Principal
from engine.words import CONFIRM, REPEATED, Decision, Json, Mode, OnTimeout, Pace, Point

#: What a rule's `patch` says when any property may be changed.
ANY_PROPERTY = "*"
#: In `answer_by`: whoever has the token of the hook's notice.
TOKEN = "token"  # noqa: S105 - a word of the language, not a secret
#: In `answer_by`: ``subscription:NAME``, of the server's settings.
SUBSCRIPTION = "subscription"
REQUESTER = "requester"


@dataclass(frozen=True, slots=True)
class Escalation:
    """after: time from the hook's opening. to: who may answer from then on, too."""

    after: timedelta
    to: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """What happens at one point, the name of which is a `Point`'s or ``confirm-<step>``.

    timeout None: the default of the settings. short: Heat's short form, which asks before an
    update even when nothing changes. approvals: by how many different principals. answer_by:
    ``role:operator``, ``user:dba``, ``subscription:policy``, ``token``; empty: all who have the
    right to answer. exclude: ``requester``, or "".
    ask: a JSON schema, as text, that an answer's data must fit; "": none is asked for.
    patch: names of properties that an answer may change. at_most: how long the hook may wait in
    all, however often somebody says that it is in progress; None: the most of the settings.
    by_operator: nobody but the operator takes it away. dry: it only records what it would have
    held. stepped: it is there because somebody steps.
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

    @property
    def holds(self) -> bool:
        """Whether a node that comes there stays."""
        return self.mode is not Mode.NOTIFY and not self.dry

    @property
    def passable(self) -> bool:
        """Whether somebody who debugs may run past it: it is nobody else's to answer."""
        asks_others = self.approvals > 1 or self.answer_by or self.exclude or self.ask
        return not (asks_others or self.by_operator)

    def allows(self) -> tuple[Decision, ...]:
        """The decisions that may be answered."""
        if self.mode is not Mode.WAIT:
            return ()
        may_patch = bool(self.patch) and self.approvals == 1
        return tuple(one for one in Decision if one is not Decision.PATCH or may_patch)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long hooks wait, when their rules do not say, and at most."""

    default_timeout: timedelta
    max_timeout: timedelta


def step_rule(point: str) -> Rule:
    """The breakpoint that stepping puts before an operation."""
    return Rule(point, stepped=True)


def at_pace(rules: tuple[Rule, ...], pace: Pace | None) -> tuple[Rule, ...]:
    """The rules that hold in a traversal of this pace."""
    if pace is not Pace.RUN:
        return rules
    return tuple(rule for rule in rules if not rule.passable or rule.mode is Mode.NOTIFY)


def encode_rules(rules: Iterable[Rule]) -> Json:
    """Rules as JSON for the store, what is usual left out; None for none."""
    return [encode_rule(rule) for rule in rules] or None


def encode_rule(rule: Rule) -> dict[str, Json]:
    return {
        name: _ENCODE.get(name, _as_it_is)(value)
        for name in _NAMES
        if (value := getattr(rule, name)) != getattr(_USUAL, name)
    }


def line_of(rule: Rule) -> str:
    """One line that tells this rule from any that differs in anything."""
    return json.dumps(encode_rule(rule), sort_keys=True)


def decode_rules(stored: Json) -> tuple[Rule, ...]:
    return tuple(decode_rule(item) for item in stored or ())


def decode_rule(item: Mapping[str, Json]) -> Rule:
    said = {name: value for name, value in item.items() if name in _NAMES}
    for name in said.keys() & _DECODE.keys():
        if said[name] is not None:
            said[name] = _DECODE[name](said[name])
    return Rule(**said)


_NAMES = tuple(one.name for one in fields(Rule))
_USUAL = Rule("")


def _as_it_is(value: Any) -> Json:
    return value


def _seconds(value: timedelta | None) -> Json:
    return None if value is None else value.total_seconds()


def _duration(seconds: Json) -> timedelta:
    return timedelta(seconds=seconds)


_TIMES = ("timeout", "remind", "at_most")
_LISTS = ("answer_by", "patch")
_ENCODE: Mapping[str, Any] = {
    **dict.fromkeys(_TIMES, _seconds),
    **dict.fromkeys(_LISTS, list),
    "escalate": lambda said: {"after": said.after.total_seconds(), "to": list(said.to)},
}
_DECODE: Mapping[str, Any] = {
    **dict.fromkeys(_TIMES, _duration),
    **dict.fromkeys(_LISTS, tuple),
    "mode": Mode,
    "on_timeout": OnTimeout,
    "escalate": lambda said: Escalation(_duration(said["after"]), tuple(said["to"])),
}

_ORDER = {point.value: place for place, point in enumerate(Point)}


def in_order(points: Iterable[str]) -> list[str]:
    """Points as they come in a node's life; those inside operations by name, at the end."""
    return sorted(points, key=lambda point: (_ORDER.get(point, len(_ORDER)), point))


def is_confirm(point: str) -> bool:
    """Whether it is inside an operation."""
    return point.startswith(CONFIRM) or point in REPEATED


def answerers(rule: Rule, *, escalated: bool) -> tuple[str, ...]:
    """Who may answer, as in `answer_by`; empty: all who have the right to. escalated: the rule's
    escalation has come."""
    late = rule.escalate.to if escalated and rule.escalate is not None else ()
    return (*rule.answer_by, *late) if rule.answer_by else ()


def own_names(who: Principal, wanted: Collection[str]) -> str:
    """How rules name a principal whom they do not name, where they name their display name.

    Empty: nothing in `wanted` reads like them. wanted: as in `answer_by`.
    """
    if f"user:{who.name}" not in wanted or set(who.written) & set(wanted):
        return ""
    return " or ".join(f"user:{one}" for one in who.aliases)


def may_answer(rule: Rule, who: Principal, requester: Principal, *, escalated: bool) -> str | None:
    """Why a principal may not answer; None: they may. requester: of the change."""
    if rule.exclude == REQUESTER and who.is_in({requester.key}):
        return f"{who} requested this change, and another principal must answer"
    wanted = answerers(rule, escalated=escalated)
    if wanted and not set(who.written) & set(wanted):
        return f"it is for {', '.join(wanted)} to answer"
    return None
