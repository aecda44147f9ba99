"""headgate resource ...: the resources of a stack."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from hub.cli import options, outcomes, show
from hub.cli.answers import read_answer_data
from hub.cli.client import Client
from hub.cli.context import (
    ServerOptions,
    ask,
    print_result,
    uses_server,
)
from hub.cli.files import dump_yaml

Json = Any
app = typer.Typer(help="List, show, mark, protect and signal resources.", no_args_is_help=True)
Which = Annotated[str, typer.Argument(metavar="RESOURCE", help="Name of the resource.")]
WhichOne = Annotated[
    str, typer.Argument(metavar="RESOURCE", help="Name or physical ID of the resource.")
]
Sent = Annotated[
    list[str],
    typer.Option(metavar="KEY=VALUE", help="One key of the data; VALUE is YAML; repeatable."),
]
SentFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="File with the data, in JSON or YAML.")
]  # fmt: skip
MARKED = ("resource_name", "resource_type", "resource_status", "resource_status_reason",
          "physical_resource_id", "protected")  # fmt: skip


@app.command(name="list")
@uses_server
def list_(
    server: ServerOptions,
    stack: options.Name,
    depth: options.NestedDepth = 0,
) -> None:
    """List the resources of a stack."""

    async def work(client: Client) -> Json:
        path = outcomes.path_of(await outcomes.find(client, stack), "resources")
        return (await client.call("GET", path, query={"nested_depth": str(depth)}))["resources"]

    found = ask(server, work)
    print_result(found, server.as_json, lambda: outcomes.resources_table(found, inside=depth > 0))


@app.command(name="show")
@uses_server
def show_(
    server: ServerOptions,
    stack: options.Name,
    which: Which,
) -> None:
    """Show a resource with its attributes; secret ones are masked."""

    async def work(client: Client) -> Json:
        found = await outcomes.find(client, stack)
        return await _one(client, found, which)

    found = ask(server, work)
    print_result(found, server.as_json, lambda: Text(show.plain(dump_yaml(found))))


@app.command()
@uses_server
def mark_unhealthy(
    server: ServerOptions,
    stack: options.Name,
    which: WhichOne,
    reason: Annotated[str, typer.Option(help="The reason; recorded in the audit log.")] = "",
    reset: Annotated[bool, typer.Option("--reset", help="Remove the mark.")] = False,
) -> None:
    """Mark a resource unhealthy: the next update replaces it."""
    body = {"mark_unhealthy": not reset, "resource_status_reason": reason}
    _mark(stack, which, body, server, server.as_json)


@app.command()
@uses_server
def protect(
    server: ServerOptions,
    stack: options.Name,
    which: WhichOne,
) -> None:
    """Protect a resource from deletion and replacement."""
    _mark(stack, which, {"protect": True}, server, server.as_json)


@app.command()
@uses_server
def unprotect(
    server: ServerOptions,
    stack: options.Name,
    which: WhichOne,
) -> None:
    """Remove the protection of a resource."""
    _mark(stack, which, {"protect": False}, server, server.as_json)


@app.command()
@uses_server
def signal(
    server: ServerOptions,
    stack: options.Name,
    which: Which,
    data: Sent = [],  # noqa: B006 - typer reads it, nobody changes it
    data_file: SentFile = None,
) -> None:
    """Send a signal with data to a resource."""
    said = read_answer_data(data, data_file).get("data", {})

    async def work(client: Client) -> Json:
        found = await outcomes.find(client, stack)
        path = outcomes.path_of(found, "resources", which, "signal")
        await client.call("POST", path, body=said)
        return await _one(client, found, which)

    found = ask(server, work)
    print_result(found, server.as_json, lambda: show.fields(found, MARKED))


def _mark(stack: str, which: str, body: Json, server: ServerOptions, as_json: bool) -> None:
    async def work(client: Client) -> Json:
        found = await outcomes.find(client, stack)
        await client.call("PATCH", outcomes.path_of(found, "resources", which), body=body)
        return await _marked(client, found, which)

    found = ask(server, work)
    print_result(found, as_json, lambda: show.fields(found, MARKED))


async def _marked(client: Client, stack: Json, which: str) -> Json:
    """What was marked by its name or, as only marking can, by its physical id."""
    listed = (await client.call("GET", outcomes.path_of(stack, "resources")))["resources"]
    names = [one["resource_name"] for one in listed
             if which in (one["resource_name"], one["physical_resource_id"])]  # fmt: skip
    name = which if which in names or not names else names[0]
    return await _one(client, stack, name)


async def _one(client: Client, stack: Json, name: str) -> Json:
    return (await client.call("GET", outcomes.path_of(stack, "resources", name)))["resource"]
