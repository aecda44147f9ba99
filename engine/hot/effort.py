"""What evaluating one template may cost, all of its functions together.

Each function alone is bounded (function.py); an `Effort` bounds a thousand of them. It counts what
is made and done and looks at no clock, so that the same template always comes to the same end.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from engine.hot.function import Function, Wrong
from engine.words import Json

#: What a value takes besides its text, in characters.
EACH = 16


@dataclass(frozen=True, slots=True)
class EffortLimits:
    """size: of everything that functions make for a template, in characters. steps: of all yaql
    and regular expressions of a template. yaql_elements: of one collection in yaql; yaql_bytes: of
    one value in it, without what is inside.
    """

    size: int = 16_777_216
    steps: int = 100_000
    yaql_elements: int = 200
    yaql_bytes: int = 10_000


#: Steps of one yaql or regular expression, and of all that one resource or the outputs of a stack
#: resolve. A step takes up to 20 microseconds.
STEPS_AT_ONCE = 20_000

DEFAULT_LIMITS = EffortLimits()


class TooMuch(Wrong):
    """A template, a stack's outputs or a resource's properties cost more than they may."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, "", "RequestLimitExceeded")


class Effort:
    """Made anew for each definition, and for each time that expressions are resolved."""

    __slots__ = ("limits", "size_left", "steps_left")

    def __init__(self, limits: EffortLimits = DEFAULT_LIMITS, steps: int | None = None) -> None:
        self.limits = limits
        self.size_left = limits.size
        self.steps_left = limits.steps if steps is None else steps

    def step(self, count: int = 1) -> None:
        """Raises TooMuch when no steps are left."""
        self.steps_left -= count
        if self.steps_left < 0:
            raise TooMuch("Functions and patterns take more steps than are allowed.")

    @contextmanager
    def share(self) -> "Iterator[Effort]":
        """What one expression may spend of it. Raises Wrong when that is too little for it."""
        share = Effort(self.limits, min(self.steps_left, STEPS_AT_ONCE))
        before = share.steps_left
        try:
            yield share
        except TooMuch as much:
            if self.steps_left > STEPS_AT_ONCE:
                reason = f"This takes more than the {STEPS_AT_ONCE} steps that are allowed."
                raise Wrong(reason, *much.args[1:]) from None
            raise
        finally:
            self.steps_left -= before - max(share.steps_left, 0)

    def make(self, size: int) -> None:
        """Raises TooMuch when so much more would be too large."""
        self.size_left -= size
        if self.size_left < 0:
            raise TooMuch(
                "Parameters, files and functions make the stack larger than"
                f" {self.limits.size} characters."
            )

    def call(self, function: Function, args: Json) -> Json:
        """Call a function with arguments of its shape. Raises Wrong."""
        if function.price is not None:
            self.step(function.price(args))
        return self.made(function.apply(args))

    def made(self, value: Json) -> Json:
        """Count a value that a function made, and return it."""
        self.make(len(value) if type(value) is str else size_of(value, self.size_left))
        return value


def at_once() -> Effort:
    """For what is resolved while others wait."""
    return Effort(steps=STEPS_AT_ONCE)


def size_of(value: Json, most: int) -> int:
    """Characters of all texts in a value, and `EACH` for every value; counted to ``most``."""
    size, waiting = 0, [value]
    while waiting and size <= most:
        one = waiting.pop()
        kind = type(one)
        size += EACH
        if kind is str:
            size += len(one)
        elif kind is dict:
            size += sum(map(len, one))
            waiting.extend(one.values())
        elif kind is list:
            waiting.extend(one)
    return size
