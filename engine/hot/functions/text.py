"""Functions of HOT that produce text, and repeat. function.py describes the interface."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from math import prod

from engine.errors import Quoting, public
from engine.hot.expressions.expression import FunctionCall
from engine.hot.functions import placeholders
from engine.hot.functions.function import (
    MAX_TEXT_LENGTH,
    MAX_VALUES,
    DeferredFormError,
    Function,
    FunctionError,
    InvalidCall,
    check_text_length,
    list_shape,
    map_shape,
    quote_as_heat,
    quote_value,
)
from engine.words import Json


def to_json_text(value: Json) -> str:
    """Return JSON text with sorted keys, as list_join and str_replace insert maps and lists into
    text.
    """
    return json.dumps(value, sort_keys=True)


# -- joining and splitting ------------------------------------------------------------------------


def _join_item(item: Json, with_json: bool) -> str:
    if item is None:
        return ""
    if isinstance(item, str):
        return item
    if with_json and isinstance(item, dict | list):
        return to_json_text(item)
    kinds = "string, map or list" if with_json else "strings"
    reason = f"Items to join must be {kinds}"
    remedy = public("Write texts; put numbers in quotes.")
    raise FunctionError(Quoting(f"{reason} not {quote_as_heat(item)}", reason), remedy)


def join_texts(name: str, args: list[Json], *, with_json: bool) -> Json:
    """Join lists with a delimiter. name: the function's name in the template, for messages."""
    delimiter, *lists = args
    if not isinstance(delimiter, str):
        remedy = public("Write [DELIMITER, [ITEM, ...]].")
        raise FunctionError(public(f'"{name}" delimiter must be a string'), remedy)
    items: list[Json] = []
    for one in lists:
        nothing = not one if with_json else one is None
        if not nothing and not isinstance(one, list):
            remedy = public("Write [DELIMITER, [ITEM, ...]].")
            raise FunctionError(public(f'"{name}" must operate on a list'), remedy)
        items += one or []
    texts = [_join_item(item, with_json) for item in items]
    check_text_length(sum(map(len, texts)) + len(delimiter) * len(texts))
    return delimiter.join(texts)


def join_parts(parts: list[Json]) -> str:
    """Return one string: null is the empty string, and other values are JSON text."""
    texts = [one if type(one) is str else _as_text(one) for one in parts]
    check_text_length(sum(map(len, texts)))
    return "".join(texts)


def _as_text(value: Json) -> str:
    return "" if value is None else to_json_text(value)


LIST_JOIN_TEXT = Function(
    lambda args: join_texts("list_join", args, with_json=False),
    list_shape("list_join", '[ " ", [ "str1", "str2"]]', 2, 2),
    with_placeholders=placeholders.join_arguments,
)
LIST_JOIN = Function(
    lambda args: join_texts("list_join", args, with_json=True),
    list_shape("list_join", '[ " ", [ "str1", "str2"] ...]', 2),
    with_placeholders=placeholders.join_arguments,
)


EMPTY_SEPARATOR = "empty separator"


def _split(args: list[Json]) -> Json:
    delimiter, text, *rest = args
    if text is None:
        return None
    if not isinstance(text, str) or not isinstance(delimiter, str | None) or delimiter == "":
        reason = '"str_split" takes a delimiter that is not empty and a text.'
        heat_reason = EMPTY_SEPARATOR if delimiter == "" and isinstance(text, str) else ""
        remedy = public("Write [DELIMITER, TEXT].")
        raise FunctionError(public(reason), remedy, heat_reason=heat_reason)
    parts = text.split(delimiter)
    if not rest:
        return parts
    try:
        return parts[int(rest[0])]
    except IndexError:
        highest = len(parts) - 1
        raise FunctionError(
            f'Incorrect index to "str_split" should be between 0 and {highest}',
            public("Use an index in this range, or leave it out to get all parts."),
        ) from None
    except (TypeError, ValueError):
        reason = f'Incorrect index to "str_split" should be: "str_split" : {SPLIT_EXAMPLE}'
        raise FunctionError(public(reason), public("The index is an integer.")) from None


SPLIT_EXAMPLE = '[ ",", "apples,pears", <index>]'
SPLIT_COUNT = list_shape("str_split", SPLIT_EXAMPLE, 2, 3, DeferredFormError)
SPLIT_FORM = list_shape("str_split", SPLIT_EXAMPLE, 2, 3)


