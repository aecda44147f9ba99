"""Where the properties of an object take over an observed value. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence

from engine.words import Json

#: A path of names alone, such as ``$.settings.size``.
_NAMES = re.compile(r"\$(?:\.[A-Za-z_][\w-]*)+")
_BODIES = ("create", "update")


def adopted_places(properties: Mapping[str, Json], path: str) -> Sequence[tuple[str, ...]]:
    """The value of `compare`, and the same value in the bodies of requests, at a path that ends
    with the same names. Empty: the body of `update` may have it at another place, so an update
    would set it back.
    """
    compare = properties.get("compare")
    if not isinstance(compare, Mapping) or path not in compare:
        return ()
    places: list[tuple[str, ...]] = [("compare", path)]
    names = tuple(path.split(".")[1:]) if _NAMES.fullmatch(path) else ()
    for request in _BODIES:
        sent = properties.get(request)
        body = sent.get("body") if isinstance(sent, Mapping) else None
        if body is None:
            continue
        found = [
            place
            for place, value in _values(body)
            if names and place[-len(names) :] == names and value == compare[path]
        ]
        if not found and request == "update" and not _lacks(body, names):
            return ()
        places += [(request, "body", *place) for place in found]
    return places


def _lacks(body: Json, names: Sequence[str]) -> bool:
    """Whether a body certainly does not send the value."""
    if not isinstance(body, Mapping) or not names or _has_list_of_maps(body):
        return False
    return not any(names[-1] in place for place, _ in _values(body))


def _has_list_of_maps(body: Json) -> bool:
    if isinstance(body, list):
        return any(isinstance(one, Mapping | list) for one in body)
    return isinstance(body, Mapping) and any(map(_has_list_of_maps, body.values()))


def _values(body: Json) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Each value inside of maps, with its place."""
    if not isinstance(body, Mapping):
        return
    for name, value in body.items():
        yield (name,), value
        for place, inner in _values(value):
            yield (name, *place), inner
