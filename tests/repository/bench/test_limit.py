"""The limit shares nothing with the product, and executes the graph of a template."""

import ast
import re
from pathlib import Path

import pytest

from tests.bench import limit
from tests.bench.limit import graph_of
from tests.bench.shapes import chain, layered, wide


def test_limit_imports_nothing_of_the_product() -> None:
    tree = ast.parse(Path(limit.__file__).read_text())
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [one.name for one in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }
    assert not imported & {"engine", "hub", "channels"}


def test_limit_uses_only_tables_of_its_own() -> None:
    named = re.findall(
        r"\b(?:from|join|into|update|table)\s+(\w+(?:\.\w+)?)(?=[\s(])",
        "".join((limit.SCHEMA, limit.STEP, limit.COUNTS)),
    )
    others = {one for one in named if not one.startswith("bench.")}
    assert others <= {"completed", "claimed", "v_claimed", "woken", "unnest"}
    assert {"bench.node", "bench.resource", "bench.event"} <= set(named)


def test_wide_has_no_edges() -> None:
    assert graph_of(wide(3)) == [(0, []), (0, []), (0, [])]


def test_chain_is_one_after_the_other() -> None:
    assert graph_of(chain(3)) == [(0, [1]), (1, [2]), (1, [])]


def test_each_resource_of_a_layer_requires_two_of_the_layer_before() -> None:
    graph = graph_of(layered(20, 4))
    assert [waits for waits, _ in graph] == [0] * 5 + [2] * 15
    assert sum(len(dependents) for _, dependents in graph) == 30
    assert all(9 < number < 15 for _, dependents in graph[5:10] for number in dependents)


@pytest.mark.parametrize("make", [wide, layered, chain])
def test_shapes_have_so_many_resources(make: object) -> None:
    assert callable(make) and len(make(100)) == 100
