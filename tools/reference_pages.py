"""Writes the generated pages and tables of docs/reference: the commands from their help, the error
types from their list, the events and resource types from their schemas, and the settings from
config.example.toml, which a test compares with the settings of the program."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from hub.cli.commands.man_pages import PROGRAM, command_parameters
from hub.cli.examples import EXAMPLES
from hub.cli.main import app
from tools.error_reference import errors_page
from tools.event_reference import events_page
from tools.type_reference import compute_page, openstack_page, properties_page

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
SETTINGS = ROOT / "config.example.toml"
#: A table, or one that the file only shows, as a comment.
TABLE = re.compile(r"^(?:# )?(\[[^\]\n]+\]+)$", re.M)
COMMANDS_HEAD = """# Commands

`make reference` writes this page from the help of the commands. [Command line](cli.md) describes
what they have in common: options, contexts, output formats, exit codes.
"""
SETTINGS_HEAD = """# Settings

`make reference` writes this page from [config.example.toml](../../config.example.toml), which has
all settings with their defaults. `headgate admin doctor --config FILE` checks a file.
"""


def settings_page() -> str:
    """Each table of the file below a heading of its own."""
    text = SETTINGS.read_text(encoding="utf-8")
    tables = list(TABLE.finditer(text))
    head = re.sub(r"^# ?", "", text[: tables[0].start()], flags=re.M)
    parts = [SETTINGS_HEAD, head.strip() + "\n"]
    starts = [_start_of_comment(text, one.start()) for one in tables]
    for table, begin, end in zip(tables, starts, [*starts[1:], len(text)], strict=True):
        parts.append(f"## `{table[1]}`\n\n```toml\n{text[begin:end].strip()}\n```\n")
    return "\n".join(parts)


def _start_of_comment(text: str, place: int) -> int:
    """Where the comment above a table begins: after the last empty line or setting."""
    lines = text[:place].splitlines(keepends=True)
    while lines and lines[-1].startswith("#"):
        place -= len(lines.pop())
    return place


def commands_page() -> str:
    root: Any = typer.main.get_command(app)
    context = root.make_context(PROGRAM, [], resilient_parsing=True)
    return "\n".join([COMMANDS_HEAD, *_sections(root, context)])


def _sections(command: Any, context: Any) -> Iterator[str]:
    for name, one in getattr(command, "commands", {}).items():
        inner = type(context)(one, info_name=name, parent=context, resilient_parsing=True)
        if hasattr(one, "commands"):
            yield from _sections(one, inner)
        else:
            yield _section(one, inner)


def _section(command: Any, context: Any) -> str:
    path = context.command_path
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    paragraphs = (command.help or "").replace("\b\n", "").split("\n\n")
    lines = [f"## {path}", "", *(_text(" ".join(one.split())) + "\n" for one in paragraphs)]
    lines += ["```text", usage, "```", ""]
    records = [
        record
        for kind in ("argument", "option")
        for record in command_parameters(command, context, kind)
    ]
    lines += ["| argument or option | meaning |", "|---|---|"]
    lines += [f"| {_code(term)} | {_text(' '.join(text.split()))} |" for term, text in records]
    examples = EXAMPLES.get(path.removeprefix(f"{PROGRAM} "), ())
    if examples:
        lines += ["", "```text", *(f"{PROGRAM} {one}" for one in examples), "```"]
    return "\n".join(lines) + "\n"


def _code(term: str) -> str:
    return f"`{term}`".replace("|", "\\|")


def _text(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\*_<>|\[\]])", r"\\\1", text)


PAGES = {
    "commands.md": commands_page,
    "compute-types.md": compute_page,
    "errors.md": errors_page,
    "events.md": events_page,
    "openstack-types.md": openstack_page,
    "settings.md": settings_page,
    "type-properties.md": properties_page,
}


def main() -> None:
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")
        print(f"docs/reference/{name}")


if __name__ == "__main__":
    main()