def _split_shape(args: Json) -> None:
    short = isinstance(args, list) and len(args) < 2
    (SPLIT_COUNT if short else SPLIT_FORM)(args)


STR_SPLIT = Function(
    _split,
    _split_shape,
    with_placeholders=placeholders.split_arguments,
)


# -- replacement ----------------------------------------------------------------------------------

#: Keys compared in one step of a CostBudget; a position where keys are compared costs as much as
#: KEYS_PER_POSITION keys.
KEYS_PER_STEP = 200
KEYS_PER_POSITION = 8

#: Below this product of characters and keys a replacement costs less than one step.
FREE_COMPARISONS = 20_000


def replace_keys(template: str, params: Mapping[str, str]) -> tuple[str, set[str]]:
    """Replace all keys in one pass: the longest key wins, and inserted text is not searched again.

    Returns (text, keys found). Raises FunctionError when the text would be too long.
    """
    keys = _keys_by_first_character(params)
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
            check_text_length(size)
            found.add(key)
            parts += (template[at:start], params[key])
            at = start + len(key)
    return "".join([*parts, template[at:]]), found


def _keys_by_first_character(params: Iterable[str]) -> dict[str, list[str]]:
    """Return the keys by their first character, longest first."""
    keys: dict[str, list[str]] = {}
    for key in sorted(params, key=lambda key: (-len(key), key)):
        keys.setdefault(key[0], []).append(key)
    return keys


def replacement_cost(template: Json, params: Json) -> int:
    """Return the steps of a replacement: at each position whose character starts a key, all keys
    with that first character are compared.
    """
    if not isinstance(template, str) or not isinstance(params, dict):
        return 0
    if len(params) * len(template) < FREE_COMPARISONS:
        return 0
    there = Counter(template)
    first = [key[0] for key in params if isinstance(key, str) and key]
    places = sum(there[character] for character in set(first))
    compared = sum(1 + there[character] for character in first)
    return (compared + KEYS_PER_POSITION * places) // KEYS_PER_STEP


def _replacement(name: str, key: str, value: Json, with_json: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, dict | list):
        if not with_json:
            reason = f'"{name}" params must be strings or numbers'
            raise FunctionError(
                Quoting(f"{reason}, param {key} is not valid", reason),
                public("Convert it with list_join, or use version 2016-10-14 or later."),
            )
        return to_json_text(value)
    return str(value)


def replace_words(
    name: str, template: Json, params: Json, *, with_json: bool
) -> tuple[str, set[str]]:
    """Return (text, params that do not occur in the template). name: the function's name in the
    template, for messages.
    """
    if not isinstance(template, str):
        raise FunctionError(
            public(f'"{name}" template must be a string'),
            public("Write the template as text, in quotes."),
        )
    if not isinstance(params, dict):
        raise InvalidCall(
            public(f'"{name}" parameters must be a mapping'),
            public("Write params: {TEXT: REPLACEMENT}."),
        )
    if any(not isinstance(key, str) or not key for key in params):
        raise FunctionError(
            f'"{name}" cannot replace an empty text.',
            public("Write as each key of params the text that is replaced, in quotes."),
            heat_reason=EMPTY_SEPARATOR if "" in params else "",
        )
    texts = {key: _replacement(name, key, value, with_json) for key, value in params.items()}
    text, found = replace_keys(template, texts)
    return text, params.keys() - found


def _replace(name: str, args: Mapping[str, Json], with_json: bool) -> tuple[str, set[str]]:
    return replace_words(name, args["template"], args["params"], with_json=with_json)


def _replace_strict(name: str, args: Mapping[str, Json]) -> Json:
    result, missing = _replace(name, args, with_json=True)
    if missing:
        names = ",".join(sorted(missing, key=lambda key: (-len(key), key)))
        raise FunctionError(
            f"The following params were not found in the template: {names}",
            public("Use them in the template, or remove them from params."),
        )
    return result


def _replace_very_strict(args: Mapping[str, Json]) -> Json:
    params = args["params"]
    empty = isinstance(params, dict) and [k for k, v in params.items() if v in (None, "", [], {})]
    if empty:
        reason = f"{VERY_STRICT} has an undefined or empty value for param {empty[0]}"
        raise FunctionError(
            f"{reason}, must be a defined non-empty value",
            public("Give it a value, or use str_replace_strict."),
        )
    return _replace_strict(VERY_STRICT, args)


