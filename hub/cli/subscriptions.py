"""headgate subscription ...: who is told of what."""

from typing import Annotated, Any

import typer

from hub.cli import show
from hub.cli.client import place
from hub.cli.context import PROJECT, URL, USER, AsJson, Project, Url, User, Where, ask, stop, tell
from hub.cli.exit_codes import Exit

Json = Any
app = typer.Typer(help="Subscribe listeners, and look after deliveries.", no_args_is_help=True)
Id = Annotated[str, typer.Argument(help="Id of the subscription.")]
Globs = Annotated[list[str], typer.Option(help="Only these; globs; may repeat.")]
NAMES = ("id", "channel", "target", "events", "stacks", "resources", "types", "points", "tags",
         "ordered", "state", "reason", "origin", "stack_id", "created_at", "secret")  # fmt: skip


def _call(where: Where, method: str, *parts: str, body: Json = None) -> Json:
    path = place("subscriptions", *parts)
    return ask(where, lambda client: client.call(method, path, body=body))


@app.command()
def create(
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
    unordered: Annotated[
        bool, typer.Option("--unordered", help="Do not hold a stack's events back for order.")
    ] = False,
    url: Url = URL,
    project: Project = PROJECT,
    user: User = USER,
    as_json: AsJson = False,
) -> None:
    """Subscribe; the secret that signs is shown this once."""
    body = {"channel": channel, "target": target, "events": events, "stacks": stacks,
            "resources": resources, "types": types, "points": points, "tags": tags,
            "ordered": not unordered}  # fmt: skip
    made = _call(Where(url, project, user), "POST", body=body)
    tell(made, as_json, lambda: show.fields(made, NAMES))


@app.command(name="list")
def list_(
    url: Url = URL, project: Project = PROJECT, user: User = USER, as_json: AsJson = False
) -> None:
    """List subscriptions."""
    found = _call(Where(url, project, user), "GET")["subscriptions"]
    columns = {
        "channel": "CHANNEL",
        "target": "TARGET",
        "events": "EVENTS",
        "state": "STATE",
        "id": "ID",
    }
    tell(found, as_json, lambda: show.table(found, columns))


@app.command(name="show")
def show_(
    which: Id,
    url: Url = URL,
    project: Project = PROJECT,
    user: User = USER,
    as_json: AsJson = False,
) -> None:
    """Show a subscription."""
    found = _call(Where(url, project, user), "GET", which)
    tell(found, as_json, lambda: show.fields(found, NAMES))


@app.command()
def enable(
    which: Id,
    url: Url = URL,
    project: Project = PROJECT,
    user: User = USER,
    as_json: AsJson = False,
) -> None:
    """Deliver again, after it was disabled."""
    _set_state(which, "enabled", Where(url, project, user), as_json)


@app.command()
def disable(
    which: Id,
    url: Url = URL,
    project: Project = PROJECT,
    user: User = USER,
    as_json: AsJson = False,
) -> None:
    """Deliver nothing until it is enabled."""
    _set_state(which, "disabled", Where(url, project, user), as_json)


def _set_state(which: str, state: str, where: Where, as_json: bool) -> None:
    now = _call(where, "PATCH", which, body={"state": state})
    tell(now, as_json, lambda: show.fields(now, NAMES))


@app.command()
def delete(which: Id, url: Url = URL, project: Project = PROJECT, user: User = USER) -> None:
    """Forget a subscription and its deliveries."""
    _call(Where(url, project, user), "DELETE", which)


@app.command()
def test(
    which: Id,
    url: Url = URL,
    project: Project = PROJECT,
    user: User = USER,
    as_json: AsJson = False,
) -> None:
    """Send one event that means nothing, now."""
    said = _call(Where(url, project, user), "POST", which, "test")
    tell(said, as_json, lambda: show.fields(said, ("delivered", "code", "answer", "reason")))


@app.command()
def rotate(
    which: Id,
    url: Url = URL,
    project: Project = PROJECT,
    user: User = USER,
    as_json: AsJson = False,
) -> None:
    """A new secret; the old one signs, too, for a day."""
    said = _call(Where(url, project, user), "POST", which, "rotate")
    tell(said, as_json, lambda: show.fields(said, ("id", "secret")))


@app.command()
def deliveries(
    which: Id,
    url: Url = URL,
    project: Project = PROJECT,
    user: User = USER,
    as_json: AsJson = False,
) -> None:
    """What was sent, newest first."""
    found = _call(Where(url, project, user), "GET", which, "deliveries")["deliveries"]
    columns = {"created_at": "MADE", "type": "EVENT", "state": "STATE", "attempts": "TRIES",
               "code": "CODE", "error": "ERROR", "id": "ID"}  # fmt: skip
    tell(found, as_json, lambda: show.table(found, columns))


@app.command()
def redeliver(
    which: Id,
    delivery: Annotated[str | None, typer.Option(help="This one.")] = None,
    since: Annotated[str | None, typer.Option(help="All missed since this time.")] = None,
    dead: Annotated[bool, typer.Option("--dead", help="All that were given up.")] = False,
    url: Url = URL,
    project: Project = PROJECT,
    user: User = USER,
    as_json: AsJson = False,
) -> None:
    """Deliver again."""
    if (delivery is not None) + (since is not None) + dead != 1:
        stop("say one of --delivery, --since and --dead", Exit.USAGE)
    asked = {"delivery": delivery, "since": since, "state": "dead" if dead else None}
    body = {name: value for name, value in asked.items() if value is not None}
    said = _call(Where(url, project, user), "POST", which, "redeliver", body=body)
    tell(said, as_json, lambda: show.fields(said, ("redelivered",)))
