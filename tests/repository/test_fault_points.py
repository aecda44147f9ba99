"""Every commit of the observer has fault points, at which tests of crashes end the process."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.store.fault_points import KNOWN

ROOT = Path(__file__).parents[2]
OBSERVER = sorted((ROOT / "engine" / "work" / "observer").glob("*.py"))


def commits_without_points(source: str) -> Iterator[str]:
    """The functions with a transaction that has no known name, and that report no point."""
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        calls = [one for one in ast.walk(function) if isinstance(one, ast.Call)]
        reports = any(isinstance(one.func, ast.Name) and one.func.id == "reach" for one in calls)
        for call in calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "transaction":
                names = [str(one.value) for one in call.args if isinstance(one, ast.Constant)]
                known = [name for name in names if f"{name}.before" in KNOWN]
                if not known and not reports:
                    yield function.name


@pytest.mark.parametrize("path", OBSERVER, ids=[path.stem for path in OBSERVER])
def test_every_commit_of_the_observer_has_fault_points(path: Path) -> None:
    assert list(commits_without_points(path.read_text())) == []


def test_a_commit_without_a_point_is_found() -> None:
    text = "async def f():\n    async with d.transaction({}) as conn:\n        {}\n"
    assert list(commits_without_points(text.format("", "pass"))) == ["f"]
    assert list(commits_without_points(text.format('"bogus"', "pass"))) == ["f"]
    assert list(commits_without_points(text.format('"round"', "pass"))) == []
    assert list(commits_without_points(text.format("", 'reach("x")'))) == []
