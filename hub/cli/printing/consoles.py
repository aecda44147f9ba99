"""Standard output and standard error, for people."""

import os
import shutil
import sys
from functools import cache
from typing import TYPE_CHECKING, TextIO

from hub.cli.printing.tables import UNLIMITED

if TYPE_CHECKING:
    from rich.console import Console


@cache
def standard_output(*, wide: bool = False) -> "Console":
    """On a terminal, tables are as wide as it. wide: do not shorten lines."""
    from rich.console import Console

    width, height = _dumb_size(sys.stdout)
    if wide or not sys.stdout.isatty():
        width = UNLIMITED
    return Console(highlight=False, emoji=False, width=width, height=height)


@cache
def standard_error() -> "Console":
    from rich.console import Console

    width, height = _dumb_size(sys.stderr)
    return Console(stderr=True, highlight=False, emoji=False, width=width, height=height)


def _dumb_size(stream: TextIO) -> tuple[int | None, int | None]:
    """The columns and lines of a terminal with TERM=dumb, which Rich takes for one of 80 columns.
    None for others: Rich finds them."""
    if os.environ.get("TERM", "").lower() not in ("dumb", "unknown") or not stream.isatty():
        return None, None
    size = shutil.get_terminal_size()
    return size.columns, size.lines
