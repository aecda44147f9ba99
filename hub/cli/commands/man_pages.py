"""headgate man: manual pages of all commands, from their help."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.main

from hub.cli.examples import find_examples
from hub.cli.exit_codes import MEANING, ExitCode
from hub.cli.messages import stop

if TYPE_CHECKING:
    from typer._click import Command, Context

app = typer.Typer()
PROGRAM = "headgate"


@app.command()
def man(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="Where to write them, such as man/man1.")
    ],
) -> None:
    """Write manual pages of all commands to a directory."""
    from hub.cli.main import app as program
    from hub.cli.main import installed_version

    root = typer.main.get_command(program)
    context = root.make_context(PROGRAM, [], resilient_parsing=True)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        count = 0
        for name, text in pages(root, context, installed_version()):
            (directory / f"{name}.1").write_text(text)
            count += 1
    except OSError as error:
        stop(f"{error.filename}: cannot be written: {error.strerror}", ExitCode.ERROR)
    typer.echo(f"{count} pages in {directory}")


def pages(command: "Command", context: "Context", release: str) -> Iterator[tuple[str, str]]:
    """Name and text of the page of a command, and of all commands below it."""
    below: Mapping[str, Command] = getattr(command, "commands", {})
    yield context.command_path.replace(" ", "-"), page(command, context, release, tuple(below))
    for name, one in below.items():
        inner = type(context)(one, info_name=name, parent=context, resilient_parsing=True)
        yield from pages(one, inner, release)


def page(command: "Command", context: "Context", release: str, below: Sequence[str]) -> str:
    """A page in the language of man(7)."""
    path = context.command_path
    title = path.replace(" ", "-")
    first, *more = (command.help or "").replace("\b\n", "").split("\n\n")
    lines = [
        f'.TH "{escape(title.upper())}" "1" "" "{PROGRAM} {escape(release)}" "Headgate"',
        ".SH NAME",
        escape(f"{title} - {first.strip()}"),
        ".SH SYNOPSIS",
        f".B {escape(path)}",
        escape(" ".join(command.collect_usage_pieces(context))),
    ]
    if more:
        lines += [".SH DESCRIPTION", *_paragraphs(more)]
    lines += _entries("COMMANDS", _commands(command, below))
    lines += _entries("ARGUMENTS", command_parameters(command, context, "argument"))
    lines += _entries("OPTIONS", command_parameters(command, context, "option"))
    examples = find_examples(path.removeprefix(PROGRAM).lstrip())
    if examples:
        lines += [".SH EXAMPLES", ".nf", *(escape(f"{PROGRAM} {one}") for one in examples), ".fi"]
    codes = ((str(code.value), MEANING[code]) for code in ExitCode)
    lines += _entries("EXIT STATUS", codes)
    others = [f"{title}-{name}" for name in below]
    if context.parent is not None:
        others.insert(0, context.parent.command_path.replace(" ", "-"))
    lines += [".SH SEE ALSO", ", ".join(f"\\fB{escape(one)}\\fR(1)" for one in others)]
    return "\n".join(lines) + "\n"


def _paragraphs(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield ".PP"
        yield escape(" ".join(text.split()))


def _commands(command: Any, below: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in below:
        yield name, (command.commands[name].help or "").split("\n\n")[0]


def command_parameters(
    command: "Command", context: "Context", kind: str
) -> Iterator[tuple[str, str]]:
    for one in command.get_params(context):
        record = one.get_help_record(context)
        if record is not None and one.param_type_name == kind:
            yield record


def _entries(heading: str, entries: Iterator[tuple[str, str]]) -> list[str]:
    """A section with a list; nothing without entries."""
    lines: list[str] = []
    for term, text in entries:
        lines += [".TP", f"\\fB{escape(term)}\\fR", escape(" ".join(text.split()))]
    return [f".SH {heading}", *lines] if lines else []


def escape(text: str) -> str:
    """A text that man(7) prints as it is. Pure."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{one}" if one[:1] in (".", "'") else one for one in escaped.split("\n"))
