"""Logic functions of preconditions and postconditions, evaluated when their values are known."""

from collections.abc import Mapping

from engine.errors import public
from engine.hot.functions.function import Function, FunctionError, list_shape, quote_value
from engine.words import Json


def _no_shape(args: Json) -> None:
    """The evaluator of assertions has checked the form."""


def _booleans(name: str, args: list[Json]) -> list[bool]:
    for one in args:
        if not isinstance(one, bool):
            raise FunctionError(
                f'"{name}" takes conditions, got {quote_value(one)}',
                public("Write true, false or a condition."),
            )
    return args


def _not(args: Json) -> Json:
    return not _booleans("not", [args])[0]


def _equals(args: Json) -> Json:
    return bool(args[0] == args[1])


EQUALS = Function(_equals, list_shape("equals", "[value_1, value_2]", 2, 2))
LOGIC: Mapping[str, Function] = {
    "equals": EQUALS,
    "not": Function(_not, _no_shape),
    "and": Function(lambda args: all(_booleans("and", args)), _no_shape),
    "or": Function(lambda args: any(_booleans("or", args)), _no_shape),
}
