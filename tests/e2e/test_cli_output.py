"""Results on a terminal of 80 columns, in pipes, and in the formats of -o."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

import pytest
import yaml
from rich.cells import cell_len

from tests.support.command_line import ENVIRONMENT, TEMPLATE, command, headgate, headgate_json
from tests.support.program import ServerProcess
from tests.support.terminal import terminal

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
NAME = "a-stack-that-waits-and-has-a-name-of-more-than-forty-characters"


@pytest.fixture(scope="module")
def waiting(server: ServerProcess) -> Iterator[str]:
    """The ID of a stack that waits at a hook."""
    create = ("stack", "create", NAME, "-t", TEMPLATE, "-e", ENVIRONMENT)
    yield headgate_json(server, *create, "--until-waiting", code=5)["id"]
    headgate(server, "stack", "delete", NAME, "--yes", "--wait")


def screen(server: ServerProcess, *words: str, columns: int = 80, lines: int = 500) -> list[str]:
    """The lines that a command prints on a terminal, without colors."""
    with terminal(*words, server=server, columns=columns, lines=lines) as user:
        return ESCAPES.sub("", user.wait()).splitlines()


def test_a_dumb_terminal_has_its_own_width(server: ServerProcess, waiting: str) -> None:
    dumb = {"TERM": "dumb"}
    words = ("stack", "list")
    with terminal(*words, server=server, columns=50, lines=500, environment=dumb) as user:
        lines = user.wait().splitlines()
    assert any(waiting[:8] in line for line in lines) and max(map(len, lines)) <= 50


def test_tables_fit_a_terminal_of_80_columns(server: ServerProcess, waiting: str) -> None:
    for words in (
        ("hook", "list"),
        ("stack", "list"),
        ("resource", "list", waiting),
        ("events", waiting),
        ("stack", "history", waiting),
        ("type", "list"),
    ):
        shown = screen(server, *words)
        assert max(map(cell_len, shown)) <= 80, shown
        assert len(shown) == len(headgate(server, *words).splitlines()), shown


def test_a_short_id_and_a_relative_time_are_shown_and_accepted(
    server: ServerProcess, waiting: str
) -> None:
    (row,) = [one for one in screen(server, "stack", "list") if one.startswith("a-stack")]
    assert "CREATE waiting for approval (1)" in row and " ago " in row
    short = row.split()[-1]
    assert waiting.startswith(short) and len(short) < 20
    assert headgate_json(server, "stack", "show", short)["id"] == waiting
    (row,) = [one for one in screen(server, "hook", "list") if one.startswith("a-stack")]
    assert re.search(r" 23h\d+m left ", row)
    hook = headgate_json(server, "hook", "show", row.split()[-1])
    assert hook["root_stack_name"] == NAME


def test_a_stack_that_waits_says_so_wherever_it_is_shown(
    server: ServerProcess, waiting: str
) -> None:
    text = "CREATE_IN_PROGRESS, waiting for approval (1)"
    shown = headgate(server, "stack", "show", waiting)
    assert text in shown and "pre-create" in shown
    approve = f"To approve it: headgate hook continue {NAME}:"
    assert approve in shown and approve in headgate(server, "why", waiting)
    assert text in headgate(server, "stack", "list")
    assert text in headgate(server, "why", waiting)
    assert headgate_json(server, "stack", "show", waiting)["hooks_waiting"] == 1
    (one,) = [one for one in headgate_json(server, "stack", "list") if one["id"] == waiting]
    assert one["hooks_waiting"] == 1


def test_a_pipe_and_wide_have_complete_values(server: ServerProcess, waiting: str) -> None:
    piped = headgate(server, "stack", "list")
    assert NAME in piped and waiting in piped
    wide = "\n".join(screen(server, "stack", "list", "-o", "wide"))
    assert NAME in wide and waiting in wide


def test_a_result_is_printed_in_each_format(server: ServerProcess, waiting: str) -> None:
    show = ("stack", "show", waiting, "-o")
    assert headgate(server, *show, "name") == f"{NAME}\n"
    assert headgate(server, *show, "jsonpath={.stack_status}") == "CREATE_IN_PROGRESS\n"
    assert yaml.safe_load(headgate(server, *show, "yaml"))["id"] == waiting
    assert json.loads(headgate(server, *show, "json"))["id"] == waiting
    assert NAME in headgate(server, "stack", "list", "-o", "name").splitlines()
    events = headgate(server, "events", waiting, "-o", "jsonpath=$[*].resource_status")
    assert "CREATE_IN_PROGRESS" in events.splitlines()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("stack", "list", "-o", "xml"), '"xml" is not an output format'),
        (("stack", "list", "-o", "jsonpath"), "jsonpath needs an expression"),
        (("stack", "list", "-o", "jsonpath={.a[}"), "is not a JSONPath"),
        (("stack", "list", "-o", "yaml", "--json"), "use either --json or --output"),
        (("stack", "list", "--limit", "0"), "--limit"),
        (("usage", "-o", "name"), "this result has no name; use -o json"),
        (("events", "x", "-f", "-o", "yaml"), "use -o json"),
    ],
)
def test_an_invalid_format_is_a_usage_error(
    server: ServerProcess, words: tuple[str, ...], message: str
) -> None:
    assert message in " ".join(headgate(server, *words, code=2).replace("│", " ").split())


def test_lists_are_limited(server: ServerProcess, waiting: str) -> None:
    headgate(server, "stack", "create", "second", "-t", TEMPLATE, "--wait")
    newest = headgate_json(server, "stack", "list", "--limit", "1")
    assert [one["stack_name"] for one in newest] == ["second"]
    assert len(headgate_json(server, "hook", "list", "--limit", "1")) == 1
    assert len(headgate_json(server, "resource", "list", "second", "--limit", "1")) == 1
    every = headgate_json(server, "events", "second")
    assert headgate_json(server, "events", "second", "--limit", "2") == every[-2:]
    headgate(server, "stack", "delete", "second", "--yes", "--wait")


def test_a_long_result_is_shown_in_the_pager(server: ServerProcess, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho the pager\ncat\n")
    pager.chmod(0o755)
    chosen = {"PAGER": str(pager)}
    words = ("type", "list")
    with terminal(*words, server=server, lines=5, environment=chosen) as user:
        shown = user.wait()
        assert shown.startswith("the pager\n") and "OS::Heat::RandomString" in shown
    with terminal(*words, server=server, lines=500, environment=chosen) as user:
        assert "the pager" not in user.wait()
    for none in ("", "cat", "/nope/pager"):
        with terminal(*words, server=server, lines=5, environment={"PAGER": none}) as user:
            assert "OS::Heat::RandomString" in user.wait()
    done = subprocess.run(
        command(*words, server=server), stdout=PIPE, text=True, timeout=60, env=os.environ | chosen
    )
    assert "the pager" not in done.stdout


@pytest.mark.parametrize("words", [(), ("stack",), ("stack", "delete")], ids=" ".join)
def test_h_is_help(words: tuple[str, ...]) -> None:
    done = [
        subprocess.run(command(*words, option), capture_output=True, text=True, timeout=60)
        for option in ("-h", "--help")
    ]
    assert done[0].returncode == 0 and done[0].stdout == done[1].stdout
    assert "Usage:" in done[0].stdout
