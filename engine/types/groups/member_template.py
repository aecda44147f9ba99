"""The template of the stack inside of a group: written, and read back.

Bodies of members are values, whatever they look like: what would be a function in a template is
handed over as a parameter. So is everything of the members that may be hidden. What the group keeps
of itself travels as a parameter too, so that it changes with the members and never without them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from engine.hot.language.versions import VERSIONS
from engine.types.contract import Child, ReconcileNested
from engine.words import Json

VERSION: Final = "2015-04-30"
FUNCTIONS: Final = frozenset(VERSIONS[VERSION].functions)
#: Parameters of the stack inside.
LITERALS: Final = "literals"
GROUP: Final = "group"
#: Sections of a member's body that hold values of the template around.
VALUES: Final = ("properties", "metadata", "update_policy")
FAILED: Final = "FAILED"

Body = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class CurrentMembers:
    """What the stack inside holds.

    bodies: of members that there are, by name, in the order in which they would go: failed ones
    first, then the oldest. sound: those that did not fail. references: by name. group: what the
    group kept of itself.
    """

    bodies: Mapping[str, Body] = field(default_factory=dict)
    sound: frozenset[str] = frozenset()
    references: Mapping[str, Json] = field(default_factory=dict)
    group: Mapping[str, Json] = field(default_factory=dict)


def written(
    bodies: Mapping[str, Body], group: Mapping[str, Json], *, has_secrets: bool = False
) -> ReconcileNested:
    """The command that gives a nested stack these members. has_secrets: they may have secrets."""
    literals: dict[str, Json] = {}
    resources = {name: _quoted(name, body, literals, has_secrets) for name, body in bodies.items()}
    document = {
        "heat_template_version": VERSION,
        "parameters": {
            LITERALS: {"type": "json", "default": {}, "hidden": has_secrets},
            GROUP: {"type": "json", "default": {}},
        },
        "resources": resources,
    }
    return ReconcileNested(document, {LITERALS: literals, GROUP: dict(group)})


def sample(
    bodies: Mapping[str, Json],
) -> tuple[Mapping[str, Json], Mapping[str, Json]] | None:
    """For Grouping.sample: None where a body is not known."""
    if not all(isinstance(body, dict) and "type" in body for body in bodies.values()):
        return None
    goal = written(bodies, {})
    return (goal.template or {}, goal.parameters) if bodies else None


def among(place: str, start: str) -> str:
    """For Grouping.place, where all members are alike: ``resources.0.type`` is ``start.type``."""
    return ".".join((start, *place.split(".")[2:]))


def present(child: Child | None) -> CurrentMembers:
    """Read back what `written` has led to."""
    if child is None:
        return CurrentMembers()
    resources = child.template.get("resources") or {}
    literals = child.parameters.get(LITERALS) or {}
    there = sorted(
        (one for one in child.members if one.name in resources and one.action != "INIT"),
        key=lambda one: (one.status != FAILED, one.created_at, one.name),
    )
    return CurrentMembers(
        {one.name: _unquoted(resources[one.name], literals) for one in there},
        frozenset(one.name for one in there if one.status != FAILED),
        {one.name: one.reference for one in there},
        child.parameters.get(GROUP) or {},
    )


def _quoted(name: str, body: Body, literals: dict[str, Json], has_secrets: bool) -> Body:
    def quote(value: Json, place: str) -> Json:
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

    to_parameter = literal if has_secrets else quote
    return {
        key: to_parameter(value, f"{name}.{key}") if key in VALUES and value else value
        for key, value in body.items()
    }


def _unquoted(value: Json, literals: Mapping[str, Json]) -> Json:
    if isinstance(value, dict):
        match value:
            case {"get_param": [name, str(place)]} if name == LITERALS and len(value) == 1:
                return literals.get(place)
        return {key: _unquoted(item, literals) for key, item in value.items()}
    if isinstance(value, list):
        return [_unquoted(item, literals) for item in value]
    return value
