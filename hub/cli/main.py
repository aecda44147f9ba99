"""The command line: `headgate`."""

import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from headgate.connection import url_path
from hub.cli import (
    admin,
    admin_audit,
    graph,
    hook,
    observation,
    options,
    output,
    resource,
    resource_type,
    stack,
    stack_breakpoints,
    stack_dependencies,
    stack_drift,
    stack_export,
    stack_snapshots,
    subscription,
    template,
    token,
    usage,
    watch,
)
from hub.cli.context import ask, ask_stack, complain, print_result, stop
from hub.cli.exit_codes import ExitCode, epilog
from hub.cli.options import ServerOptions, with_options

Json = Any
#: Packages that only an installation of the server has completely.
SERVER_PACKAGES = ("hub", "engine", "channels")
ROLES = ("api", "engine", "dispatch", "purge")
app = typer.Typer(
    help="Apply infrastructure changes as a graph, and pause them for approval.",
    epilog=epilog(),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for more in (stack_export, stack_breakpoints, stack_drift, stack_dependencies):
    stack.app.add_typer(more.app)
stack.app.add_typer(stack_snapshots.app, name="snapshot")
admin.app.add_typer(admin_audit.app)
app.add_typer(stack.app, name="stack")
app.add_typer(resource.app, name="resource")
app.add_typer(hook.app, name="hook")
app.add_typer(observation.app, name="observation")
app.add_typer(subscription.app, name="subscription")
app.add_typer(resource_type.app, name="type")
app.add_typer(template.app, name="template")
app.add_typer(token.app, name="token")
app.add_typer(admin.app, name="admin")


def _installed_version() -> str:
    """Of the server, or of the command line alone."""
    try:
        return version("headgate")
    except PackageNotFoundError:
        return version("headgate-cli")


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"headgate {_installed_version()}")
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
        Path | None,
        typer.Option(metavar="FILE", help="Settings file (TOML); see config.example.toml."),
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory of the embedded database.")
    ] = None,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Address to listen on.")
    ] = None,
    role: Annotated[
        list[str],
        typer.Option(
            help="Process role: api, engine, dispatch or purge; repeatable. Default: all."
        ),
    ] = [],  # noqa: B006
    processes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Number of processes with these roles. Default: one for each core, at most 4; one"
            " if --role is given.",
        ),
    ] = None,
) -> None:
    """Run a server until it receives SIGTERM or Ctrl-C."""
    from engine.errors import HeadgateError
    from hub.program.server_processes import serve as run_server
    from hub.settings.settings import load_settings

    for one in role:
        if one not in ROLES:
            stop(
                f'--role: "{one}" is not a process role; known: {", ".join(ROLES)}', ExitCode.USAGE
            )
    try:
        options = {
            "server.listen": listen,
            "server.processes": processes,
            "database.data_dir": data_dir,
        }
        settings = load_settings(config, options)
    except HeadgateError as error:
        stop(str(error), ExitCode.ERROR)
    raise typer.Exit(run_server(settings, frozenset(role or ROLES)))


@app.command()
def demo(
    look: Annotated[
        bool,
        typer.Option(
            "--look",
            help="Show an example stack with waiting hooks in the dashboard, until Ctrl-C.",
        ),
    ] = False,
) -> None:
    """Create, approve, update, stop, resume and delete a real service in half a minute."""
    from hub.cli import demo

    raise typer.Exit(demo.run(demo.look if look else None))


@app.command(name="watch")
@with_options
def watch_(
    server: ServerOptions,
    stack: Annotated[
        str | None, typer.Argument(metavar="STACK", help="Name or ID of the stack.")
    ] = None,
    forward_to: Annotated[
        str | None,
        typer.Option(
            "--forward", metavar="URL", help="Forward events to this URL until interrupted."
        ),
    ] = None,
    secret: Annotated[
        str,
        typer.Option(
            envvar="HEADGATE_SECRET", help="Secret that signs forwarded events (whsec_...)."
        ),
    ] = "",
) -> None:
    """Follow a stack until its action ends; the exit code is its result."""
    if forward_to is not None:
        from hub.cli import watch_forward

        watch_forward.check_target(forward_to, secret)
        ask(server, lambda client: watch_forward.forward(client, forward_to, stack, secret))
        return
    if stack is None:
        stop(
            "name a stack, or use --forward URL to forward the events of all stacks", ExitCode.USAGE
        )
    code = ask(server, lambda client: watch.watch(client, stack, server.as_json))
    raise typer.Exit(code)


@app.command()
@with_options
def why(server: ServerOptions, stack: options.Name) -> None:
    """Explain what a stack is waiting for, one sentence per unfinished node."""
    document = ask_stack(server, stack, "GET", "why")
    lines = output.sentences(document)
    print_result(document, server.as_json, lambda: Text("\n".join(lines)))


app.command(name="graph")(graph.graph)


@app.command()
@with_options
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
    found = ask_stack(server, stack, "GET", "events", query=query)["events"]
    columns = {"event_time": "TIME", "resource_name": "RESOURCE", "resource_status": "STATUS",
               "resource_status_reason": "REASON"}  # fmt: skip
    if depth:
        columns = {"stack": "STACK", **columns}
    rows = [{**output.with_own_names(one), "stack": output.stack_of_event(one)} for one in found]
    print_result(found, server.as_json, lambda: output.table(rows, columns))


@app.command()
@with_options
def quota(server: ServerOptions) -> None:
    """Show the quotas of the project and their usage."""
    quotas = ask(server, lambda client: client.call("GET", url_path("quotas")))["quotas"]
    columns = {"name": "QUOTA", "limit": "LIMIT", "used": "USED"}
    print_result(quotas, server.as_json, lambda: output.table(quotas, columns))


app.command()(usage.usage)


def run() -> None:
    """The console script."""
    try:
        app()
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in SERVER_PACKAGES or _has_server():
            raise
        command = " ".join(takewhile(lambda word: not word.startswith("-"), sys.argv[1:]))
        complain(
            f"`headgate {command}` needs the server, which headgate-cli does not contain. Install"
            " it in place of headgate-cli: `pipx install headgate`."
        )
        sys.exit(ExitCode.ERROR)


def _has_server() -> bool:
    return find_spec("hub.program") is not None


if __name__ == "__main__":
    run()
