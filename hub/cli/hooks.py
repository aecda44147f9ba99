"""headgate hook ...: list, show, answer and hand over hooks.

The answers themselves are in hub/cli/answers.py.
"""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.text import Text

from hub.cli import show
from hub.cli.client import Client, Refused, place
from hub.cli.context import (
    ServerOptions,
    ask,
    print_result,
    seconds,
    uses_server,
)
from hub.cli.file_references import Unreadable
from hub.cli.files import dump_yaml
from hub.cli.waiting import pages, waiting_hooks

Json = Any
app = typer.Typer(help="List, show and answer hooks.", no_args_is_help=True)
Which = Annotated[
    str,
    typer.Argument(help="ID, unique prefix of an ID, STACK:RESOURCE[:POINT], or STACK:POINT."),
]
#: What is shown of a hook after something was done to it.
SAID = ("stack", "resource", "point", "state", "approvals", "may_answer", "deadline", "decision",
        "by", "reason", "id")  # fmt: skip
DECISIONS = {"at": "WHEN", "by": "WHO", "door": "DOOR", "what": "WHAT", "reason": "REASON"}


@app.command(name="list")
@uses_server
def list_(
    server: ServerOptions,
    state: Annotated[
        str,
        typer.Option(
            help="waiting, answered, expired, superseded or all. Default: waiting; with "
            "--dry: all.",
            show_default=False,
        ),
    ] = "",
    stack: Annotated[
        str | None, typer.Option(help="Hooks of this stack and its nested stacks.")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="Hooks of resources at this path, such as web/db or 'web/*'."
        ),
    ] = None,
    point: Annotated[
        str | None, typer.Option(metavar="GLOB", help="Hooks at this point, such as 'pre-*'.")
    ] = None,
    older: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Hooks that have waited longer than this, such as 30m."),
    ] = None,
    mine: Annotated[
        bool, typer.Option("--mine", help="Only hooks that you may answer and have not answered.")
    ] = False,
    dry: Annotated[
        bool | None,
        typer.Option("--dry/--no-dry", help="Only hooks of dry-run rules, or none of them."),
    ] = None,
) -> None:
    """List hooks; by default those that wait for an answer."""
    if older is not None:
        seconds(older)
    # What is tried out never waits.
    state = state or ("all" if dry else "waiting")
    asked = {
        "limit": "1000",
        "state": None if state == "all" else state,
        "stack": stack,
        "path": at,
        "point": point,
        "older": older,
        "mine": "true" if mine else None,
        "dry": None if dry is None else str(dry).lower(),
    }
    query = {name: value for name, value in asked.items() if value is not None}
    hooks = ask(server, lambda client: pages(client, place("hooks"), "hooks", query))
    columns = {
        "stack": "STACK",
        "resource": "RESOURCE",
        "point": "POINT",
        "state": "STATE",
        "approvals": "APPROVALS",
        "may_answer": "MAY ANSWER",
        "deadline": "DEADLINE",
        "decision": "DECISION",
        "by": "BY",
        "id": "ID",
    }
    print_result(
        hooks, server.as_json, lambda: show.table([show.hook_row(hook) for hook in hooks], columns)
    )


@app.command(name="show")
@uses_server
def show_(
    server: ServerOptions,
    which: Which,
) -> None:
    """Show a hook with the details needed to decide."""
    hook = ask(server, lambda client: find(client, which))
    print_result(hook, server.as_json, lambda: Text(show.plain(dump_yaml(hook))))


@app.command()
@uses_server
def history(
    server: ServerOptions,
    which: Which,
) -> None:
    """Show the answers to a hook in order."""

    async def work(client: Client) -> Json:
        hook = await find(client, which)
        return await client.call("GET", place("hooks", hook["id"], "decisions"))

    found = ask(server, work)["decisions"]
    print_result(
        found, server.as_json, lambda: show.table([show.entry_row(one) for one in found], DECISIONS)
    )


@app.command()
@uses_server
def hand_over(
    server: ServerOptions,
    which: Which,
    to: Annotated[str, typer.Argument(metavar="TO", help="user:NAME or role:NAME.")],
    note: Annotated[str, typer.Option(help="A note to them; recorded in the audit log.")] = "",
) -> None:
    """Hand a hook over: let another user or role answer it, too."""

    async def work(client: Client) -> Json:
        hook = await find(client, which)
        body = {"to": to, "note": note}
        return await client.call("POST", place("hooks", hook["id"], "hand-over"), body=body)

    print_outcome(ask(server, work), server.as_json)


def print_outcome(hook: Json, as_json: bool) -> None:
    """The state of a hook, and how it got there."""
    names = SAID if hook["state"] == "waiting" else [name for name in SAID if name != "deadline"]
    print_result(hook, as_json, lambda: show.fields(show.hook_row(hook), names))


async def find(client: Client, which: str) -> Json:
    """By id; else among the waiting ones by the beginning of an id or by where it is."""
    if _is_id(which):
        return await client.call("GET", place("hooks", which))
    return chosen(await waiting_hooks(client), which)


def _is_id(which: str) -> bool:
    try:
        return str(UUID(which)) == which.lower()
    except ValueError:
        return False


def chosen(hooks: Sequence[Json], which: str) -> Json:
    """The one hook that the argument selects. Raises Refused and Unreadable. Pure."""
    found = [hook for hook in hooks if matches(hook, which)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise Refused(404, f'no waiting hook matches "{which}"; see `headgate hook list`')
    names = ", ".join(show.place_of(hook) for hook in found[:5])
    raise Unreadable(f'"{which}" matches {len(found)} waiting hooks: {names}; be more specific')


def matches(hook: Json, which: str) -> bool:
    """STACK:RESOURCE, STACK:RESOURCE:POINT, of the whole stack STACK:POINT, or the beginning of
    the id."""
    if ":" not in which:
        return bool(which) and bool(hook["id"].startswith(which.lower()))
    of_resource = f"{hook['root_stack_name']}:{hook['path']}" if hook["path"] else None
    return which in (of_resource, show.place_of(hook))
