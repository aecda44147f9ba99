"""headgate subscription: manage subscriptions and deliveries."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import typer

from headgate.connection import url_path
from hub.cli import options
from hub.cli.completion import complete_subscriptions
from hub.cli.confirmation import confirm
from hub.cli.connection.client import ApiClient, find_subscription, whole_id
from hub.cli.context import ask, print_removal, print_result, print_rows, resolved_project
from hub.cli.exit_codes import ExitCode
from hub.cli.messages import stop
from hub.cli.options import ConnectionOptions, OptionGroup, ServerOptions, with_options
from hub.cli.printing import output, tables

Json = Any
#: The period of a digest that has a time of day.
DAILY = "daily"
app = typer.Typer(help="Manage subscriptions and deliveries.", no_args_is_help=True)
Id = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="ID of the subscription, or a unique prefix of it.",
        autocompletion=complete_subscriptions,
    ),
]
NAMES = ("id", "channel", "target", "events", "stacks", "resources", "types", "points", "tags",
         "nested", "ordered", "quiet_hours", "digest", "state", "reason", "origin", "stack_id",
         "created_at", "secret")  # fmt: skip


def _globs(which: str) -> Any:
    return typer.Option(metavar="GLOB", help=f"Only events {which}; repeatable.")


@dataclass(frozen=True, slots=True)
class Filters(OptionGroup):
    """The filters of a subscription: globs."""

    events: Annotated[list[str], _globs("of this type")] = field(default_factory=list)
    stacks: Annotated[list[str], _globs("of stacks with this name")] = field(default_factory=list)
    resources: Annotated[list[str], _globs("of resources with this name")] = field(
        default_factory=list
    )
    types: Annotated[list[str], _globs("of this resource type")] = field(default_factory=list)
    points: Annotated[list[str], _globs("of hooks at this point")] = field(default_factory=list)
    tags: Annotated[list[str], _globs("of stacks with this tag")] = field(default_factory=list)


Quiet = Annotated[
    str | None,
    typer.Option(
        metavar="FROM-TO",
        help="Hold deliveries between these times, such as 22:00-07:00; for slack, teams, email.",
    ),
]
Zone = Annotated[
    str | None,
    typer.Option(
        "--timezone", help="Time zone of --quiet-hours and --digest daily, such as Europe/Berlin."
    ),
]
Days = Annotated[
    str | None,
    typer.Option(
        metavar="DAYS",
        help="Days on which --quiet-hours begin, such as mon-thu,sun. Default: every day.",
    ),
]


Period = Annotated[
    str | None,
    typer.Option(
        "--digest",
        metavar="PERIOD",
        help="How often to send one message with all that needs no answer sooner: 15m, 1h or"
        " daily; for slack, teams, email.",
    ),
]
DigestAt = Annotated[
    str | None,
    typer.Option("--digest-at", metavar="TIME", help="Time of a daily digest, such as 08:00."),
]


def _schedule(
    times: str | None,
    timezone: str | None,
    days: str | None,
    period: str | None,
    at: str | None,
) -> dict[str, Json]:
    """Quiet hours and digest, as a part of the request's body."""
    if timezone is not None and times is None and period != DAILY:
        stop("--timezone needs --quiet-hours or --digest daily", ExitCode.USAGE)
    return _quiet_hours(times, timezone, days) | _digest(period, at, timezone)


def _digest(period: str | None, at: str | None, timezone: str | None) -> dict[str, Json]:
    if at is not None and period != DAILY:
        stop("--digest-at needs --digest daily", ExitCode.USAGE)
    if period is None:
        return {}
    if period != DAILY:
        return {"digest": period}
    own = {"at": at, "timezone": timezone}
    given = {name: value for name, value in own.items() if value is not None}
    return {"digest": {"every": period} | given if given else period}


def _quiet_hours(times: str | None, timezone: str | None, days: str | None) -> dict[str, Json]:
    if times is None:
        if days is not None:
            stop("--days needs --quiet-hours", ExitCode.USAGE)
        return {}
    start, dash, end = times.partition("-")
    if not dash:
        stop(f'"{times}" is not FROM-TO; write --quiet-hours 22:00-07:00', ExitCode.USAGE)
    zone = {"timezone": timezone} if timezone is not None else {}
    on = {"days": [one.strip() for one in days.split(",")]} if days is not None else {}
    return {"quiet_hours": {"from": start, "to": end} | zone | on}


