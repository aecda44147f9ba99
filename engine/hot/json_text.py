"""JSON that stands in a text: in a parameter, or where a function of CFN takes one."""

import json
import re
from typing import Final, NoReturn

import orjson

from engine.words import Json

#: The shortest number that orjson may read as another one: it makes floats of large integers.
LONG: Final = re.compile(r"[0-9]{19}")
LEAST, MOST = -(2**63), 2**64 - 1


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
    if len(text) > len(str(LEAST)) or not LEAST <= int(text) <= MOST:
        _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"the number {text[:40]} is too large; write it as text")
