"""The interface of a function of the language.

To add a function: write it in text.py, data.py or cfn.py, and add it to the tables in
language/versions.py.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.errors import WITHHELD_REMEDY, beginning_of, public, without_value
from engine.hot.expressions.expression import FunctionCall, in_heat_notation
from engine.words import Json

#: Limits of what one function may return: characters of a string, and number of values.
MAX_TEXT_LENGTH = 1_048_576
MAX_VALUES = 200_000


class FunctionError(Exception):
    """A function cannot accept its arguments. code: of the error; "" for the usual one. If the
    arguments contain a secret, a reason or remedy that is not `Quoting` is not shown. sentence,
    heat_reason: see `Finding`.
    """

    sentence = ""

    def __init__(self, reason: str, remedy: str, code: str = "", heat_reason: str = "") -> None:
        super().__init__(reason)
        self.reason, self.remedy, self.code = reason, remedy, code
        self.heat_reason = heat_reason

    def __str__(self) -> str:
        return str(self.reason)


def quote_value(value: Json) -> str:
    """Return the beginning of a value as JSON, for messages."""
    return beginning_of(json.dumps(value, ensure_ascii=False, default=str))


def quote_as_heat(value: Json) -> str:
    """Return the beginning of a value in the notation of Heat's messages."""
    return beginning_of(in_heat_notation(value))


#: The remedy about a boolean in place of a name.
QUOTE_NAMES = "Put the name in quotes: YAML reads on, off, yes, no, true and false as booleans."
#: Code of warnings about outputs that have an error instead of a value.
OUTPUT_ERROR = "OutputError"
#: The code of a warning about a part that has no effect.
NO_EFFECT = "NoEffect"


class InvalidCall(FunctionError):
    """A call has an invalid form, or reads an attribute that does not exist. As in Heat, this is an
    error also in an output; other calls without a value are errors only when the output is read.
    """


class DeferredFormError(FunctionError):
    """A call has an invalid form that Heat notices only when it evaluates the call, or is one of a
    function that Heat does not have: an error of an output when the output is read.
    """


class InvalidForm(FunctionError):
    """A call in a condition has an invalid form. inside: its place in the condition."""

    inside = ""


#: Replaces a reason that may quote a secret argument.
WITHHELD_ARGUMENTS = (
    "The arguments are not valid; the reason is not shown because they contain a secret."
)


def without_secrets(wrong: FunctionError) -> FunctionError:
    """Return the error as it is shown if the arguments contain a secret."""
    kind = InvalidCall if isinstance(wrong, InvalidCall) else FunctionError
    return kind(
        without_value(wrong.reason, WITHHELD_ARGUMENTS),
        without_value(wrong.remedy, WITHHELD_REMEDY),
        wrong.code,
    )


class UndecidedError(FunctionError):
    """A condition reads a parameter whose value is not known yet. This is not a fault."""

    def __init__(self, parameter: str = "") -> None:
        super().__init__(parameter, "")


@dataclass(frozen=True, slots=True)
class Function:
    """A function that works on its arguments alone.

    apply: resolved arguments -> value; raises FunctionError. shape: checks the arguments at
    definition, when parts may still be a `FunctionCall`; raises FunctionError. cost: resolved
    arguments -> steps of a CostBudget; None where the size of the result covers the cost.
    with_placeholders: arguments with calls -> arguments with placeholders, or None
    (placeholders.py); None where `shape` checks everything that can be checked before the calls are
    resolved.
    """

    apply: Callable[[Json], Json]
    shape: Callable[[Json], None]
    cost: Callable[[Json], int] | None = None
    with_placeholders: Callable[[Json], Json] | None = None


def _describe_count(least: int, most: int | None) -> str:
    if most is None:
        return f"{least} or more items" if least else "items"
    return f"{least} items" if least == most else f"{least} to {most} items"


def list_shape(
    name: str,
    example: str,
    min_arguments: int,
    max_arguments: int | None = None,
    error: type[FunctionError] = FunctionError,
) -> Callable[[Json], None]:
    """Return a shape check for a list of `min_arguments` to `max_arguments` items. error: of a
    value that is not such a list."""
    remedy = f"Write a list of {_describe_count(min_arguments, max_arguments)}."

    def shape(args: Json) -> None:
        if isinstance(args, FunctionCall):
            return
        if not isinstance(args, list) or not min_arguments <= len(args) <= (
            max_arguments or len(args)
        ):
            reason = f'Incorrect arguments to "{name}" should be: "{name}" : {example}'
            raise error(public(reason), public(remedy))

    return shape


def heat_syntax(name: str, example: str) -> str:
    """Return Heat's text about a function without a needed argument. example: of its arguments."""
    return repr(f'"{name}" syntax should be {name}:\n{example}')


def map_shape(
    name: str, needed: frozenset[str], known: frozenset[str], example: str
) -> Callable[[Json], None]:
    """Return a shape check for a map with all needed keys and no unknown ones. example: see
    `heat_syntax`."""
    keys = ", ".join(sorted(known))
    heat_reason = heat_syntax(name, example)

    def shape(args: Json) -> None:
        if isinstance(args, FunctionCall):
            return
        if not isinstance(args, dict):
            remedy = public(f"Write a map with {keys}.")
            raise FunctionError(public(f'Arguments to "{name}" must be a map'), remedy)
        if not needed <= args.keys() <= known:
            reason = f'Incorrect arguments to "{name}" should be: a map with {keys}'
            wrong = FunctionError(public(reason), _map_remedy(args, needed, known))
            wrong.heat_reason = "" if needed <= args.keys() else heat_reason
            raise wrong

    return shape


def _map_remedy(args: Mapping[str, Json], needed: frozenset[str], known: frozenset[str]) -> str:
    if missing := sorted(needed - args.keys()):
        return public(f"Add {' and '.join(missing)}.")
    unknown = min(map(str, args.keys() - known))
    return f'Remove or rename "{unknown}".'


def check_text_length(size: int) -> None:
    """Raise FunctionError if a string of this length would exceed the limit."""
    if size > MAX_TEXT_LENGTH:
        raise FunctionError(
            public(f"The text would have more than {MAX_TEXT_LENGTH} characters."),
            public("Insert less text."),
        )
