"""headgate stack snapshot: create, list, show, restore and delete snapshots."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from headgate.errors import RequestError
from hub.cli import options
from hub.cli.commands import stack_change
from hub.cli.commands.stack_change import Outcome, wait_for_action
from hub.cli.confirmation import confirm, existing_resources, format_count, resource_facts
from hub.cli.connection.client import ApiClient, find_stack, stack_path
from hub.cli.context import ask, ask_stack, print_removal, print_result, print_rows
from hub.cli.inputs.files import InputError
from hub.cli.options import ServerOptions, WaitOptions, with_options
from hub.cli.printing import output, tables
from hub.cli.printing.formats import format_yaml
from hub.cli.printing.renderables import styled_text

Json = Any
app = typer.Typer(help="Create, list, restore and delete snapshots.", no_args_is_help=True)
Which = Annotated[
    str, typer.Argument(metavar="SNAPSHOT", help="Name, ID, or unique prefix of an ID.")
]
FIELDS = ("name", "id", "status", "status_reason", "creation_time")


@app.command()
@with_options
def create(
    server: ServerOptions,
    wait: WaitOptions,
    stack: options.Name,
    name: Annotated[
        str, typer.Option(help="Name of the snapshot. Default: chosen by the server.")
    ] = "",
) -> None:
    """Create a snapshot: the template, and the state that each resource type can save."""

    async def work(client: ApiClient) -> tuple[Json, Outcome]:
        found = await find_stack(client, stack)
        body = {"name": name} if name else {}
        created = await client.call("POST", stack_path(found, "snapshots"), body=body)
        outcome = await wait_for_action(client, found["id"], "SNAPSHOT", wait)
        return await _one(client, found, created["id"]), outcome

    created, outcome = ask(server, work)
    print_result(created, server.format, lambda: output.fields(created, FIELDS))
    stack_change.exit_with(outcome)


@app.command(name="list")
@with_options
def list_(server: ServerOptions, stack: options.Name) -> None:
    """List the snapshots of a stack."""
    found = ask_stack(server, stack, "GET", "snapshots")["snapshots"]
    columns: tables.Columns = {
        "name": "NAME",
        "status": "STATUS",
        "creation_time": tables.past_column("CREATED"),
        "status_reason": "REASON",
        "id": tables.id_column("ID"),
    }
    none = f"no snapshot of {stack}; `headgate stack snapshot create` creates one"
    print_rows(found, server.format, lambda: output.table(found, columns), none)


@app.command(name="show")
@with_options
def show_(server: ServerOptions, stack: options.Name, which: Which) -> None:
    """Show a snapshot with its template, environment and resources."""

    async def work(client: ApiClient) -> Json:
        found = await find_stack(client, stack)
        return await _one(client, found, await _select(client, found, which))

    found = ask(server, work)
    print_result(found, server.format, lambda: styled_text(tables.plain(format_yaml(found))))


@app.command()
@with_options
def delete(
    server: ServerOptions, stack: options.Name, which: Which, yes: options.Yes = False
) -> None:
    """Delete a snapshot."""

    async def select(client: ApiClient) -> tuple[Json, Json]:
        found = await find_stack(client, stack)
        return found, await _one(client, found, await _select(client, found, which))

    found, snapshot = ask(server, select)
    lost = f"The state that it saved on {snapshot['creation_time']} cannot be restored afterwards."
    confirm(f"Delete the snapshot {snapshot['name']} of {found['stack_name']}?", [lost], yes)
    path = stack_path(found, "snapshots", snapshot["id"])
    ask(server, lambda client: client.call("DELETE", path))
    print_removal(snapshot["id"], "deleted", server.format)


@app.command()
@with_options
def restore(
    server: ServerOptions,
    wait: WaitOptions,
    stack: options.Name,
    which: Which,
    yes: options.Yes = False,
) -> None:
    """Restore a stack from a snapshot."""
    if not yes:
        found, confirmed, resources = ask(server, lambda client: _read_lost(client, stack, which))
        question = f"Restore {found['stack_name']} from the snapshot {confirmed['name']}?"
        confirm(question, restore_facts(confirmed, resources), yes)
        stack, which = found["id"], confirmed["id"]

    async def start(client: ApiClient, found: Json) -> None:
        snapshot = await _select(client, found, which)
        path = stack_path(found, "snapshots", snapshot, "restore")
        await client.call("POST", path, body={})

    stack_change.run(server, stack, "RESTORE", wait, start)


async def _read_lost(client: ApiClient, name: str, which: str) -> tuple[Json, Json, list[Json]]:
    """A stack, its snapshot and its resources."""
    stack = await find_stack(client, name)
    snapshot = await _one(client, stack, await _select(client, stack, which))
    found = await client.call("GET", stack_path(stack, "resources"))
    return stack, snapshot, found["resources"]


def restore_facts(snapshot: Json, resources: Sequence[Json]) -> list[str]:
    """What a restore changes and deletes, a line each. Pure."""
    lines = [
        "Template, environment, parameters and the saved state of resources become those of"
        f" {snapshot['creation_time']}. Later changes are lost."
    ]
    kept = snapshot["data"]["resources"]
    newer = [
        one for one in existing_resources(resources) if one["headgate_resource_name"] not in kept
    ]
    if newer:
        count = format_count(len(newer), "resource")
        lines += [f"{count}, not in the snapshot, will be deleted:", *resource_facts(newer)]
    return lines


async def _one(client: ApiClient, stack: Json, snapshot: str) -> Json:
    found = await client.call("GET", stack_path(stack, "snapshots", snapshot))
    return found["snapshot"]


async def _select(client: ApiClient, stack: Json, which: str) -> str:
    path = stack_path(stack, "snapshots")
    snapshots = (await client.call("GET", path))["snapshots"]
    return str(select_snapshot(snapshots, which)["id"])


def select_snapshot(snapshots: Sequence[Json], which: str) -> Json:
    """The snapshot with this name, ID or prefix of an ID. Raises RequestError and InputError.
    Pure."""
    exact = [one for one in snapshots if which in (one["name"], one["id"])]
    found = exact or [one for one in snapshots if which and one["id"].startswith(which.lower())]
    if len(found) == 1:
        return found[0]
    if not found:
        raise RequestError(404, f'no snapshot "{which}"; see `headgate stack snapshot list`')
    ids = ", ".join(one["id"] for one in found[:5])
    raise InputError(f'"{which}" matches {len(found)} snapshots: {ids}; use an ID')
