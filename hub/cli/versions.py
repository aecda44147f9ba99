"""headgate stack history, template: what a stack should have been, and the walks toward it."""

from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from hub.cli import options, outcomes, show
from hub.cli.client import Client
from hub.cli.context import (
    ServerOptions,
    ask,
    print_result,
    uses_server,
)
from hub.cli.files import dump_yaml

Json = Any


@uses_server
def history(
    server: ServerOptions,
    name: options.Name,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of actions.")] = 100,
) -> None:
    """List the template versions and actions of a stack, newest first."""

    async def work(client: Client) -> Json:
        path = outcomes.path_of(await outcomes.find(client, name), "versions")
        return await client.call("GET", path, query={"limit": str(limit)})

    found = ask(server, work)
    print_result(found, server.as_json, lambda: picture(found))


def picture(found: Json) -> RenderableType:
    versions = [one | {"is": standing(one)} for one in found["versions"]]
    columns = {"version": "VERSION", "is": "IS", "created_at": "MADE",
               "requested_by": "BY", "description": "DESCRIPTION"}  # fmt: skip
    walks = {"number": "NUMBER", "action": "ACTION", "version": "VERSION", "state": "STATE",
             "started_at": "BEGAN", "ended_at": "ENDED", "worked_seconds": "WORKED",
             "requested_by": "BY", "stale": "LEFT ALONE", "reason": "REASON"}  # fmt: skip
    return Group(show.table(versions, columns), "", show.table(found["traversals"], walks))


def standing(version: Json) -> str:
    words = [word for word in ("current", "reached") if version[word]]
    return ", ".join(words)


@uses_server
def template(
    server: ServerOptions,
    name: options.Name,
    version: Annotated[
        int | None,
        typer.Option(
            min=1, help="Version number; see `headgate stack history`. Default: the current one."
        ),
    ] = None,
) -> None:
    """Print the template of a stack: the current or an earlier version."""

    async def work(client: Client) -> Json:
        stack = await outcomes.find(client, name)
        rest = ("template",) if version is None else ("versions", str(version))
        return await client.call("GET", outcomes.path_of(stack, *rest))

    found = ask(server, work)
    shown = found if version is None else found["template"]
    print_result(found, server.as_json, lambda: Text(show.plain(dump_yaml(shown))))


def add_to(app: typer.Typer) -> None:
    app.command()(history)
    app.command()(template)
