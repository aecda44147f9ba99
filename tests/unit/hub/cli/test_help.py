"""Help texts show the names of settings, although rich interprets brackets as markup."""

import re
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
import typer
import typer.main
from typer.testing import CliRunner

from hub.auth.roles import Role
from hub.cli.help_texts import summary
from hub.cli.main import app

SECTION = re.compile(r"\[{1,2}[a-z_.]+\]{1,2}")


def commands(
    command: Any, arguments: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each command and subcommand, with the arguments that call it."""
    yield arguments, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*arguments, name))


EVERY = dict(commands(typer.main.get_command(app)))


def source_texts(command: Any) -> str:
    """The help texts of a command and of its parameters, as they are in the source."""
    texts = [command.help, command.epilog, *(getattr(one, "help", "") for one in command.params)]
    texts += [below.short_help or below.help for below in getattr(command, "commands", {}).values()]
    return "\n".join(one for one in texts if one)


def rendered(arguments: tuple[str, ...], program: typer.Typer = app) -> str:
    """The rendered help, its lines joined."""
    environment = {"COLUMNS": "400", "NO_COLOR": "1"}
    done = CliRunner().invoke(program, [*arguments, "--help"], env=environment)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def missing(command: Any, output: str) -> list[str]:
    """Sections that a command's help texts name, and its rendered help does not show."""
    return [one for one in SECTION.findall(source_texts(command)) if one not in output]


@pytest.mark.parametrize("arguments", EVERY, ids=" ".join)
def test_a_help_text_shows_each_section_of_the_settings_that_it_names(
    arguments: tuple[str, ...],
) -> None:
    output = rendered(arguments)
    assert missing(EVERY[arguments], output) == [], output


@pytest.mark.parametrize(
    ("text", "lost"),
    [("See [auth] mode.", ["[auth]"]), (r"See \[auth] mode, and \[\[hooks.rules]].", [])],
)
def test_a_section_that_is_lost_in_the_rendered_help_is_found(text: str, lost: list[str]) -> None:
    program = typer.Typer()

    @program.command(help=text)
    def command(option: Annotated[str, typer.Option(help=text)] = "") -> None: ...

    found = missing(typer.main.get_command(program), rendered((), program))
    assert set(found) == set(lost)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_line_of_help_does_not_end_in_a_word(width: int) -> None:
    environment = {"COLUMNS": str(width), "NO_COLOR": "1"}
    for words in (("subscription", "create"), ("stack", "update")):
        done = CliRunner().invoke(app, [*words, "--help"], env=environment)
        assert not [line for line in done.output.splitlines() if line.endswith("-")]


@pytest.mark.parametrize("arguments", [("token", "create"), ("admin", "create-token")])
def test_every_role_is_listed(arguments: tuple[str, ...]) -> None:
    output = rendered(arguments)
    assert [role for role in Role if f"{role}," not in output] == []


@pytest.mark.parametrize("arguments", EVERY, ids=" ".join)
def test_help_names_values_in_capitals_and_shortens_no_sentence(arguments: tuple[str, ...]) -> None:
    output = rendered(arguments)
    usage, _, rest = output.partition(" Options: ")
    assert "..." not in rest.replace("whsec_...", "").replace("jsonpath=...", ""), rest
    assert "{" not in usage and "default: (" not in rest
    assert re.findall(r"--[a-z-]+ (<[^>|]*>)", rest) == []


def test_a_list_of_commands_has_first_sentences() -> None:
    assert summary("Keep a stack. Name it\nby its ID.\n\nMore.") == "Keep a stack."
    assert summary("Print all\nof it") == "Print all of it"
