"""What a function of the language is: a shape for its arguments and a way to its value.

A `Function` is called with its arguments fully resolved and returns JSON, or raises `Wrong`. Its
``shape`` is checked already when the stack is defined, while parts of the arguments may still be
unknown (then they are instances of `Call`). To add one: write it in text_functions.py or
data_functions.py, and name it in versions.py.
"""

from collections.abc import Callable
from dataclasses import dataclass

from engine.hot.expression import Call
from engine.words import Json

#: No function makes a text longer than this (characters), nor more values than that.
LARGEST_TEXT = 1_048_576
MOST_VALUES = 200_000


class Wrong(Exception):
    """A function was called with arguments it cannot take: why, the remedy, and the code."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class Undecided(Wrong):
    """Nothing is wrong: a condition reads a parameter whose value is not known yet."""


@dataclass(frozen=True, slots=True)
class Function:
    """apply: resolved arguments -> value. shape: arguments as far as known -> nothing, or Wrong.

    price: resolved arguments -> steps of an Effort (effort.py); none where the size of arguments
    and value says it all. presume: see presuming.py; none where ``shape`` says all that can be
    said while parts are unknown.
    """

    apply: Callable[[Json], Json]
    shape: Callable[[Json], None]
    price: Callable[[Json], int] | None = None
    presume: Callable[[Json], Json] | None = None


def listed(name: str, example: str, least: int, most: int | None = None) -> Callable[[Json], None]:
    """Make a shape check: a list of ``least`` to ``most`` items."""

    def shape(args: Json) -> None:
        if isinstance(args, Call):
            return
        if not isinstance(args, list) or not least <= len(args) <= (most or len(args)):
            raise Wrong(f'Incorrect arguments to "{name}" should be: "{name}" : {example}')

    return shape


def mapped(name: str, needed: frozenset[str], known: frozenset[str]) -> Callable[[Json], None]:
    """Make a shape check: a map with all needed keys and no unknown one."""

    def shape(args: Json) -> None:
        if isinstance(args, Call):
            return
        if not isinstance(args, dict) or not needed <= args.keys() <= known:
            keys = ", ".join(sorted(known))
            raise Wrong(f'Incorrect arguments to "{name}" should be: a map with {keys}')

    return shape


def fits(size: int) -> None:
    """Refuse a text before it is made, when it would be too long."""
    if size > LARGEST_TEXT:
        raise Wrong(f"The text would have more than {LARGEST_TEXT} characters.")
