"""headgate resource: list, show, mark, protect and signal resources."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hub.cli import options
from hub.cli.commands.hook import read_answer_data
from hub.cli.completion import complete_resources
from hub.cli.confirmation import UNCHANGED, confirm
from hub.cli.connection.client import ApiClient, find_stack, stack_path
from hub.cli.context import ask, ask_stack, print_result, print_rows
from hub.cli.inputs.files import InputError
from hub.cli.options import ServerOptions, with_options
from hub.cli.printing import output, tables
from hub.cli.printing.formats import format_yaml
from hub.cli.printing.renderables import styled_text

if TYPE_CHECKING:
    from rich.console import RenderableType

Json = Any
app = typer.Typer(help="List, show, mark, protect and signal resources.", no_args_is_help=True)
Which = Annotated[
    str,
    typer.Argument(
        metavar="RESOURCE", help="Name of the resource.", autocompletion=complete_resources
    ),
]
WhichMarked = Annotated[
    str,
    typer.Argument(
        metavar="RESOURCE",
        help="Name or physical ID of the resource.",
        autocompletion=complete_resources,
    ),
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
@with_options
def list_(
    server: ServerOptions,
    stack: options.Name,
    depth: options.NestedDepth = 0,
    limit: options.Limit = None,
) -> None:
    """List the resources of a stack."""
    query = {"nested_depth": str(depth)}
    found = ask_stack(server, stack, "GET", "resources", query=query)["resources"][:limit]
    none = f"no resource in the stack {stack}"
    print_rows(found, server.format, lambda: output.resources_table(found, nested=depth > 0), none)


@app.command(name="show")
@with_options
def show_(server: ServerOptions, stack: options.Name, which: Which) -> None:
    """Show a resource with its attributes; secret ones are masked."""
    found = ask_stack(server, stack, "GET", "resources", which)["resource"]
    print_result(found, server.format, lambda: styled_text(tables.plain(format_yaml(found))))


@app.command()
@with_options
def mark_unhealthy(
    server: ServerOptions,
    stack: options.Name,
    which: WhichMarked,
    reason: Annotated[str, typer.Option(help="The reason; recorded in the audit log.")] = "",
    reset: Annotated[bool, typer.Option("--reset", help="Remove the mark.")] = False,
    yes: options.Yes = False,
) -> None:
    """Mark a resource unhealthy: the next update replaces it."""
    confirmed: Json = None
    if not (reset or yes):
        found, resource = ask(server, lambda client: _read_replaced(client, stack, which))
        name = resource["headgate_resource_name"]
        question = f"Mark the resource {name} of {found['stack_name']} unhealthy?"
        confirm(question, replacement_facts(resource), yes)
        stack, confirmed = found["id"], resource
    body = {"mark_unhealthy": not reset, "resource_status_reason": reason}
    _mark(stack, which, body, server, confirmed)


async def _read_replaced(client: ApiClient, stack: str, which: str) -> tuple[Json, Json]:
    """A stack, and the resource that the next update replaces."""
    found = await find_stack(client, stack)
    return found, await _read_marked(client, found, which)


def replacement_facts(resource: Json) -> list[str]:
    """What the next update does to a resource that is marked unhealthy, a line each. Pure."""
    physical = resource["physical_resource_id"] or "none"
    end = "stays" if resource["deletion_policy"] == "Retain" else "is deleted"
    if any(one["rel"] == "nested" for one in resource["links"]):
        end += ", with everything in its nested stack"
    lines = [
        f"The next update of the stack replaces {resource['headgate_resource_name']}"
        f" ({resource['resource_type']}, physical ID: {physical}). The old resource {end}."
    ]
    if dependents := ", ".join(resource["required_by"]):
        lines.append(f"Resources that depend on it, and may change too: {dependents}.")
    return lines


def replaced_since(confirmed: Json, now: Json) -> str:
    """Why a resource is not marked although its mark was confirmed; empty: it is. Pure."""
    before, after = confirmed["physical_resource_id"], now["physical_resource_id"]
    if before == after:
        return ""
    name = confirmed["headgate_resource_name"]
    return (
        f"{UNCHANGED}: the physical ID of {name} was {before or 'none'} in the question, and is"
        f" {after or 'none'} now. Run the command again."
    )


@app.command()
@with_options
def protect(server: ServerOptions, stack: options.Name, which: WhichMarked) -> None:
    """Protect a resource from deletion and replacement."""
    _mark(stack, which, {"protect": True}, server)


@app.command()
@with_options
def unprotect(server: ServerOptions, stack: options.Name, which: WhichMarked) -> None:
    """Remove the protection of a resource."""
    _mark(stack, which, {"protect": False}, server)


@app.command()
@with_options
def signal(
    server: ServerOptions,
    stack: options.Name,
    which: Which,
    data: Sent = [],  # noqa: B006
    data_file: SentFile = None,
) -> None:
    """Send a signal with data to a resource."""
    body = read_answer_data(data, data_file).get("data", {})

    async def work(client: ApiClient) -> Json:
        found = await find_stack(client, stack)
        path = stack_path(found, "resources", which, "signal")
        await client.call("POST", path, body=body)
        return await _one(client, found, which)

    found = ask(server, work)
    print_result(found, server.format, lambda: _format_marks(found))


def _format_marks(resource: Json) -> "RenderableType":
    return output.fields(output.with_own_names(resource), MARKED)


def _mark(
    stack: str, which: str, body: Json, server: ServerOptions, confirmed: Json = None
) -> None:
    """confirmed: the resource of the question; another one of its name is not marked."""

    async def work(client: ApiClient) -> Json:
        found = await find_stack(client, stack)
        if confirmed is not None and (
            wrong := replaced_since(confirmed, await _read_marked(client, found, which))
        ):
            raise InputError(wrong)
        await client.call("PATCH", stack_path(found, "resources", which), body=body)
        return await _read_marked(client, found, which)

    found = ask(server, work)
    print_result(found, server.format, lambda: _format_marks(found))


async def _read_marked(client: ApiClient, stack: Json, which: str) -> Json:
    """The resource that was marked, by its name or physical ID."""
    listed = (await client.call("GET", stack_path(stack, "resources")))["resources"]
    names = [one["headgate_resource_name"] for one in listed
             if which in (one["headgate_resource_name"], one["resource_name"],
                          one["physical_resource_id"])]  # fmt: skip
    name = which if which in names or not names else names[0]
    return await _one(client, stack, name)


async def _one(client: ApiClient, stack: Json, name: str) -> Json:
    return (await client.call("GET", stack_path(stack, "resources", name)))["resource"]
