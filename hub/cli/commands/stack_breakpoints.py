"""headgate stack: breakpoints and run-to."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.errors import RequestError
from hub.cli import options
from hub.cli.connection.client import ApiClient, find_stack, stack_path
from hub.cli.context import ask, ask_stack, print_result, print_rows
from hub.cli.exit_codes import ExitCode
from hub.cli.inputs import request_bodies
from hub.cli.inputs.files import InputError
from hub.cli.messages import note, stop
from hub.cli.options import ServerOptions, with_options
from hub.cli.printing import output, tables
from hub.cli.printing.renderables import group, styled_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

Json = Any
app = typer.Typer()
breakpoints = typer.Typer(
    help="Set and remove breakpoints on a running stack.", no_args_is_help=True
)
app.add_typer(breakpoints, name="breakpoints")


@breakpoints.command(name="list")
@with_options
def list_(server: ServerOptions, stack: options.Name) -> None:
    """List the breakpoints set on a running stack."""
    found = ask_stack(server, stack, "GET", "breakpoints")["breakpoints"]
    none = f"no breakpoint is set on the stack {stack}"
    print_rows(found, server.format, lambda: _table(found), none)


@breakpoints.command()
@with_options
def add(
    server: ServerOptions,
    stack: options.Name,
    at: Annotated[
        list[str],
        typer.Argument(
            metavar="BREAKPOINT",
            help=f"{options.BREAKPOINT}.",
        ),
    ],
) -> None:
    """Set breakpoints for the current and later changes. Reports nodes that have already passed."""
    body = {"breakpoints": request_bodies.breakpoints(at)}
    result = ask_stack(server, stack, "POST", "breakpoints", body=body)
    lines = missed_lines(result["too_late"])
    print_result(result, server.format, lambda: group(_table(result["breakpoints"]), *lines))


@breakpoints.command()
@with_options
def remove(
    server: ServerOptions,
    stack: options.Name,
    which: Annotated[
        list[str] | None,
        typer.Argument(metavar="BREAKPOINT", help="ID, unique prefix of an ID, or RESOURCE:POINT."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Remove all breakpoints.")] = False,
) -> None:
    """Remove breakpoints. Hooks that already wait still need an answer."""
    if bool(which) == every:
        stop("name one or more breakpoints, or use --all", ExitCode.USAGE)

    async def work(client: ApiClient) -> list[Json]:
        found = await find_stack(client, stack)
        path = stack_path(found, "breakpoints")
        existing = (await client.call("GET", path))["breakpoints"]
        selected = existing if every else select_breakpoints(existing, which or ())
        for one in selected:
            await client.call("DELETE", stack_path(found, "breakpoints", one["id"]))
        return list(selected)

    removed = ask(server, work)
    lines = "\n".join(f"{tables.plain(place_of(one))} removed" for one in removed)
    if removed or server.format.is_document:
        print_result(removed, server.format, lambda: styled_text(lines))
    else:
        note(f"no breakpoint is set on the stack {stack}")


@app.command()
@with_options
def run_to(
    server: ServerOptions,
    stack: options.Name,
    resource: Annotated[str, typer.Argument(metavar="RESOURCE", help="The resource to stop at.")],
) -> None:
    """Continue, and stop before the next operation on a resource, in this change only."""
    result = ask_stack(server, stack, "POST", "run-to", body={"resource": resource})
    continuing = styled_text(f"continuing; stops at {tables.plain(resource)}")
    lines = missed_lines(result["too_late"]) or [continuing]
    print_result(result, server.format, lambda: group(*lines))


def _table(found: Sequence[Json]) -> "RenderableType":
    columns: tables.Columns = {
        "at": "AT",
        "on": "POINT",
        "rule": "RULE",
        "created_by": "BY",
        "created_at": tables.past_column("SET"),
        "id": tables.id_column("ID"),
    }
    return output.table([one | {"at": output.label(one["at"])} for one in found], columns)


def missed_lines(missed: Sequence[Mapping[str, Json]]) -> "list[Text]":
    """A line for each node that has already passed a new breakpoint."""
    places = [f"{output.label(one['path'])} at {one['point']}" for one in missed]
    return [
        styled_text(tables.plain(f"too late for {place}: {one['reason']}"), "yellow")
        for place, one in zip(places, missed, strict=True)
    ]


def place_of(one: Mapping[str, Json]) -> str:
    """``db:pre-create``; of the whole stack ``pre-stack-create``."""
    return f"{one['at']}:{one['on']}" if one["at"] else str(one["on"])


def select_breakpoints(existing: Sequence[Json], which: Sequence[str]) -> list[Json]:
    """The breakpoints that the arguments select, without duplicates. Raises RequestError and
    InputError. Pure."""
    selected: dict[str, Json] = {}
    for text in which:
        by_place = [one for one in existing if text == place_of(one)]
        by_id = [one for one in existing if text and one["id"].startswith(text.lower())]
        if not by_place and len(by_id) > 1:
            ids = ", ".join(one["id"] for one in by_id[:5])
            raise InputError(f'"{text}" matches {len(by_id)} breakpoints: {ids}; use an ID')
        if not by_place and not by_id:
            remedy = "see `headgate stack breakpoints list`"
            raise RequestError(404, f'no breakpoint "{text}"; {remedy}')
        selected |= {one["id"]: one for one in by_place or by_id}
    return list(selected.values())
