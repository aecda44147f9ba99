"""Many texts replaced at once, as str_replace does; and what that costs."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from engine.hot.function import fits
from engine.words import Json

#: So many keys are compared in one step of an Effort; a place to compare them at is so many.
KEYS_IN_A_STEP = 200
KEYS_FOR_A_PLACE = 8

#: Fewer letters times keys take less than a step.
HARDLY_ANY = 20_000


def replace_all(template: str, params: Mapping[str, str]) -> tuple[str, set[str]]:
    """Replace every key at once: the longest wins, and what was put in is not searched again.

    Returns the keys that were found besides. Raises Wrong when the text would be too long.
    """
    keys = _keys_by_letter(params)
    found: set[str] = set()
    if not keys:
        return template, found
    parts: list[str] = []
    at, size = 0, len(template)
    for place in re.finditer(f"[{''.join(map(re.escape, keys))}]", template):
        start = place.start()
        if start < at:
            continue
        key = next((one for one in keys[place.group()] if template.startswith(one, start)), None)
        if key is not None:
            size += len(params[key])
            fits(size)
            found.add(key)
            parts += (template[at:start], params[key])
            at = start + len(key)
    return "".join([*parts, template[at:]]), found


def _keys_by_letter(params: Iterable[str]) -> dict[str, list[str]]:
    """The keys by their first letter, the longest first."""
    keys: dict[str, list[str]] = {}
    for key in sorted(params, key=lambda key: (-len(key), key)):
        keys.setdefault(key[0], []).append(key)
    return keys


def price(template: Json, params: Json) -> int:
    """Steps that it takes: where a letter is that keys begin with, all of them are compared."""
    if not isinstance(template, str) or not isinstance(params, dict):
        return 0
    if len(params) * len(template) < HARDLY_ANY:
        return 0
    there = Counter(template)
    first = [key[0] for key in params if isinstance(key, str) and key]
    places = sum(there[letter] for letter in set(first))
    compared = sum(1 + there[letter] for letter in first)
    return (compared + KEYS_FOR_A_PLACE * places) // KEYS_IN_A_STEP
