"""The commands as a whole: their names, their docs, their usage errors."""

import asyncio
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
import typer
from typer.testing import CliRunner

from hub.cli.exit_codes import MEANING, Exit
from hub.cli.main import app
from tests.unit.hub.cli.stub import saying, serving

DOC = Path(__file__).parents[4] / "docs" / "reference" / "cli.md"
EVERYWHERE = {"--json", "--url", "--project", "--user", "--help"}


def commands() -> dict[str, set[str]]:
    """Full name of each command -> its options."""
    return dict(_walk(typer.main.get_command(app), "headgate"))


def _walk(command: object, name: str) -> Iterator[tuple[str, set[str]]]:
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
        yield from _walk(one, f"{name} {word}")


def sections() -> dict[str, str]:
    """Full name of each command in the doc -> its section."""
    parts = re.split(r"^### `(headgate[^`]*)`$", DOC.read_text(), flags=re.MULTILINE)[1:]
    names = [re.sub(r" (-[tf] )?\[?[A-Z]+\b]?", "", title) for title in parts[::2]]
    return dict(zip(names, parts[1::2], strict=True))


def test_the_doc_has_every_command_and_no_other() -> None:
    assert sorted(sections()) == sorted(commands())


def test_the_doc_names_every_option_and_no_other() -> None:
    text = DOC.read_text()
    known = set().union(*commands().values())
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
    assert named - known - EVERYWHERE == {"--install-completion", "--show-completion"}
    assert known - named - EVERYWHERE == {"--no-wait"}


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((DOC.parents[2] / "pyproject.toml").read_text())["project"]
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"headgate {project['version']}\n")


def test_the_doc_has_the_exit_codes() -> None:
    assert all(f"| {code.value} | {MEANING[code]} |" in DOC.read_text() for code in Exit)


def test_every_command_that_asks_a_server_speaks_json() -> None:
    mute = {name for name, options in commands().items() if "--json" not in options}
    assert mute == {"headgate serve", "headgate demo", "headgate subscription delete",
                    "headgate token revoke"}  # fmt: skip


def test_a_command_with_a_url_has_all_options_of_the_server() -> None:
    server = {"--url", "--project", "--user"}
    partly = {
        name: server - options
        for name, options in commands().items()
        if "--url" in options and server - options
    }
    assert partly == {}


async def test_the_options_of_the_server_reach_it() -> None:
    async with serving(saying({"tokens": []})) as stub:
        words = ["token", "list", "--url", stub.url, "--project", "shop", "--user", "ann", "--json"]
        done = await asyncio.to_thread(CliRunner().invoke, app, words)
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout) == []
        (seen,) = stub.seen
        assert seen.path.startswith("/v1/shop/tokens?")
        assert seen.headers["x-auth-user"] == "ann"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["stack", "list", "--url", "localhost:8004"], "http://HOST:PORT"),
        (["stack", "list", "--url", "ftp://x"], "http://HOST:PORT"),
        (["stack", "create", "x"], "--template"),
        (["stack", "create", "x", "-t", "y", "--timeout", "soon"], "90s, 30m or 2h"),
        (["stack", "update", "x"], "--existing"),
        (["stack", "update", "x", "--existing", "--moved", "a"], "FROM=TO or STACK:FROM=TO"),
        (["stack", "cancel", "x", "--no-rollback", "--wait"], "--wait has no effect"),
        (["stack", "cancel", "x", "--wait", "--timeout", "soon"], "90s, 30m or 2h"),
        (["stack", "template", "x", "--version", "0"], "--version"),
        (["stack", "history", "x", "--limit", "0"], "--limit"),
        (["stack", "adopt", "x"], "--file"),
        (["stack", "snapshot", "restore", "x"], "SNAPSHOT"),
        (["stack", "create", "x", "-t", "y", "--stack-timeout", "0"], "--stack-timeout"),
        (["resource", "protect", "x"], "RESOURCE"),
        (["subscription", "redeliver", "x"], "--dead"),
        (["subscription", "change", "x"], "at least one option"),
        (["subscription", "change", "x", "--everything", "evnts"], '"evnts" is not a filter'),
        (["stack", "breakpoints", "add", "x"], "BREAKPOINT"),
        (["stack", "breakpoints", "remove", "x"], "--all"),
        (["stack", "breakpoints", "remove", "x", "y", "--all"], "--all"),
        (["hook", "patch", "x"], "--set"),
        (["hook", "list", "--older", "soon"], "90s, 30m or 2h"),
        (["hook", "progress", "x", "--extend", "soon"], "90s, 30m or 2h"),
        (["hook", "run", "x", "--data", "a=1", "--data-file", "y"], "use either"),
        (["hook", "list", "--user", "a\nb"], "is not a valid name"),
        (["admin", "verify-audit", "x"], "UUID"),
        (["admin", "verify-audit", "--expect", f"1:{'0' * 64}"], "needs the ID"),
        (["admin", "verify-audit", str(UUID(int=1)), "--expect", "0:a"], "NUMBER:HASH"),
        (["admin", "purge", "--older-than", "soon"], "90s, 30m or 2h"),
        (["serve", "--role", "cook"], "api, engine, dispatch"),
        (["nope"], "nope"),
    ],
)
def test_wrong_use_is_2_and_says_what_is_right(words: list[str], told: str) -> None:
    done = CliRunner(env={"TERMINAL_WIDTH": "200", "NO_COLOR": "1"}).invoke(app, words)
    assert done.exit_code == 2, done.output
    # typer reads the width once, at its import, and may fold the message in its box.
    assert told in " ".join(done.output.replace("│", " ").split())


def test_help_tells_the_exit_codes() -> None:
    done = CliRunner().invoke(app, ["--help"])
    assert done.exit_code == 0
    assert "Exit codes: 0 success" in " ".join(done.output.split())
