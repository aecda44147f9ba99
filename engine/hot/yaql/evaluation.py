"""yaql expressions: parsed when a stack is defined, evaluated when their data are known."""

import re
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import lru_cache
from math import isfinite
from typing import Any, Final

import yaql
from yaql.language import exceptions, expressions, utils

from engine.errors import beginning_of, public
from engine.hot.functions.cost_budget import DEFAULT_LIMITS, CostBudget, CostLimits
from engine.hot.functions.function import FunctionError
from engine.hot.syntax.json_text import is_storable_integer
from engine.hot.yaql.context import new_context
from engine.hot.yaql.functions import NON_DETERMINISTIC, USE_PARAMETER
from engine.words import Json

#: Maximum length of an expression in characters; characters parsed in one step; a number that is
#: too long.
MAX_EXPRESSION_LENGTH = 10_000
CHARACTERS_PER_STEP = 5
LONG_NUMBER = re.compile(r"\d{310}")

#: Errors whose text contains no values of the data.
SAFE_ERRORS = (
    ZeroDivisionError, OverflowError, AssertionError,
    exceptions.CollectionTooLargeException, exceptions.MemoryQuotaExceededException,
)  # fmt: skip
#: Errors whose text is the whole reason, as in Heat.
WHOLE_ERRORS = (ZeroDivisionError, exceptions.CollectionTooLargeException)


def check_yaql(text: Json, budget: CostBudget) -> None:
    """Raise FunctionError for an invalid expression or one with a non-deterministic function."""
    for one in _iterate_nodes(_parse_counted(text, budget)):
        if isinstance(one, expressions.Function) and one.name in NON_DETERMINISTIC:
            raise FunctionError(
                f'The yaql function "{one.name}" cannot be used in a template.', USE_PARAMETER
            )


def limits_to_store(limits: CostLimits) -> dict[str, Json]:
    """Return the limits to store with a call, so that its result stays the same when the operator's
    settings change; empty for the defaults.
    """
    kept = [limits.yaql_elements, limits.yaql_bytes]
    return {} if stored_limits({}) == stored_limits({"limits": kept}) else {"limits": kept}


def stored_limits(args: Mapping[str, Json]) -> CostLimits:
    """Return the limits that are stored with a call."""
    if "limits" not in args:
        return DEFAULT_LIMITS
    elements, max_bytes = args["limits"]
    return replace(DEFAULT_LIMITS, yaql_elements=elements, yaql_bytes=max_bytes)


def evaluate_yaql(text: Json, data: Json, limits: CostLimits, budget: CostBudget) -> Json:
    """Return the value of an expression; `$.data` is the data. Raises FunctionError."""
    engine = _engine().copy(
        {
            "yaql.limitIterators": limits.yaql_elements,
            "yaql.memoryQuota": limits.yaql_bytes,
            "yaql.convertSetsToLists": True,
        }
    )
    try:
        with budget.sub_budget() as share:
            tree = _parse_counted(text, share)
            context = new_context(share, {"data": data})
            return _as_json(expressions.Statement(tree, engine)(utils.NO_VALUE, context, engine))
    except FunctionError:
        raise
    except Exception as error:  # a library function may raise anything
        reason = _safe_error_text(error, text)
        if not isinstance(error, WHOLE_ERRORS) and not reason.startswith("Unknown function"):
            reason = f"The yaql expression failed: {reason}"
        raise FunctionError(reason, _failure_remedy(error)) from None


