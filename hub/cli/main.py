"""The command line: `headgate`."""

from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from hub.cli import hooks, show, stacks, subscriptions, watch
from hub.cli.client import Client
from hub.cli.context import PROJECT, URL, AsJson, Project, Url, Where, ask, stop, tell
from hub.cli.exit_codes import Exit, epilog

Json = Any
ROLES = ("api", "engine", "dispatch")
app = typer.Typer(
    help="Carries out infrastructure changes as a graph, and holds them at the gate.",
    epilog=epilog(),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(stacks.app, name="stack")
app.add_typer(hooks.app, name="hook")
app.add_typer(subscriptions.app, name="subscription")


@app.command()
def serve(
    config: Annotated[
        Path | None, typer.Option(help="A TOML file; see config.example.toml.")
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Where the database lives.")] = None,
    listen: Annotated[str | None, typer.Option(help="HOST:PORT.")] = None,
    role: Annotated[
        list[str], typer.Option(help="api, engine or dispatch; may repeat; all when not said.")
    ] = [],  # noqa: B006 - typer reads it, nobody changes it
) -> None:
    """Run a server until it is told to stop."""
    from engine.errors import HeadgateError
    from hub.app import serve as run_server
    from hub.settings import load_settings

    for one in role:
        if one not in ROLES:
            stop(f'--role: "{one}" is not known; known: {", ".join(ROLES)}', Exit.USAGE)
    try:
        settings = load_settings(config, {"server.listen": listen, "database.data_dir": data_dir})
    except HeadgateError as error:
        stop(str(error), Exit.ERROR)
    raise typer.Exit(run_server(settings, frozenset(role or ROLES)))


@app.command()
def demo() -> None:
    """See it work: a real service made, held, changed and cleared away, in half a minute."""
    from hub.demo import run as run_demo

    raise typer.Exit(run_demo())


@app.command(name="watch")
def watch_(
    stack: stacks.Name, url: Url = URL, project: Project = PROJECT, as_json: AsJson = False
) -> None:
    """Follow a stack, live, until its action ends."""
    code = ask(Where(url, project), lambda client: watch.watch(client, stack, as_json))
    raise typer.Exit(code)


@app.command()
def why(
    stack: stacks.Name, url: Url = URL, project: Project = PROJECT, as_json: AsJson = False
) -> None:
    """Why a stack does not go on: a sentence for each unfinished node."""

    async def work(client: Client) -> Json:
        found = (await client.call("GET", f"/stacks/{stack}"))["stack"]
        return await client.call("GET", f"/stacks/{found['stack_name']}/{found['id']}/why")

    said = ask(Where(url, project), work)
    if as_json:
        typer.echo(orjson.dumps(said, option=orjson.OPT_INDENT_2).decode())
        return
    typer.echo(f"{said['stack']['name']}: {said['stack']['status']} ({said['stack']['reason']})")
    for node in said["nodes"]:
        typer.echo(f"  {node['sentence']}")


@app.command()
def graph(
    stack: stacks.Name, url: Url = URL, project: Project = PROJECT, as_json: AsJson = False
) -> None:
    """The nodes of a stack's current traversal."""

    async def work(client: Client) -> Json:
        found = (await client.call("GET", f"/stacks/{stack}"))["stack"]
        return await client.call("GET", f"/stacks/{found['stack_name']}/{found['id']}/graph")

    found = ask(Where(url, project), work)
    columns = {"id": "NODE", "resource_name": "RESOURCE", "operation": "OPERATION",
               "direction": "DIRECTION", "state": "STATE", "phase": "PHASE",
               "waiting_for": "WAITS FOR", "breakpoints": "BREAKPOINTS"}  # fmt: skip
    tell(found, as_json, lambda: show.table(found["nodes"], columns))


@app.command()
def events(
    stack: stacks.Name, url: Url = URL, project: Project = PROJECT, as_json: AsJson = False
) -> None:
    """What happened to a stack."""
    path = f"/stacks/{stack}/events"
    found = ask(Where(url, project), lambda client: client.call("GET", path))["events"]
    columns = {"event_time": "TIME", "resource_name": "RESOURCE", "resource_status": "STATUS",
               "resource_status_reason": "REASON"}  # fmt: skip
    tell(found, as_json, lambda: show.table(found, columns))


def run() -> None:
    """The console script."""
    app()


if __name__ == "__main__":
    run()
