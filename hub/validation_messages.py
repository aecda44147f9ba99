"""Messages for the errors that pydantic finds, without Python's names of types."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import ErrorDetails

_Context = Mapping[str, Any]
_MESSAGES: Mapping[str, Callable[[_Context], str]] = {
    "missing": lambda _: "is required",
    "string_type": lambda _: "must be a string",
    "int_type": lambda _: "must be an integer",
    "int_parsing": lambda _: "must be an integer",
    "int_from_float": lambda _: "must be an integer",
    "float_type": lambda _: "must be a number",
    "float_parsing": lambda _: "must be a number",
    "bool_type": lambda _: "must be true or false",
    "bool_parsing": lambda _: "must be true or false",
    "list_type": lambda _: "must be a list",
    "dict_type": lambda _: "must be a map",
    "model_type": lambda _: "must be a map",
    "literal_error": lambda context: (
        f"must be {str(context['expected']).replace(chr(39), chr(34))}"
    ),
    "enum": lambda context: f"must be {str(context['expected']).replace(chr(39), chr(34))}",
    "string_too_short": lambda context: _characters("at least", context["min_length"]),
    "string_too_long": lambda context: _characters("at most", context["max_length"]),
    "too_short": lambda context: f"must have at least {context['min_length']} items",
    "too_long": lambda context: f"must have at most {context['max_length']} items",
    "greater_than": lambda context: f"must be greater than {context['gt']:g}",
    "greater_than_equal": lambda context: f"must be at least {context['ge']:g}",
    "less_than": lambda context: f"must be less than {context['lt']:g}",
    "less_than_equal": lambda context: f"must be at most {context['le']:g}",
}


def _choice(expected: str) -> str:
    """expected: such as ``'a' or 'b'``."""
    return "must be " + expected.replace("'", '"')


def _characters(bound: str, count: int) -> str:
    return f"must have {bound} {count} character{'' if count == 1 else 's'}"


def describe(error: ErrorDetails) -> str:
    """The reason; the text of a validator of ours stays as it is."""
    if error["type"] == "value_error":
        return error["msg"].removeprefix("Value error, ")
    message = _MESSAGES.get(error["type"])
    return message(error.get("ctx", {})) if message else "is not valid"
