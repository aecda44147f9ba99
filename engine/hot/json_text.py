"""JSON that stands in a text: in a parameter, or where a function of CFN takes one."""

import json
import re
from typing import Final

import orjson

from engine.hot.integers import DIGITS, read_integer
from engine.words import Json

LONG: Final = re.compile(rf"[0-9]{{{DIGITS}}}")


def read_json(text: str) -> Json:
    """What a text says. Raises ValueError, which says why."""
    read: Json = orjson.loads(text)
    if LONG.search(text):
        try:
            json.loads(text, parse_int=_integer, parse_float=str)
        except RecursionError:
            raise ValueError("it is nested too deep") from None
    return read


def _integer(text: str) -> None:
    if read_integer(text) is None:
        raise ValueError(f"the number {text[:40]} is too large; write it as text")
