"""Messages for the errors that pydantic finds, without Python's names of types."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import ErrorDetails

_Context = Mapping[str, Any]


def _choice(context: _Context) -> str:
    """expected: such as ``'a' or 'b'``."""
    return "must be " + str(context["expected"]).replace("'", '"')


def _characters(bound: str, count: int) -> str:
    return f"must have {bound} {count} character{'' if count == 1 else 's'}"


_INTEGER, _NUMBER = "must be an integer", "must be a number"
_BOOLEAN, _LIST, _MAP = "must be true or false", "must be a list", "must be a map"
#: By type of error: a text, or a function from the error's context to a text.
_MESSAGES: Mapping[str, str | Callable[[_Context], str]] = {
    "missing": "is required",
    "string_type": "must be a string",
    "path_type": "must be a string",
    "int_type": _INTEGER,
    "int_parsing": _INTEGER,
    "int_parsing_size": _INTEGER,
    "int_from_float": _INTEGER,
    "finite_number": "must be a finite number",
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "bool_type": _BOOLEAN,
    "bool_parsing": _BOOLEAN,
    "list_type": _LIST,
    "tuple_type": _LIST,
    "dict_type": _MAP,
    "mapping_type": _MAP,
    "model_type": _MAP,
    "literal_error": _choice,
    "enum": _choice,
    "string_too_short": lambda context: _characters("at least", context["min_length"]),
    "string_too_long": lambda context: _characters("at most", context["max_length"]),
    "too_short": lambda context: f"must have at least {context['min_length']} items",
    "too_long": lambda context: f"must have at most {context['max_length']} items",
    "greater_than": lambda context: f"must be greater than {context['gt']:.15g}",
    "greater_than_equal": lambda context: f"must be at least {context['ge']:.15g}",
    "less_than": lambda context: f"must be less than {context['lt']:.15g}",
    "less_than_equal": lambda context: f"must be at most {context['le']:.15g}",
}


def describe(error: ErrorDetails) -> str:
    """The reason; the text of Headgate's own validators stays as it is."""
    if error["type"] == "value_error":
        return error["msg"].removeprefix("Value error, ")
    message = _MESSAGES.get(error["type"], "is not valid")
    return message if isinstance(message, str) else message(error.get("ctx", {}))
