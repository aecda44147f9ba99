"""The template of a group's nested stack: built from the members, and read back.

The definitions of members are plain values. A value that looks like a template function becomes a
parameter, and so do all values that may be secret. The group's own records are a parameter too, so
they change together with the members; and so are the previous definitions of the members that a
step changes, because the step may end before it has applied the new ones.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from engine.hot.language.versions import VERSIONS
from engine.plan.expected_changes import UNKNOWN, contains_unknown
from engine.types.contract import Child, Member, ReconcileNested
from engine.words import Json

VERSION: Final = "2015-04-30"
FUNCTIONS: Final = frozenset(VERSIONS[VERSION].functions)
#: Parameters of the nested stack.
LITERALS: Final = "literals"
GROUP: Final = "group"
PREVIOUS: Final = "previous"
#: In the preview of a group: the parameter in place of all values that are not known yet.
UNKNOWN_VALUES: Final = "unknown_values"
#: Sections of a member's definition with values from the parent template.
VALUES: Final = ("properties", "metadata", "update_policy")
FAILED: Final = "FAILED"
_MEMBER_PLACE: Final = re.compile(r"resources\.([^.<\[]+)")

Body = Mapping[str, Json]
NO_BODIES: Mapping[str, Body] = {}


@dataclass(frozen=True, slots=True)
class CurrentMembers:
    """The members of the nested stack.

    bodies: the definitions by name, in the order of removal: failed members first, then the oldest.
    healthy: the names of members that have not failed. references: by name. group: the group's own
    records. under_way: the names of members on which a change that has ended early still operates.
    creating: the definitions of members that such a change is creating; they are in no other field.
    repaired: the names of members that have failed only because a converge repairs them.
    """

    bodies: Mapping[str, Body] = field(default_factory=dict)
    healthy: frozenset[str] = frozenset()
    references: Mapping[str, Json] = field(default_factory=dict)
    group: Mapping[str, Json] = field(default_factory=dict)
    under_way: frozenset[str] = frozenset()
    creating: Mapping[str, Body] = field(default_factory=dict)
    repaired: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """The size of the group: without members that have failed, and have to be replaced."""
        return sum(name in self.healthy or name in self.repaired for name in self.bodies)

    def previous_bodies(self, names: Iterable[str]) -> Mapping[str, Body]:
        """The definitions of members before a step."""
        known = {**self.creating, **self.bodies}
        return {name: known[name] for name in names if name in known}


def build_template(
    bodies: Mapping[str, Body],
    group: Mapping[str, Json],
    *,
    has_secrets: bool = False,
    previous: Mapping[str, Body] = NO_BODIES,
) -> ReconcileNested:
    """The command that gives a nested stack these members. has_secrets: they may have secrets.
    previous: the current definitions of members that the command changes."""
    literals: dict[str, Json] = {}
    resources = {
        name: _quote_body(name, body, literals, has_secrets) for name, body in bodies.items()
    }
    document = {
        "heat_template_version": VERSION,
        "parameters": {
            LITERALS: {"type": "json", "default": {}, "hidden": has_secrets},
            GROUP: {"type": "json", "default": {}},
            PREVIOUS: {"type": "json", "default": {}, "hidden": has_secrets},
        },
        "resources": resources,
    }
    return ReconcileNested(
        document, {LITERALS: literals, GROUP: dict(group), PREVIOUS: dict(previous)}
    )


def preview_template(
    bodies: Mapping[str, Body], group: Mapping[str, Json], *, has_secrets: bool
) -> ReconcileNested | None:
    """As `build_template`, of definitions that contain UNKNOWN; None if more is unknown than values
    of the members' sections."""
    for body in bodies.values():
        if contains_unknown({key: value for key, value in body.items() if key not in VALUES}):
            return None
    goal = build_template(bodies, group, has_secrets=has_secrets)
    document = {**(goal.template or {})}
    document["parameters"] = {**document["parameters"], UNKNOWN_VALUES: {"type": "json"}}
    return ReconcileNested(document, goal.parameters)


