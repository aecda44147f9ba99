"""The wheels work in an environment that has their dependencies and nothing else."""

import os
import shutil
import subprocess
import sys
import venv
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from tests.support.program import ServerProcess
from tools import wheels


class Environment:
    """A virtual environment with one wheel."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        venv.create(folder, symlinks=True)
        self.folder = folder
        self.variables: dict[str, str] = {}
        (self.packages,) = folder.glob("lib/python3*/site-packages")
        with ZipFile(wheel) as archive:
            (metadata,) = {
                name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name
            }
        self.run_pip("install", "-q", "--no-index", "--no-deps", wheel)
        self._link_requirements(PathDistribution(self.packages / metadata), set())

    def _link_requirements(self, of: Distribution, extras: set[str]) -> None:
        """Link the distributions that this one requires, from the environment of the tests."""
        for text in of.requires or ():
            one = Requirement(text)
            marks = [{"extra": extra} for extra in extras or {""}]
            if one.marker is not None and not any(map(one.marker.evaluate, marks)):
                continue
            found = distribution(one.name)
            if self._link(found) or one.extras:
                self._link_requirements(found, one.extras)

    def _link(self, found: Distribution) -> bool:
        """Whether it was not linked before."""
        names = {file.parts[0] for file in found.files or () if file.parts[0] != ".."}
        new = [name for name in names - {"__pycache__"} if not (self.packages / name).exists()]
        for name in new:
            (self.packages / name).symlink_to(Path(str(found.locate_file(name))))
        return bool(new)

    def run_pip(self, *arguments: str | Path) -> str:
        command = [sys.executable, "-m", "pip", "--python", self.folder / "bin" / "python",
                   "--disable-pip-version-check", *arguments]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, *command: str, code: int = 0) -> str:
        """Run a program of the environment outside of the repository; return its output."""
        program = self.folder / "bin" / command[0]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **self.variables}
        done = subprocess.run(
            [program, *command[1:]],
            cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    target = tmp_path_factory.mktemp("wheels")
    return {path.name.split("-")[0]: path for path in wheels.build(target)}


def test_the_command_line_works_without_the_server(
    built: dict[str, Path], database_url: str, tmp_path: Path
) -> None:
    cli = Environment(tmp_path / "cli", built["headgate_cli"])
    assert cli.run_pip("check") == "No broken requirements found.\n"
    installed = {path.name for path in cli.packages.iterdir()}
    assert not installed & {"asyncpg", "aio_pika", "pydantic", "uvloop", "yaql", "structlog"}
    assert "Commands" in cli.run("headgate", "--help")
    assert cli.run("headgate", "--version").startswith("headgate ")
    server = ServerProcess(tmp_path, database_url=database_url)
    server.start()
    try:
        template = wheels.ROOT / "examples" / "first-stack.yaml"
        shutil.copy(template, cli.folder / "first.yaml")
        cli.variables["HEADGATE_URL"] = server.url
        assert "CREATE" in cli.run(
            "headgate", "stack", "create", "web", "-t", "first.yaml", "--wait"
        )
        assert "web" in cli.run("headgate", "stack", "list")
        program = (
            "import asyncio, headgate\n"
            "async def main():\n"
            "    async with headgate.Client() as client:\n"
            "        print((await client.stacks.show('web'))['stack_status'])\n"
            "asyncio.run(main())\n"
        )
        assert cli.run("python", "-c", program) == "CREATE_COMPLETE\n"
    finally:
        server.stop()


@pytest.mark.parametrize("command", [("serve",), ("admin", "doctor")], ids=" ".join)
def test_commands_of_the_server_say_what_to_install(
    built: dict[str, Path], tmp_path: Path, command: tuple[str, ...]
) -> None:
    cli = Environment(tmp_path / "cli", built["headgate_cli"])
    shown = cli.run("headgate", *command, code=1)
    assert "Traceback" not in shown
    assert f"`headgate {' '.join(command)}` needs the server" in " ".join(shown.split())
    assert "pipx install headgate" in shown


def test_the_server_is_complete(built: dict[str, Path], tmp_path: Path) -> None:
    server = Environment(tmp_path / "server", built["headgate"])
    assert server.run_pip("check") == "No broken requirements found.\n"
    assert "Commands" in server.run("headgate", "--help")
    assert "Run a server" in server.run("headgate", "serve", "--help")
    shown = server.run("headgate", "admin", "doctor", "--config", "missing.toml", code=1)
    assert "missing.toml" in shown and "needs the server" not in shown
    names = {path for path in ZipFile(built["headgate"]).namelist() if path.endswith(".sql")}
    assert {path.name for path in (wheels.ROOT / "engine/store").rglob("*.sql")} == {
        Path(name).name for name in names
    }


def test_a_wheel_has_the_requirements_that_its_modules_import() -> None:
    modules, libraries = wheels.cli_modules()
    assert {"hub.cli.main", "headgate.client", "engine.errors"} <= modules
    assert libraries == {
        "aio_pika", "aiohttp", "jsonpath", "orjson", "rich", "typer", "yaml", "yarl",
    }  # fmt: skip
    run, cli = ((wheels.ROOT / "requirements" / f"{one}.in").read_text() for one in ("run", "cli"))
    names = {line.split("#")[0].strip() for line in cli.splitlines()}
    assert names <= {line.split("#")[0].strip() for line in run.splitlines()}