def _parse_counted(text: Json, budget: CostBudget) -> Any:
    """Parse an expression and spend the cost, also if the result is cached."""
    if not isinstance(text, str):
        raise FunctionError(
            'The "expression" argument to yaql must contain a string.',
            "Write expression: TEXT, in quotes.",
        )
    if len(text) > MAX_EXPRESSION_LENGTH:
        raise FunctionError(
            f"A yaql expression has at most {MAX_EXPRESSION_LENGTH} characters, not {len(text)}.",
            "Split it into several resources of type OS::Heat::Value.",
        )
    budget.spend_steps(len(text) // CHARACTERS_PER_STEP)
    return _parse(text)


@lru_cache(maxsize=1)
def _engine() -> Any:
    return yaql.YaqlFactory().create()


@lru_cache(maxsize=128)
def _parse(text: str) -> Any:
    """Parse an expression. Parser and lexer are copied, because other threads may use them."""
    if LONG_NUMBER.search(text):
        raise FunctionError(
            "Bad expression: a number has more than 309 digits.", "Calculate with smaller numbers."
        )
    engine = _engine()
    try:
        return copy(engine.parser).parse(text, lexer=engine.lexer.clone())
    except exceptions.YaqlGrammarException as error:
        if error.position is None:
            reason = "Bad expression Parse error: unexpected end of statement."
            raise FunctionError(reason, "Complete the expression.") from None
        found = f"unexpected '{error.value}' at position {error.position}"
        raise FunctionError(
            f"Bad expression: {found}.", "Correct the expression at this position."
        ) from None
    except exceptions.YaqlException as error:
        raise FunctionError(f"Bad expression: {error}.", "Correct the expression.") from None
    except ValueError as error:
        raise FunctionError(
            f"Bad expression: {beginning_of(str(error))}.", "Correct the expression."
        ) from None


def _iterate_nodes(tree: Any) -> Iterator[Any]:
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


def _safe_error_text(error: Exception, text: str) -> str:
    """Return the reason of an error without values of the data."""
    if isinstance(error, KeyError):
        key = str(error.args[0]) if error.args else ""
        return f'the key "{key}" does not exist' if key and key in text else "a key does not exist"
    for kind, message in ERROR_TEXTS.items():
        if isinstance(error, kind):
            return message
    if isinstance(error, exceptions.ResolutionError):
        message = FOR_RECEIVER.sub("", str(error))
        if (operator := OPERATOR.search(message)) is not None:
            return f'the operator "{operator[1]}" cannot be applied to its values'
        return PROPERTY.sub(r'there is no "\1" in a value that is not a map', message)
    if isinstance(error, TypeError | ValueError):
        return _conversion_error_text(str(error))
    if isinstance(error, SAFE_ERRORS):
        return str(error) or UNKNOWN_ERROR
    return re.split(r"[:'\"]", str(error))[0].strip() or UNKNOWN_ERROR


def _failure_remedy(error: Exception) -> str:
    if isinstance(error, exceptions.CollectionTooLargeException):
        return public("Filter the collection first, or divide it.")
    if isinstance(error, exceptions.MemoryQuotaExceededException):
        return public("Read less of the data.")
    if isinstance(error, ZeroDivisionError):
        return public("Check the divisor with switch() or where() first.")
    if isinstance(error, KeyError):
        return public("Use get(KEY, DEFAULT) for keys that may be missing.")
    return public("Correct the expression, or the data that it reads.")


def _conversion_error_text(message: str) -> str:
    """Return the reason of an error of Python's types in the words of templates."""
    for pattern, reason in CONVERSION_ERRORS:
        if (found := pattern.search(message)) is not None:
            kind = (found.groupdict().get("kind") or "").lower()
            return reason.format(kind=KINDS.get(kind, "value"))
    if PYTHON_WORDS.search(message):
        return UNKNOWN_ERROR
    return re.split(r"[:'\"]", message)[0].strip() or UNKNOWN_ERROR


FOR_RECEIVER = re.compile(r" for receiver .*?(?= matches|$)", re.DOTALL)
OPERATOR = re.compile(r'"#(?:unary_)?operator_([^"]+)"')
PROPERTY = re.compile(r'Unknown function "#property#(\w+)"')
UNKNOWN_ERROR: Final = "a function cannot be applied to its arguments"
#: Kinds of values by the names of their types.
KINDS: Final[Mapping[str, str]] = {
    "int": "integer", "float": "number", "str": "string", "bool": "boolean", "nonetype": "null",
    "tuple": "list", "list": "list", "dict": "map", "frozendict": "map", "generator": "list",
}  # fmt: skip
#: Errors of Python, and the same in the words of templates.
CONVERSION_ERRORS: Final = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        ("invalid literal for int", "a string is not an integer"),
        ("could not convert string to float", "a string is not a number"),
        (r"^int\(\) argument .*not '(?P<kind>\w+)'", "{kind} is not an integer"),
        (r"^float\(\) argument .*not '(?P<kind>\w+)'", "{kind} is not a number"),
        ("unhashable type|cannot use '.*' as a", "a list or a map cannot be a key"),
        (r"'(?P<kind>\w+)' object is not iterable", "{kind} is not a list"),
        ("unsupported operand|not supported between|can only concatenate|can't multiply",
         "an operator cannot be applied to its values"),
        ("not enough values|too many values", "a list does not have the expected number of items"),
    )
)  # fmt: skip
#: What messages of Python's own errors contain.
PYTHON_WORDS: Final = re.compile(
    r"object|argument|\(\)|'\w+'|NoneType|\b(?:str|int|dict|tuple|NoneType)\b"
)
ERROR_TEXTS: Mapping[type[Exception], str] = {
    StopIteration: "a collection has too few items, or too many",
    IndexError: "an index is out of range",
    RecursionError: "it recurses too deeply",
}


def _as_json(value: Any) -> Json:
    """Return the value as JSON: keys are strings, and all of it can be stored. Raises
    FunctionError.
    """
    if isinstance(value, dict):
        return {_key(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        raise FunctionError(
            f"The yaql expression gives the value {value}, which JSON cannot represent.",
            "Calculate a finite number.",
        )
    if isinstance(value, int) and not is_storable_integer(value):
        raise FunctionError(
            "The yaql expression gives a number that is too large.",
            "Calculate with smaller numbers, or turn the number into text with str().",
        )
    if value is None or isinstance(value, str | int | float):
        return value
    raise FunctionError(
        f"The yaql expression gives a value of the kind {type(value).__name__},"
        " which JSON cannot represent.",
        "Turn it into text, a number, a list or a map.",
    )


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, int | float):
        return repr(key)
    raise FunctionError(
        f"The yaql expression gives a map with a key of the kind {type(key).__name__}.",
        "Turn the key into text with str().",
    )
