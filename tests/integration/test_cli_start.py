"""Commands load few modules before they send a request, because loading takes most of their time."""

import json
import subprocess
import sys

import pytest

from tests.support.command_line import TEMPLATE

#: Modules of the server and of the evaluation of templates.
HEAVY = (
    "aio_pika", "aiohttp.web", "asyncpg", "channels", "croniter", "cryptography",
    "engine.hot.template", "engine.plan", "engine.service", "engine.store", "engine.types",
    "engine.work", "hub.api", "hub.program.app", "hub.settings.settings", "jsonschema_rs",
    "networkx", "prometheus_client", "pydantic", "structlog", "uvloop", "yaql",
)  # fmt: skip
#: Modules that read documents, and those that only some forms of the output need.
DOCUMENTS = ("engine.hot", "jsonpath", "rich._emoji_codes", "yaml")
#: Commands that read no template, and no file or value in YAML.
WITHOUT_DOCUMENTS = (
    "stack list",
    "stack list -o json",
    "stack show s",
    "stack update s --existing --only a",
    "stack delete s --yes",
    "stack check s --wait --timeout 10m",
    "stack cancel s",
    "stack history s",
    "stack drift s",
    "stack breakpoints list s",
    "stack run-to s a",
    "stack snapshot list s",
    "hook list",
    "hook show s:a",
    "hook continue s:a",
    "hook reject s:a --reason late",
    "resource list s",
    "resource show s a",
    "subscription list",
    "subscription deliveries 3f2a91c0",
    "type list",
    "token list",
    "token whoami",
    "import OS::Neutron::Net b44a1f34",
    "quota",
    "usage",
    "watch s",
    "why s",
    "graph s",
    "events s",
)
WITH_DOCUMENTS = (
    f"stack create s -t {TEMPLATE} -P password=p --wait --timeout 10m",
    f"template validate {TEMPLATE}",
    "hook patch s:a --set size=20",
)
#: Prints for each command, in JSON, the modules that it has loaded first. No server listens at
#: this address, so each command ends after its first request.
PROGRAM = """
import json
import sys
from hub.cli.main import app
loaded = {}
for words in sys.argv[1:]:
    before = set(sys.modules)
    try:
        app([*words.split(" "), "--url", "http://127.0.0.1:1"])
    except SystemExit as end:
        assert end.code == 1, (words, end.code)
    loaded[words] = sorted(set(sys.modules) - before)
print(json.dumps(loaded))
"""


def loaded_modules(*commands: str) -> dict[str, set[str]]:
    """By command, those that no earlier one of these has loaded."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *commands], capture_output=True, text=True, timeout=60
    )
    assert done.stderr.count("no response from") == len(commands), done.stderr
    loaded = {words: set(modules) for words, modules in json.loads(done.stdout).items()}
    assert "hub.cli.connection.client" in loaded[commands[0]]
    return loaded


def select(loaded: dict[str, set[str]], unwanted: tuple[str, ...]) -> dict[str, set[str]]:
    """The unwanted modules by command."""
    found = {words: modules.intersection(unwanted) for words, modules in loaded.items()}
    return {words: modules for words, modules in found.items() if modules}


def test_commands_without_documents_load_nothing_that_reads_them() -> None:
    loaded = loaded_modules(*WITHOUT_DOCUMENTS)
    assert select(loaded, (*HEAVY, *DOCUMENTS)) == {}


@pytest.mark.parametrize("command", WITH_DOCUMENTS, ids=["create", "validate", "patch"])
def test_commands_with_documents_load_no_server_modules(command: str) -> None:
    loaded = loaded_modules(command)
    assert "yaml" in loaded[command]
    assert select(loaded, HEAVY) == {}


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


#: What a request, an answer of the server or a result needs, but neither help nor a usage error.
FOR_REQUESTS = ("aiohttp", "asyncio", "headgate.client", "rich", "ssl", "yarl")
#: Prints the help of every command, then the modules that were loaded for it.
EVERY_HELP = """
import sys
import typer.main
from hub.cli.main import app

def walk(command, words):
    try:
        app([*words, "--help"])
    except SystemExit as end:
        assert end.code == 0, (words, end.code)
    for name, below in getattr(command, "commands", {}).items():
        walk(below, [*words, name])

walk(typer.main.get_command(app), [])
print(*sys.modules, sep="\\n")
"""


def test_no_help_loads_what_requests_need() -> None:
    done = subprocess.run(
        [sys.executable, "-c", EVERY_HELP], capture_output=True, text=True, timeout=60, check=True
    )
    pages, _, modules = done.stdout.partition("\nsys\n")
    assert pages.count("Usage: ") > 100
    assert "Usage: -c stack snapshot list" in pages
    loaded = set(modules.splitlines())
    assert "hub.cli.commands.project_move" not in loaded
    assert loaded.intersection((*HEAVY, *DOCUMENTS, *FOR_REQUESTS)) == set()


def test_usage_errors_load_nothing_that_requests_need() -> None:
    commands = ("stack no-such-command", "hook patch --no-such-option", "stack create")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_A_REQUEST, *commands],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    loaded = set(done.stdout.splitlines())
    assert "hub.cli.connection.client" in loaded
    assert loaded.intersection((*HEAVY, *DOCUMENTS, *FOR_REQUESTS)) == set()


#: What no command needs to print the list of commands.
NOT_FOR_THE_LIST = ("aiohttp", "asyncio", "engine", "hub.cli.context", "hub.cli.commands.stack", "orjson",
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


@pytest.mark.parametrize(
    ("redirected", "code", "error"),
    [
        (">/dev/full", 1, "headgate: the output cannot be written: No space left on device."),
        (">&-", 0, ""),
        ("<&-", 0, ""),
        ("$'\\xdf'", 2, r'headgate: the argument "\xdf" is not valid in the encoding utf-8.'),
    ],
    ids=["full", "no-output", "no-input", "bytes"],
)
def test_unusable_streams_and_words_end_in_a_message(
    redirected: str, code: int, error: str
) -> None:
    words = f"{sys.executable} -m hub.cli.main --version {redirected}"
    done = subprocess.run(
        ["bash", "-c", words], capture_output=True, text=True, timeout=60,
        env={"PYTHONUTF8": "1", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == code
    assert done.stderr.startswith(error)
    assert len(done.stderr.splitlines()) == bool(error)
