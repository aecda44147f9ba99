"""Where the properties of an object take over an observed value. Pure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote_plus

from engine.hot.expressions.masking import contains_mask
from engine.plan.overrides import with_value
from engine.types.http.json_paths import first_value
from engine.types.http.requests import escape, fill, names_in, unescape
from engine.types.observation import Difference
from engine.words import Json

#: A path of names alone, such as ``$.settings.size``.
_NAMES = re.compile(r"\$(?:\.[A-Za-z_][\w-]*)+")
_BODIES = ("create", "update")


def adopted_places(properties: Mapping[str, Json], path: str) -> Sequence[tuple[str, ...]]:
    """The value of `compare`, and the same value in the bodies of requests, at a path that ends
    with the same names. Empty: `update` may send it at another place (in its body, headers or
    URL), so it would set it back.
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
            if names and place[-len(names) :] == names and _sends(value, compare[path])
        ]
        if not found and request == "update" and not _lacks(body, names):
            return ()
        places += [(request, "body", *place) for place in found]
    return (
        () if _sends_elsewhere(properties.get("update"), compare[path], names, places) else places
    )


def adopted_value(place: Sequence[str], value: Json) -> Json:
    """An adopted value at a place: requests do not take it for a placeholder."""
    return value if place[0] == "compare" else escape(value)


def with_live_values(
    properties: Mapping[str, Json], differences: Sequence[Difference], content: Json
) -> Mapping[str, Json]:
    """The properties with the values of an object at the paths of differences that can be adopted.
    content: of the response with the object. Values that are masked stay different."""
    for one in differences:
        found = first_value(one.path, content)
        if found is None or contains_mask(one.observed):
            continue
        for place in adopted_places(properties, one.path):
            properties = with_value(properties, place, adopted_value(place, found[0]))
    return properties


def _sends_elsewhere(
    update: Json, value: Json, names: Sequence[str], places: Sequence[tuple[str, ...]]
) -> bool:
    """Whether an update sends a value also at another place than these. If its body has the value
    at the path of the response itself, others in the body are different ones."""
    if not isinstance(update, Mapping):
        return False
    parts = {name: update.get(name) for name in ("url", "headers", "body")}
    if names and ("update", "body", *names) in places:
        del parts["body"]
    return _occurs(parts, value, places, ("update",))


def _occurs(
    sent: Json, value: Json, places: Sequence[tuple[str, ...]], place: tuple[str, ...]
) -> bool:
    if place in places:
        return False
    if sent == value or _sends(sent, value):
        return True
    if isinstance(sent, Mapping):
        return any(_occurs(one, value, places, (*place, name)) for name, one in sent.items())
    if isinstance(sent, list):
        return any(_occurs(one, value, places, (*place, "")) for one in sent)
    return isinstance(sent, str) and (_mentions(sent, value) or _mentions(unescape(sent), value))


def _sends(body: Json, value: Json) -> bool:
    """Whether a part of a body, which may have escaped placeholders, sends a value."""
    return not any(names_in(body)) and fill(body, {}) == value


def _mentions(text: str, value: Json) -> bool:
    """Whether a text, such as a URL, has a value as a whole word."""
    shown = value if isinstance(value, str) else json.dumps(value)
    word = rf"(?<![\w.]){re.escape(shown)}(?![\w.])"
    return bool(shown) and re.search(word, unquote_plus(text)) is not None


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
