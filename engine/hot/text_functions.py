"""Functions of the language that make texts and repeat things. See function.py for what one is."""

import hashlib
import json
from collections.abc import Callable, Mapping
from itertools import product
from math import prod

from engine.hot import presuming
from engine.hot.function import LARGEST_TEXT, MOST_VALUES, Function, Wrong, fits, listed, mapped
from engine.hot.replacing import price, replace_all
from engine.words import Json


def as_text(value: Json) -> str:
    """JSON text with sorted keys, as list_join and str_replace put maps and lists into text."""
    return json.dumps(value, sort_keys=True)


# -- joining and splitting ------------------------------------------------------------------------


def _join_item(item: Json, with_json: bool) -> str:
    if item is None:
        return ""
    if isinstance(item, str):
        return item
    if with_json and isinstance(item, dict | list):
        return as_text(item)
    kinds = "string, map or list" if with_json else "strings"
    raise Wrong(f"Items to join must be {kinds} not {repr(item)[:200]}")


def join_texts(name: str, args: list[Json], *, with_json: bool) -> Json:
    """name: what the template calls the function."""
    delimiter, *lists = args
    if not isinstance(delimiter, str):
        raise Wrong(f'The delimiter of "{name}" must be text.')
    items: list[Json] = []
    for one in lists:
        nothing = not one if with_json else one is None
        if not nothing and not isinstance(one, list):
            raise Wrong(f'"{name}" joins lists, not {repr(one)[:200]}')
        items += one or []
    texts = [_join_item(item, with_json) for item in items]
    fits(sum(map(len, texts)) + len(delimiter) * len(texts))
    return delimiter.join(texts)


LIST_JOIN_TEXT = Function(
    lambda args: join_texts("list_join", args, with_json=False),
    listed("list_join", '[ " ", [ "str1", "str2"]]', 2, 2),
    presume=presuming.joining,
)
LIST_JOIN = Function(
    lambda args: join_texts("list_join", args, with_json=True),
    listed("list_join", '[ " ", [ "str1", "str2"], [ "str3" ]]', 2),
    presume=presuming.joining,
)


def _split(args: list[Json]) -> Json:
    delimiter, text, *rest = args
    if text is None:
        return None
    if not isinstance(text, str) or not isinstance(delimiter, str | None) or delimiter == "":
        raise Wrong('"str_split" takes a delimiter that is not empty and a text.')
    parts = text.split(delimiter)
    if not rest:
        return parts
    try:
        return parts[int(rest[0])]
    except IndexError:
        highest = len(parts) - 1
        raise Wrong(f'Incorrect index to "str_split" should be between 0 and {highest}') from None
    except (TypeError, ValueError):
        raise Wrong(f'Incorrect index to "str_split": {rest[0]!r} is not a number') from None


STR_SPLIT = Function(
    _split,
    listed("str_split", '[ ",", "apples,pears", <index>]', 2, 3),
    presume=presuming.splitting,
)


# -- replacing ------------------------------------------------------------------------------------


def _replacement(name: str, value: Json, with_json: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, dict | list):
        if not with_json:
            raise Wrong(f'"{name}" puts in text or numbers, not maps or lists.')
        return as_text(value)
    return str(value)


def replace_words(
    name: str, template: Json, params: Json, *, with_json: bool
) -> tuple[str, set[str]]:
    """The text, and the params that were not found in the template.

    name: what the template calls the function.
    """
    if not isinstance(template, str):
        raise Wrong(f'The template of "{name}" must be text.')
    if not isinstance(params, dict):
        raise Wrong(f'The params of "{name}" must be a map.')
    if any(not isinstance(key, str) or not key for key in params):
        raise Wrong(f'"{name}" cannot replace an empty text.')
    texts = {key: _replacement(name, value, with_json) for key, value in params.items()}
    text, found = replace_all(template, texts)
    return text, params.keys() - found


def _replace(args: Mapping[str, Json], with_json: bool) -> tuple[str, set[str]]:
    return replace_words("str_replace", args["template"], args["params"], with_json=with_json)


def _replace_strict(args: Mapping[str, Json]) -> Json:
    result, missing = _replace(args, with_json=True)
    if missing:
        listed = ", ".join(sorted(missing, key=lambda key: (-len(key), key)))
        raise Wrong(f"The following params were not found in the template: {listed}")
    return result


def _replace_very_strict(args: Mapping[str, Json]) -> Json:
    params = args["params"]
    empty = isinstance(params, dict) and [k for k, v in params.items() if v in (None, "", [], {})]
    if empty:
        raise Wrong(f'"str_replace_vstrict" has params with empty values: {", ".join(empty)}')
    return _replace_strict(args)


def _price(args: Mapping[str, Json]) -> int:
    return price(args["template"], args["params"])


def _replacing(name: str, apply: Callable[[Mapping[str, Json]], Json]) -> Function:
    keys = frozenset({"template", "params"})
    return Function(apply, mapped(name, keys, keys), _price, presuming.replacing)


STR_REPLACE_TEXT = _replacing("str_replace", lambda args: _replace(args, with_json=False)[0])
STR_REPLACE = _replacing("str_replace", lambda args: _replace(args, with_json=True)[0])
STR_REPLACE_STRICT = _replacing("str_replace_strict", _replace_strict)
STR_REPLACE_VSTRICT = _replacing("str_replace_vstrict", _replace_very_strict)


