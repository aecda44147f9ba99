"""JSON paths (RFC 9535) into responses, restricted to those with linear cost.

Supported: names, indexes, slices, ``*``, and filters that compare values at names and indexes.
Refused: ``..``, several selectors in one bracket, functions, and paths from the root in a filter.
The steps of an evaluation are limited, because a response can be large and paths many.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

from jsonpath import JSONPathEnvironment, JSONPathError
from jsonpath import filter as expressions
from jsonpath.match import JSONPathMatch
from jsonpath.path import JSONPath
from jsonpath.segments import JSONPathChildSegment
from jsonpath.selectors import Filter, IndexSelector, NameSelector, SliceSelector, WildcardSelector

from engine.words import Json

_ENVIRONMENT = JSONPathEnvironment(strict=True)
#: Maximum number of characters of a path.
MAX_PATH_LENGTH = 200
#: Maximum number of steps: expressions of filters, for each item that a path selects from. They
#: take one to three tenths of a second.
MAX_STEPS = 100_000
#: The steps that are left; None: each path has all of them.
_LEFT: ContextVar[list[int] | None] = ContextVar("left", default=None)
#: The prefixes that distinguish a path from plain text.
BEGINNINGS = ("$.", "$[")
_SELECTORS = (Filter, IndexSelector, NameSelector, SliceSelector, WildcardSelector)
_EXPRESSIONS = (
    expressions.BooleanLiteral,
    expressions.FilterExpression,
    expressions.FloatLiteral,
    expressions.InfixExpression,
    expressions.IntegerLiteral,
    expressions.Nil,
    expressions.PrefixExpression,
    expressions.StringLiteral,
)


class InvalidPath(ValueError):
    """The text is not a JSON path, or not a supported one."""


class TooManySteps(InvalidPath):
    """A path, or those that are read together, would take too many steps in this document."""


@contextmanager
def limited_together() -> Iterator[None]:
    """All paths that are read within it together have `MAX_STEPS`."""
    token = _LEFT.set(_LEFT.get() or [MAX_STEPS])
    try:
        yield
    finally:
        _LEFT.reset(token)


def is_path(text: Json) -> bool:
    return isinstance(text, str) and text.startswith(BEGINNINGS)


def first_value(path: str, document: Json) -> tuple[Json] | None:
    """The first value at a path, in a tuple of one; None if there is none.

    Raises InvalidPath; TooManySteps for some documents.
    """
    if (steps := _steps_of(path)) is not None:
        return _value_at(steps, document)
    compiled = read_path(path)
    if not isinstance(document, dict | list):
        return None
    nodes: Iterable[JSONPathMatch] = [
        _Node(filter_context={}, obj=document, parent=None, path="$", parts=(), root=document)
    ]
    left = _LEFT.get() or [MAX_STEPS]
    for segment, price in zip(compiled.segments, _prices(path), strict=True):
        nodes = segment.resolve(_charge_steps(nodes, price, left))
    found = next(iter(nodes), None)
    return None if found is None else (found.obj,)


def _charge_steps(
    nodes: Iterable[JSONPathMatch], price: int, left: list[int]
) -> Iterator[JSONPathMatch]:
    """The nodes, each after the steps that its items take are counted. Raises TooManySteps."""
    for node in nodes:
        left[0] -= price * (len(node.obj) if isinstance(node.obj, dict | list) else 1)
        if left[0] < 0:
            raise TooManySteps(
                f"the JSON paths take more than {MAX_STEPS:,} steps in this response. Use fewer"
                " filters, or a request with a smaller response"
            )
        yield node


@lru_cache(maxsize=1024)
def _prices(path: str) -> tuple[int, ...]:
    """The steps of each segment for one item."""
    selectors = [segment.selectors[0] for segment in read_path(path).segments]
    return tuple(
        1 + sum(1 for _ in _inside(one.expression)) if isinstance(one, Filter) else 1
        for one in selectors
    )


def names_one_place(path: str) -> bool:
    """Whether a path has only names and indexes. Raises InvalidPath."""
    return _steps_of(path) is not None


@lru_cache(maxsize=1024)
def _steps_of(path: str) -> tuple[str | int, ...] | None:
    """The names and indexes of a path that has nothing else. None: it has."""
    steps: list[str | int] = []
    for segment in read_path(path).segments:
        (selector,) = segment.selectors
        if isinstance(selector, NameSelector):
            steps.append(selector.name)
        elif isinstance(selector, IndexSelector):
            steps.append(selector.index)
        else:
            return None
    return tuple(steps)


def _value_at(steps: tuple[str | int, ...], value: Json) -> tuple[Json] | None:
    """As `first_value`, at a tenth of its cost: items of a list are read by the thousand."""
    if not isinstance(value, dict | list):
        return None
    for step in steps:
        if isinstance(step, str):
            if not isinstance(value, dict) or step not in value:
                return None
        elif not isinstance(value, list) or not -len(value) <= step < len(value):
            return None
        value = value[step]
    return (value,)


class _Node(JSONPathMatch):
    """A node without its children: with them, nodes and the document would be freed by the garbage
    collector only."""

    __slots__ = ()

    def add_child(self, *children: JSONPathMatch) -> None:
        pass


@lru_cache(maxsize=1024)
def read_path(path: str) -> JSONPath:
    """Compile a path. Raises InvalidPath."""
    if len(path) > MAX_PATH_LENGTH:
        raise InvalidPath(f"is longer than {MAX_PATH_LENGTH} characters")
    if not path.startswith("$"):
        raise InvalidPath("is not a valid JSON path: it must start with $")
    try:
        compiled = _ENVIRONMENT.compile(path)
    except (JSONPathError, RecursionError) as error:
        detail = str(error).splitlines()[0] if isinstance(error, JSONPathError) else "too deep"
        raise InvalidPath(f"is not a valid JSON path: {detail}") from None
    if not isinstance(compiled, JSONPath) or not _is_plain(compiled):
        raise InvalidPath("uses JSON path features that are not supported")
    return compiled


def _is_plain(path: JSONPath) -> bool:
    for segment in path.segments:
        if type(segment) is not JSONPathChildSegment or len(segment.selectors) != 1:
            return False
        (selector,) = segment.selectors
        if not isinstance(selector, _SELECTORS):
            return False
        if isinstance(selector, Filter) and not all(map(_is_cheap, _inside(selector.expression))):
            return False
    return True


def _inside(expression: expressions.BaseExpression) -> Iterator[expressions.BaseExpression]:
    yield expression
    for child in expression.children():
        yield from _inside(child)


def _is_cheap(expression: expressions.BaseExpression) -> bool:
    if isinstance(expression, expressions.RelativeFilterQuery):
        return expression.path.singular_query()
    return isinstance(expression, _EXPRESSIONS)
