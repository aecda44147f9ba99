"""The command line as a whole: command names, documentation and usage errors."""

import asyncio
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import typer
from aiohttp import web
from typer.testing import CliRunner

from hub.cli.exit_codes import MEANING, ExitCode
from hub.cli.main import COMMANDS, HeadgateGroup, app
from tests.unit.hub.cli.stub import respond_with, running_stub

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "cli.md"
GONE = "11111111-2222-3333-4444-555555555555"
#: The response of each request about a stack, with the keys of a list.
STACK_WITHOUT = {"stack": {"id": GONE, "stack_name": "web"}, "next": None}
COMMON_OPTIONS = {"--json", "--output", "--context", "--url", "--project", "--user", "--help"}


def commands() -> dict[str, set[str]]:
    """Full name of each command -> its options."""
    return dict(_commands_below(typer.main.get_command(app), "headgate"))


def _commands_below(command: object, name: str) -> Iterator[tuple[str, set[str]]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        options = {
            one
            for param in getattr(command, "params", ())
            for one in (*param.opts, *param.secondary_opts)
        }
        yield name, {one for one in options if one.startswith("--")}
        return
    for word, one in inner.items():
        yield from _commands_below(one, f"{name} {word}")


def sections() -> dict[str, str]:
    """Full name of each command on the page -> its section."""
    parts = re.split(r"^### `(headgate[^`]*)`$", PAGE.read_text(), flags=re.MULTILINE)[1:]
    names = [re.sub(r" (-[tf] )?\[?[A-Z]+\b]?", "", title) for title in parts[::2]]
    return dict(zip(names, parts[1::2], strict=True))


def test_the_list_of_commands_shows_the_help_of_each() -> None:
    group = typer.main.get_command(app)
    found = {name: one.help.split("\n\n")[0] for name, one in group.commands.items()}  # type: ignore[attr-defined]
    assert found == {name: source.help for name, source in COMMANDS.items()}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("stack list --help", ["list"]),
        ("stack snapshot list --help", ["list"]),
        ("stack --help", []),
        ("stack snapshot --help", []),
        ("watch --help", ["watch"]),
    ],
)
def test_only_the_called_command_is_built(
    words: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    built = []
    build = typer.main.get_command_from_info

    def record(*arguments: Any, **settings: Any) -> Any:
        built.append(build(*arguments, **settings))
        return built[-1]

    monkeypatch.setattr(typer.main, "get_command_from_info", record)
    program = HeadgateGroup(name="headgate")  # it has built no command
    with pytest.raises(SystemExit) as end:
        program.main(words.split(), prog_name="headgate")
    assert not end.value.code
    assert [command.name for command in built] == expected


def test_the_page_has_exactly_the_commands() -> None:
    assert sorted(sections()) == sorted(commands())


def test_the_page_has_exactly_the_options() -> None:
    text = PAGE.read_text()
    known = set().union(*commands().values())
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
    assert named - known - COMMON_OPTIONS == {"--install-completion", "--show-completion"}
    assert known - named - COMMON_OPTIONS == {"--no-wait"}


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((PAGE.parents[2] / "pyproject.toml").read_text())["project"]
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"headgate {project['version']}\n")


def test_the_page_has_the_exit_codes() -> None:
    assert all(f"| {code.value} | {MEANING[code]} |" in PAGE.read_text() for code in ExitCode)


def test_every_command_with_a_server_has_json_output() -> None:
    mute = {name for name, options in commands().items() if "--json" not in options}
    assert mute == {"headgate serve", "headgate demo", "headgate login", "headgate logout",
                    "headgate context use", "headgate context delete", "headgate man"}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("subscription", "delete", "x1"), "deleted"),
        (("token", "revoke", "11111111"), "revoked"),
        (("observation-credential", "delete"), "deleted"),
    ],
)
async def test_what_is_gone_is_printed(words: tuple[str, ...], what: str) -> None:
    one = {"id": GONE, "application_credential_id": GONE, "kind": "token",
           "name": "ci", "repairs": False, "channel": "webhook", "target": "x"}  # fmt: skip
    async with running_stub(respond_with(one | {"tokens": [one]})) as stub:
        line = [*words, "--yes", "--url", stub.url]
        done = await asyncio.to_thread(CliRunner().invoke, app, line)
        assert (done.exit_code, done.stdout) == (0, f"{GONE} {what}\n")
        done = await asyncio.to_thread(CliRunner().invoke, app, [*line, "-o", "json"])
        assert json.loads(done.stdout) == {"id": GONE, what: True}


