"""Functions that only Headgate's own versions of HOT have. function.py describes the interface.

The shapes check everything about an argument that is known, so that no placeholders are needed. In
an output, all that they refuse is a warning: nothing is an `InvalidCall`.
"""

from collections.abc import Callable
from functools import reduce
from typing import Final

from engine.errors import Quoting, one_of, public
from engine.hot.expressions.expression import FunctionCall, is_static
from engine.hot.functions.function import (
    DeferredFormError,
    Function,
    FunctionError,
    check_text_length,
    list_shape,
    quote_value,
)
from engine.hot.functions.text import to_json_text
from engine.hot.syntax.json_text import is_storable_integer, parse_integer, parse_json
from engine.words import Json

# -- arguments ------------------------------------------------------------------------------------


def _refuse(name: str, wanted: str, value: Json, remedy: str = "") -> FunctionError:
    reason = f'"{name}" takes {wanted}'
    return DeferredFormError(Quoting(f"{reason}, not {quote_value(value)}", reason), public(remedy))


def _kind_shape(name: str, kinds: tuple[type, ...], wanted: str) -> Callable[[Json], None]:
    """Return a shape check for one argument of certain types."""

    def shape(value: Json) -> None:
        if not isinstance(value, (*kinds, FunctionCall)):
            remedy = f"Write {name}: {{get_param: ...}}, or another expression with such a value."
            raise _refuse(name, wanted, value if is_static(value) else "a value", remedy)

    return shape


# -- texts ----------------------------------------------------------------------------------------


def _change_case(text: str, change: Callable[[str], str]) -> str:
    changed = change(text)
    check_text_length(len(changed))
    return changed


LOWER = Function(
    lambda text: _change_case(text, str.lower), _kind_shape("lower", (str,), "a string")
)
UPPER = Function(
    lambda text: _change_case(text, str.upper), _kind_shape("upper", (str,), "a string")
)


def _to_json(value: Json) -> str:
    text = to_json_text(value)
    check_text_length(len(text))
    return text


def _from_json(text: str) -> Json:
    try:
        return parse_json(text)
    except ValueError as error:
        reason = '"from_json" takes valid JSON'
        raise FunctionError(
            Quoting(f"{reason}: {error}", reason), public("Correct the text.")
        ) from None


def _anything(value: Json) -> None:
    return None


TO_JSON = Function(_to_json, _anything)
FROM_JSON = Function(_from_json, _kind_shape("from_json", (str,), "a string with JSON"))

# -- lists and maps -------------------------------------------------------------------------------


def _first(items: list[Json]) -> Json:
    return items[0] if items else None


def _distinct(items: list[Json]) -> Json:
    """Keep the first of equal items, in the order of the list."""
    first: dict[str, Json] = {}
    for item in items:
        first.setdefault(to_json_text(item), item)
    return list(first.values())


def _coalesce(values: list[Json]) -> Json:
    for value in values:
        if value is not None and value != "":
            return value
    raise FunctionError(
        public('All values of "coalesce" are null or empty strings.'),
        public("Add a default as the last item."),
    )


def _lookup(args: list[Json]) -> Json:
    values, key, *default = args
    if isinstance(values, dict):
        if isinstance(key, str) and key in values:
            return values[key]
    elif type(key) is int and -len(values) <= key < len(values):
        return values[key]
    if default:
        return default[0]
    if isinstance(values, dict):
        reason = Quoting(f'"lookup" finds no key {quote_value(key)}', '"lookup" finds no such key')
        raise FunctionError(reason, one_of(str(key), [*values], "Keys"))
    reason = Quoting(
        f'"lookup" finds no item {quote_value(key)} in a list of {len(values)}',
        '"lookup" finds no such item',
    )
    raise FunctionError(reason, public("Add a default as the third item."))


def _lookup_shape(args: Json) -> None:
    LOOKUP_LIST(args)
    if isinstance(args, FunctionCall):
        return
    values, key = args[:2]
    if not isinstance(values, dict | list | FunctionCall):
        raise _refuse("lookup", "a map or a list first", values)
    if isinstance(values, dict) and not isinstance(key, str | FunctionCall):
        raise _refuse("lookup", "a string as the key of a map", key)
    if isinstance(values, list) and not isinstance(key, FunctionCall) and type(key) is not int:
        raise _refuse("lookup", "an integer as the index in a list", key)


LOOKUP_LIST = list_shape(
    "lookup", "[ <map or list>, <key or index>, <default> ]", 2, 3, DeferredFormError
)
LENGTH = Function(len, _kind_shape("length", (str, list, dict), "a string, a list or a map"))
FIRST = Function(_first, _kind_shape("first", (list,), "a list"))
DISTINCT = Function(_distinct, _kind_shape("distinct", (list,), "a list"))
COALESCE = Function(
    _coalesce, list_shape("coalesce", "[ <value>, <default> ]", 1, error=DeferredFormError)
)
LOOKUP = Function(_lookup, _lookup_shape)

# -- integer arithmetic ---------------------------------------------------------------------------


def _integer(name: str, value: Json) -> int:
    """Return an integer, also of a string such as "12". Raises FunctionError."""
    number = value if type(value) is int else None
    if type(value) is str and value.removeprefix("-").isdecimal() and value.isascii():
        number = parse_integer(value)
    if number is None:
        reason = f'"{name}" calculates with integers'
        raise DeferredFormError(
            Quoting(f"{reason}, not {quote_value(value)}", reason),
            public('Write integers such as 3, or strings such as "3".'),
        )
    return number


def _check_storable(name: str, number: int) -> int:
    if not is_storable_integer(number):
        raise FunctionError(
            public(f'The result of "{name}" does not fit into 64 bits.'),
            public("Calculate with smaller numbers."),
        )
    return number


def _arithmetic(name: str, apply: Callable[[int, int], int], most: int | None = None) -> Function:
    """Return a function of integers. most: number of arguments; None: two or more."""
    form = list_shape(name, "[ 7, 2 ]", 2, most, DeferredFormError)

    def shape(args: Json) -> None:
        form(args)
        if isinstance(args, FunctionCall):
            return
        for index, value in enumerate(args):
            if isinstance(value, FunctionCall):
                continue
            number = _integer(name, value)
            if index and not number and name in DIVISIONS:
                raise DeferredFormError(
                    public(f'"{name}" divides by zero.'), public("Use another divisor.")
                )

    def calculate(args: list[Json]) -> int:
        numbers = [_integer(name, value) for value in args]
        return reduce(lambda total, one: _check_storable(name, apply(total, one)), numbers)

    return Function(calculate, shape)


DIVISIONS: Final = frozenset({"divide", "modulo"})
ADD = _arithmetic("add", lambda a, b: a + b)
SUBTRACT = _arithmetic("subtract", lambda a, b: a - b, 2)
MULTIPLY = _arithmetic("multiply", lambda a, b: a * b)
DIVIDE = _arithmetic("divide", lambda a, b: a // b, 2)
MODULO = _arithmetic("modulo", lambda a, b: a % b, 2)
