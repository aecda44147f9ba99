"""Examples in the help of each command."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer._click import Command

#: Command -> command lines without `headgate`.
EXAMPLES: dict[str, tuple[str, ...]] = {}


def add_examples(command: "Command", path: str) -> None:
    """Append the examples to the help of a command and of all commands below it. path: its name."""
    if path in EXAMPLES:
        lines = [f"  headgate {one}" for one in EXAMPLES[path]]
        # The first character keeps the line breaks.
        command.epilog = "\n".join(["\b", "Examples:", *lines])
    for name, below in getattr(command, "commands", {}).items():
        add_examples(below, f"{path} {name}")
