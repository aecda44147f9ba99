"""Examples of each command, and the manual pages."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from hub.cli.commands.man_pages import escape
from hub.cli.examples import EXAMPLES, GROUP_EXAMPLES, SEE_ALSO, SYNONYMS
from hub.cli.main import app

ROOT = typer.main.get_command(app)
#: What ends a command in a shell.
SHELL = re.compile(r" [|>] ")


def leaves(command: Any, path: tuple[str, ...] = ()) -> list[str]:
    below = getattr(command, "commands", None)
    if below is None:
        return [" ".join(path)]
    return [leaf for name, one in below.items() for leaf in leaves(one, (*path, name))]


def groups(command: Any, path: tuple[str, ...] = ()) -> list[str]:
    below = getattr(command, "commands", None)
    if below is None:
        return []
    return [
        " ".join(path),
        *(group for name, one in below.items() for group in groups(one, (*path, name))),
    ]


def test_each_command_and_each_group_has_examples_and_no_other_has() -> None:
    assert sorted(EXAMPLES) == sorted(leaves(ROOT))
    assert sorted(GROUP_EXAMPLES) == sorted(groups(ROOT))
    assert {len(lines) for lines in GROUP_EXAMPLES.values()} == {2}


@pytest.mark.parametrize(
    ("path", "example"),
    [(path, one) for path, lines in (*EXAMPLES.items(), *GROUP_EXAMPLES.items()) for one in lines],
)
def test_an_example_is_a_valid_command_line(path: str, example: str) -> None:
    assert example.startswith(path)
    command: Any = ROOT
    words = shlex.split(SHELL.split(example)[0])
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    command.make_context(path, words)  # raises a usage error


@pytest.mark.parametrize("path", [*GROUP_EXAMPLES])
def test_the_help_of_a_group_ends_with_its_examples(path: str) -> None:
    done = CliRunner().invoke(app, [*path.split(), "--help"])
    examples = "\n".join(f"    headgate {one}" for one in GROUP_EXAMPLES[path])
    assert f"  Examples:\n{examples}\n" in done.output
    assert ("Exit codes: 0 " in done.output) == (path == "")


def test_examples_are_in_the_help_line_by_line() -> None:
    done = CliRunner().invoke(app, ["stack", "diff", "-h"])
    examples = "\n".join(f"    headgate {one}" for one in EXAMPLES["stack diff"])
    assert f"  Examples:\n{examples}\n" in done.output


def test_manual_pages_are_written_for_every_command(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["man", str(tmp_path / "man1")])
    assert done.exit_code == 0, done.output
    texts = {one.stem: one.read_text() for one in (tmp_path / "man1").iterdir()}
    assert {f"headgate-{leaf.replace(' ', '-')}" for leaf in leaves(ROOT)} < {*texts}
    assert texts["headgate"].count(".TP") > 20
    page = texts["headgate-hook-continue"]
    for heading in ("NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", "EXIT STATUS", "SEE ALSO"):
        assert f"\n.SH {heading}\n" in page
    assert "\n.SH EXAMPLES\n" in texts["headgate"] and ".SH EXAMPLES" in texts["headgate-hook"]
    assert "headgate hook continue \\-\\-stack web \\-\\-at 'mon_*'" in page
    requests = {line.split()[0] for text in texts.values() for line in text.splitlines()
                if line.startswith((".", "'"))}  # fmt: skip
    assert requests <= {".TH", ".SH", ".B", ".TP", ".PP", ".nf", ".fi"}


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(app, ["man", str(tmp_path / "file")])
    assert done.exit_code == 1 and f"{tmp_path / 'file'}: cannot be written" in done.output


@pytest.mark.parametrize(
    ("text", "escaped"), [(".x", "\\&.x"), ("'x", "\\&'x"), ("a-b\\c", "a\\-b\\ec"), ("", "")]
)
def test_a_text_is_no_request(text: str, escaped: str) -> None:
    assert escape(text) == escaped


def test_help_names_commands_that_exist_and_are_similar() -> None:
    named = {path for paths in SEE_ALSO.values() for path in paths}
    assert {*SEE_ALSO, *named} <= {*EXAMPLES}
    assert all(path not in paths for path, paths in SEE_ALSO.items())
    done = CliRunner().invoke(app, ["events", "-h"])
    text = " ".join(done.output.split())
    assert "See also: headgate watch, headgate stack decisions, headgate stack history." in text


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ("stack events", "Did you mean `headgate events`?"),
        ("hook login", "Did you mean `headgate login`?"),
        ("hook signal", "Did you mean `headgate hook continue`?"),
        ("continue", "Did you mean `headgate hook continue`?"),
        ("approve", "Did you mean `headgate hook continue`?"),
        ("plan", "Did you mean `headgate stack update --dry-run`?"),
        ("stack lst", "Did you mean 'list'?"),
    ],
)
def test_an_unknown_command_is_answered_with_the_one_that_it_can_mean(
    words: str, near: str
) -> None:
    done = CliRunner().invoke(app, words.split())
    assert (done.exit_code, near in done.stderr) == (2, True), done.stderr
    assert all(one.split(" --")[0] in EXAMPLES for one in SYNONYMS.values())
