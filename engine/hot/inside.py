"""Attributes of a resource that holds others: what is inside is kept once, and read in many ways.

Among the attributes of such a resource stands one entry, `INSIDE`, with its members as they were
when its last operation ended. ``get_attr`` reads ``resource.<member>`` and
``resource.<member>.<attribute>`` out of it, and what the type says of all members together.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from engine.hot.following import select
from engine.hot.repeating import texts
from engine.words import Json

#: Of attributes that lead inside; the entry's own name, which no attribute can have.
PREFIX: Final = "resource."
INSIDE: Final = PREFIX


class Way(StrEnum):
    """How an attribute is made of the members. Of EACH and EACH_BY_NAME the path names first which
    attribute of theirs is meant."""

    REFERENCES = "references"
    REFERENCES_BY_NAME = "references-by-name"
    COUNT = "count"
    EACH = "each"
    EACH_BY_NAME = "each-by-name"


#: Ways that need to be told which attribute.
OF_ONE_ATTRIBUTE: Final = frozenset({Way.EACH, Way.EACH_BY_NAME})


def kept(
    members: Iterable[tuple[str, Json, Mapping[str, Json]]],
    ways: Mapping[str, Way] | None = None,
    *,
    of_each: bool = False,
    by_place: bool = False,
    secret: Iterable[str] = (),
    hides: Iterable[str] = (),
) -> dict[str, Json]:
    """The entry, to be put among the attributes.

    members: name, reference and attributes of each, in their order. ways: by the attributes' names.
    of_each: any other attribute is a list with that of each member. by_place: a member is named by
    its place among them, from 0. secret: names of those that hold what is nobody's to see. hides:
    attributes beside the entry that say some of it.
    """
    return {
        INSIDE: {
            "members": [[name, reference, dict(own)] for name, reference, own in members],
            "ways": dict(ways or {}),
            "of_each": of_each,
            "by_place": by_place,
            "secret": [*secret],
            "hides": [*hides],
        }
    }


def reads(attributes: Mapping[str, Json], name: str) -> bool:
    """Whether an attribute is read from what is inside, rather than as it stands."""
    inside = attributes.get(INSIDE)
    if inside is None or name in attributes:
        return False
    return name.startswith(PREFIX) or name in inside["ways"] or inside["of_each"]


def read(attributes: Mapping[str, Json], name: str, path: Sequence[Json]) -> Json:
    """The value of an attribute that `reads` says yes to; None where the path leads nowhere."""
    inside = attributes[INSIDE]
    if name.startswith(PREFIX):
        return _of_member(inside, name.removeprefix(PREFIX), path)
    members = inside["members"]
    if name not in inside["ways"]:
        return [_followed(own, [name, *path]) for _, _, own in members]
    way = Way(inside["ways"][name])
    if way in OF_ONE_ATTRIBUTE and not path:
        return None
    return _WAYS[way](members, path)


def shown(attributes: Mapping[str, Json], mask: Json = None) -> dict[str, Json]:
    """The attributes with what members make together instead of the entry. mask: stands for what
    is nobody's to see; None: it is for an expression."""
    whole = {name: value for name, value in attributes.items() if name != INSIDE}
    inside = attributes.get(INSIDE) or {"ways": {}}
    if mask is not None:
        whole |= dict.fromkeys(inside.get("hides", ()), mask)
    for name, way in inside["ways"].items():
        if way not in OF_ONE_ATTRIBUTE and name not in whole:
            hidden = inside["secret"] and mask is not None
            whole[name] = mask if hidden else read(attributes, name, ())
    return whole


def secret_texts(attributes: Mapping[str, Json]) -> set[str]:
    """What members keep secret, and members of theirs."""
    inside = attributes.get(INSIDE) or {"members": (), "secret": ()}
    found: set[str] = set()
    for name, reference, own in inside["members"]:
        if INSIDE in own:
            found |= secret_texts(own)
        elif inside["secret"] is True or name in inside["secret"]:
            found.update(texts([reference, own]))
    return found


def _of_member(inside: Mapping[str, Json], named: str, path: Sequence[Json]) -> Json:
    key, _, attribute = named.partition(".")
    for place, (name, reference, own) in enumerate(inside["members"]):
        if key == (str(place) if inside["by_place"] else name):
            steps = [attribute, *path] if attribute else path
            return _followed(own, steps) if steps else reference
    return None


def _followed(own: Mapping[str, Json], steps: Sequence[Json]) -> Json:
    """A member may hold members itself."""
    name, *path = steps
    if isinstance(name, str) and reads(own, name):
        return read(own, name, path)
    return select(own, [name, *path], None, text_index=False)


Members = Sequence[tuple[str, Json, Mapping[str, Json]]]

_WAYS: Mapping[Way, Callable[[Members, Sequence[Json]], Json]] = {
    Way.REFERENCES: lambda members, path: select(
        [reference for _, reference, _ in members], [*path], None, text_index=False
    ),
    Way.REFERENCES_BY_NAME: lambda members, path: select(
        {name: reference for name, reference, _ in members}, [*path], None, text_index=False
    ),
    Way.COUNT: lambda members, path: len(members),
    Way.EACH: lambda members, path: [_followed(own, path) for _, _, own in members],
    Way.EACH_BY_NAME: lambda members, path: {
        name: _followed(own, path) for name, _, own in members
    },
}
