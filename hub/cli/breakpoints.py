"""headgate stack breakpoints ..., run-to: breakpoints of a running stack."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from hub.cli import bodies, options, outcomes, show
from hub.cli.client import Client, Refused
from hub.cli.context import (
    ServerOptions,
    ask,
    print_result,
    stop,
    uses_server,
)
from hub.cli.exit_codes import Exit
from hub.cli.file_references import Unreadable

Json = Any
app = typer.Typer(help="Set and remove breakpoints on a running stack.", no_args_is_help=True)


@app.command(name="list")
@uses_server
def list_(
    server: ServerOptions,
    stack: options.Name,
) -> None:
    """List the breakpoints set on a running stack."""

    async def work(client: Client) -> list[Json]:
        return await _all(client, await outcomes.find(client, stack))

    found = ask(server, work)
    print_result(found, server.as_json, lambda: _table(found))


@app.command()
@uses_server
def add(
    server: ServerOptions,
    stack: options.Name,
    at: Annotated[
        list[str],
        typer.Argument(
            metavar="BREAKPOINT",
            help="RESOURCE:POINT, RESOURCE (before any operation on it), or a point of the "
            "whole stack.",
        ),
    ],
) -> None:
    """Set breakpoints for the current and later changes. Reports nodes that have already passed."""

    async def work(client: Client) -> Json:
        path = outcomes.path_of(await outcomes.find(client, stack), "breakpoints")
        return await client.call("POST", path, body={"breakpoints": bodies.breaks(at)})

    done = ask(server, work)
    print_result(
        done, server.as_json, lambda: Group(_table(done["breakpoints"]), *late(done["too_late"]))
    )


@app.command()
@uses_server
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
        stop("name one or more breakpoints, or use --all", Exit.USAGE)

    async def work(client: Client) -> list[Json]:
        found = await outcomes.find(client, stack)
        there = await _all(client, found)
        gone = there if every else chosen(there, which or ())
        for one in gone:
            await client.call("DELETE", outcomes.path_of(found, "breakpoints", one["id"]))
        return gone

    gone = ask(server, work)
    print_result(gone, server.as_json, lambda: _removed(gone))


@uses_server
def run_to(
    server: ServerOptions,
    stack: options.Name,
    resource: Annotated[str, typer.Argument(metavar="RESOURCE", help="The resource to stop at.")],
) -> None:
    """Continue, and stop before the next operation on a resource, in this change only."""

    async def work(client: Client) -> Json:
        path = outcomes.path_of(await outcomes.find(client, stack), "run-to")
        return await client.call("POST", path, body={"resource": resource})

    done = ask(server, work)
    goes_on = Text(f"continuing; stops at {show.plain(resource)}")
    print_result(done, server.as_json, lambda: Group(*(late(done["too_late"]) or [goes_on])))


async def _all(client: Client, stack: Json) -> list[Json]:
    found = await client.call("GET", outcomes.path_of(stack, "breakpoints"))
    return list(found["breakpoints"])


def _table(found: Sequence[Json]) -> RenderableType:
    columns = {"at": "AT", "on": "POINT", "rule": "RULE", "created_by": "BY",
               "created_at": "SET", "id": "ID"}  # fmt: skip
    return show.table([one | {"at": show.named(one["at"])} for one in found], columns)


def _removed(gone: Sequence[Json]) -> RenderableType:
    return Text("\n".join(f"{show.plain(place_of(one))} removed" for one in gone))


def late(found: Sequence[Mapping[str, Json]]) -> list[Text]:
    """A line for each node that a breakpoint came too late for."""
    return [
        Text(
            show.plain(
                f"too late for {show.named(one['path'])} at {one['point']}: {one['reason']}"
            ),
            "yellow",
        )
        for one in found
    ]


def place_of(one: Mapping[str, Json]) -> str:
    """``db:pre-create``; of the whole stack ``pre-stack-create``."""
    return f"{one['at']}:{one['on']}" if one["at"] else str(one["on"])


def chosen(there: Sequence[Json], which: Sequence[str]) -> list[Json]:
    """The breakpoints that the arguments select, once each. Raises Refused and Unreadable. Pure."""
    found: dict[str, Json] = {}
    for text in which:
        meant = [one for one in there if text == place_of(one)]
        by_id = [one for one in there if text and one["id"].startswith(text.lower())]
        if not meant and len(by_id) > 1:
            ids = ", ".join(one["id"] for one in by_id[:5])
            raise Unreadable(f'"{text}" means {len(by_id)} breakpoints: {ids}; use an ID')
        if not meant and not by_id:
            remedy = "see `headgate stack breakpoints list`"
            raise Refused(404, f'no breakpoint "{text}"; {remedy}')
        found |= {one["id"]: one for one in meant or by_id}
    return list(found.values())


def add_to(app: typer.Typer) -> None:
    app.command()(run_to)
