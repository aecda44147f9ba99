"""Numbers in what a stack is made of that are longer than what is stored of one.

orjson reads them as floats, which are other numbers.
"""

import json
import re
from collections.abc import Mapping
from typing import Final

from engine.hot.syntax.json_text import LONG_DIGITS, parse_integer
from engine.words import Json

#: What a template, and what comes with one, is sent as.
SAID = ("template", "environment", "parameters")
LONG: Final = re.compile(rb"[0-9]{%d}" % LONG_DIGITS)


class _TooLarge:
    """In place of a number."""


def too_large(raw: bytes, body: Mapping[str, Json]) -> str | None:
    """The place of an integer that would become another number, in a body as it was sent."""
    if not body.keys().isdisjoint(SAID) and LONG.search(raw):
        exact = json.loads(raw, parse_int=_integer)
        for name in SAID:
            if (place := _found(exact.get(name), name)) is not None:
                return place
    return None


def _integer(text: str) -> int | _TooLarge:
    number = parse_integer(text)
    return _TooLarge() if number is None else number


def _found(value: object, place: str) -> str | None:
    left = [(place, value)]
    while left:
        place, one = left.pop()
        if isinstance(one, _TooLarge):
            return place
        if isinstance(one, dict):
            left += reversed([(f"{place}.{key}", item) for key, item in one.items()])
        elif isinstance(one, list):
            left += reversed([(f"{place}[{index}]", item) for index, item in enumerate(one)])
    return None