def _call(
    server: ConnectionOptions,
    method: str,
    *parts: str,
    body: Json = None,
    query: Mapping[str, str] | None = None,
) -> Json:
    """parts: the subscription, by its ID or a prefix of it, and the path below it."""

    async def work(client: ApiClient) -> Json:
        which = [(await find_subscription(client, parts[0]))["id"]] if parts else []
        path = url_path("subscriptions", *which, *parts[1:])
        return await client.call(method, path, body=body, query=query)

    return ask(server, work)


@app.command()
@with_options
def create(
    server: ServerOptions,
    filters: Filters,
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="URL that receives the events; for amqp, an exchange; for email, an address.",
        ),
    ],
    channel: Annotated[
        str, typer.Option(help="Channel: webhook, slack, teams, email, amqp, heat or a plug-in.")
    ] = "webhook",
    nested: Annotated[
        bool, typer.Option("--nested/--no-nested", help="Include events of nested stacks.")
    ] = True,
    unordered: Annotated[
        bool, typer.Option("--unordered", help="Do not keep the events of a stack in order.")
    ] = False,
    quiet_hours: Quiet = None,
    timezone: Zone = None,
    days: Days = None,
    digest: Period = None,
    digest_at: DigestAt = None,
) -> None:
    """Create a subscription and print its signing secret, which is not shown again."""
    body: dict[str, Json] = {"channel": channel, "target": target, "nested": nested}
    body |= asdict(filters) | _schedule(quiet_hours, timezone, days, digest, digest_at)
    body["ordered"] = not unordered and body.keys().isdisjoint(("quiet_hours", "digest"))
    created = _call(server, "POST", body=body)
    print_result(created, server.format, lambda: output.fields(created, NAMES))


@app.command(name="list")
@with_options
def list_(server: ServerOptions) -> None:
    """List subscriptions."""
    found = _call(server, "GET")["subscriptions"]
    columns: tables.Columns = {
        "channel": "CHANNEL",
        "target": "TARGET",
        "events": "EVENTS",
        "state": "STATE",
        "id": tables.id_column("ID"),
    }
    none = (
        f"no subscription in the project {resolved_project(server)};"
        " `headgate subscription create` creates one"
    )
    print_rows(found, server.format, lambda: output.table(found, columns), none)


@app.command(name="show")
@with_options
def show_(server: ServerOptions, which: Id) -> None:
    """Show a subscription."""
    found = _call(server, "GET", which)
    print_result(found, server.format, lambda: output.fields(found, NAMES))


@app.command()
@with_options
def change(
    server: ServerOptions,
    filters: Filters,
    which: Id,
    target: Annotated[str | None, typer.Option(help="The new target of events.")] = None,
    remove_filter: Annotated[
        list[str],
        typer.Option(metavar="FILTER", help="Remove a filter, such as events; repeatable."),
    ] = [],  # noqa: B006
    nested: Annotated[
        bool | None, typer.Option("--nested/--no-nested", help="Include events of nested stacks.")
    ] = None,
    ordered: Annotated[
        bool | None, typer.Option("--ordered/--unordered", help="Keep a stack's events in order.")
    ] = None,
    quiet_hours: Quiet = None,
    timezone: Zone = None,
    days: Days = None,
    no_quiet_hours: Annotated[
        bool, typer.Option("--no-quiet-hours", help="Remove the quiet hours.")
    ] = False,
    digest: Period = None,
    digest_at: DigestAt = None,
    no_digest: Annotated[bool, typer.Option("--no-digest", help="Remove the digest.")] = False,
) -> None:
    """Change a subscription; options that you do not name keep their values."""
    globs = asdict(filters)
    if unknown := [name for name in remove_filter if name not in globs]:
        stop(f'"{unknown[0]}" is not a filter; known: {", ".join(globs)}', ExitCode.USAGE)
    body: dict[str, Json] = {name: value for name, value in globs.items() if value}
    body |= {name: [] for name in remove_filter}
    body |= {"target": target} if target is not None else {}
    body |= {"nested": nested} if nested is not None else {}
    body |= {"ordered": ordered} if ordered is not None else {}
    body |= _schedule(quiet_hours, timezone, days, digest, digest_at)
    body |= {"quiet_hours": None} if no_quiet_hours else {}
    body |= {"digest": None} if no_digest else {}
    if not body:
        stop("name at least one option to change", ExitCode.USAGE)
    changed = _call(server, "PATCH", which, body=body)
    print_result(changed, server.format, lambda: output.fields(changed, NAMES))


