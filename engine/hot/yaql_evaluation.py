"""yaql expressions: read when a stack is defined, evaluated when their data are known."""

import re
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import lru_cache
from math import isfinite
from typing import Any

import yaql
from yaql.language import exceptions, expressions, utils

from engine.hot.effort import DEFAULT_LIMITS, Effort, EffortLimits
from engine.hot.function import Wrong
from engine.hot.integers import can_be_kept
from engine.hot.yaql_context import new_context
from engine.hot.yaql_functions import GIVE, NEVER
from engine.words import Json

#: The longest expression, in characters; so many are read in one step; the longest number in one.
LONGEST = 10_000
LETTERS_IN_A_STEP = 5
LONG_NUMBER = re.compile(r"\d{310}")

#: Errors whose text names kinds and places, and no value.
SAYABLE = (
    TypeError, IndexError, ZeroDivisionError, OverflowError, AssertionError,
    exceptions.CollectionTooLargeException, exceptions.MemoryQuotaExceededException,
)  # fmt: skip


def check_expression(text: Json, effort: Effort) -> None:
    """Raise Wrong when it is no expression of yaql, or one that changes with time or by chance."""
    for one in _parts(_read(text, effort)):
        if isinstance(one, expressions.Function) and one.name in NEVER:
            raise Wrong(f'The yaql function "{one.name}" cannot be used in a template.', GIVE)


def limits_said(limits: EffortLimits) -> dict[str, Json]:
    """What is stored with a call of yaql, so that it means the same later: nothing, mostly."""
    kept = [limits.yaql_elements, limits.yaql_bytes]
    return {} if limits_of({}) == limits_of({"limits": kept}) else {"limits": kept}


def limits_of(args: Mapping[str, Json]) -> EffortLimits:
    """The limits that are stored with a call."""
    if "limits" not in args:
        return DEFAULT_LIMITS
    elements, most_bytes = args["limits"]
    return replace(DEFAULT_LIMITS, yaql_elements=elements, yaql_bytes=most_bytes)


def evaluate(text: Json, data: Json, limits: EffortLimits, effort: Effort) -> Json:
    """Return the value of an expression, in which ``$.data`` is the data. Raises Wrong."""
    engine = _engine().copy(
        {
            "yaql.limitIterators": limits.yaql_elements,
            "yaql.memoryQuota": limits.yaql_bytes,
            "yaql.convertSetsToLists": True,
        }
    )
    try:
        with effort.share() as share:
            tree = _read(text, share)
            context = new_context(share, {"data": data})
            return _as_json(expressions.Statement(tree, engine)(utils.NO_VALUE, context, engine))
    except Wrong:
        raise
    except Exception as error:  # whatever a function of the library comes to
        raise Wrong(f"The yaql expression failed: {_said(error, text)}") from None


def _read(text: Json, effort: Effort) -> Any:
    """What an expression is made of. Reading it is counted, also where it was read before."""
    if not isinstance(text, str):
        raise Wrong('The "expression" argument to yaql must contain a string.')
    if len(text) > LONGEST:
        raise Wrong(f"A yaql expression has at most {LONGEST} characters, not {len(text)}.")
    effort.step(len(text) // LETTERS_IN_A_STEP)
    return _tree(text)


@lru_cache(maxsize=1)
def _engine() -> Any:
    return yaql.YaqlFactory().create()


@lru_cache(maxsize=128)
def _tree(text: str) -> Any:
    """What an expression is made of. Reader and lexer are copied: others may read meanwhile."""
    if LONG_NUMBER.search(text):
        raise Wrong("Bad expression: a number has more than 309 digits.")
    engine = _engine()
    try:
        return copy(engine.parser).parse(text, lexer=engine.lexer.clone())
    except exceptions.YaqlGrammarException as error:
        at = "at its end" if error.position is None else f"at position {error.position}"
        found = "" if error.position is None else f" '{error.value}'"
        raise Wrong(f"Bad expression: unexpected{found or ' end'} {at}.") from None
    except exceptions.YaqlException as error:
        raise Wrong(f"Bad expression: {error}.") from None
    except ValueError as error:
        raise Wrong(f"Bad expression: {str(error)[:200]}.") from None


def _parts(tree: Any) -> Iterator[Any]:
    waiting = [tree]
    while waiting:
        one = waiting.pop()
        yield one
        if isinstance(one, expressions.Function):
            waiting += one.args
        elif isinstance(one, expressions.MappingRuleExpression):
            waiting += (one.source, one.destination)
        elif isinstance(one, expressions.Wrap):
            waiting.append(one.expr)


def _said(error: Exception, text: str) -> str:
    """What is wrong, without the values that the expression was working on."""
    if isinstance(error, KeyError):
        key = str(error.args[0]) if error.args else ""
        return f'the key "{key}" is not there' if key and key in text else "a key is not there"
    for kind, said in SAID.items():
        if isinstance(error, kind):
            return said
    if isinstance(error, exceptions.ResolutionError):
        said = FOR_RECEIVER.sub("", str(error))
        return PROPERTY.sub(r'nothing is called "\1" in a value that is no map', said)
    if isinstance(error, SAYABLE):
        return str(error) or type(error).__name__
    return re.split(r"[:'\"]", str(error))[0].strip() or type(error).__name__


FOR_RECEIVER = re.compile(r" for receiver .*?(?= matches|$)", re.DOTALL)
PROPERTY = re.compile(r'Unknown function "#property#(\w+)"')
SAID: Mapping[type[Exception], str] = {
    StopIteration: "a collection has too few items, or too many",
    RecursionError: "it calls itself too often",
}


def _as_json(value: Any) -> Json:
    """Return the value as JSON has it: keys are text, and all of it can be stored."""
    if isinstance(value, dict):
        return {_key(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        raise Wrong(f"The yaql expression gives the value {value}, which JSON cannot say.")
    if isinstance(value, int) and not can_be_kept(value):
        raise Wrong("The yaql expression gives a number that is too large.")
    if value is None or isinstance(value, str | int | float):
        return value
    raise Wrong(
        f"The yaql expression gives a value of the kind {type(value).__name__},"
        " which JSON cannot say.",
        "Turn it into text, a number, a list or a map.",
    )


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, int | float):
        return repr(key)
    raise Wrong(f"The yaql expression gives a map with a key of the kind {type(key).__name__}.")
