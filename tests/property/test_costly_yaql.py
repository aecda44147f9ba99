"""Costly yaql expressions end within their steps."""

from contextlib import suppress

import pytest

from engine.hot.functions.cost_budget import CostBudget
from engine.hot.functions.function import FunctionError
from engine.hot.yaql.evaluation import evaluate_yaql

A = "'" + "a" * 4_000 + "'"


ENDLESS = [
    "sequence().len()",
    "[[].repeat()].flatten().len()",
    "generate(0, true, 0).len()",
    "generateMany(1, [$, $]).len()",
    "range(200).join(range(200), false, 1).len()",
    "range(200).select(range(200).select(range(200).len()).sum()).sum()",
    "[1].cycle().where(false).len()",
    "[1].cycle().len()",
    "def(f, range(2).select(f($))) -> f(1)",
    "range(200).select(range(200))",
    "range(60).aggregate([$1, $1], [])",
    "let(range(60).aggregate([$1, $1, $1], [])) -> $1.flatten().len()",
    "range(200).aggregate($1.where(true), sequence()).len()",
    f"let({A}) -> range(200).select($1.lastIndexOf(b + $1.substring(2000)))",
    f"range(200).select(regex('(a|aa)+$').matches({A} + b))",
    f"range(200).select(regex('(.*)(.*)(.*)(.*)\\\\1x').matches({A}))",
    f"{A}.replace('', {A})",
    f"{A}.replace(regex(''), {A})",
    "pow(10, 1000000)",
    "pow(pow(7, 300), pow(7, 300))",
    "shiftBitsLeft(1, 100000000)",
    "round(5, -100000000)",
    "range(200).aggregate($1 * $1, 3)",
    "'{a}'.replace(dict(range(60).select([str($), str($ + 1) + str($ + 1)])))",
]


@pytest.mark.parametrize("expression", ENDLESS, ids=range(len(ENDLESS)))
def test_an_endless_expression_is_refused(expression: str) -> None:
    budget = CostBudget()
    with suppress(FunctionError):
        evaluate_yaql(expression, None, budget.limits, budget)
    assert budget.steps_left > -100_000
