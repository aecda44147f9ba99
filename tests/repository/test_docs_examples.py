"""Examples in the docs that no guide executes: rules and policies are valid, commands exist."""

import re
import tomllib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import typer

from engine.errors import Findings
from engine.hooks.rule import HookLimits
from engine.hooks.rule_reader import Reader
from engine.hot.environment.environment import parse_environment
from engine.hot.evaluation.conditions import Conditions
from engine.hot.language.versions import VERSIONS
from engine.hot.syntax.document import read_document
from engine.plan.convergence import read_section
from hub.cli.main import app
from hub.settings.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"
RECIPES = (DOCS / "how-to" / "README.md").read_text()
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.M | re.S)
#: A command in a line of its own, or in backquotes. It ends at a pipe, a comment or a redirection.
COMMAND = re.compile(r"(?:^|`)\s*(?:\$ |- )?headgate ((?:[^`|#>\n&]|\\\n)+)", re.M)
#: Not commands: a prompt with words in place of a command.
FORMS = re.compile(r"^(?:[A-Z.]|COMMAND)")

LIMITS = HookLimits(timedelta(hours=24), timedelta(days=90))
ROOT: Any = typer.main.get_command(app)


def blocks(language: str) -> list[str]:
    return [text for _, of, text in BLOCK.findall(RECIPES) if of == language]


@pytest.mark.parametrize("text", blocks("yaml"))
def test_a_recipe_for_an_environment_is_valid(text: str) -> None:
    parsed = parse_environment(read_document(text, "environment"))
    findings = Findings()
    decide = Conditions({}, VERSIONS[max(VERSIONS)], parsed.parameters, findings).decide
    rules = Reader(findings, LIMITS, decide, ("resize",)).declarations(parsed.hook_declarations)
    if section := parsed.document.get("convergence"):
        read_section(section, "convergence", findings)
    assert rules or section
    assert not findings.all and not findings.warnings


@pytest.mark.parametrize("text", blocks("toml"))
def test_a_recipe_for_the_operator_is_valid(text: str) -> None:
    assert Settings(**tomllib.loads(text)).hooks.rules


def commands(text: str) -> Iterator[list[str]]:
    for command in COMMAND.findall(text):
        words = command.replace("\\\n", " ").split()
        if words and not FORMS.match(words[0]):
            yield words


def options_of(command: Any) -> set[str]:
    return {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {
        "--help"
    }


def wrong_part(words: list[str]) -> str | None:
    """Return the first word that is not a command, or not an option of the command."""
    command = ROOT
    for word in words:
        if word.startswith("-"):
            if re.match(r"--?[a-z]", word) and word.partition("=")[0] not in options_of(command):
                return word
        elif hasattr(command, "get_command"):
            command = command.get_command(None, word)
            if command is None:
                return word
    return None


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.stem)
def test_commands_in_the_docs_exist(page: Path) -> None:
    wrong: list[Any] = [
        (words, part) for words in commands(page.read_text()) if (part := wrong_part(words))
    ]
    assert not wrong
