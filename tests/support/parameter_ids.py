"""Ids of parametrized tests."""

from datetime import datetime, timedelta
from enum import Enum

MAX_ID_LENGTH = 60


def parameter_id(value: object) -> str | None:
    """Return the id of a list, tuple, mapping, set, exception or time: its text, sets in order.

    The id is the same in every process. None: pytest chooses the id.
    """
    if isinstance(value, BaseException):
        return type(value).__name__
    if isinstance(value, datetime | timedelta):
        return str(value)
    if not isinstance(value, dict | list | tuple | set | frozenset):
        return None
    text = _format(value)
    if text is None or len(text) <= MAX_ID_LENGTH:
        return text
    return f"{text[: MAX_ID_LENGTH - 3]}..."


def _format(value: object) -> str | None:
    """Return the text of a value; None if it contains an object of another type."""
    match value:
        case Enum():
            return str(value.value)
        case None | str() | bool() | int() | float():
            return repr(value)
        case dict():
            keys = [_format(key) for key in value]
            return _join(
                "{", [_pair(*pair) for pair in zip(keys, value.values(), strict=True)], "}"
            )
        case set() | frozenset():
            return _join("{", sorted(map(_format, value), key=str), "}")
        case list() | tuple() if type(value) in (list, tuple):
            return _join("[", [_format(item) for item in value], "]")
        case _:
            return None


def _pair(key: str | None, value: object) -> str | None:
    text = _format(value)
    return None if key is None or text is None else f"{key}: {text}"


def _join(opening: str, items: list[str | None], closing: str) -> str | None:
    texts = [item for item in items if item is not None]
    return None if len(texts) < len(items) else opening + ", ".join(texts) + closing
