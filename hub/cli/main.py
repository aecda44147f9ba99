"""The command line: `headgate`."""

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from hub.cli import (
    actions,
    admin,
    answers,
    audit_log,
    breakpoints,
    doctor,
    export_import,
    graphs,
    hooks,
    key_rotation,
    options,
    outcomes,
    purging,
    resource_types,
    resources,
    show,
    snapshots,
    stacks,
    subscriptions,
    templates,
    tokens,
    versions,
    watch,
)
from hub.cli.client import Client
from hub.cli.context import (
    ServerOptions,
    ask,
    print_result,
    stop,
    uses_server,
)
from hub.cli.exit_codes import Exit, epilog

Json = Any
ROLES = ("api", "engine", "dispatch", "purge")
app = typer.Typer(
    help="Apply infrastructure changes as a graph, and pause them for approval.",
    epilog=epilog(),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
answers.add_to(hooks.app)
actions.add_to(stacks.app)
versions.add_to(stacks.app)
audit_log.add_to(stacks.app)
export_import.add_to(stacks.app)
breakpoints.add_to(stacks.app)
stacks.app.add_typer(breakpoints.app, name="breakpoints")
stacks.app.add_typer(snapshots.app, name="snapshot")
app.add_typer(stacks.app, name="stack")
app.add_typer(resources.app, name="resource")
app.add_typer(hooks.app, name="hook")
app.add_typer(subscriptions.app, name="subscription")
app.add_typer(resource_types.app, name="type")
app.add_typer(templates.app, name="template")
app.add_typer(tokens.app, name="token")
purging.add_to(admin.app)
doctor.add_to(admin.app)
key_rotation.add_to(admin.app)
app.add_typer(admin.app, name="admin")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"headgate {version('headgate')}")
        raise typer.Exit


@app.callback()
def headgate(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None: ...


@app.command()
def serve(
    config: Annotated[
        Path | None, typer.Option(help="Settings file (TOML); see config.example.toml.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Directory of the embedded database.")
    ] = None,
    listen: Annotated[str | None, typer.Option(help="HOST:PORT.")] = None,
    role: Annotated[
        list[str],
        typer.Option(help="api, engine, dispatch or purge; repeatable. Default: all."),
    ] = [],  # noqa: B006 - typer reads it, nobody changes it
) -> None:
    """Run a server until it receives SIGTERM or Ctrl-C."""
    from engine.errors import HeadgateError
    from hub.program.app import serve as run_server
    from hub.settings.settings import load_settings

    for one in role:
        if one not in ROLES:
            stop(f'--role: "{one}" is not a process role; known: {", ".join(ROLES)}', Exit.USAGE)
    try:
        settings = load_settings(config, {"server.listen": listen, "database.data_dir": data_dir})
    except HeadgateError as error:
        stop(str(error), Exit.ERROR)
    raise typer.Exit(run_server(settings, frozenset(role or ROLES)))


@app.command()
def demo(
    look: Annotated[
        bool,
        typer.Option(
            "--look", help="Leave an example stack waiting for you in the dashboard, until Ctrl-C."
        ),
    ] = False,
) -> None:
    """Create, approve, update, stop, resume and delete a real service in half a minute."""
    from hub.cli.demo import run as run_demo
    from hub.cli.demo_look import look as look_at_demo

    raise typer.Exit(run_demo(look_at_demo if look else None))


@app.command(name="watch")
@uses_server
def watch_(
    server: ServerOptions,
    stack: Annotated[str | None, typer.Argument(help="Name or ID of the stack.")] = None,
    forward_to: Annotated[
        str | None,
        typer.Option("--forward", help="Forward events to this URL until interrupted."),
    ] = None,
    secret: Annotated[
        str,
        typer.Option(
            envvar="HEADGATE_SECRET", help="Secret to sign forwarded events with (whsec_...)."
        ),
    ] = "",
) -> None:
    """Follow a stack until its action ends; the exit code is its result."""
    if forward_to is not None:
        from hub.cli import forward

        forward.check(forward_to, secret)
        ask(server, lambda client: forward.forward(client, forward_to, stack, secret))
        return
    if stack is None:
        stop("name a stack, or use --forward URL to forward the events of all stacks", Exit.USAGE)
    code = ask(server, lambda client: watch.watch(client, stack, server.as_json))
    raise typer.Exit(code)


@app.command()
@uses_server
def why(
    server: ServerOptions,
    stack: options.Name,
) -> None:
    """Explain what a stack is waiting for, one sentence per unfinished node."""
    said = ask(server, lambda client: _of_stack(client, stack, "why"))
    print_result(said, server.as_json, lambda: Text("\n".join(show.sentences(said))))


@app.command()
@uses_server
def graph(
    server: ServerOptions,
    stack: options.Name,
    dot: Annotated[
        bool, typer.Option("--dot", help="Print in Graphviz format, for `dot -Tsvg`.")
    ] = False,
) -> None:
    """Show the graph of a stack's current traversal as a tree."""
    found = ask(
        server,
        lambda client: _of_stack(client, stack, "graph", {"nested": "true"}),
    )
    if dot:
        typer.echo(graphs.dot(stack, found))
    else:
        print_result(found, server.as_json, lambda: graphs.tree(stack, found))


@app.command()
@uses_server
def events(
    server: ServerOptions,
    stack: options.Name,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new events until interrupted.")
    ] = False,
    depth: options.NestedDepth = 0,
) -> None:
    """List the events of a stack."""
    if follow:
        ask(server, lambda client: watch.follow(client, stack, server.as_json))
        return
    query = {"nested_depth": str(depth)}
    found = ask(server, lambda client: _of_stack(client, stack, "events", query))["events"]
    columns = {"event_time": "TIME", "resource_name": "RESOURCE", "resource_status": "STATUS",
               "resource_status_reason": "REASON"}  # fmt: skip
    if depth:
        columns = {"stack": "STACK", **columns}
    rows = [{**one, "stack": show.stack_in(one)} for one in found]
    print_result(found, server.as_json, lambda: show.table(rows, columns))


@app.command()
@uses_server
def quota(
    server: ServerOptions,
) -> None:
    """Show the quotas of the project and their usage."""
    found = ask(server, lambda client: client.call("GET", "/quotas"))["quotas"]
    columns = {"name": "QUOTA", "limit": "LIMIT", "used": "USED"}
    print_result(found, server.as_json, lambda: show.table(found, columns))


async def _of_stack(
    client: Client, name: str, what: str, query: Mapping[str, str] | None = None
) -> Json:
    found = await outcomes.find(client, name)
    return await client.call("GET", outcomes.path_of(found, what), query=query)


def run() -> None:
    """The console script."""
    app()


if __name__ == "__main__":
    run()
