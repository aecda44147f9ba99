"""headgate stack snapshot ...: create, list, restore and delete snapshots."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from hub.cli import options, outcomes, show
from hub.cli.client import Client, Refused
from hub.cli.context import (
    ServerOptions,
    ask,
    print_result,
    uses_server,
)
from hub.cli.file_references import Unreadable
from hub.cli.files import dump_yaml
from hub.cli.waiting import Outcome, settle

Json = Any
app = typer.Typer(help="Create, list, restore and delete snapshots.", no_args_is_help=True)
Which = Annotated[
    str, typer.Argument(metavar="SNAPSHOT", help="Name, ID, or unique prefix of an ID.")
]
FIELDS = ("name", "id", "status", "status_reason", "creation_time")


@app.command()
@uses_server
def create(
    server: ServerOptions,
    stack: options.Name,
    name: Annotated[
        str, typer.Option(help="Name of the snapshot. Default: chosen by the server.")
    ] = "",
    wait: options.Wait = False,
    until_waiting: options.UntilWaiting = False,
    timeout: options.Timeout = "1h",
) -> None:
    """Create a snapshot: the template, and the state that each resource type can save."""
    patience = outcomes.patience(wait, until_waiting, timeout)

    async def work(client: Client) -> tuple[Json, Outcome]:
        found = await outcomes.find(client, stack)
        body = {"name": name} if name else {}
        made = await client.call("POST", outcomes.path_of(found, "snapshots"), body=body)
        outcome = await settle(client, found["id"], "SNAPSHOT", patience)
        return await _one(client, found, made["id"]), outcome

    made, outcome = ask(server, work)
    print_result(made, server.as_json, lambda: show.fields(made, FIELDS))
    outcomes.leave(outcome)


@app.command(name="list")
@uses_server
def list_(
    server: ServerOptions,
    stack: options.Name,
) -> None:
    """List the snapshots of a stack."""

    async def work(client: Client) -> Json:
        return await _all(client, await outcomes.find(client, stack))

    found = ask(server, work)
    columns = {"name": "NAME", "status": "STATUS", "creation_time": "CREATED",
               "status_reason": "REASON", "id": "ID"}  # fmt: skip
    print_result(found, server.as_json, lambda: show.table(found, columns))


@app.command(name="show")
@uses_server
def show_(
    server: ServerOptions,
    stack: options.Name,
    which: Which,
) -> None:
    """Show a snapshot with its template, environment and resources."""

    async def work(client: Client) -> Json:
        found = await outcomes.find(client, stack)
        return await _one(client, found, await _chosen(client, found, which))

    found = ask(server, work)
    print_result(found, server.as_json, lambda: Text(show.plain(dump_yaml(found))))


@app.command()
@uses_server
def delete(
    server: ServerOptions,
    stack: options.Name,
    which: Which,
) -> None:
    """Delete a snapshot."""

    async def work(client: Client) -> Json:
        found = await outcomes.find(client, stack)
        snapshot = await _chosen(client, found, which)
        await client.call("DELETE", outcomes.path_of(found, "snapshots", snapshot))
        return {"id": snapshot, "deleted": True}

    gone = ask(server, work)
    print_result(gone, server.as_json, lambda: Text(f"{gone['id']} deleted"))


@app.command()
@uses_server
def restore(
    server: ServerOptions,
    stack: options.Name,
    which: Which,
    wait: options.Wait = False,
    until_waiting: options.UntilWaiting = False,
    timeout: options.Timeout = "1h",
) -> None:
    """Restore a stack from a snapshot."""
    patience = outcomes.patience(wait, until_waiting, timeout)

    async def change(client: Client, found: Json) -> None:
        snapshot = await _chosen(client, found, which)
        path = outcomes.path_of(found, "snapshots", snapshot, "restore")
        await client.call("POST", path, body={})

    outcomes.carry_out(server, stack, "RESTORE", patience, change, server.as_json)


async def _all(client: Client, stack: Json) -> Json:
    found = await client.call("GET", outcomes.path_of(stack, "snapshots"))
    return found["snapshots"]


async def _one(client: Client, stack: Json, snapshot: str) -> Json:
    found = await client.call("GET", outcomes.path_of(stack, "snapshots", snapshot))
    return found["snapshot"]


async def _chosen(client: Client, stack: Json, which: str) -> str:
    return str(chosen(await _all(client, stack), which)["id"])


def chosen(snapshots: Sequence[Json], which: str) -> Json:
    """The one snapshot that is meant. Raises Refused and Unreadable. Pure."""
    exact = [one for one in snapshots if which in (one["name"], one["id"])]
    found = exact or [one for one in snapshots if which and one["id"].startswith(which.lower())]
    if len(found) == 1:
        return found[0]
    if not found:
        raise Refused(404, f'no snapshot "{which}"; see `headgate stack snapshot list`')
    ids = ", ".join(one["id"] for one in found[:5])
    raise Unreadable(f'"{which}" means {len(found)} snapshots: {ids}; use an ID')
