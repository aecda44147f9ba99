"""headgate type ...: list and show resource types."""

from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType

from hub.cli import show
from hub.cli.client import place
from hub.cli.context import (
    ServerOptions,
    ask,
    print_result,
    uses_server,
)

Json = Any
app = typer.Typer(help="List and show resource types.", no_args_is_help=True)


@app.command(name="list")
@uses_server
def list_(
    server: ServerOptions,
) -> None:
    """List resource types."""
    query = {"with_description": "true"}
    path = place("resource_types")
    found = ask(server, lambda client: client.call("GET", path, query=query))["resource_types"]
    columns = {"resource_type": "TYPE", "description": "DESCRIPTION"}
    print_result(found, server.as_json, lambda: show.table(found, columns))


@app.command(name="show")
@uses_server
def show_(
    server: ServerOptions,
    name: Annotated[str, typer.Argument(help="Such as OS::Heat::RandomString.")],
) -> None:
    """Show a resource type: its properties and attributes."""
    path = place("resource_types", name)
    found = ask(server, lambda client: client.call("GET", path))
    print_result(found, server.as_json, lambda: picture(found))


def picture(found: Json) -> RenderableType:
    """A type for people. update: changed in place, or only by a replacement."""
    properties = [row for name, one in found["properties"].items() for row in _rows(name, one)]
    attributes = [one | {"name": name} for name, one in found["attributes"].items()]
    described = {"name": "PROPERTY", "type": "TYPE", "required": "", "update": "UPDATE",
                 "default": "DEFAULT", "rules": "RULES", "description": "DESCRIPTION"}  # fmt: skip
    given = {"name": "ATTRIBUTE", "type": "TYPE", "description": "DESCRIPTION"}
    return Group(
        show.fields(found, ("resource_type", "description")),
        "",
        show.table(properties, described),
        "",
        show.table(attributes, given),
    )


def _rows(name: str, one: Json, update: str | None = None) -> list[Json]:
    """A property, and those inside it: ``ports[].port`` is of each item of a list. update: "" for
    what is inside, which changes with the whole."""
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
    """Such as ``range 1 to 5``; a rule's own words where it has some."""
    if rule.get("description"):
        return str(rule["description"])
    ((name, said),) = [(key, value) for key, value in rule.items() if key != "description"]
    match said:
        case {"step": step, "offset": offset}:
            return f"{name} {step} + {offset}"
        case {"min": least, "max": most}:
            return f"{name} {least} to {most}"
        case {"min": least}:
            return f"{name} {least} or more"
        case {"max": most}:
            return f"{name} {most} or less"
        case list():
            return "one of " + ", ".join(map(str, said))
        case _:
            return f"{name} {said}"
