"""The tests of the pure core, and the root conftest, import nothing that does I/O."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORE = ("hooks", "hot", "node", "plan")
#: Libraries and packages that the pure core does not need.
IMPURE = {
    "aio_pika", "aiohttp", "asyncpg", "channels", "cryptography", "hub", "playwright",
    "prometheus_client", "schemathesis", "typer", "uvloop",
    "engine.loops", "engine.service", "engine.store", "engine.work",
    "tests.support.forks", "tests.support.keystone", "tests.support.postgres",
    "tests.support.program", "tests.support.rabbit",
}  # fmt: skip
IMPORT = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps(sorted(sys.modules)))
"""


def imported_by(*modules: str) -> set[str]:
    """The modules that a new interpreter has loaded after it imported these."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORT, *modules], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    loaded: list[str] = json.loads(done.stdout)
    return set(loaded)


def test_the_tests_of_the_core_import_nothing_that_does_io() -> None:
    files = [path for name in CORE for path in sorted((ROOT / "tests/unit" / name).glob("*.py"))]
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files]
    loaded = imported_by("tests.conftest", *modules)
    assert set(modules) <= loaded
    assert loaded & IMPURE == set()