def sample(
    bodies: Mapping[str, Json],
) -> tuple[Mapping[str, Json], Mapping[str, Json]] | None:
    """The template of a sample member, for Grouping.sample; None: a definition is unknown."""
    if not all(isinstance(body, dict) and "type" in body for body in bodies.values()):
        return None
    goal = build_template(bodies, {})
    return (goal.template or {}, goal.parameters) if bodies else None


def property_place(place: str, start: str) -> str:
    """The property's place of a finding in the sample, for Grouping.place if all members are equal:
    ``resources.0.type`` is ``start.type``, and ``resources.0<web.yaml>`` ``start<web.yaml>``."""
    return start + split_member_place(place)[1]


def split_member_place(place: str) -> tuple[str, str]:
    """The name of a member, and the rest of a place in the sample: ``.type`` of
    ``resources.0.type``, ``<web.yaml>`` of ``resources.0<web.yaml>``. Names in places of samples
    have neither dots nor brackets."""
    found = _MEMBER_PLACE.match(place)
    return (found[1], place[found.end() :]) if found else ("", "")


def current_members(child: Child | None) -> CurrentMembers:
    """Read the members back from the nested stack."""
    if child is None:
        return CurrentMembers()
    resources = child.template.get("resources") or {}
    literals = child.parameters.get(LITERALS) or {}
    previous = _previous_bodies(child)
    members = [one for one in child.members if one.name in resources]

    def body(member: Member) -> Body:
        known = previous.get(member.name)
        return _unquote(resources[member.name], literals) if known is None else known

    ordered = sorted(
        (one for one in members if one.action != "INIT"),
        key=lambda one: (one.status != FAILED, one.created_at, one.name),
    )
    return CurrentMembers(
        {one.name: body(one) for one in ordered},
        frozenset(one.name for one in ordered if one.status != FAILED),
        {one.name: one.reference for one in ordered},
        child.parameters.get(GROUP) or {},
        frozenset(one.name for one in ordered if one.under_way),
        {one.name: body(one) for one in members if one.action == "INIT" and one.under_way},
        frozenset(one.name for one in ordered if one.status == FAILED and one.marked),
    )


def _previous_bodies(child: Child) -> Mapping[str, Body]:
    """The definitions of members to which the last step has not come before it ended."""
    previous = child.parameters.get(PREVIOUS) or {}
    return {
        one.name: previous[one.name]
        for one in child.members
        if one.name in previous and not one.up_to_date
    }


def _quote_body(name: str, body: Body, literals: dict[str, Json], has_secrets: bool) -> Body:
    def quote(value: Json, place: str) -> Json:
        if value is UNKNOWN:
            return {"get_param": UNKNOWN_VALUES}
        if isinstance(value, dict):
            if len(value) == 1 and not FUNCTIONS.isdisjoint(value):
                return literal(value, place)
            return {key: quote(item, f"{place}.{key}") for key, item in value.items()}
        if isinstance(value, list):
            return [quote(item, f"{place}.{index}") for index, item in enumerate(value)]
        return value

    def literal(value: Json, place: str) -> Json:
        literals[place] = value
        return {"get_param": [LITERALS, place]}

    def secret(value: Json, place: str) -> Json:
        if not contains_unknown(value):
            return literal(value, place)
        if isinstance(value, dict):
            return {key: secret(item, f"{place}.{key}") for key, item in value.items()}
        return {"get_param": UNKNOWN_VALUES}

    to_parameter = secret if has_secrets else quote
    return {
        key: to_parameter(value, f"{name}.{key}") if key in VALUES and value else value
        for key, value in body.items()
    }


def _unquote(value: Json, literals: Mapping[str, Json]) -> Json:
    if isinstance(value, dict):
        match value:
            case {"get_param": [name, str(place)]} if name == LITERALS and len(value) == 1:
                return literals.get(place)
        return {key: _unquote(item, literals) for key, item in value.items()}
    if isinstance(value, list):
        return [_unquote(item, literals) for item in value]
    return value
