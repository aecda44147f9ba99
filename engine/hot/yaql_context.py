"""Where yaql expressions are evaluated: the functions of the library, with what they do counted.

Every call, round of a lambda and item that is handed on is a step of the `Effort`; every value is
weighed when it is made and when it is read, and one that is too large, too deep or too long is
refused. So no expression takes long, also where the library's own limits do not look.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Set, ValuesView
from functools import lru_cache
from typing import Any

import yaql
from yaql.language import contexts, conventions, specs, utils, yaqltypes

from engine.hot.effort import Effort
from engine.hot.function import Wrong
from engine.hot.patterns import Pattern
from engine.hot.yaql_functions import LONGEST_NUMBER, REPLACED

#: So many values, with all that is in them, one value may hold.
HEAVIEST = 100_000
#: Letters of a text that weigh as much as a value.
LETTERS = 16
#: So much weight is read in one step.
WEIGHT_IN_A_STEP = 100
#: How deep a value may be nested.
DEEPEST = 64


class Ordered(frozenset[Any]):
    """A set that is walked in the same order in every process."""

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(super().__iter__(), key=repr))

    def __repr__(self) -> str:
        return f"frozenset({{{', '.join(map(repr, self))}}})"


class Counted(Iterator[Any]):
    """An iterator of which every item is a step. It says the same of itself every time."""

    __slots__ = ("_effort", "_items")

    def __init__(self, items: Iterator[Any], effort: Effort) -> None:
        self._items = items
        self._effort = effort

    def __iter__(self) -> "Counted":
        return Counted(iter(self._items), self._effort)

    def __next__(self) -> Any:
        self._effort.step()
        return next(self._items)

    def __repr__(self) -> str:
        return "<iterator>"


class Scales:
    """Weighs the values of one evaluation; what was weighed is kept, so that it is done once."""

    def __init__(self, effort: Effort) -> None:
        self.effort = effort
        self._known: dict[int, tuple[Any, int, int]] = {}

    def taken(self, value: Any) -> Any:
        """Count a value that a call gave, and return it as the next call is to see it."""
        kind = type(value)
        if kind is int and value.bit_length() > LONGEST_NUMBER:
            raise Wrong(f"A number has more than {LONGEST_NUMBER} bits.")
        if kind in LIGHT:
            return value
        if isinstance(value, Iterator) and kind is not Counted:
            return Counted(value, self.effort)
        if kind is frozenset:
            value = Ordered(value)
        weight, _ = self._weigh(value)
        self.effort.step(weight // WEIGHT_IN_A_STEP)
        return value

    def _weigh(self, value: Any, above: int = 0) -> tuple[int, int]:
        """Return (weight, levels below)."""
        if isinstance(value, str):
            return 1 + len(value) // LETTERS, 0
        if not isinstance(value, HOLDING):
            return 1, 0
        if (known := self._known.get(id(value))) is not None:
            return known[1:]
        if above > DEEPEST:
            raise Wrong(f"A value is nested deeper than {DEEPEST} levels.")
        weight, levels = 1, 0
        for item in _inside(value):
            inner, below = self._weigh(item, above + 1)
            weight += inner
            levels = max(levels, below + 1)
            if weight > HEAVIEST or levels > DEEPEST:
                raise Wrong(f"A value holds more than {HEAVIEST} values, or {DEEPEST} levels.")
        self.effort.step(weight // WEIGHT_IN_A_STEP)
        self._known[id(value)] = (value, weight, levels)
        return weight, levels


HOLDING = (tuple, list, Mapping, Set, ValuesView)
LIGHT = frozenset({int, float, bool, type(None)})


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value
        yield from value.values()
    else:
        yield from value


class Context(contexts.Context):  # type: ignore[misc]
    """The library's context: names, values and functions, one level for each call."""

    def __init__(self, parent: "Context | None" = None, **given: Any) -> None:
        super().__init__(parent, **given)
        self.scales: Scales = parent.scales if parent is not None else Scales(Effort())

    def __call__(self, *what: Any, **options: Any) -> Callable[..., Any]:
        call = super().__call__(*what, **options)

        def counted(*args: Any, **named: Any) -> Any:
            self.scales.effort.step()
            return self.scales.taken(call(*args, **named))

        return counted

    def collect_functions(
        self, name: str, predicate: Any = None, use_convention: bool = False
    ) -> list[list[Any]]:
        """As the library, in the order of registration, so that nothing hangs on that of a set."""
        if use_convention and self.convention is not None:
            name = self.convention.convert_function_name(name.rstrip("_"))
        name = name.rstrip("_")
        levels, level = [], self
        while level is not None:
            if known := level._functions.get(name):
                fitting = [one for one in known if predicate is None or predicate(one, level)]
                if fitting:
                    levels.append(fitting)
            level = level.parent
        return levels

    def register_function(self, spec: Any, *args: Any, **options: Any) -> None:
        """Put our own in place of the library's, and have its parameters count."""
        options.pop("exclusive", None)
        known = specs.get_function_definition(spec, *args, convention=self.convention, **options)
        own = REPLACED.get(spec)
        if own is not None:
            known.payload = own
            if "effort" in inspect.signature(own).parameters:
                known.parameters["effort"] = specs.ParameterDefinition(
                    "effort", EffortHere(False), default=specs.NO_DEFAULT
                )
        for one in known.parameters.values():
            one.value_type = _counting(one.value_type)
        self._functions.setdefault(known.name, []).append(known)


def _counting(kind: Any) -> Any:
    if type(kind) is yaqltypes.Lambda:
        return Lambda(kind.with_context, kind.method)
    if type(kind) is yaqltypes.PythonType and kind.python_type is re.Pattern:
        return yaqltypes.PythonType(Pattern, kind.nullable)
    return kind


class EffortHere(yaqltypes.HiddenParameterType, yaqltypes.SmartType):  # type: ignore[misc]
    """Hands a function the effort of the evaluation."""

    def convert(self, value: Any, receiver: Any, context: Context, *rest: Any) -> Effort:
        return context.scales.effort


class Lambda(yaqltypes.Lambda):  # type: ignore[misc]
    __slots__ = ()

    def _call(self, value: Any, receiver: Any, context: Context, *rest: Any) -> Any:
        context.scales.effort.step()
        return super()._call(value, receiver, context, *rest)


@lru_cache(maxsize=1)
def library() -> Context:
    """The functions there are, the same for all evaluations."""
    empty = Context(convention=conventions.CamelCaseConvention())
    context: Context = yaql.create_context(context=empty, yaqlized=False)
    return context


def new_context(effort: Effort, data: Any) -> Context:
    context = Context(library())
    context.scales = Scales(effort)
    context["$"] = utils.convert_input_data(data)
    return context
