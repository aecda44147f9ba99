"""Commands load few modules before they send a request, because loading takes most of their time."""

import subprocess
import sys

from tests.support.command_line import TEMPLATE

#: Modules of the server and of the evaluation of templates.
HEAVY = (
    "aio_pika", "aiohttp.web", "asyncpg", "channels", "croniter", "cryptography",
    "engine.hot.template", "engine.plan", "engine.service", "engine.store", "engine.types",
    "engine.work", "hub.api", "hub.program.app", "hub.settings.settings", "jsonschema_rs",
    "networkx", "prometheus_client", "pydantic", "structlog", "uvloop", "yaql",
)  # fmt: skip
#: No server listens at this address, so each command ends after its first request.
COMMANDS = (
    "stack list",
    f"stack create s -t {TEMPLATE} -P password=p --wait --timeout 10m",
    "hook continue s:a",
    "watch s",
)
PROGRAM = """
import sys
from hub.cli.main import app
for words in sys.argv[1:]:
    try:
        app([*words.split(" "), "--url", "http://127.0.0.1:1"])
    except SystemExit as end:
        assert end.code == 1, (words, end.code)
print(*sys.modules, sep="\\n")
"""


def test_client_commands_load_no_server_modules() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *COMMANDS], capture_output=True, text=True, timeout=60
    )
    assert done.stderr.count("no response from") == len(COMMANDS), done.stderr
    loaded = set(done.stdout.splitlines())
    assert "hub.cli.client" in loaded
    assert loaded.intersection(HEAVY) == set()


WITHOUT_A_REQUEST = """
import sys
from hub.cli.main import app
for words in sys.argv[1:]:
    try:
        app(words.split(" "))
    except SystemExit as end:
        assert end.code in (0, 2), (words, end.code)
print(*sys.modules, sep="\\n")
"""


def test_help_and_usage_errors_load_no_http_client() -> None:
    commands = ("--help", "stack create --help", "--version", "stack no-such-command")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_A_REQUEST, *commands],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    loaded = set(done.stdout.splitlines())
    assert "hub.cli.client" in loaded
    assert loaded.intersection((*HEAVY, "aiohttp")) == set()


#: What no command needs to print the list of commands.
NOT_FOR_THE_LIST = ("aiohttp", "asyncio", "engine", "hub.cli.context", "hub.cli.stack", "orjson",
                    "rich", "yaml", "yarl")  # fmt: skip
#: More than the list needs with any supported Python, and half of what loading one command takes.
MAX_MODULES = 230


def test_the_list_of_commands_loads_no_command() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_A_REQUEST, "--help", "-h", "--version", "no-such-command"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    text, _, modules = done.stdout.partition("\nsys\n")
    assert "Print the version." in text
    loaded = {"sys", *modules.splitlines()}
    assert loaded.intersection(NOT_FOR_THE_LIST) == set()
    assert len(loaded) < MAX_MODULES, len(loaded)
