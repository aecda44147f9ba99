"""Evaluates preconditions and postconditions when the values that they read are known."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from engine.hot.evaluation.resolver import ReadableStack, resolve
from engine.hot.expressions.expression import Expression, FunctionCall, decode, encode
from engine.hot.functions.cost_budget import CostBudget
from engine.hot.functions.function import FunctionError
from engine.words import Json

NOT_A_CONDITION: Final = "The condition is neither true nor false."


@dataclass(frozen=True, slots=True)
class Assertion:
    """condition: an expression that is true if the assertion holds. message: of the author, without
    secrets."""

    condition: Expression
    message: str


def encode_assertions(assertions: Sequence[Assertion]) -> list[Json]:
    """Return the stored form; `decode_assertions` reverses it."""
    return [{"assert": encode(one.condition), "message": one.message} for one in assertions]


def decode_assertions(stored: Sequence[Mapping[str, Json]], version: str) -> list[Assertion]:
    return [Assertion(decode(one["assert"], version), one["message"]) for one in stored]


def add_assertions(
    before: Sequence[Assertion], after: Sequence[Assertion], value: Expression, version: str
) -> Expression:
    """Return the expression of a value that fails unless its preconditions (`before`) and
    postconditions (`after`) hold."""
    if not before and not after:
        return value
    checks: Json = [{"assert": one.condition, "message": one.message} for one in before]
    checks += [
        {"assert": one.condition, "message": one.message, "kind": "postcondition"} for one in after
    ]
    return FunctionCall("checked", version, {"checks": checks, "value": value})


def failed_assertion(
    kind: str,
    assertions: Sequence[Assertion],
    view: ReadableStack,
    budget: CostBudget,
    shown: Callable[[FunctionError], str] = str,
) -> str | None:
    """Return the reason of the first assertion that does not hold, or None. kind: `precondition` or
    `postcondition`. shown: the text of an error, which may quote a secret.

    The view may raise errors of its own for values that it does not have.
    """
    for one in assertions:
        try:
            holds = resolve(one.condition, view, budget=budget)
        except FunctionError as wrong:
            return f"{kind} cannot be evaluated: {shown(wrong)} ({one.message})"
        if not isinstance(holds, bool):
            return f"{kind} cannot be evaluated: {NOT_A_CONDITION} ({one.message})"
        if not holds:
            return f"{kind} failed: {one.message}"
    return None
