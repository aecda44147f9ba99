"""The cost budget of evaluating one template.

Each function has its own limits (function.py); a `CostBudget` limits all of them together. It
counts size and steps instead of time, so that the same template always has the same result.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from engine.errors import public
from engine.hot.functions.function import Function, FunctionError
from engine.words import Json

#: Size of a value besides its text, in characters.
SIZE_PER_VALUE = 16


@dataclass(frozen=True, slots=True)
class CostLimits:
    """size: of everything that functions produce for a template, in characters. steps: of all yaql
    expressions and regular expressions of a template. yaql_elements: items of one collection in
    yaql. yaql_bytes: size of one value in yaql, without its content.
    """

    size: int = 16_777_216
    steps: int = 100_000
    yaql_elements: int = 200
    yaql_bytes: int = 10_000


#: Maximum steps of one yaql or regular expression, and of all that one resource or the outputs of a
#: stack resolve. A step takes up to 20 microseconds.
MAX_STEPS_AT_ONCE = 20_000

DEFAULT_LIMITS = CostLimits()


SMALLER = public("Divide the template, or use shorter lists and simpler expressions.")


class BudgetExceeded(FunctionError):
    """A template, a stack's outputs or a resource's properties exceed the cost budget."""

    def __init__(self, reason: str, remedy: str = SMALLER) -> None:
        super().__init__(reason, remedy, "RequestLimitExceeded")


class CostBudget:
    """Remaining size and steps. Create one for each definition and for each resolution."""

    __slots__ = ("limits", "size_left", "steps_left")

    def __init__(self, limits: CostLimits = DEFAULT_LIMITS, steps: int | None = None) -> None:
        self.limits = limits
        self.size_left = limits.size
        self.steps_left = limits.steps if steps is None else steps

    def spend_steps(self, count: int = 1) -> None:
        """Raises BudgetExceeded when no steps are left."""
        self.steps_left -= count
        if self.steps_left < 0:
            raise BudgetExceeded("Functions and patterns take more steps than are allowed.")

    @contextmanager
    def sub_budget(self) -> "Iterator[CostBudget]":
        """Budget of one expression. Raises FunctionError if the expression exceeds
        MAX_STEPS_AT_ONCE, BudgetExceeded if it exceeds what is left of this budget.
        """
        share = CostBudget(self.limits, min(self.steps_left, MAX_STEPS_AT_ONCE))
        before = share.steps_left
        try:
            yield share
        except BudgetExceeded as much:
            if self.steps_left > MAX_STEPS_AT_ONCE:
                reason = f"This takes more than the {MAX_STEPS_AT_ONCE} steps that are allowed."
                raise FunctionError(reason, much.remedy, much.code) from None
            raise
        finally:
            self.steps_left -= before - max(share.steps_left, 0)

    def spend_size(self, size: int) -> None:
        """Raises BudgetExceeded when less than this size is left."""
        self.size_left -= size
        if self.size_left < 0:
            raise BudgetExceeded(
                "Parameters, files and functions make the stack larger than"
                f" {self.limits.size} characters."
            )

    def call(self, function: Function, args: Json) -> Json:
        """Call a function with arguments of its shape. Raises FunctionError."""
        if function.cost is not None:
            self.spend_steps(function.cost(args))
        return self.count_value(function.apply(args))

    def count_value(self, value: Json) -> Json:
        """Subtract the size of a value that a function produced, and return the value."""
        self.spend_size(len(value) if type(value) is str else size_of(value, self.size_left))
        return value


def resolution_budget() -> CostBudget:
    """Return the budget for one resolution after definition (a resource or the outputs)."""
    return CostBudget(steps=MAX_STEPS_AT_ONCE)


def size_of(value: Json, limit: int) -> int:
    """Return the size of a value: all characters, and SIZE_PER_VALUE for every value. Counting
    stops above `limit`.
    """
    size, waiting = 0, [value]
    while waiting and size <= limit:
        one = waiting.pop()
        kind = type(one)
        size += SIZE_PER_VALUE
        if kind is str:
            size += len(one)
        elif kind is dict:
            size += sum(map(len, one))
            waiting.extend(one.values())
        elif kind is list:
            waiting.extend(one)
    return size
