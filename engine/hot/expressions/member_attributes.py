"""Attributes of resources with members (groups): members are stored once and read in several ways.

The attributes of such a resource contain the entry `MEMBERS_ENTRY` with the members as of the end
of the last operation. `get_attr` reads `resource.<member>`, `resource.<member>.<attribute>` and the
aggregations of the type from it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from engine.errors import Quoting
from engine.hot.expressions.masking import MASK
from engine.hot.expressions.path_lookup import look_up_path
from engine.words import Json

#: Prefix of attributes of members. Alone it is the key of the entry, which no attribute can have.
MEMBER_PREFIX: Final = "resource."
MEMBERS_ENTRY: Final = MEMBER_PREFIX
#: Among the secret names of a resource: its reference; all attributes.
REFERENCE: Final = ""
EVERY_ATTRIBUTE: Final = "*"
ALL_SECRET: Final = (REFERENCE, EVERY_ATTRIBUTE)


class MemberNotFound(LookupError):
    """A group has no such member. reason: for users."""

    def __init__(self, reason: Quoting) -> None:
        super().__init__(reason)
        self.reason = reason


class Aggregation(StrEnum):
    """How an attribute of the group is computed from its members.

    For EACH and EACH_BY_NAME the first path item is the name of the member attribute.
    """

    REFERENCES = "references"
    REFERENCES_BY_NAME = "references-by-name"
    COUNT = "count"
    EACH = "each"
    EACH_BY_NAME = "each-by-name"


#: Aggregations whose path begins with the name of a member attribute.
NEEDS_ATTRIBUTE: Final = frozenset({Aggregation.EACH, Aggregation.EACH_BY_NAME})


def members_entry(
    members: Iterable[tuple[str, Json, Mapping[str, Json]]],
    aggregations: Mapping[str, Aggregation] | None = None,
    *,
    of_each: bool = False,
    by_index: bool = False,
    secret: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Json]:
    """Return the entry to add to the attributes of the group.

    members: (name, reference, attributes) in order. aggregations: by attribute name. of_each: any
    other attribute is the list of that attribute of each member. by_index: members are addressed by
    their index from 0 instead of their name. secret: the secret names of each member (see
    `mask_attributes`).
    """
    secret_names = {name: [*names] for name, names in (secret or {}).items() if names}
    return {
        MEMBERS_ENTRY: {
            "members": [[name, reference, dict(own)] for name, reference, own in members],
            "ways": dict(aggregations or {}),
            "of_each": of_each,
            "by_place": by_index,
            "secret": [*secret_names],
            "secrets": secret_names,
        }
    }


def reads_members(attributes: Mapping[str, Json], name: str) -> bool:
    """Return whether an attribute is computed from the members rather than stored."""
    inside = attributes.get(MEMBERS_ENTRY)
    if inside is None or name in attributes:
        return False
    return name.startswith(MEMBER_PREFIX) or name in inside["ways"] or inside["of_each"]


def read_members(attributes: Mapping[str, Json], name: str, path: Sequence[Json]) -> Json:
    """Return the value of an attribute for which `reads_members` is true; None if the path is
    missing. Raises MemberNotFound, also for an index out of range.
    """
    inside = attributes[MEMBERS_ENTRY]
    if name.startswith(MEMBER_PREFIX):
        return _read_member(inside, name.removeprefix(MEMBER_PREFIX), path)
    members = inside["members"]
    if name not in inside["ways"]:
        return [_look_up_in_member(own, [name, *path]) for _, _, own in members]
    way = Aggregation(inside["ways"][name])
    if way in NEEDS_ATTRIBUTE and not path:
        return None
    return _AGGREGATIONS[way](members, path)


def visible_attributes(attributes: Mapping[str, Json]) -> dict[str, Json]:
    """Return the attributes with the aggregations instead of the entry."""
    whole = {name: value for name, value in attributes.items() if name != MEMBERS_ENTRY}
    inside = attributes.get(MEMBERS_ENTRY) or {"ways": {}}
    for name, way in inside["ways"].items():
        if way not in NEEDS_ATTRIBUTE and name not in whole:
            whole[name] = read_members(attributes, name, ())
    return whole


def mask_attributes(attributes: Mapping[str, Json], secret: Collection[str]) -> dict[str, Json]:
    """Return the attributes with secret ones masked, including those of members.

    secret: names of attributes; `EVERY_ATTRIBUTE` means all of them, `MEMBERS_ENTRY` that members
    have secrets, which the entry itself names.
    """
    every, inside = EVERY_ATTRIBUTE in secret, attributes.get(MEMBERS_ENTRY)
    hidden = frozenset(secret).union(inside.get("hides", ()) if inside else ())
    whole = {
        name: MASK if value is not None and (every or name in hidden) else value
        for name, value in attributes.items()
        if name != MEMBERS_ENTRY
    }
    if inside is not None:
        members = [
            [
                name,
                *mask_resource(
                    reference, own, ALL_SECRET if every else secret_names_of(inside, name)
                ),
            ]
            for name, reference, own in inside["members"]
        ]
        whole[MEMBERS_ENTRY] = {**inside, "members": members}
    return whole


def mask_resource(
    reference: Json, attributes: Mapping[str, Json] | None, secret: Collection[str]
) -> list[Json]:
    """Return [reference, attributes] of a resource, masked. secret: may contain `REFERENCE`."""
    shown_reference = MASK if REFERENCE in secret and reference is not None else reference
    return [shown_reference, mask_attributes(attributes or {}, secret)]


def secret_names_of(inside: Mapping[str, Json], member: str) -> Collection[str]:
    """Return the secret names of a member. Entries of earlier versions say only whether there are
    any.
    """
    if "secrets" in inside:
        found: Sequence[str] = inside["secrets"].get(member, ())
        return found
    return ALL_SECRET if inside["secret"] is True or member in inside["secret"] else ()


def _read_member(inside: Mapping[str, Json], named: str, path: Sequence[Json]) -> Json:
    key, _, attribute = named.partition(".")
    for place, (name, reference, own) in enumerate(inside["members"]):
        if key == (str(place) if inside["by_place"] else name):
            steps = [attribute, *path] if attribute else path
            return _look_up_in_member(own, steps) if steps else reference
    count = len(inside["members"])
    if inside["by_place"]:
        reason, end = "there is no member with", f"; the group has {count}"
        raise MemberNotFound(Quoting(f"{reason} the index {key}{end}", f"{reason} this index{end}"))
    reason, end = "there is no", f" among the {count} of the resource"
    raise MemberNotFound(Quoting(f'{reason} member "{key}"{end}', f"{reason} such member{end}"))


def _look_up_in_member(own: Mapping[str, Json], steps: Sequence[Json]) -> Json:
    """Return the value at a path in a member's attributes; members may have members themselves."""
    name, *path = steps
    if isinstance(name, str) and reads_members(own, name):
        return read_members(own, name, path)
    return look_up_path(own, [name, *path], None, text_index=False)


Members = Sequence[tuple[str, Json, Mapping[str, Json]]]

_AGGREGATIONS: Mapping[Aggregation, Callable[[Members, Sequence[Json]], Json]] = {
    Aggregation.REFERENCES: lambda members, path: look_up_path(
        [reference for _, reference, _ in members], [*path], None, text_index=False
    ),
    Aggregation.REFERENCES_BY_NAME: lambda members, path: look_up_path(
        {name: reference for name, reference, _ in members}, [*path], None, text_index=False
    ),
    Aggregation.COUNT: lambda members, path: len(members),
    Aggregation.EACH: lambda members, path: [
        _look_up_in_member(own, path) for _, _, own in members
    ],
    Aggregation.EACH_BY_NAME: lambda members, path: {
        name: _look_up_in_member(own, path) for name, _, own in members
    },
}