@app.command()
@with_options
def enable(server: ServerOptions, which: Id) -> None:
    """Enable a disabled subscription."""
    _set_state(which, "enabled", server)


@app.command()
@with_options
def disable(server: ServerOptions, which: Id) -> None:
    """Disable a subscription."""
    _set_state(which, "disabled", server)


def _set_state(which: str, state: str, server: ServerOptions) -> None:
    changed = _call(server, "PATCH", which, body={"state": state})
    print_result(changed, server.format, lambda: output.fields(changed, NAMES))


@app.command()
@with_options
def delete(server: ServerOptions, which: Id, yes: options.Yes = False) -> None:
    """Delete a subscription and its deliveries."""
    found = _call(server, "GET", which)
    target = f"{found['channel']} {found['target']}"
    lost = "Its pending deliveries are not sent, and the record of its deliveries is deleted."
    confirm(f"Delete the subscription of {target}?", [lost], yes)
    _call(server, "DELETE", found["id"])
    print_removal(found["id"], "deleted", server.format)


@app.command()
@with_options
def test(server: ServerOptions, which: Id) -> None:
    """Send a test event and print the result."""
    result = _call(server, "POST", which, "test")
    names = ("delivered", "code", "response", "reason")
    print_result(result, server.format, lambda: output.fields(result, names))


@app.command()
@with_options
def rotate(server: ServerOptions, which: Id) -> None:
    """Create a new signing secret; the old one stays valid for a day."""
    rotated = _call(server, "POST", which, "rotate")
    print_result(rotated, server.format, lambda: output.fields(rotated, ("id", "secret")))


@app.command()
@with_options
def deliveries(
    server: ServerOptions,
    which: Id,
    state: Annotated[
        str | None, typer.Option(help="Only deliveries in this state: pending, delivered or dead.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=1000, help="Maximum number of deliveries.")
    ] = 100,
) -> None:
    """List deliveries, newest first."""
    query = {"limit": str(limit)} | ({"state": state} if state else {})
    found = _call(server, "GET", which, "deliveries", query=query)["deliveries"]
    columns: tables.Columns = {
        "created_at": tables.past_column("CREATED"),
        "type": "EVENT",
        "state": "STATE",
        "attempts": "ATTEMPTS",
        "code": "CODE",
        "error": "ERROR",
        "id": tables.id_column("ID"),
    }
    none = f"no {state or ''} delivery".replace("  ", " ")
    print_rows(found, server.format, lambda: output.table(found, columns), none)


@app.command()
@with_options
def redeliver(
    server: ServerOptions,
    which: Id,
    delivery: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Resend this delivery: its ID, or a unique prefix of the ID."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Resend all deliveries since this time that did not arrive."
        ),
    ] = None,
    dead: Annotated[bool, typer.Option("--dead", help="Resend all dead deliveries.")] = False,
) -> None:
    """Resend deliveries."""
    if (delivery is not None) + (since is not None) + dead != 1:
        stop("use exactly one of --delivery, --since and --dead", ExitCode.USAGE)

    async def work(client: ApiClient) -> Json:
        subscription = (await find_subscription(client, which))["id"]
        choices = {"since": since, "state": "dead" if dead else None}
        if delivery is not None:
            listing = f"headgate subscription deliveries {subscription}"
            choices["delivery"] = await whole_id(client, "delivery", delivery, listing)
        body = {name: value for name, value in choices.items() if value is not None}
        path = url_path("subscriptions", subscription, "redeliver")
        return await client.call("POST", path, body=body)

    result = ask(server, work)
    print_result(result, server.format, lambda: output.fields(result, ("redelivered",)))