STRICT, VERY_STRICT = "str_replace_strict", "str_replace_vstrict"


def _str_replace_cost(args: Mapping[str, Json]) -> int:
    return replacement_cost(args["template"], args["params"])


#: The arguments in Heat's message.
REPLACE_EXAMPLE = """\
              template: This is var1 template var2
              params:
                var1: a
                var2: string"""


def _str_replace(name: str, apply: Callable[[Mapping[str, Json]], Json]) -> Function:
    keys = frozenset({"template", "params"})
    shape = map_shape(name, keys, keys, REPLACE_EXAMPLE)
    return Function(apply, shape, _str_replace_cost, placeholders.replace_arguments)


STR_REPLACE_TEXT = _str_replace(
    "str_replace", lambda args: _replace("str_replace", args, with_json=False)[0]
)
STR_REPLACE = _str_replace(
    "str_replace", lambda args: _replace("str_replace", args, with_json=True)[0]
)
STR_REPLACE_STRICT = _str_replace(STRICT, lambda args: _replace_strict(STRICT, args))
STR_REPLACE_VSTRICT = _str_replace(VERY_STRICT, _replace_very_strict)


def _digest_shape(args: Json) -> None:
    if isinstance(args, FunctionCall):
        return
    if not isinstance(args, list):
        raise DeferredFormError(public(NO_TEXTS), public("Write [ALGORITHM, TEXT]."))
    if len(args) != 2:
        raise DeferredFormError(
            public('Function "digest" usage: ["<algorithm>", "<value>"]'),
            public("Write digest: [ALGORITHM, TEXT]."),
        )


ALGORITHMS = sorted(hashlib.algorithms_available)
NO_TEXTS = 'Argument to function "digest" must be a list of strings'


def _digest(args: list[Json]) -> Json:
    algorithm, text = args
    if not isinstance(algorithm, str) or not isinstance(text, str):
        raise FunctionError(public(NO_TEXTS), public("Write [ALGORITHM, TEXT]."))
    if algorithm.lower() not in hashlib.algorithms_available:
        raise FunctionError(
            "Algorithm must be one of {'" + "', '".join(ALGORITHMS) + "'}",
            public("Write an algorithm such as sha256."),
        )
    try:
        made = hashlib.new(algorithm.lower(), text.encode("latin-1"))
        return made.hexdigest()
    except UnicodeEncodeError as error:
        raise FunctionError(
            'The string of "digest" must contain Latin-1 characters only.',
            public("Remove characters such as emoji."),
            heat_reason=str(error),
        ) from None
    except (TypeError, ValueError):
        raise FunctionError(
            Quoting(
                f'The algorithm "{algorithm}" cannot be used here.', "The algorithm is unknown."
            ),
            public("Write an algorithm such as sha256."),
        ) from None


DIGEST = Function(
    _digest,
    _digest_shape,
    with_placeholders=placeholders.digest_arguments,
)


# -- repeat ---------------------------------------------------------------------------------------


#: Characters of an unchanged template string that count as one unit of the allowance.
CHARACTERS_PER_UNIT = 16


class _SizeAllowance:
    """Remaining size of one `repeat`: strings count their length, other values one."""

    def __init__(self) -> None:
        self.left = MAX_TEXT_LENGTH

    def take(self, size: int) -> None:
        self.left -= size
        check_text_length(MAX_TEXT_LENGTH - self.left)


