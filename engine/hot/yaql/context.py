"""Context of yaql expressions: the functions of the library, with their cost counted.

Every call, every round of a lambda and every item of an iterator is one step of the `CostBudget`.
Every value is measured when it is produced and when it is read; values that are too large or too
deep are refused. This also covers what the library's own limits do not.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Set, ValuesView
from functools import lru_cache
from typing import Any

import yaql
from yaql.language import contexts, conventions, specs, utils, yaqltypes

from engine.hot.functions.cost_budget import CostBudget
from engine.hot.functions.function import FunctionError
from engine.hot.patterns.pattern import Pattern
from engine.hot.yaql.functions import MAX_NUMBER_BITS, REPLACEMENTS

#: Maximum number of values in one value, including nested ones.
MAX_WEIGHT = 100_000
#: Characters of a string that weigh as much as one value.
CHARACTERS_PER_UNIT = 16
#: Weight that is read in one step.
WEIGHT_PER_STEP = 100
#: Maximum nesting of a value.
MAX_DEPTH = 64


class OrderedSet(frozenset[Any]):
    """A set with the same iteration order in every process."""

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(super().__iter__(), key=repr))

    def __repr__(self) -> str:
        return f"frozenset({{{', '.join(map(repr, self))}}})"


class CountedIterator(Iterator[Any]):
    """An iterator that spends a step on every item. Its repr is constant."""

    __slots__ = ("_budget", "_items")

    def __init__(self, items: Iterator[Any], budget: CostBudget) -> None:
        self._items = items
        self._budget = budget

    def __iter__(self) -> "CountedIterator":
        return CountedIterator(iter(self._items), self._budget)

    def __next__(self) -> Any:
        self._budget.spend_steps()
        return next(self._items)

    def __repr__(self) -> str:
        return "<iterator>"


class ValueMeter:
    """Measures the values of one evaluation; each container is measured once."""

    def __init__(self, budget: CostBudget) -> None:
        self.budget = budget
        self._known: dict[int, tuple[Any, int, int]] = {}

    def measure(self, value: Any) -> Any:
        """Measure the result of a call and return the value that the next call receives."""
        kind = type(value)
        if kind is int and value.bit_length() > MAX_NUMBER_BITS:
            raise FunctionError(
                f"A number has more than {MAX_NUMBER_BITS} bits.", "Calculate with smaller numbers."
            )
        if kind in SCALARS:
            return value
        if isinstance(value, Iterator) and kind is not CountedIterator:
            return CountedIterator(value, self.budget)
        if kind is frozenset:
            value = OrderedSet(value)
        weight, _ = self._weigh(value)
        self.budget.spend_steps(weight // WEIGHT_PER_STEP)
        return value

    def _weigh(self, value: Any, above: int = 0) -> tuple[int, int]:
        """Return (weight, levels below)."""
        if isinstance(value, str):
            return 1 + len(value) // CHARACTERS_PER_UNIT, 0
        if not isinstance(value, CONTAINERS):
            return 1, 0
        if (known := self._known.get(id(value))) is not None:
            return known[1:]
        if above > MAX_DEPTH:
            raise FunctionError(
                f"A value is nested deeper than {MAX_DEPTH} levels.",
                "Read or build less of the data.",
            )
        weight, levels = 1, 0
        for item in _items_of(value):
            inner, below = self._weigh(item, above + 1)
            weight += inner
            levels = max(levels, below + 1)
            if weight > MAX_WEIGHT or levels > MAX_DEPTH:
                raise FunctionError(
                    f"A value holds more than {MAX_WEIGHT} values, or {MAX_DEPTH} levels.",
                    "Read or build less of the data.",
                )
        self.budget.spend_steps(weight // WEIGHT_PER_STEP)
        self._known[id(value)] = (value, weight, levels)
        return weight, levels


CONTAINERS = (tuple, list, Mapping, Set, ValuesView)
SCALARS = frozenset({int, float, bool, type(None)})


def _items_of(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value
        yield from value.values()
    else:
        yield from value


class CountedContext(contexts.Context):  # type: ignore[misc]
    """The library's context: names, values and functions; one level for each call."""

    def __init__(self, parent: "CountedContext | None" = None, **given: Any) -> None:
        super().__init__(parent, **given)
        self.meter: ValueMeter = parent.meter if parent is not None else ValueMeter(CostBudget())

    def __call__(self, *what: Any, **options: Any) -> Callable[..., Any]:
        call = super().__call__(*what, **options)

        def call_counted(*args: Any, **named: Any) -> Any:
            self.meter.budget.spend_steps()
            return self.meter.measure(call(*args, **named))

        return call_counted

    def collect_functions(
        self, name: str, predicate: Any = None, use_convention: bool = False
    ) -> list[list[Any]]:
        """As in the library, but in the order of registration instead of that of a set."""
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
        """Register a function, replaced by Headgate's own where there is one, with counted
        parameters.
        """
        options.pop("exclusive", None)
        known = specs.get_function_definition(spec, *args, convention=self.convention, **options)
        own = REPLACEMENTS.get(spec)
        if own is not None:
            known.payload = own
            if "budget" in inspect.signature(own).parameters:
                known.parameters["budget"] = specs.ParameterDefinition(
                    "budget", BudgetParameter(False), default=specs.NO_DEFAULT
                )
        for one in known.parameters.values():
            one.value_type = _counted_type(one.value_type)
        self._functions.setdefault(known.name, []).append(known)


def _counted_type(kind: Any) -> Any:
    if type(kind) is yaqltypes.Lambda:
        return CountedLambda(kind.with_context, kind.method)
    if type(kind) is yaqltypes.PythonType and kind.python_type is re.Pattern:
        return yaqltypes.PythonType(Pattern, kind.nullable)
    return kind


class BudgetParameter(yaqltypes.HiddenParameterType, yaqltypes.SmartType):  # type: ignore[misc]
    """A hidden parameter: passes the budget of the evaluation to a function."""

    def convert(self, value: Any, receiver: Any, context: CountedContext, *rest: Any) -> CostBudget:
        return context.meter.budget


class CountedLambda(yaqltypes.Lambda):  # type: ignore[misc]
    __slots__ = ()

    def _call(self, value: Any, receiver: Any, context: CountedContext, *rest: Any) -> Any:
        context.meter.budget.spend_steps()
        return super()._call(value, receiver, context, *rest)


@lru_cache(maxsize=1)
def library_context() -> CountedContext:
    """Return the context with the library's functions, shared by all evaluations."""
    empty = CountedContext(convention=conventions.CamelCaseConvention())
    context: CountedContext = yaql.create_context(context=empty, yaqlized=False)
    return context


def new_context(budget: CostBudget, data: Any) -> CountedContext:
    context = CountedContext(library_context())
    context.meter = ValueMeter(budget)
    context["$"] = utils.convert_input_data(data)
    return context
