"""The order of sets in yaql does not depend on the process."""

import subprocess
import sys

SETS = """
from engine.hot.functions.cost_budget import CostBudget
from engine.hot.yaql.evaluation import evaluate_yaql
one = CostBudget()
print(evaluate_yaql("[set(b, a, z, q).toList(), str(set(b, a, z)), characters(digits => true)]",
               None, one.limits, one))
"""


def test_the_order_of_sets_is_the_same_in_every_process() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SETS],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1
