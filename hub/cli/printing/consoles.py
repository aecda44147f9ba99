"""Standard output and standard error, for people."""

import sys
from functools import cache
from typing import TYPE_CHECKING

from hub.cli.printing.tables import UNLIMITED

if TYPE_CHECKING:
    from rich.console import Console


@cache
def standard_output(*, wide: bool = False) -> "Console":
    """On a terminal, tables are as wide as it. wide: do not shorten lines."""
    from rich.console import Console

    shortened = sys.stdout.isatty() and not wide
    return Console(highlight=False, emoji=False, width=None if shortened else UNLIMITED)


@cache
def standard_error() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False, emoji=False)
