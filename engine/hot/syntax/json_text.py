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

#: Maximum levels of maps and lists in JSON text: values are processed recursively.
MAX_JSON_DEPTH: Final = 128


def is_storable_integer(number: int) -> bool:
    return MIN_INTEGER <= number <= MAX_INTEGER


def parse_integer(text: str) -> int | None:
    """Parse a JSON integer; None if it does not fit 64 bits."""
    number = int(text) if len(text) <= len(str(MIN_INTEGER)) else MAX_INTEGER + 1
    return number if is_storable_integer(number) else None


def parse_json(text: str) -> Json:
    """Parse JSON text. Raises ValueError with a readable reason."""
    read: Json = orjson.loads(text)
    if text.count("[") + text.count("{") > MAX_JSON_DEPTH and _depth(read) > MAX_JSON_DEPTH:
        raise ValueError(f"it is nested too deeply: more than {MAX_JSON_DEPTH} levels")
    if LONG_NUMBER.search(text):
        try:
            json.loads(text, parse_int=_integer, parse_float=str)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
    return read


def why_invalid(text: str) -> str:
    """Return why a text is not JSON, in the words of Heat; "" if Heat would accept it."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return str(error)
    except (RecursionError, ValueError):
        pass
    return ""


def _depth(value: Json) -> int:
    """Return the number of levels of maps and lists, without recursion."""
    depth, level = 0, [value]
    while level := [one for one in level if type(one) is dict or type(one) is list]:
        depth += 1
        level = [item for one in level for item in (one.values() if type(one) is dict else one)]
    return depth


def _integer(text: str) -> None:
    if parse_integer(text) is None:
        raise ValueError(f"the number {text[:40]} is too large; write it as text")
