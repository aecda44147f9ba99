"""headgate type ...: which resource types there are, and what they take and give."""

from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType

from hub.cli import show
from hub.cli.client import place
from hub.cli.context import PROJECT, URL, USER, AsJson, Project, Url, User, Where, ask, tell

Json = Any
app = typer.Typer(help="List and show resource types.", no_args_is_help=True)


@app.command(name="list")
def list_(
    url: Url = URL, project: Project = PROJECT, user: User = USER, as_json: AsJson = False
) -> None:
    """List resource types."""
    query = {"with_description": "true"}
    path = place("resource_types")
    where = Where(url, project, user)
    found = ask(where, lambda client: client.call("GET", path, query=query))["resource_types"]
    columns = {"resource_type": "TYPE", "description": "DESCRIPTION"}
    tell(found, as_json, lambda: show.table(found, columns))


@app.command(name="show")
def show_(
    name: Annotated[str, typer.Argument(help="Such as OS::Heat::RandomString.")],
    url: Url = URL,
    project: Project = PROJECT,
    user: User = USER,
    as_json: AsJson = False,
) -> None:
    """Show a resource type: its properties and attributes."""
    path = place("resource_types", name)
    found = ask(Where(url, project, user), lambda client: client.call("GET", path))
    tell(found, as_json, lambda: picture(found))


def picture(found: Json) -> RenderableType:
    """A type for people. update: changed in place, or only by a replacement."""
    properties = [
        one
        | {
            "name": name,
            "required": "required" if one.get("required") else "",
            "update": "in place" if one.get("update_allowed") else "replaces",
        }
        for name, one in found["properties"].items()
    ]
    attributes = [one | {"name": name} for name, one in found["attributes"].items()]
    described = {"name": "PROPERTY", "type": "TYPE", "required": "", "update": "UPDATE",
                 "default": "DEFAULT", "description": "DESCRIPTION"}  # fmt: skip
    given = {"name": "ATTRIBUTE", "type": "TYPE", "description": "DESCRIPTION"}
    return Group(
        show.fields(found, ("resource_type", "description")),
        "",
        show.table(properties, described),
        "",
        show.table(attributes, given),
    )
