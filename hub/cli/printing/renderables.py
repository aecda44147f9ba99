"""Parts of results for people, made of those of `rich`.

`rich` takes long to load, and help needs none of it: no module of the command line imports it
before a result is printed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.text import Text


@dataclass(frozen=True, slots=True)
class RenderableGroup:
    """A renderable: its parts, one below the other."""

    parts: "Iterable[RenderableType]"

    def __rich_console__(
        self, console: "Console", options: "ConsoleOptions"
    ) -> "Iterator[RenderableType]":
        yield from self.parts


def group(*parts: "RenderableType") -> RenderableGroup:
    return RenderableGroup(parts)


def styled_text(content: str = "", style: str = "") -> "Text":
    from rich.text import Text

    return Text(content, style)


def assemble_text(*parts: "str | Text | tuple[str, str]") -> "Text":
    """Parts in one line, with their styles."""
    from rich.text import Text

    return Text.assemble(*parts)


def join_lines(lines: "Iterable[Text]") -> "Text":
    from rich.text import Text

    return Text("\n").join(lines)
