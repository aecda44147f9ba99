"""headgate stack ...: make, change, list, show, delete and resume."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer

from hub.cli import show
from hub.cli.client import Client
from hub.cli.context import (
    PROJECT,
    URL,
    AsJson,
    Project,
    Url,
    Where,
    ask,
    err,
    parse_seconds,
    stop,
    tell,
)
from hub.cli.exit_codes import Exit, of_status
from hub.cli.files import environment_body, joined, parameters, template_body

Json = Any
app = typer.Typer(help="Make, change, list, show, delete and resume stacks.", no_args_is_help=True)

Template = Annotated[Path, typer.Option("--template", "-t", help="A HOT template.")]
Environments = Annotated[
    list[Path], typer.Option("--environment", "-e", help="An environment; may repeat.")
]
Parameters = Annotated[
    list[str], typer.Option("--parameter", "-P", help="key=value or key=@file; may repeat.")
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for the end; the exit code tells it.")]
UntilWaiting = Annotated[
    bool, typer.Option("--until-waiting", help="Wait for the end, or until only hooks are left.")
]
Timeout = Annotated[str, typer.Option("--timeout", help="How long to wait: 90s, 30m, 2h.")]
Name = Annotated[str, typer.Argument(help="Name or id of the stack.")]
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Name of the new stack.")],
    template: Template,
    environment: Environments = [],  # noqa: B006 - typer reads it, nobody changes it
    parameter: Parameters = [],  # noqa: B006
    tag: Annotated[list[str], typer.Option(help="A tag; may repeat.")] = [],  # noqa: B006
    stack_timeout: Annotated[int | None, typer.Option(help="Minutes it may take.")] = None,
    wait: Wait = False,
    until_waiting: UntilWaiting = False,
    timeout: Timeout = "1h",
    url: Url = URL,
    project: Project = PROJECT,
    as_json: AsJson = False,
) -> None:
    """Make a stack."""
    seconds = parse_seconds(timeout)

    async def work(client: Client) -> Json:
        body = joined(template_body(template), environment_body(environment))
        body |= {"stack_name": name, "parameters": parameters(parameter)}
        if tag:
            body["tags"] = ",".join(tag)
        if stack_timeout is not None:
            body["timeout_mins"] = stack_timeout
        await client.call("POST", "/stacks", body=body)
        return await _after(client, name, wait, until_waiting, seconds)

    _end(ask(Where(url, project), work), as_json, wait or until_waiting)


@app.command()
def update(
    name: Name,
    template: Annotated[Path | None, typer.Option("--template", "-t")] = None,
    environment: Environments = [],  # noqa: B006
    parameter: Parameters = [],  # noqa: B006
    existing: Annotated[bool, typer.Option(help="Start from what the stack is.")] = False,
    clear_parameter: Annotated[list[str], typer.Option(help="Forget it.")] = [],  # noqa: B006
    wait: Wait = False,
    until_waiting: UntilWaiting = False,
    timeout: Timeout = "1h",
    url: Url = URL,
    project: Project = PROJECT,
    as_json: AsJson = False,
) -> None:
    """Update a stack; without a template it must be --existing."""
    seconds = parse_seconds(timeout)
    if template is None and not existing:
        stop("name a template with -t, or say --existing to keep the stored one", Exit.USAGE)

    async def work(client: Client) -> Json:
        body = joined(template_body(template) if template else {}, environment_body(environment))
        body |= {"parameters": parameters(parameter), "clear_parameters": clear_parameter}
        await client.call("PATCH" if existing else "PUT", f"/stacks/{name}", body=body)
        return await _after(client, name, wait, until_waiting, seconds)

    _end(ask(Where(url, project), work), as_json, wait or until_waiting)


@app.command()
def resume(
    name: Name,
    clear: Annotated[
        list[str], typer.Option(help="Leave out a breakpoint: resource:point, or '*'.")
    ] = [],  # noqa: B006
    add: Annotated[list[str], typer.Option(help="Break here: resource:point.")] = [],  # noqa: B006
    wait: Wait = False,
    until_waiting: UntilWaiting = False,
    timeout: Timeout = "1h",
    url: Url = URL,
    project: Project = PROJECT,
    as_json: AsJson = False,
) -> None:
    """Go on with a stopped (or failed) stack: what is done is left alone."""
    seconds = parse_seconds(timeout)

    async def work(client: Client) -> Json:
        body = {"hooks": {"clear": clear, "add": add}}
        await client.call("PATCH", f"/stacks/{name}", body=body)
        return await _after(client, name, wait, until_waiting, seconds)

    _end(ask(Where(url, project), work), as_json, wait or until_waiting)


@app.command(name="list")
def list_(
    status: Annotated[list[str], typer.Option(help="Only in this status.")] = [],  # noqa: B006
    deleted: Annotated[bool, typer.Option(help="Deleted ones, too.")] = False,
    url: Url = URL,
    project: Project = PROJECT,
    as_json: AsJson = False,
) -> None:
    """List stacks, newest first."""
    query = {"show_deleted": str(deleted).lower()} | ({"status": status[0]} if status else {})
    where = Where(url, project)
    stacks = ask(where, lambda client: client.call("GET", "/stacks", query=query))["stacks"]
    columns = {
        "stack_name": "NAME",
        "stack_status": "STATUS",
        "creation_time": "CREATED",
        "updated_time": "UPDATED",
        "id": "ID",
    }
    tell(stacks, as_json, lambda: show.table(stacks, columns))


@app.command(name="show")
def show_(name: Name, url: Url = URL, project: Project = PROJECT, as_json: AsJson = False) -> None:
    """Show a stack with its outputs and resources."""

    async def work(client: Client) -> Json:
        stack = (await client.call("GET", f"/stacks/{name}"))["stack"]
        found = await client.call("GET", f"/stacks/{name}/resources")
        return stack | {"resources": found["resources"]}

    _print(ask(Where(url, project), work), as_json)


@app.command()
def delete(
    name: Name,
    wait: Wait = False,
    timeout: Timeout = "1h",
    url: Url = URL,
    project: Project = PROJECT,
    as_json: AsJson = False,
) -> None:
    """Delete a stack and all it made."""
    seconds = parse_seconds(timeout)

    async def work(client: Client) -> Json:
        stack = (await client.call("GET", f"/stacks/{name}"))["stack"]
        await client.call("DELETE", f"/stacks/{name}")
        return await _after(client, stack["id"], wait, False, seconds)

    _end(ask(Where(url, project), work), as_json, wait)


async def _after(
    client: Client, name: str, wait: bool, until_waiting: bool, seconds: float
) -> Json:
    """The stack: at once, at its end, or when only hooks are left."""
    began = asyncio.get_running_loop().time()
    turn = 0
    while True:
        stack = (await client.call("GET", f"/stacks/{name}"))["stack"]
        if not (wait or until_waiting) or of_status(stack["stack_status"]) is not None:
            return stack
        if until_waiting and await _only_hooks_left(client, stack["id"], stack["stack_name"]):
            return stack | {"waiting": True}
        left = seconds - (asyncio.get_running_loop().time() - began)
        if left <= 0:
            return stack | {"timed_out": True}
        await asyncio.sleep(min(PAUSES[min(turn, len(PAUSES) - 1)], left))
        turn += 1


async def _only_hooks_left(client: Client, stack_id: str, name: str) -> bool:
    graph = await client.call("GET", f"/stacks/{name}/{stack_id}/graph")
    states = [node["state"] for node in graph["nodes"]]
    busy = any(state in ("ready", "running") for state in states)
    hooks = await client.call("GET", "/hooks", query={"state": "waiting", "stack": stack_id})
    parked = states.count("parked")
    return not busy and parked > 0 and len(hooks["hooks"]) >= parked


def _end(stack: Json, as_json: bool, waited: bool) -> None:
    _print(stack, as_json)
    if stack.get("timed_out"):
        err.print("headgate: --timeout is over; the stack goes on without us", markup=False)
        raise typer.Exit(Exit.TIMED_OUT)
    if stack.get("waiting"):
        raise typer.Exit(Exit.WAITING)
    if waited:
        raise typer.Exit(of_status(stack["stack_status"]) or Exit.COMPLETE)


def _print(stack: Json, as_json: bool) -> None:
    names = ("stack_name", "id", "stack_status", "stack_status_reason", "creation_time",
             "updated_time", "tags")  # fmt: skip
    tell(stack, as_json, lambda: show.fields(stack, names))
    if as_json:
        return
    if stack.get("outputs"):
        columns = {"output_key": "OUTPUT", "output_value": "VALUE", "output_error": "ERROR"}
        tell(None, False, lambda: show.table(stack["outputs"], columns))
    if stack.get("resources"):
        columns = {"resource_name": "RESOURCE", "resource_type": "TYPE",
                   "resource_status": "STATUS", "physical_resource_id": "PHYSICAL ID"}  # fmt: skip
        tell(None, False, lambda: show.table(stack["resources"], columns))
