"""The unit tests of the pure core import nothing that does I/O."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
#: Packages of this repository, whose imports are followed.
OWN = {"channels", "engine", "headgate", "hub", "tests", "tools"}
CORE = ("hooks", "hot", "node", "plan")
#: Libraries and packages that the pure core does not need.
IMPURE = {
    "aio_pika", "aiohttp", "asyncpg", "channels", "cryptography", "hub", "playwright",
    "prometheus_client", "schemathesis", "typer", "uvloop",
    "engine.loop_guard", "engine.service", "engine.store", "engine.work",
    "tests.support.forks", "tests.support.keystone", "tests.support.postgres",
    "tests.support.program", "tests.support.rabbit",
}  # fmt: skip


def file_of(module: str) -> Path | None:
    path = ROOT.joinpath(*module.split("."))
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((one for one in files if one.is_file()), None)


def parents_of(module: str) -> Iterator[str]:
    """The packages around a module, root package first, and the module itself."""
    words = module.split(".")
    return (".".join(words[: count + 1]) for count in range(len(words)))


def top_level(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported, without those for type checkers."""
    for one in statements:
        if isinstance(one, ast.If) and "TYPE_CHECKING" in ast.unparse(one.test):
            continue
        yield one
        for field in ("body", "orelse", "finalbody", "handlers"):
            if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from top_level(getattr(one, field, []))


def named_in(module: str, file: Path) -> Iterator[str]:
    """The modules that a module imports when it is imported itself."""
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for one in top_level(ast.parse(file.read_text()).body):
        if isinstance(one, ast.Import):
            yield from (alias.name for alias in one.names)
        elif isinstance(one, ast.ImportFrom):
            words = package.split(".")
            origin = words[: len(words) - one.level + 1] if one.level else []
            name = ".".join([*origin, *([one.module] if one.module else [])])
            yield name
            yield from (inner for alias in one.names if file_of(inner := f"{name}.{alias.name}"))


def imported_by(*modules: str) -> set[str]:
    """All modules that are loaded when these are imported; libraries are not followed."""
    found: set[str] = set()
    queue = list(modules)
    while queue:
        for name in parents_of(queue.pop()):
            if name not in found:
                found.add(name)
                file = file_of(name) if name.split(".")[0] in OWN else None
                queue.extend(named_in(name, file) if file else ())
    return found


def test_the_tests_of_the_core_import_nothing_that_does_io() -> None:
    files = [path for name in CORE for path in sorted((ROOT / "tests/unit" / name).glob("*.py"))]
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files]
    loaded = imported_by("tests.conftest", *modules)
    assert {"engine.hot.yaql.evaluation", "yaql"} <= loaded
    assert loaded & IMPURE == set()


def test_imports_are_followed() -> None:
    assert {"engine.store", "asyncpg", "engine.words"} <= imported_by("engine.store.database")


def contract_modules(contract: dict[str, Any]) -> Iterator[str]:
    """The modules of this repository that an import contract names."""
    names = [name for layer in contract.get("layers", ()) for name in re.findall(r"\w+", layer)]
    yield from (".".join([*within, name])
                for within in [one.split(".") for one in contract.get("containers", [])] or [[]]
                for name in names)  # fmt: skip
    for key in ("source_modules", "forbidden_modules", "allowed_importers", "modules", "ancestors"):
        yield from (one for one in contract.get(key, ()) if one.split(".")[0] in OWN)


def test_each_module_of_an_import_contract_exists() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    named = {name for contract in contracts for name in contract_modules(contract)}
    assert {"engine.words", "engine.store.stacks", "channels.store"} <= named
    assert {name for name in named if file_of(name) is None} == set(), "remove it from pyproject"
    former = {"containers": ["engine"], "layers": ["service", "(settings)", "words | gone"]}
    assert {one for one in contract_modules(former) if file_of(one) is None} == {
        "engine.settings", "engine.gone",
    }  # fmt: skip
