"""Placeholders ``${...}`` in requests, for values that are known only after creation.

In a URL, a value is percent-encoded, so it stays one part of the path or query. A string in a body
that consists of one placeholder becomes the value itself, of any type. Inserted values are not
expanded again, and ``$${`` stands for ``${``.
"""

import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote

from engine.types.text_cleaning import as_text
from engine.words import Json

_PLACE = re.compile(r"\$\$\{|\$\{([^{}]*)\}")
#: Path segments that would change the target of a URL.
_ELSEWHERE = frozenset({"", ".", ".."})


class PlaceholderError(ValueError):
    """A placeholder has no value, or a value that is invalid at its place."""


def names_in(template: Json) -> Iterator[str]:
    """The names of all placeholders in a value, at any depth."""
    if isinstance(template, str):
        yield from (one[1] for one in _PLACE.finditer(template) if one[1] is not None)
    elif isinstance(template, dict):
        for key, item in template.items():
            yield from names_in(key)
            yield from names_in(item)
    elif isinstance(template, list):
        for item in template:
            yield from names_in(item)


def filled(template: Json, values: Mapping[str, Json]) -> Json:
    """Insert the values. Raises PlaceholderError."""
    if isinstance(template, str):
        whole = _PLACE.fullmatch(template)
        if whole is not None and whole[1] is not None:
            return _value(whole[1], values)
        return _PLACE.sub(lambda found: _text(found, values), template)
    if isinstance(template, dict):
        return {filled_text(key, values): filled(item, values) for key, item in template.items()}
    if isinstance(template, list):
        return [filled(item, values) for item in template]
    return template


def filled_text(template: str, values: Mapping[str, Json]) -> str:
    """Insert the values. Raises PlaceholderError."""
    return _PLACE.sub(lambda found: _text(found, values), template)


def filled_url(template: str, values: Mapping[str, Json]) -> str:
    """Insert the values. Raises PlaceholderError."""
    return _PLACE.sub(lambda found: _part(found, values), template)


def _value(name: str, values: Mapping[str, Json]) -> Json:
    if values.get(name) is None:
        raise PlaceholderError(f"${{{name}}} has no value")
    return values[name]


def _text(found: re.Match[str], values: Mapping[str, Json]) -> str:
    return "${" if found[1] is None else as_text(_value(found[1], values))


def _part(found: re.Match[str], values: Mapping[str, Json]) -> str:
    text = _text(found, values)
    if text in _ELSEWHERE:
        raise PlaceholderError(f"${{{found[1]}}} is a value that would change the path of the URL")
    return quote(text, safe="")
