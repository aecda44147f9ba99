"""Help texts show all that they say: names of settings look like markup to what renders them."""

import re
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
import typer
import typer.main
from typer.testing import CliRunner

from hub.auth.roles import Role
from hub.cli.main import app

SECTION = re.compile(r"\[{1,2}[a-z_.]+\]{1,2}")


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each command and group below, with the words that call it."""
    yield words, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*words, name))


EVERY = dict(commands(typer.main.get_command(app)))


def written(command: Any) -> str:
    """The help texts of a command and of its parameters, as they are in the source."""
    texts = [command.help, command.epilog, *(getattr(one, "help", "") for one in command.params)]
    texts += [below.short_help or below.help for below in getattr(command, "commands", {}).values()]
    return "\n".join(one for one in texts if one)


def shown(words: tuple[str, ...], program: typer.Typer = app) -> str:
    """The rendered help, its lines joined."""
    environment = {"COLUMNS": "400", "NO_COLOR": "1"}
    done = CliRunner().invoke(program, [*words, "--help"], env=environment)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def missing(command: Any, output: str) -> list[str]:
    """Sections that a command's help texts name, and its rendered help does not show."""
    return [one for one in SECTION.findall(written(command)) if one not in output]


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_a_help_text_shows_each_section_of_the_settings_that_it_names(
    words: tuple[str, ...],
) -> None:
    output = shown(words)
    assert missing(EVERY[words], output) == [], output


@pytest.mark.parametrize(
    ("text", "lost"),
    [("See [auth] mode.", ["[auth]"]), (r"See \[auth] mode, and \[\[hooks.rules]].", [])],
)
def test_a_section_that_is_lost_in_the_rendered_help_is_found(text: str, lost: list[str]) -> None:
    program = typer.Typer()

    @program.command(help=text)
    def command(option: Annotated[str, typer.Option(help=text)] = "") -> None: ...

    found = missing(typer.main.get_command(program), shown((), program))
    assert set(found) == set(lost)


@pytest.mark.parametrize("words", [("token", "create"), ("admin", "create-token")])
def test_every_role_is_listed(words: tuple[str, ...]) -> None:
    output = shown(words)
    assert [role for role in Role if f"{role}," not in output] == []
