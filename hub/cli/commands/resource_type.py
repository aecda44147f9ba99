"""headgate type: list and show resource types."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.connection import url_path
from hub.cli.context import ask, print_result
from hub.cli.options import ServerOptions, with_options
from hub.cli.printing import output
from hub.cli.printing.renderables import (
    WrappedText,
    assemble_text,
    group,
    styled_text,
    wrapped_text,
)
from hub.cli.printing.tables import DataTable, cell_text, plain

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

Json = Any
app = typer.Typer(help="List and show resource types.", no_args_is_help=True)


@app.command(name="list")
@with_options
def list_(server: ServerOptions) -> None:
    """List resource types."""
    query = {"with_description": "true"}
    path = url_path("resource_types")
    found = ask(server, lambda client: client.call("GET", path, query=query))["resource_types"]
    columns = {"resource_type": "TYPE", "description": "DESCRIPTION"}
    print_result(found, server.format, lambda: output.table(found, columns))


@app.command(name="show")
@with_options
def show_(
    server: ServerOptions,
    name: Annotated[str, typer.Argument(metavar="TYPE", help="Such as OS::Heat::RandomString.")],
) -> None:
    """Show a resource type: its properties and attributes."""
    path = url_path("resource_types", name)
    found = ask(server, lambda client: client.call("GET", path))
    print_result(found, server.format, lambda: render(found))


def render(found: Json) -> "RenderableType":
    """The properties and attributes of a type."""
    properties = [row for name, one in found["properties"].items() for row in _rows(name, one)]
    attributes = [one | {"name": name} for name, one in found["attributes"].items()]
    property_columns = {"name": "PROPERTY", "type": "TYPE", "required": "", "update": "UPDATE",
                        "default": "DEFAULT", "rules": "RULES",
                        "description": "DESCRIPTION"}  # fmt: skip
    attribute_columns = {"name": "ATTRIBUTE", "type": "TYPE", "description": "DESCRIPTION"}
    return group(
        output.fields(found, ("resource_type", "description")),
        "",
        PropertyTable(output.table(properties, property_columns)),
        "",
        output.table(attributes, attribute_columns),
    )


@dataclass(frozen=True, slots=True)
class PropertyTable:
    """A renderable: the table; on a terminal that is too narrow for it, a list."""

    table: DataTable

    def __rich_console__(
        self, console: "Console", options: "ConsoleOptions"
    ) -> "Iterator[RenderableType]":
        if self.table.fits(options.max_width):
            yield self.table
            return
        yield styled_text("PROPERTIES", "bold")
        for row in self.table.rows:
            facts = styled_text("; ".join(_facts(row)))
            yield WrappedText(assemble_text("  ", (plain(row["name"]), "bold"), "  ", facts))
            if row["description"]:
                yield wrapped_text(f"      {plain(row['description'])}")


def _facts(row: Json) -> Iterator[str]:
    """``integer``, ``replaces``, ``default 32`` and ``range 1 to 512``."""
    for name in ("type", "required", "update", "default", "rules"):
        if text := cell_text(row.get(name)):
            yield f"default {text}" if name == "default" else text


def _rows(name: str, one: Json, update: str | None = None) -> list[Json]:
    """A property with the properties inside it, such as ``ports[].port`` for the items of a list.
    update: None for a top-level property, else "": the inner ones change with it."""
    formerly = ", ".join(one.get("former_names", []))
    row = one | {
        "name": name,
        "required": "required" if one.get("required") else "",
        "update": _update(one) if update is None else update,
        "description": " ".join(
            filter(None, (one["description"], formerly and f"Formerly {formerly}."))
        ),
        "rules": "; ".join(_rule(rule) for rule in one.get("constraints", [])),
    }
    inside = one.get("schema", {}).items()
    below = [(f"{name}[]", item) if key == "*" else (f"{name}.{key}", item) for key, item in inside]
    return [row, *(deeper for place, item in below for deeper in _rows(place, item, ""))]


def _update(one: Json) -> str:
    if one.get("update_allowed"):
        return "in place"
    return "never" if one.get("immutable") else "replaces"


def _rule(rule: Json) -> str:
    """The description of a constraint, or a text such as ``range 1 to 5``."""
    if rule.get("description"):
        return str(rule["description"])
    ((name, value),) = [(key, value) for key, value in rule.items() if key != "description"]
    match value:
        case {"step": step, "offset": offset}:
            return f"{name} {step} + {offset}"
        case {"min": minimum, "max": maximum}:
            return f"{name} {minimum} to {maximum}"
        case {"min": minimum}:
            return f"{name} {minimum} or more"
        case {"max": maximum}:
            return f"{name} {maximum} or less"
        case list():
            return "one of " + ", ".join(map(str, value))
        case _:
            return f"{name} {value}"
