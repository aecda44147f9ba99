"""The interface of a function of the language.

To add a function: write it in text.py, data.py or cfn.py, and add it to the tables in
language/versions.py.
"""

from collections.abc import Callable
from dataclasses import dataclass

from engine.hot.expressions.expression import Call
from engine.words import Json

#: Limits of what one function may return: characters of a string, and number of values.
MAX_TEXT_LENGTH = 1_048_576
MAX_VALUES = 200_000


class FunctionError(Exception):
    """A function cannot accept its arguments. args: reason, remedy (optional), error code
    (optional).
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class UndecidedError(FunctionError):
    """A condition reads a parameter whose value is not known yet. This is not a fault."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function that works on its arguments alone.

    apply: resolved arguments -> value; raises FunctionError. shape: checks the arguments at
    definition, when parts may still be instances of `Call`; raises FunctionError. cost: resolved
    arguments -> steps of a CostBudget; None where the size of the result covers the cost.
    with_placeholders: arguments with calls -> arguments with placeholders, or None
    (placeholders.py); None where `shape` checks everything that can be checked before the calls are
    resolved.
    """

    apply: Callable[[Json], Json]
    shape: Callable[[Json], None]
    cost: Callable[[Json], int] | None = None
    with_placeholders: Callable[[Json], Json] | None = None


def list_shape(
    name: str, example: str, least: int, most: int | None = None
) -> Callable[[Json], None]:
    """Return a shape check for a list of `least` to `most` items."""

    def shape(args: Json) -> None:
        if isinstance(args, Call):
            return
        if not isinstance(args, list) or not least <= len(args) <= (most or len(args)):
            raise FunctionError(f'Incorrect arguments to "{name}" should be: "{name}" : {example}')

    return shape


def map_shape(name: str, needed: frozenset[str], known: frozenset[str]) -> Callable[[Json], None]:
    """Return a shape check for a map with all needed keys and no unknown ones."""

    def shape(args: Json) -> None:
        if isinstance(args, Call):
            return
        if not isinstance(args, dict) or not needed <= args.keys() <= known:
            keys = ", ".join(sorted(known))
            raise FunctionError(f'Incorrect arguments to "{name}" should be: a map with {keys}')

    return shape


def check_text_length(size: int) -> None:
    """Raise FunctionError if a string of this length would exceed the limit."""
    if size > MAX_TEXT_LENGTH:
        raise FunctionError(f"The text would have more than {MAX_TEXT_LENGTH} characters.")
