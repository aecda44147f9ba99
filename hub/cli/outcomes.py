"""What commands about a stack end with: the stack as it is, and an exit code."""

from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import typer
from rich.console import Group, RenderableType

from hub.cli import show
from hub.cli.client import Client, place
from hub.cli.context import (
    ServerOptions,
    ask,
    complain,
    print_result,
    seconds,
)
from hub.cli.waiting import Outcome, Patience, settle

Json = Any
FIELDS = ("stack_name", "id", "stack_status", "stack_status_reason", "creation_time",
          "updated_time", "parent", "root", "path", "tags", "timeout_mins", "disable_rollback",
          "pinned")  # fmt: skip


async def find(client: Client, name: str) -> Json:
    """A stack by name or id, without its outputs. Raises Refused."""
    query = {"resolve_outputs": "false"}
    return (await client.call("GET", place("stacks", name), query=query))["stack"]


def path_of(stack: Json, *rest: str) -> str:
    """The canonical path of a found stack, and below it."""
    return place("stacks", stack["stack_name"], stack["id"], *rest)


def patience(wait: bool, until_waiting: bool, timeout: str) -> Patience:
    """From the options for waiting; raises typer's usage error."""
    return Patience(wait, until_waiting, seconds(timeout))


def carry_out(
    server: ServerOptions,
    name: str,
    action: str,
    patient: Patience,
    change: Callable[[Client, Json], Awaitable[None]],
    as_json: bool,
) -> NoReturn:
    """Find a stack, begin an action of it, wait as long as asked for, and end the command."""

    async def work(client: Client) -> Outcome:
        stack = await find(client, name)
        await change(client, stack)
        return await settle(client, stack["id"], action, patient)

    end(ask(server, work), as_json)


def end(outcome: Outcome, as_json: bool) -> NoReturn:
    print_result(outcome.stack, as_json, lambda: picture(outcome.stack))
    leave(outcome)


def leave(outcome: Outcome) -> NoReturn:
    """End the command with what the outcome says."""
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
        parts += ["", resources_table(stack["resources"])]
    return Group(*parts)


def resources_table(resources: Json, *, inside: bool = False) -> RenderableType:
    """inside: of stacks inside, too."""
    columns = {"resource_name": "RESOURCE", "resource_type": "TYPE",
               "resource_status": "STATUS", "physical_resource_id": "PHYSICAL ID"}  # fmt: skip
    columns |= {"parent_resource": "PARENT"} if inside else {}
    return show.table(resources, columns)
