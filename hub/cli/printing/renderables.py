"""Parts of results for people, made of those of `rich`.

`rich` takes long to load, and help needs none of it: no module of the command line imports it
before a result is printed.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.text import Text

#: Spaces before the second line of a long sentence, and the least characters of a line.
INDENT, MIN_ROOM = 2, 20


@dataclass(frozen=True, slots=True)
class RenderableGroup:
    """A renderable: its parts, one below the other."""

    parts: "Iterable[RenderableType]"

    def __rich_console__(
        self, console: "Console", options: "ConsoleOptions"
    ) -> "Iterator[RenderableType]":
        yield from self.parts


@dataclass(frozen=True, slots=True)
class WrappedText:
    """A renderable: lines that are broken between words, and continued with a deeper indent."""

    text: "Text"

    @property
    def plain(self) -> str:
        return self.text.plain

    def __rich_console__(
        self, console: "Console", options: "ConsoleOptions"
    ) -> "Iterator[RenderableType]":
        for line in self.text.split("\n", allow_blank=True):
            indent = len(line.plain) - len(line.plain.lstrip())
            first = True
            for part in break_words(line[indent:], options.max_width - indent - INDENT):
                yield assemble_text(" " * (indent if first else indent + INDENT), part)
                first = False


def wrapped_text(content: "str | Text") -> WrappedText:
    return WrappedText(styled_text(content) if isinstance(content, str) else content)


def break_words(text: "Text", room: int) -> "list[Text]":
    """The lines of a text that is broken between words. A longer word, a command in backticks and
    one after a colon stay whole, so that they can be copied."""
    from rich.cells import cell_len

    if text.cell_len <= room:
        return [text]
    offsets, used = [], 0
    for word in re.finditer(r"(?<=: )headgate .*|(?:`[^`]*`|[^\s`])+\s*|\S+\s*", text.plain):
        if used and used + cell_len(word[0].rstrip()) > max(room, MIN_ROOM):
            offsets.append(word.start())
            used = 0
        used += cell_len(word[0])
    lines = list(text.divide(offsets))
    for line in lines:
        line.rstrip()
    return lines


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
