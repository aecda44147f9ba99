"""headgate stack ...: make, change, list, show, delete and resume."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType

from hub.cli import show
from hub.cli.client import Client, place
from hub.cli.context import (
    PROJECT,
    URL,
    AsJson,
    Project,
    Url,
    Where,
    ask,
    complain,
    seconds,
    stop,
    tell,
)
from hub.cli.exit_codes import Exit
from hub.cli.files import environment_body, joined, parameters, template_body
from hub.cli.waiting import Outcome, Patience, settle

Json = Any
app = typer.Typer(help="Make, change, list, show, delete and resume stacks.", no_args_is_help=True)

Template = Annotated[Path, typer.Option("--template", "-t", help="A HOT template.")]
Environments = Annotated[
    list[Path], typer.Option("--environment", "-e", help="An environment; may repeat.")
]
Parameters = Annotated[
    list[str], typer.Option("--parameter", "-P", metavar="KEY=VALUE", help="May repeat.")
]
ParameterFiles = Annotated[
    list[str],
    typer.Option(metavar="KEY=PATH", help="A parameter's value from a file; may repeat."),
]
Tags = Annotated[list[str], typer.Option("--tag", help="A tag; may repeat.")]
Minutes = Annotated[int | None, typer.Option(min=1, help="Minutes the action may take.")]
Clear = Annotated[
    list[str],
    typer.Option("--clear-hook", "--clear", metavar="RESOURCE:POINT",
                 help="Leave out a breakpoint this time; '*': all; may repeat."),
]  # fmt: skip
Add = Annotated[
    list[str],
    typer.Option("--add-hook", "--add", metavar="RESOURCE:POINT",
                 help="Break here, too, this time; may repeat."),
]  # fmt: skip
Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Wait for the end; the exit code tells it.")
]
UntilWaiting = Annotated[
    bool, typer.Option("--until-waiting", help="Wait for the end, or until only hooks are left.")
]
Timeout = Annotated[
    str, typer.Option("--timeout", metavar="TIME", help="How long to wait: 90s, 30m, 2h.")
]
Name = Annotated[str, typer.Argument(help="Name or id of the stack.")]
FIELDS = ("stack_name", "id", "stack_status", "stack_status_reason", "creation_time",
          "updated_time", "tags", "timeout_mins")  # fmt: skip


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Name of the new stack.")],
    template: Template,
    environment: Environments = [],  # noqa: B006 - typer reads it, nobody changes it
    parameter: Parameters = [],  # noqa: B006
    parameter_file: ParameterFiles = [],  # noqa: B006
    tag: Tags = [],  # noqa: B006
    stack_timeout: Minutes = None,
    wait: Wait = False,
    until_waiting: UntilWaiting = False,
    timeout: Timeout = "1h",
    url: Url = URL,
    project: Project = PROJECT,
    as_json: AsJson = False,
) -> None:
    """Make a stack."""
    patience = Patience(wait, until_waiting, seconds(timeout))

    async def work(client: Client) -> Outcome:
        body = joined(template_body(template), environment_body(environment))
        body |= {"stack_name": name, "parameters": parameters(parameter, parameter_file)}
        body |= _options(tag, stack_timeout)
        made = await client.call("POST", place("stacks"), body=body)
        return await settle(client, made["stack"]["id"], "CREATE", patience)

    _end(ask(Where(url, project), work), as_json)


@app.command()
def update(
    name: Name,
    template: Annotated[
        Path | None, typer.Option("--template", "-t", help="A HOT template.")
    ] = None,
    environment: Environments = [],  # noqa: B006
    parameter: Parameters = [],  # noqa: B006
    parameter_file: ParameterFiles = [],  # noqa: B006
    existing: Annotated[
        bool, typer.Option("--existing", help="Start from what the stack is.")
    ] = False,
    clear_parameter: Annotated[
        list[str], typer.Option(metavar="KEY", help="Back to its default; may repeat.")
    ] = [],  # noqa: B006
    tag: Tags = [],  # noqa: B006
    stack_timeout: Minutes = None,
    clear_hook: Clear = [],  # noqa: B006
    add_hook: Add = [],  # noqa: B006
    wait: Wait = False,
    until_waiting: UntilWaiting = False,
    timeout: Timeout = "1h",
    url: Url = URL,
    project: Project = PROJECT,
    as_json: AsJson = False,
) -> None:
    """Update a stack; without a template it must be --existing."""
    patience = Patience(wait, until_waiting, seconds(timeout))
    if template is None and not existing:
        stop("name a template with -t, or say --existing to keep the stored one", Exit.USAGE)

    def body() -> dict[str, Json]:
        made = joined(template_body(template) if template else {}, environment_body(environment))
        made |= {
            "parameters": parameters(parameter, parameter_file),
            "clear_parameters": clear_parameter,
        }
        return made | _options(tag, stack_timeout) | _hooks(clear_hook, add_hook)

    async def work(client: Client) -> Outcome:
        return await _change(client, "PATCH" if existing else "PUT", name, body(), patience)

    _end(ask(Where(url, project), work), as_json)


@app.command()
def resume(
    name: Name,
    clear_hook: Clear = [],  # noqa: B006
    add_hook: Add = [],  # noqa: B006
    wait: Wait = False,
    until_waiting: UntilWaiting = False,
    timeout: Timeout = "1h",
    url: Url = URL,
    project: Project = PROJECT,
    as_json: AsJson = False,
) -> None:
    """Go on with a stopped (or failed) stack: what is done is left alone."""
    patience = Patience(wait, until_waiting, seconds(timeout))

    async def work(client: Client) -> Outcome:
        return await _change(client, "PATCH", name, _hooks(clear_hook, add_hook), patience)

    _end(ask(Where(url, project), work), as_json)


def _options(tags: Sequence[str], minutes: int | None) -> dict[str, Json]:
    """What is left out stays as it is."""
    said: dict[str, Json] = {"tags": ",".join(tags)} if tags else {}
    return said | ({} if minutes is None else {"timeout_mins": minutes})


def _hooks(clear: Sequence[str], add: Sequence[str]) -> dict[str, Json]:
    return {"hooks": {"clear": list(clear), "add": list(add)}} if clear or add else {}


async def _change(
    client: Client, method: str, name: str, body: Json, patience: Patience
) -> Outcome:
    stack = await find(client, name)
    await client.call(method, place("stacks", stack["stack_name"], stack["id"]), body=body)
    return await settle(client, stack["id"], "UPDATE", patience)


async def find(client: Client, name: str) -> Json:
    """A stack by name or id, without its outputs. Raises Refused."""
    query = {"resolve_outputs": "false"}
    return (await client.call("GET", place("stacks", name), query=query))["stack"]


@app.command(name="list")
def list_(
    status: Annotated[
        list[str], typer.Option(help="Such as COMPLETE or CREATE_FAILED; may repeat.")
    ] = [],  # noqa: B006
    tag: Annotated[list[str], typer.Option(help="With this tag; may repeat.")] = [],  # noqa: B006
    deleted: Annotated[bool, typer.Option("--deleted", help="Deleted ones, too.")] = False,
    url: Url = URL,
    project: Project = PROJECT,
    as_json: AsJson = False,
) -> None:
    """List stacks, newest first."""
    query = [("show_deleted", str(deleted).lower()), *(("status", one) for one in status)]
    query += [("tags", ",".join(tag))] if tag else []
    where = Where(url, project)
    path = place("stacks")
    stacks = ask(where, lambda client: client.call("GET", path, query=query))["stacks"]
    columns = {"stack_name": "NAME", "stack_status": "STATUS", "creation_time": "CREATED",
               "updated_time": "UPDATED", "id": "ID"}  # fmt: skip
    tell(stacks, as_json, lambda: show.table(stacks, columns))


@app.command(name="show")
def show_(name: Name, url: Url = URL, project: Project = PROJECT, as_json: AsJson = False) -> None:
    """Show a stack with its outputs and resources."""

    async def work(client: Client) -> Json:
        stack = (await client.call("GET", place("stacks", name)))["stack"]
        path = place("stacks", stack["stack_name"], stack["id"], "resources")
        return stack | {"resources": (await client.call("GET", path))["resources"]}

    stack = ask(Where(url, project), work)
    tell(stack, as_json, lambda: picture(stack))


@app.command()
def delete(
    name: Name,
    wait: Wait = False,
    until_waiting: UntilWaiting = False,
    timeout: Timeout = "1h",
    url: Url = URL,
    project: Project = PROJECT,
    as_json: AsJson = False,
) -> None:
    """Delete a stack and all it made."""
    patience = Patience(wait, until_waiting, seconds(timeout))

    async def work(client: Client) -> Outcome:
        stack = await find(client, name)
        await client.call("DELETE", place("stacks", stack["stack_name"], stack["id"]))
        return await settle(client, stack["id"], "DELETE", patience)

    _end(ask(Where(url, project), work), as_json)


def _end(outcome: Outcome, as_json: bool) -> None:
    tell(outcome.stack, as_json, lambda: picture(outcome.stack))
    if outcome.said:
        complain(outcome.said)
    raise typer.Exit(outcome.code)


def picture(stack: Json) -> RenderableType:
    """A stack for people; outputs and resources where it has them."""
    parts: list[RenderableType] = [show.fields(stack, FIELDS)]
    if stack.get("outputs"):
        columns = {"output_key": "OUTPUT", "output_value": "VALUE", "output_error": "ERROR"}
        parts += ["", show.table(stack["outputs"], columns)]
    if stack.get("resources"):
        columns = {"resource_name": "RESOURCE", "resource_type": "TYPE",
                   "resource_status": "STATUS", "physical_resource_id": "PHYSICAL ID"}  # fmt: skip
        parts += ["", show.table(stack["resources"], columns)]
    return Group(*parts)
