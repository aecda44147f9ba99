"""Integers that can be kept as they are: those of 64 bits, with or without a sign."""

from typing import Final

LEAST: Final = -(2**63)
MOST: Final = 2**64 - 1
#: As many digits as the shortest that may be too large has; orjson reads such a one as a float.
DIGITS: Final = 19


def can_be_kept(number: int) -> bool:
    return LEAST <= number <= MOST


def read_integer(text: str) -> int | None:
    """What JSON's digits say; None: it cannot be kept."""
    number = int(text) if len(text) <= len(str(LEAST)) else MOST + 1
    return number if can_be_kept(number) else None
