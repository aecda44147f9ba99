"""headgate resource ...: what a stack is made of."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from hub.cli import options, outcomes, show
from hub.cli.answers import said_data
from hub.cli.client import Client
from hub.cli.context import PROJECT, URL, USER, AsJson, Project, Url, User, Where, ask, tell
from hub.cli.files import dump_yaml

Json = Any
app = typer.Typer(help="Look at resources, mark, protect and signal them.", no_args_is_help=True)
Which = Annotated[str, typer.Argument(metavar="RESOURCE", help="Name of the resource.")]
WhichOne = Annotated[
    str, typer.Argument(metavar="RESOURCE", help="Name or physical id of the resource.")
]
Sent = Annotated[
    list[str],
    typer.Option(metavar="KEY=VALUE", help="A part of the data; VALUE is YAML; may repeat."),
]
SentFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The data, in JSON or YAML.")
]  # fmt: skip
MARKED = ("resource_name", "resource_type", "resource_status", "resource_status_reason",
          "physical_resource_id", "protected")  # fmt: skip


@app.command(name="list")
def list_(
    stack: options.Name,
    depth: options.NestedDepth = 0,
    url: Url = URL,
    project: Project = PROJECT,
    user: User = USER,
    as_json: AsJson = False,
) -> None:
    """List the resources of a stack."""

    async def work(client: Client) -> Json:
        path = outcomes.path_of(await outcomes.find(client, stack), "resources")
        return (await client.call("GET", path, query={"nested_depth": str(depth)}))["resources"]

    found = ask(Where(url, project, user), work)
    tell(found, as_json, lambda: outcomes.resources_table(found, inside=depth > 0))


@app.command(name="show")
def show_(
    stack: options.Name,
    which: Which,
    url: Url = URL,
    project: Project = PROJECT,
    user: User = USER,
    as_json: AsJson = False,
) -> None:
    """Show a resource with its attributes; secret ones are masked."""

    async def work(client: Client) -> Json:
        found = await outcomes.find(client, stack)
        return await _one(client, found, which)

    found = ask(Where(url, project, user), work)
    tell(found, as_json, lambda: Text(show.plain(dump_yaml(found))))


@app.command()
def mark_unhealthy(
    stack: options.Name,
    which: WhichOne,
    reason: Annotated[str, typer.Option(help="Why; it is recorded.")] = "",
    reset: Annotated[bool, typer.Option("--reset", help="Take the mark away.")] = False,
    url: Url = URL,
    project: Project = PROJECT,
    user: User = USER,
    as_json: AsJson = False,
) -> None:
    """Have the next update replace a resource."""
    body = {"mark_unhealthy": not reset, "resource_status_reason": reason}
    _mark(stack, which, body, Where(url, project, user), as_json)


@app.command()
def protect(
    stack: options.Name,
    which: WhichOne,
    url: Url = URL,
    project: Project = PROJECT,
    user: User = USER,
    as_json: AsJson = False,
) -> None:
    """Let nobody delete or replace a resource, until it is unprotected."""
    _mark(stack, which, {"protect": True}, Where(url, project, user), as_json)


@app.command()
def unprotect(
    stack: options.Name,
    which: WhichOne,
    url: Url = URL,
    project: Project = PROJECT,
    user: User = USER,
    as_json: AsJson = False,
) -> None:
    """Let a resource be deleted and replaced again."""
    _mark(stack, which, {"protect": False}, Where(url, project, user), as_json)


@app.command()
def signal(
    stack: options.Name,
    which: Which,
    data: Sent = [],  # noqa: B006 - typer reads it, nobody changes it
    data_file: SentFile = None,
    url: Url = URL,
    project: Project = PROJECT,
    user: User = USER,
    as_json: AsJson = False,
) -> None:
    """Send data to a resource that waits for it."""
    said = said_data(data, data_file).get("data", {})

    async def work(client: Client) -> Json:
        found = await outcomes.find(client, stack)
        path = outcomes.path_of(found, "resources", which, "signal")
        await client.call("POST", path, body=said)
        return await _one(client, found, which)

    found = ask(Where(url, project, user), work)
    tell(found, as_json, lambda: show.fields(found, MARKED))


def _mark(stack: str, which: str, body: Json, where: Where, as_json: bool) -> None:
    async def work(client: Client) -> Json:
        found = await outcomes.find(client, stack)
        await client.call("PATCH", outcomes.path_of(found, "resources", which), body=body)
        return await _marked(client, found, which)

    found = ask(where, work)
    tell(found, as_json, lambda: show.fields(found, MARKED))


async def _marked(client: Client, stack: Json, which: str) -> Json:
    """What was marked by its name or, as only marking can, by its physical id."""
    listed = (await client.call("GET", outcomes.path_of(stack, "resources")))["resources"]
    names = [one["resource_name"] for one in listed
             if which in (one["resource_name"], one["physical_resource_id"])]  # fmt: skip
    name = which if which in names or not names else names[0]
    return await _one(client, stack, name)


async def _one(client: Client, stack: Json, name: str) -> Json:
    return (await client.call("GET", outcomes.path_of(stack, "resources", name)))["resource"]
