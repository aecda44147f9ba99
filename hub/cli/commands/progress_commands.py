"""headgate watch, why, graph and events."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from hub.cli import options
from hub.cli.commands import graph
from hub.cli.completion import complete_stacks
from hub.cli.connection.client import ApiClient, find_stack, read_waiting_hooks, stack_path
from hub.cli.context import ask, ask_stack, print_result, print_rows
from hub.cli.exit_codes import ExitCode
from hub.cli.messages import stop
from hub.cli.options import ServerOptions, with_options
from hub.cli.printing import output, tables
from hub.cli.printing.consoles import standard_output
from hub.cli.printing.formats import FormatKind, ResultFormat
from hub.cli.printing.renderables import wrapped_text

Json = Any
app = typer.Typer()


def events_as_json(chosen: ResultFormat) -> bool:
    """Whether a command that prints events as they come prints them as JSON."""
    if chosen.kind not in (FormatKind.TABLE, FormatKind.WIDE, FormatKind.JSON):
        stop(f"-o {chosen.kind}: events are printed as they come; use -o json", ExitCode.USAGE)
    return chosen.kind == FormatKind.JSON


@app.command(name="watch")
@with_options
def watch_(
    server: ServerOptions,
    stack: Annotated[
        str | None,
        typer.Argument(metavar="STACK", help=options.STACK_HELP, autocompletion=complete_stacks),
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
    """Follow a stack until its action ends.

    The exit code is the result of the action.
    """
    from hub.cli.commands import watch

    if forward_to is not None:
        from hub.cli.commands import watch_forward

        watch_forward.check_target(forward_to, secret)
        ask(server, lambda client: watch_forward.forward(client, forward_to, stack, secret))
        return
    if stack is None:
        stop(
            "name a stack, or use --forward URL to forward the events of all stacks", ExitCode.USAGE
        )
    as_json = events_as_json(server.format)
    code = ask(server, lambda client: watch.watch(client, stack, as_json))
    raise typer.Exit(code)


@app.command()
@with_options
def why(server: ServerOptions, stack: options.Name) -> None:
    """Explain what a stack is waiting for.

    Prints one sentence for each unfinished node.
    """

    async def work(client: ApiClient) -> tuple[Json, list[Json], list[str]]:
        found = await find_stack(client, stack)
        document = await client.call("GET", stack_path(found, "why"))
        return document, await read_waiting_hooks(client, found), output.continuing_lines(found)

    document, hooks, commands = ask(server, work)
    now = datetime.now(UTC) if standard_output().is_terminal else None
    lines = output.sentences(document, hooks, now, commands)
    print_result(document, server.format, lambda: wrapped_text("\n".join(lines)))


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
    limit: options.NewestLimit = None,
) -> None:
    """List the events of a stack."""
    if follow:
        from hub.cli.commands import watch

        as_json = events_as_json(server.format)
        ask(server, lambda client: watch.follow(client, stack, as_json))
        return
    query = {"nested_depth": str(depth)}
    if limit is not None:
        query |= {"limit": str(limit), "sort_dir": "desc"}
    found = ask_stack(server, stack, "GET", "events", query=query)["events"]
    if limit is not None:
        found = found[::-1]
    columns: tables.Columns = {
        "event_time": tables.past_column("TIME"),
        "resource_name": "RESOURCE",
        "resource_status": tables.status_column(),
        "resource_status_reason": "REASON",
    }
    if depth:
        columns = {"stack": "STACK", **columns}
    rows = [{**output.with_own_names(one), "stack": output.stack_of_event(one)} for one in found]
    none = f"no event of the stack {stack}"
    print_rows(found, server.format, lambda: output.table(rows, columns), none)
