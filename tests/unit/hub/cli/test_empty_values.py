"""Arguments and options that are empty: refused, because they mean that a variable is not set."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer
import typer.main
from typer.testing import CliRunner

from hub.cli.empty_values import FREE_TEXT
from hub.cli.main import app


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield words, command
        return
    for name, one in below.items():
        yield from commands(one, (*words, name))


def error_of(command: Any, arguments: list[str]) -> str:
    with pytest.raises(typer.BadParameter) as raised:
        command.make_context("headgate", arguments)
    return str(raised.value)


def test_no_command_accepts_an_empty_text() -> None:
    checked = 0
    for words, command in commands(typer.main.get_command(app)):
        for one in command.params:
            if one.type.name == "str" and one.name not in FREE_TEXT:
                given = [""] if one.param_type_name == "argument" else [one.opts[0], ""]
                leading = ["x"] * _arguments_before(command, one)
                assert "must not be empty" in error_of(command, [*leading, *given]), (
                    words,
                    one.name,
                )
                checked += 1
    assert checked > 300


def test_no_command_accepts_a_pair_without_its_form() -> None:
    checked = set()
    for _, command in commands(typer.main.get_command(app)):
        for one in command.params:
            if "=" in str(one.metavar) and one.metavar != "[STACK:]FROM=TO":
                option, form = one.opts[0], one.metavar
                texts = ["size", "=5", *(["a="] if form.endswith(("PATH", "FILE")) else [])]
                for text in texts:
                    error = error_of(command, ["x"] * 3 + [option, text])
                    assert error == f'"{text}": write it as {form}'
                checked.add((option, form))
    assert checked == {
        ("--parameter", "KEY=VALUE"), ("--parameter-file", "KEY=PATH"), ("--data", "KEY=VALUE"),
        ("--set", "NAME=VALUE"), ("--properties", "ID=FILE"),
    }  # fmt: skip


def test_a_pair_without_its_form_is_a_usage_error() -> None:
    done = CliRunner().invoke(app, ["stack", "create", "web", "-t", "t.yaml", "-P", "size"])
    assert done.exit_code == 2
    assert (
        """Invalid value for '--parameter' / '-P': "size": write it as KEY=VALUE""" in done.output
    )


def _arguments_before(command: Any, parameter: Any) -> int:
    if parameter.param_type_name != "argument":
        return 0
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    return arguments.index(parameter)


@pytest.mark.parametrize(
    "words",
    [("hook", "reject", "s:a", "--reason", ""), ("stack", "list", "--status", "COMPLETE")],
    ids=["free-text", "text"],
)
def test_other_texts_are_accepted(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*words, "--url", "http://127.0.0.1:1"])
    assert "connection refused" in done.stderr


def test_an_empty_variable_is_the_same_as_none() -> None:
    words = ["stack", "list", "--url", "http://127.0.0.1:1"]
    environment = {"HEADGATE_PROJECT": "", "HEADGATE_CONTEXT": ""}
    assert "connection refused" in CliRunner().invoke(app, words, env=environment).stderr


def test_the_message_names_the_option() -> None:
    done = CliRunner().invoke(app, ["stack", "update", "web", "--existing", "--plan", ""])
    assert done.exit_code == 2
    assert "'--plan': must not be empty" in done.stderr