@pytest.mark.parametrize(
    ("words", "document", "message"),
    [
        (("stack", "list"), {"stacks": []}, "no stack in the project shop\n"),
        (("stack", "list", "--tag", "UNKNOWN", "--status", "FAILED"), {"stacks": []},
         "no stack in the project shop matches --status FAILED, --tag UNKNOWN\n"),
        (("subscription", "list"), {"subscriptions": []}, "`headgate subscription create`"),
        (("token", "list"), {"tokens": []}, "--all includes revoked and expired ones"),
        (("usage",), {"usage": []}, "the project used nothing on these days\n"),
        (("stack", "decisions", "web"), STACK_WITHOUT | {"decisions": []},
         "no decision about the stack web\n"),
        (("events", "web"), STACK_WITHOUT | {"events": []}, "no event of the stack web\n"),
        (("resource", "list", "web"), STACK_WITHOUT | {"resources": []},
         "no resource in the stack web\n"),
        (("stack", "breakpoints", "remove", "web", "--all"), STACK_WITHOUT | {"breakpoints": []},
         "no breakpoint is set on the stack web\n"),
        (("stack", "breakpoints", "list", "web"), STACK_WITHOUT | {"breakpoints": []},
         "no breakpoint is set on the stack web\n"),
    ],
)  # fmt: skip
async def test_an_empty_list_says_so(words: tuple[str, ...], document: Any, message: str) -> None:
    async with running_stub(respond_with(document)) as stub:
        line = [*words, "--project", "shop", "--url", stub.url]
        done = await asyncio.to_thread(CliRunner().invoke, app, line)
        assert done.exit_code == 0 and message in done.stderr


async def test_a_quota_without_a_limit_is_unlimited() -> None:
    quotas = [{"name": "checks_per_day", "limit": None, "used": 3},
              {"name": "subscriptions", "limit": 0, "used": 0}]  # fmt: skip
    async with running_stub(respond_with({"quotas": quotas})) as stub:
        done = await asyncio.to_thread(CliRunner().invoke, app, ["quota", "--url", stub.url])
        lines = [line.split() for line in done.stdout.splitlines()[1:]]
        assert lines == [["checks_per_day", "unlimited", "3"], ["subscriptions", "0", "0"]]


@pytest.mark.parametrize(
    ("document", "expression", "message"),
    [
        ([{"id": "a"}], "{.items[*].id}", "The result is a list; name what each item has:"
         " {[*].id}\n"),
        ([], "{.items[*].id}", ""),
        ([{"id": ""}], "{[*].id}", ""),
    ],
)  # fmt: skip
async def test_a_jsonpath_without_a_match_says_so(
    document: Any, expression: str, message: str
) -> None:
    async with running_stub(respond_with({"subscriptions": document, "next": None})) as stub:
        line = ["subscription", "list", "--url", stub.url, "-o", f"jsonpath={expression}"]
        done = await asyncio.to_thread(CliRunner().invoke, app, line)
        assert done.exit_code == 0 and done.stdout.strip() == ""
        assert (message in done.stderr) if message else done.stderr == ""


async def test_an_observation_of_an_unknown_type_says_so() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            error = {
                "error": {
                    "message": "no type. See GET .../resource_types.",
                    "type": "EntityNotFound",
                }
            }
            return web.json_response(error, status=404)
        return web.json_response({"resources": 0, "stacks": 0, "unknown": 1})

    words = ["observation", "report", "x", "--type", "UNKNOWN"]
    async with running_stub(answer) as stub:
        line = [*words, "--url", stub.url]
        done = await asyncio.to_thread(CliRunner().invoke, app, line)
        assert done.exit_code == 1
        assert done.stderr == "headgate: no type. See `headgate type list`.\n"
        assert "Observing 0 resources of 0 stacks. 1 ID belongs to no resource" in done.stdout
        assert stub.seen[-1].path.endswith("/resource_types/UNKNOWN")


def test_a_command_with_a_url_has_all_options_of_the_server() -> None:
    server = {"--url", "--project", "--user", "--context"}
    partly = {
        name: server - options
        for name, options in commands().items()
        if "--url" in options and server - options
    }
    assert partly == {}


