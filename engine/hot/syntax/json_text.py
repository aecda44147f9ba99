"""JSON text inside strings (parameters, arguments of CFN functions), and the integers that can be
stored: 64 bits, signed or unsigned.
"""

import json
import re
from typing import Final

import orjson

from engine.words import Json

MIN_INTEGER: Final = -(2**63)
MAX_INTEGER: Final = 2**64 - 1
#: Number of digits from which an integer may exceed 64 bits; orjson parses such integers as floats.
LONG_DIGITS: Final = 19
LONG_NUMBER: Final = re.compile(rf"[0-9]{{{LONG_DIGITS}}}")


def is_storable_integer(number: int) -> bool:
    return MIN_INTEGER <= number <= MAX_INTEGER


def parse_integer(text: str) -> int | None:
    """Parse a JSON integer; None if it does not fit 64 bits."""
    number = int(text) if len(text) <= len(str(MIN_INTEGER)) else MAX_INTEGER + 1
    return number if is_storable_integer(number) else None


def parse_json(text: str) -> Json:
    """Parse JSON text. Raises ValueError with a readable reason."""
    read: Json = orjson.loads(text)
    if LONG_NUMBER.search(text):
        try:
            json.loads(text, parse_int=_integer, parse_float=str)
        except RecursionError:
            raise ValueError("it is nested too deep") from None
    return read


def _integer(text: str) -> None:
    if parse_integer(text) is None:
        raise ValueError(f"the number {text[:40]} is too large; write it as text")
