"""headgate subscription ...: subscriptions and deliveries."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hub.cli import show
from hub.cli.client import place
from hub.cli.context import (
    ServerOptions,
    ask,
    print_result,
    stop,
    uses_server,
    uses_server_without_json,
)
from hub.cli.exit_codes import Exit

Json = Any
app = typer.Typer(help="Manage subscriptions and deliveries.", no_args_is_help=True)
Id = Annotated[str, typer.Argument(help="ID of the subscription.")]
Globs = Annotated[list[str], typer.Option(help="Only these (globs); repeatable.")]
NAMES = ("id", "channel", "target", "events", "stacks", "resources", "types", "points", "tags",
         "nested", "ordered", "state", "reason", "origin", "stack_id", "created_at",
         "secret")  # fmt: skip


def _call(
    server: ServerOptions,
    method: str,
    *parts: str,
    body: Json = None,
    query: Mapping[str, str] | None = None,
) -> Json:
    path = place("subscriptions", *parts)
    return ask(server, lambda client: client.call(method, path, body=body, query=query))


@app.command()
@uses_server
def create(
    server: ServerOptions,
    target: Annotated[
        str, typer.Argument(help="The URL to POST events to; with --channel amqp, an exchange.")
    ],
    channel: Annotated[str, typer.Option(help="webhook or amqp.")] = "webhook",
    events: Globs = [],  # noqa: B006
    stacks: Globs = [],  # noqa: B006
    resources: Globs = [],  # noqa: B006
    types: Globs = [],  # noqa: B006
    points: Globs = [],  # noqa: B006
    tags: Globs = [],  # noqa: B006
    outermost: Annotated[
        bool, typer.Option("--outermost", help="Exclude events of nested stacks.")
    ] = False,
    unordered: Annotated[
        bool, typer.Option("--unordered", help="Do not keep the events of a stack in order.")
    ] = False,
) -> None:
    """Create a subscription and print its signing secret, which is not shown again."""
    body = {"channel": channel, "target": target, "events": events, "stacks": stacks,
            "resources": resources, "types": types, "points": points, "tags": tags,
            "nested": not outermost, "ordered": not unordered}  # fmt: skip
    made = _call(server, "POST", body=body)
    print_result(made, server.as_json, lambda: show.fields(made, NAMES))


@app.command(name="list")
@uses_server
def list_(
    server: ServerOptions,
) -> None:
    """List subscriptions."""
    found = _call(server, "GET")["subscriptions"]
    columns = {
        "channel": "CHANNEL",
        "target": "TARGET",
        "events": "EVENTS",
        "state": "STATE",
        "id": "ID",
    }
    print_result(found, server.as_json, lambda: show.table(found, columns))


@app.command(name="show")
@uses_server
def show_(
    server: ServerOptions,
    which: Id,
) -> None:
    """Show a subscription."""
    found = _call(server, "GET", which)
    print_result(found, server.as_json, lambda: show.fields(found, NAMES))


@app.command()
@uses_server
def change(
    server: ServerOptions,
    which: Id,
    target: Annotated[str | None, typer.Option(help="The new target of events.")] = None,
    events: Globs = [],  # noqa: B006
    stacks: Globs = [],  # noqa: B006
    resources: Globs = [],  # noqa: B006
    types: Globs = [],  # noqa: B006
    points: Globs = [],  # noqa: B006
    tags: Globs = [],  # noqa: B006
    everything: Annotated[list[str], typer.Option(help="Remove this filter, such as events.")] = [],  # noqa: B006
    nested: Annotated[
        bool | None, typer.Option("--nested/--outermost", help="Include events of nested stacks.")
    ] = None,
    ordered: Annotated[
        bool | None, typer.Option("--ordered/--unordered", help="Keep a stack's events in order.")
    ] = None,
) -> None:
    """Change the options you name; the others keep their values."""
    filters = {"events": events, "stacks": stacks, "resources": resources, "types": types,
               "points": points, "tags": tags}  # fmt: skip
    if unknown := [name for name in everything if name not in filters]:
        stop(f'"{unknown[0]}" is not a filter; known: {", ".join(filters)}', Exit.USAGE)
    body: dict[str, Json] = {name: globs for name, globs in filters.items() if globs}
    body |= {name: [] for name in everything}
    body |= {"target": target} if target is not None else {}
    body |= {"nested": nested} if nested is not None else {}
    body |= {"ordered": ordered} if ordered is not None else {}
    if not body:
        stop("name at least one option to change", Exit.USAGE)
    now = _call(server, "PATCH", which, body=body)
    print_result(now, server.as_json, lambda: show.fields(now, NAMES))


@app.command()
@uses_server
def enable(
    server: ServerOptions,
    which: Id,
) -> None:
    """Enable a disabled subscription."""
    _set_state(which, "enabled", server, server.as_json)


@app.command()
@uses_server
def disable(
    server: ServerOptions,
    which: Id,
) -> None:
    """Disable a subscription."""
    _set_state(which, "disabled", server, server.as_json)


def _set_state(which: str, state: str, server: ServerOptions, as_json: bool) -> None:
    now = _call(server, "PATCH", which, body={"state": state})
    print_result(now, as_json, lambda: show.fields(now, NAMES))


@app.command()
@uses_server_without_json
def delete(
    server: ServerOptions,
    which: Id,
) -> None:
    """Delete a subscription and its deliveries."""
    _call(server, "DELETE", which)


@app.command()
@uses_server
def test(
    server: ServerOptions,
    which: Id,
) -> None:
    """Send a test event now."""
    said = _call(server, "POST", which, "test")
    print_result(
        said, server.as_json, lambda: show.fields(said, ("delivered", "code", "answer", "reason"))
    )


@app.command()
@uses_server
def rotate(
    server: ServerOptions,
    which: Id,
) -> None:
    """Create a new signing secret; the old one also signs for a day."""
    said = _call(server, "POST", which, "rotate")
    print_result(said, server.as_json, lambda: show.fields(said, ("id", "secret")))


@app.command()
@uses_server
def deliveries(
    server: ServerOptions,
    which: Id,
    state: Annotated[
        str | None, typer.Option(help="Only deliveries in this state: pending, delivered or dead.")
    ] = None,
    limit: Annotated[int, typer.Option(help="Maximum number of deliveries.")] = 100,
) -> None:
    """List deliveries, newest first."""
    query = {"limit": str(limit)} | ({"state": state} if state else {})
    found = _call(server, "GET", which, "deliveries", query=query)["deliveries"]
    columns = {"created_at": "MADE", "type": "EVENT", "state": "STATE", "attempts": "TRIES",
               "code": "CODE", "error": "ERROR", "id": "ID"}  # fmt: skip
    print_result(found, server.as_json, lambda: show.table(found, columns))


@app.command()
@uses_server
def redeliver(
    server: ServerOptions,
    which: Id,
    delivery: Annotated[str | None, typer.Option(help="This one.")] = None,
    since: Annotated[
        str | None, typer.Option(help="Resend all deliveries since this time that did not arrive.")
    ] = None,
    dead: Annotated[bool, typer.Option("--dead", help="Resend all dead deliveries.")] = False,
) -> None:
    """Resend deliveries."""
    if (delivery is not None) + (since is not None) + dead != 1:
        stop("use exactly one of --delivery, --since and --dead", Exit.USAGE)
    asked = {"delivery": delivery, "since": since, "state": "dead" if dead else None}
    body = {name: value for name, value in asked.items() if value is not None}
    said = _call(server, "POST", which, "redeliver", body=body)
    print_result(said, server.as_json, lambda: show.fields(said, ("redelivered",)))