async def test_the_options_of_the_server_are_used() -> None:
    async with running_stub(respond_with({"tokens": []})) as stub:
        arguments = [
            "token",
            "list",
            "--url",
            stub.url,
            "--project",
            "shop",
            "--user",
            "ann",
            "--json",
        ]
        done = await asyncio.to_thread(CliRunner().invoke, app, arguments)
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout) == []
        (seen,) = stub.seen
        assert seen.path.startswith("/v1/shop/tokens?")
        assert seen.headers["x-auth-user"] == "ann"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stack", "list", "--url", "localhost:8004"], "http://HOST:PORT"),
        (["stack", "list", "--url", "ftp://x"], "http://HOST:PORT"),
        (["stack", "list", "--url", "http://x:8004?a=b"], "http://HOST:PORT"),
        (["stack", "create", "x"], "--template"),
        (["stack", "create", "x", "-t", "y", "--timeout", "soon"], "90s, 30m or 2h"),
        (["stack", "update", "x"], "--existing"),
        (["stack", "update", "x", "--existing", "--moved", "a"], "FROM=TO or STACK:FROM=TO"),
        (["stack", "cancel", "x", "--no-rollback", "--wait"], "--wait has no effect"),
        (["stack", "cancel", "x", "--wait", "--timeout", "soon"], "90s, 30m or 2h"),
        (
            ["stack", "list", "--status", "COMPLET"],
            'is not a status of a stack. Did you mean "COMPLETE"',
        ),
        (["stack", "template", "x", "--version", "0"], "--version"),
        (["stack", "history", "x", "--limit", "0"], "--limit"),
        (["stack", "adopt", "x"], "--file"),
        (["stack", "snapshot", "restore", "x"], "SNAPSHOT"),
        (["stack", "create", "x", "-t", "y", "--stack-timeout", "0"], "--stack-timeout"),
        (["resource", "protect", "x"], "RESOURCE"),
        (["subscription", "redeliver", "x"], "--dead"),
        (["subscription", "create", "x", "--quiet-hours", "22:00"], "is not FROM-TO"),
        (["subscription", "change", "x", "--timezone", "UTC"], "needs --quiet-hours or"),
        (["subscription", "create", "x", "--digest-at", "08:00"], "needs --digest daily"),
        (
            ["subscription", "create", "x", "--digest", "1h", "--timezone", "UTC"],
            "needs --quiet-hours or --digest daily",
        ),
        (["subscription", "create", "x", "--days", "mon"], "--days needs --quiet-hours"),
        (["subscription", "change", "x"], "at least one option"),
        (["subscription", "change", "x", "--remove-filter", "evnts"], '"evnts" is not a filter'),
        (["stack", "breakpoints", "add", "x"], "BREAKPOINT"),
        (["stack", "breakpoints", "remove", "x"], "--all"),
        (["stack", "breakpoints", "remove", "x", "y", "--all"], "--all"),
        (["hook", "patch", "x"], "--set"),
        (["hook", "list", "--older", "soon"], "90s, 30m or 2h"),
        (["hook", "progress", "x", "--extend", "soon"], "90s, 30m or 2h"),
        (["hook", "run", "x", "--data", "a=1", "--data-file", "y"], "use either"),
        (["hook", "list", "--user", "a\nb"], "the name contains control characters"),
        (["admin", "verify-audit", "3f2"], "at least 4 characters"),
        (["admin", "verify-audit", "--expect", f"1:{'0' * 64}"], "needs the ID"),
        (["admin", "verify-audit", str(UUID(int=1)), "--expect", "0:a"], "NUMBER:HASH"),
        (["admin", "purge", "--older-than", "soon"], "90s, 30m or 2h"),
        (["serve", "--role", "cook"], "api, engine, dispatch"),
        (["template", "validate"], "FILE, or -t FILE"),
        (["template", "validate", "x", "-t", "y"], "FILE, or -t FILE"),
        (["template", "validate", "x", "--json", "--output", "sarif"], "either --json or --output"),
        (["template", "validate", "x", "--output", "xml"], "sarif"),
        (["nope"], "nope"),
        (["--url", "x", "stack", "list"], "Write it after the command: `root COMMAND --url"),
        (["stack", "-o", "json", "list"], "after the command: `root stack COMMAND -o"),
        (["stack", "list", "--ulr", "x"], "--url"),
    ],
)
def test_a_usage_error_has_exit_code_2_and_a_remedy(arguments: list[str], message: str) -> None:
    done = CliRunner(env={"TERMINAL_WIDTH": "200", "NO_COLOR": "1"}).invoke(app, arguments)
    assert done.exit_code == 2, done.output
    # typer reads the width once, when it is imported, and may wrap the message in its box.
    assert message in " ".join(done.output.replace("│", " ").split())


def test_help_shows_the_exit_codes() -> None:
    done = CliRunner().invoke(app, ["--help"])
    assert done.exit_code == 0
    assert "Exit codes: 0 success" in " ".join(done.output.split())
