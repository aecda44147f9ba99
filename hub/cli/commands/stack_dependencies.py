"""headgate stack dependencies."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from hub.cli import options
from hub.cli.context import ask_stack, print_result
from hub.cli.options import ServerOptions, with_options
from hub.cli.printing import output, tables
from hub.cli.printing.renderables import group, wrapped_text

if TYPE_CHECKING:
    from rich.console import RenderableType

Json = Any
app = typer.Typer()


@app.command()
@with_options
def dependencies(server: ServerOptions, name: options.Name) -> None:
    """Show the outputs of other stacks that a stack reads, and the stacks that read its outputs."""
    found = ask_stack(server, name, "GET", "dependencies")
    print_result(found, server.format, lambda: render(found))


def render(found: Mapping[str, Json]) -> "RenderableType":
    """The outputs that are read, and the readers. Pure."""
    columns = {"stack": "STACK", "output": "OUTPUT", "state": "VALUE"}
    rows = [
        {
            "stack": one["stack_name"] or one["stack_id"],
            "output": one["output"],
            "state": "changed since" if one["changed"] else "as read",
        }
        for one in found["reads"]
    ]
    table = [output.table(rows, columns)] if rows else [wrapped_text("Reads no other stack.")]
    return group(*table, wrapped_text(tables.plain(readers(found))))


def readers(found: Mapping[str, Json]) -> str:
    """The stacks that read this one. Pure."""
    names = ", ".join(one["stack_name"] for one in found["read_by"])
    return f"Read by: {names}. It cannot be deleted." if names else "No other stack reads it."
