"""Builds the wheels: `headgate`, the server with everything, and `headgate-cli`, the command line
and the Python client without the server and its dependencies.

``python -m tools.wheels DIRECTORY`` (`make wheels`). The modules of `headgate-cli` are those that
the command line and the client import, except the modules of the server: SERVER.
"""

import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
OWN = ("channels", "engine", "headgate", "hub")
#: Packages with all their modules in `headgate-cli`.
COMPLETE = ("hub.cli", "headgate")
#: Modules that only the server has. The commands that import them say so (hub/cli/main.py).
SERVER = (
    "channels.store", "engine.service", "engine.store", "engine.work", "hub.api",
    "hub.auth.token_issuer", "hub.checks", "hub.keys", "hub.program", "hub.settings",
)  # fmt: skip
README = """# headgate-cli

The command line of Headgate, `headgate`, and its Python client, `import headgate`, without the
server.
"""


def cli_modules() -> tuple[set[str], set[str]]:
    """The modules of `headgate-cli`, and the top-level packages of others that they import."""
    graph = grimp.build_graph(*OWN, include_external_packages=True, cache_dir=None)
    todo = [one for one in graph.modules if one.startswith(COMPLETE)]
    modules, libraries = set[str](), set[str]()
    while todo:
        module = todo.pop()
        if module.split(".")[0] not in OWN:
            libraries.add(module.split(".")[0])
        elif module not in modules and not is_of_server(module):
            modules.add(module)
            todo += parents(module)
            todo += graph.find_modules_directly_imported_by(module)
    return modules, libraries - sys.stdlib_module_names


def is_of_server(module: str) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in SERVER)


def parents(module: str) -> Iterator[str]:
    while "." in module:
        module = module.rpartition(".")[0]
        yield module


def stage_cli(folder: Path) -> None:
    """Write the sources of `headgate-cli`."""
    for module in cli_modules()[0]:
        path = Path(*module.split("."))
        source = path / "__init__.py" if (ROOT / path).is_dir() else path.with_suffix(".py")
        (folder / source).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / source, folder / source)
    for package in OWN:
        if (folder / package).is_dir():
            (folder / package / "py.typed").touch()
    shutil.copyfile(ROOT / "LICENSE", folder / "LICENSE")
    shutil.copyfile(ROOT / "requirements" / "cli.in", folder / "cli.in")
    (folder / "README.md").write_text(README)
    (folder / "pyproject.toml").write_text(cli_project())


def cli_project() -> str:
    """The project file of `headgate-cli`, with the version of the server."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return f"""[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "headgate-cli"
version = "{project["version"]}"
description = "The command line and the Python client of Headgate."
readme = "README.md"
requires-python = "{project["requires-python"]}"
license = "{project["license"]}"
license-files = ["LICENSE"]
dynamic = ["dependencies"]

[project.optional-dependencies]
amqp = ["aio-pika"]

[project.scripts]
headgate = "{project["scripts"]["headgate"]}"

[tool.setuptools.dynamic]
dependencies = {{ file = ["cli.in"] }}

[tool.setuptools.packages.find]
include = ["hub*", "engine*", "channels*", "headgate*"]
namespaces = false

[tool.setuptools.package-data]
"*" = ["py.typed"]
"""


def stage_server(folder: Path) -> None:
    """Copy the sources of `headgate`, because a build writes beside them."""
    files = subprocess.run(  # noqa: S603
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *OWN,  # noqa: S607
         "requirements", "pyproject.toml", "README.md", "LICENSE"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in filter(None, files.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)


def build(target: Path) -> list[Path]:
    """Build both wheels; return their paths."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        for stage in (stage_server, stage_cli):
            folder = Path(temporary, stage.__name__)
            folder.mkdir()
            stage(folder)
            subprocess.run(  # noqa: S603
                [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check",
                 "--no-deps", "--no-index", "--no-build-isolation", "-w", target, folder],
                check=True,
            )  # fmt: skip
    return sorted(target.glob("*.whl"))


def main() -> None:
    for path in build(Path(sys.argv[1])):
        print(path)


if __name__ == "__main__":
    main()
