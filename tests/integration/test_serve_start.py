"""The start of `headgate serve`: what comes before the modules of the server are loaded."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ports import free_port

#: Runs `headgate serve`, but ends with the code 99 when it loads a module, and prints the others.
PROGRAM = """
import sys

class EndAtModule:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            print(*sys.modules, sep="\\n")
            raise SystemExit(99)

sys.meta_path.insert(0, EndAtModule())
from hub.cli.main import app
app(["serve", *sys.argv[2:]])
"""
#: Libraries and modules that take seconds to load.
HEAVY = {"aiohttp", "hub.api", "hub.http", "engine.service", "engine.work", "hub.program.app"}


def serve_until(module: str, *options: str) -> tuple[int, set[str], str]:
    """The exit code, the modules loaded before this one, and standard error."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, module, *options],
        capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    return done.returncode, set(done.stdout.split()), done.stderr


@pytest.fixture
def taken() -> Iterator[str]:
    """An address at which a server listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_the_first_line_comes_before_the_server_is_loaded(tmp_path: Path) -> None:
    listen = f"127.0.0.1:{free_port()}"
    options = ("--listen", listen, "--data-dir", str(tmp_path), "--processes", "2")
    code, loaded, error = serve_until("hub.program.server_processes", *options)
    assert (code, HEAVY & loaded) == (99, set()), error
    (line,) = map(json.loads, error.splitlines())
    assert (line["event"], line["level"]) == ("headgate.starting", "info")
    assert (line["listen"], line["data_dir"]) == (listen, str(tmp_path))
    assert (line["processes"], line["process"]) == (2, 0)


def test_a_taken_address_of_the_command_line_ends_before_settings_are_loaded(taken: str) -> None:
    code, loaded, error = serve_until("hub.settings", "--listen", taken)
    assert (code, loaded) == (1, set())
    assert error == (
        f"headgate: [server] listen: cannot listen on {taken}: Address already in use. "
        "Stop the program that uses it, or choose another port with --listen.\n"
    )


@pytest.mark.parametrize(
    ("table", "name"), [("server", "listen"), ("metrics", "address")], ids=["api", "metrics"]
)
def test_a_taken_address_of_the_settings_ends_before_the_server_is_loaded(
    taken: str, table: str, name: str, tmp_path: Path
) -> None:
    other = "" if table == "server" else f'[server]\nlisten = "127.0.0.1:{free_port()}"\n'
    config = tmp_path / "settings.toml"
    config.write_text(f'{other}[{table}]\n{name} = "{taken}"\n')
    code, loaded, error = serve_until("hub.program", "--config", str(config))
    assert (code, loaded) == (1, set())
    assert error.startswith(f"headgate: [{table}] {name}: cannot listen on {taken}: Address")


def test_an_address_of_other_roles_is_not_checked(taken: str) -> None:
    code, _, error = serve_until("hub.program", "--listen", taken, "--role", "engine")
    assert (code, error) == (99, "")
