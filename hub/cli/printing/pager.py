"""Long results on a terminal: shown page by page."""

import os
import shlex
import shutil
import subprocess
import sys

#: The pager without $PAGER, and its options without $LESS: keep colors, leave the text on the
#: screen, end at once if it fits.
DEFAULT, LESS = "less", "FRX"


def show_text(text: str, *, lines: int) -> None:
    """Write a text to the terminal, in a pager if it is longer. lines: of the terminal."""
    command = pager_command() if text.count("\n") >= lines and sys.stdin.isatty() else []
    if command:
        try:
            subprocess.run(  # noqa: S603 # the user's own pager
                command, input=text.encode(), env={"LESS": LESS, **os.environ}, check=False
            )
            return
        except OSError as error:
            print(f"headgate: PAGER: {command[0]}: {error.strerror}", file=sys.stderr)
    sys.stdout.write(text)
    sys.stdout.flush()


def pager_command() -> list[str]:
    """The pager of the environment; empty: none."""
    chosen = os.environ.get("PAGER")
    if chosen is None:
        return [DEFAULT] if shutil.which(DEFAULT) else []
    try:
        words = shlex.split(chosen)
    except ValueError:
        words = [chosen]
    return [] if words == ["cat"] else words