def _digest(args: list[Json]) -> Json:
    algorithm, text = args
    if not isinstance(algorithm, str) or not isinstance(text, str):
        raise Wrong('"digest" takes the name of an algorithm and a text.')
    if algorithm.lower() not in hashlib.algorithms_available:
        raise Wrong("Algorithm must be one of " + ", ".join(sorted(hashlib.algorithms_available)))
    try:
        made = hashlib.new(algorithm.lower(), text.encode("latin-1"))
        return made.hexdigest()
    except UnicodeEncodeError:
        raise Wrong('The text of "digest" must be made of Latin-1 characters.') from None
    except (TypeError, ValueError):
        raise Wrong(f'The algorithm "{algorithm}" cannot be used here.') from None


DIGEST = Function(
    _digest, listed("digest", '[ "algorithm", "value" ]', 2, 2), presume=presuming.digesting
)


# -- repeat ---------------------------------------------------------------------------------------


#: So many letters of a template that stays as it is take the room of one that is put in.
LETTERS = 16


class _Room:
    """How much one ``repeat`` may still make: texts count their length, other values one."""

    def __init__(self) -> None:
        self.left = LARGEST_TEXT

    def take(self, size: int) -> None:
        self.left -= size
        fits(LARGEST_TEXT - self.left)


def _repeated(template: Json, pairs: list[tuple[str, Json]], room: _Room) -> Json:
    """Put one row of values into a template, variable after variable, in map keys too."""
    room.take(1)
    if isinstance(template, str):
        room.take(len(template) // LETTERS)
        for variable, value in pairs:
            if not isinstance(value, str):
                raise Wrong(f'"repeat" puts in text, not {repr(value)[:200]}')
            room.take(template.count(variable) * len(value))
            template = template.replace(variable, value)
        return template
    if isinstance(template, list):
        return [_repeated(item, pairs, room) for item in template]
    if isinstance(template, dict):
        return {
            _repeated(key, pairs, room): _repeated(value, pairs, room)
            for key, value in template.items()
        }
    return template


def _repeat(args: Mapping[str, Json], with_maps: bool) -> Json:
    for_each = args["for_each"]
    if not isinstance(for_each, dict) or not for_each:
        raise Wrong('The "for_each" argument to "repeat" function must be a non-empty map')
    permutations = args.get("permutations", True)
    if not isinstance(permutations, bool):
        raise Wrong('"permutations" should be boolean type for repeat function.')
    rows: list[list[Json]] = []
    for variable, items in for_each.items():
        if isinstance(items, dict) and with_maps and permutations:
            items = list(items)
        if items is not None and not isinstance(items, list):
            raise Wrong(f'The values of "{variable}" in "for_each" of "repeat" must be a list')
        rows.append(items or [])
    given = [items for items in for_each.values() if items is not None]
    if not permutations and len({len(items) for items in given}) > 1:
        raise Wrong("For repeat without permutations all lists must have the same length.")
    if permutations and prod(map(len, rows)) > MOST_VALUES:
        raise Wrong(f'"repeat" would make more than {MOST_VALUES} items.')
    walk = product(*rows) if permutations else zip(*rows, strict=False)
    room = _Room()
    return [
        _repeated(args["template"], list(zip(for_each, row, strict=True)), room) for row in walk
    ]


#: So many values of a template are made in one step, or so many variables looked for in them; and
#: so many letters looked through.
MADE_IN_A_STEP = 20
SOUGHT_IN_A_STEP = 80
LETTERS_IN_A_STEP = 10_000


def _repeat_price(args: Mapping[str, Json]) -> int:
    """Steps for the texts of all rows, in each of which every variable is looked for."""
    for_each = args["for_each"]
    if not isinstance(for_each, dict):
        return 0
    lengths = [len(items) for items in for_each.values() if isinstance(items, list | dict)]
    rows = max(lengths, default=0) if args.get("permutations") is False else prod(lengths)
    if rows > MOST_VALUES:
        return 0  # it is refused
    values, letters = _extent(args["template"])
    sought = values / SOUGHT_IN_A_STEP + letters / LETTERS_IN_A_STEP
    return int(rows * (values / MADE_IN_A_STEP + sought * len(for_each)))


def _extent(template: Json) -> tuple[int, int]:
    """How many values and keys there are in it, and letters."""
    values, letters, waiting = 0, 0, [template]
    while waiting:
        one = waiting.pop()
        values += 1
        if isinstance(one, str):
            letters += len(one)
        elif isinstance(one, dict):
            waiting += one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return values, letters


REPEAT_KEYS = frozenset({"template", "for_each"})
PLAIN_REPEAT = mapped("repeat", REPEAT_KEYS, REPEAT_KEYS)
REPEAT_LISTS = Function(
    lambda args: _repeat(args, with_maps=False), PLAIN_REPEAT, _repeat_price, presuming.repeating
)
REPEAT = Function(
    lambda args: _repeat(args, with_maps=True), PLAIN_REPEAT, _repeat_price, presuming.repeating
)
REPEAT_PERMUTING = Function(
    REPEAT.apply,
    mapped("repeat", REPEAT_KEYS, REPEAT_KEYS | {"permutations"}),
    _repeat_price,
    presuming.repeating,
)