def _substitute_row(
    template: Json, pairs: list[tuple[str, Json]], allowance: _SizeAllowance
) -> Json:
    """Substitute one row of values in a template, variable by variable, also in map keys."""
    allowance.take(1)
    if isinstance(template, str):
        allowance.take(len(template) // CHARACTERS_PER_UNIT)
        for variable, value in pairs:
            if not isinstance(value, str):
                reason = '"repeat" substitutes text'
                raise FunctionError(
                    Quoting(f"{reason}, not {quote_value(value)}", reason),
                    public("Put each item in quotes."),
                )
            allowance.take(template.count(variable) * len(value))
            template = template.replace(variable, value)
        return template
    if isinstance(template, list):
        return [_substitute_row(item, pairs, allowance) for item in template]
    if isinstance(template, dict):
        return {
            _substitute_row(key, pairs, allowance): _substitute_row(value, pairs, allowance)
            for key, value in template.items()
        }
    return template


def _repeat(args: Mapping[str, Json], with_maps: bool) -> Json:
    for_each = args["for_each"]
    if not isinstance(for_each, dict):
        raise InvalidCall(
            public('The "for_each" argument to "repeat" must contain a map'),
            public("Write for_each: {VARIABLE: [ITEM, ...]}."),
        )
    if not for_each:
        raise FunctionError(
            'The "for_each" argument to "repeat" function must be a non-empty map',
            public("Write for_each: {VARIABLE: [ITEM, ...]}."),
        )
    permutations = args.get("permutations", True)
    if not isinstance(permutations, bool):
        raise InvalidCall(
            '"permutations" should be boolean type for repeat function.',
            public("Write permutations: true or false."),
        )
    rows: list[list[Json]] = []
    for variable, items in for_each.items():
        if isinstance(items, dict) and with_maps and permutations:
            items = list(items)
        if items is not None and not isinstance(items, list):
            kinds = "lists or maps" if with_maps and permutations else "lists"
            reason = f'The values of the "for_each" argument to "repeat" must be {kinds}'
            raise FunctionError(public(reason), f'Write a list for "{variable}".')
        rows.append(items or [])
    given = [items for items in for_each.values() if items is not None]
    if not permutations and len({len(items) for items in given}) > 1:
        reason = "the length of for_each values should be equal if no nested loop."
        raise FunctionError(
            public(f"For repeat, {reason}"),
            public("Give each variable the same number of items, or leave out permutations."),
        )
    if permutations and prod(map(len, rows)) > MAX_VALUES:
        raise FunctionError(
            f'"repeat" would make more than {MAX_VALUES} items.',
            public("Use fewer variables, or shorter lists."),
        )
    walk = product(*rows) if permutations else zip(*rows, strict=False)
    allowance = _SizeAllowance()
    return [
        _substitute_row(args["template"], list(zip(for_each, row, strict=True)), allowance)
        for row in walk
    ]


#: Work done in one step: template values produced, variables searched for in values, and characters
#: searched.
VALUES_PER_STEP = 20
SEARCHES_PER_STEP = 80
CHARACTERS_PER_STEP = 10_000


def _repeat_cost(args: Mapping[str, Json]) -> int:
    """Return the steps of substituting every variable in every row."""
    for_each = args["for_each"]
    if not isinstance(for_each, dict):
        return 0
    lengths = [len(items) for items in for_each.values() if isinstance(items, list | dict)]
    rows = max(lengths, default=0) if args.get("permutations") is False else prod(lengths)
    if rows > MAX_VALUES:
        return 0  # `_repeat` refuses it
    values, characters = _measure_template(args["template"])
    searched = values / SEARCHES_PER_STEP + characters / CHARACTERS_PER_STEP
    return int(rows * (values / VALUES_PER_STEP + searched * len(for_each)))


def _measure_template(template: Json) -> tuple[int, int]:
    """Return (number of values and keys, number of characters)."""
    values, characters, waiting = 0, 0, [template]
    while waiting:
        one = waiting.pop()
        values += 1
        if isinstance(one, str):
            characters += len(one)
        elif isinstance(one, dict):
            waiting += one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return values, characters


REPEAT_KEYS = frozenset({"template", "for_each"})
#: The arguments in Heat's message.
REPEAT_EXAMPLE = """\
              template: This is %var%
              for_each:
                %var%: ['a', 'b', 'c']"""
PLAIN_REPEAT = map_shape("repeat", REPEAT_KEYS, REPEAT_KEYS, REPEAT_EXAMPLE)
REPEAT_LISTS = Function(
    lambda args: _repeat(args, with_maps=False),
    PLAIN_REPEAT,
    _repeat_cost,
    placeholders.repeat_arguments,
)
REPEAT = Function(
    lambda args: _repeat(args, with_maps=True),
    PLAIN_REPEAT,
    _repeat_cost,
    placeholders.repeat_arguments,
)
REPEAT_PERMUTING = Function(
    REPEAT.apply,
    map_shape("repeat", REPEAT_KEYS, REPEAT_KEYS | {"permutations"}, REPEAT_EXAMPLE),
    _repeat_cost,
    placeholders.repeat_arguments,
)
