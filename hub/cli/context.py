"""Requests, results and errors of all commands."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer

from engine.errors import HeadgateError, Unavailable
from headgate.connection import Query
from headgate.errors import RequestError
from hub.cli import libraries
from hub.cli.connection.client import ApiClient, call_stack
from hub.cli.connection.connections import ChosenConnection, ResolvedConnection
from hub.cli.connection.saved_contexts import ContextError
from hub.cli.exit_codes import ExitCode
from hub.cli.inputs.files import InputError
from hub.cli.options import ConnectionOptions, OfflineOptions
from hub.cli.printing.consoles import standard_error, standard_output
from hub.cli.printing.formats import JSON, FormatError, FormatKind, ResultFormat, format_document
from hub.cli.printing.pager import show_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hub.settings.settings import Settings

Result = TypeVar("Result")
Json = Any


def ask(server: ConnectionOptions, work: Callable[[ApiClient], Awaitable[Result]]) -> Result:
    """Run `work` with a client. An error is printed and ends the command with exit code 1."""
    try:
        connection = chosen_connection(server).resolve()
    except ContextError as error:
        stop(str(error), ExitCode.USAGE)
    return ask_with(connection, work)


def chosen_connection(server: ConnectionOptions) -> ChosenConnection:
    return ChosenConnection(server.context, server.url, server.project, server.user)


def ask_with(
    connection: ResolvedConnection,
    work: Callable[[ApiClient], Awaitable[Result]],
    *,
    interrupted: str = "interrupted; the action continues on the server",
) -> Result:
    """See `ask`. interrupted: the message after Ctrl-C."""

    async def run() -> Result:
        async with ApiClient(connection.url, connection.project, connection.credentials) as client:
            return await work(client)

    try:
        return libraries.asyncio.run(run())
    except RequestError as error:
        stop(error_text(error, terminal=standard_error().is_terminal), ExitCode.ERROR)
    except InputError as error:
        stop(str(error), ExitCode.ERROR)
    except KeyboardInterrupt:
        stop(interrupted, ExitCode.ERROR)


def ask_stack(
    server: ConnectionOptions,
    name: str,
    method: str,
    *parts: str,
    body: Json = None,
    query: Query | None = None,
) -> Json:
    """Send a request to a path below a stack; see `ask`."""
    return ask(
        server, lambda client: call_stack(client, name, method, *parts, body=body, query=query)
    )


def run_offline(
    options: OfflineOptions,
    work: Callable[["Settings"], Awaitable[Result]],
    *,
    of_cells: bool = False,
) -> Result:
    """Run `work` with the settings of a server. An error is printed and ends the command with exit
    code 1. of_cells: whether the command works with settings of several cells."""
    # Imported here, because it takes long, and most commands do not need it.
    from hub.settings.settings import load_settings

    async def run() -> Result:
        settings = load_settings(options.config, {"database.data_dir": options.data_dir})
        if settings.cells.databases and not of_cells:
            raise Unavailable(
                "these settings name several databases, and the command works with one",
                place="[cells] databases",
                remedy="Use the settings of an engine of the cell",
            )
        return await work(settings)

    try:
        return libraries.asyncio.run(run())
    except (HeadgateError, OSError) as error:
        stop(str(error), ExitCode.ERROR)


#: Requests that remedies of the API name -> the command that sends it.
COMMANDS_OF_ROUTES = {
    "deliveries": "subscription deliveries SUBSCRIPTION",
    "drift": "stack drift STACK",
    "events": "events STACK",
    "graph": "graph STACK",
    "hooks": "hook list",
    "resource_types": "type list",
    "resources": "resource list STACK",
    "snapshots": "stack snapshot list STACK",
    "stacks": "stack list",
    "subscriptions": "subscription list",
    "tokens": "token list",
    "versions": "stack history STACK",
}
#: The place of a breakpoint in a request. `--break-at db` sends one for each operation.
_BREAKPOINT = re.compile(r"^(hooks\.add|breakpoints)\[\d+\]")
_ROUTE = re.compile(rf"GET \.\.\./({'|'.join(COMMANDS_OF_ROUTES)})(?![\w/])")


def error_text(error: RequestError, *, terminal: bool) -> str:
    """The message of a failed request, with commands in place of the requests that its remedy
    names; on a terminal with the URL of the page about its type."""
    text = _ROUTE.sub(lambda route: f"`headgate {COMMANDS_OF_ROUTES[route[1]]}`", str(error))
    text = "\n".join(_without_repetitions(text.split("\n")))
    return f"{text}\nSee {error.help}" if terminal and error.help else text


def _without_repetitions(lines: Iterable[str]) -> Iterator[str]:
    """Each sentence about breakpoints once."""
    shown = set()
    for line in lines:
        sentence = _BREAKPOINT.sub("", line)
        if sentence == line or sentence not in shown:
            yield line
        shown.add(sentence)


def stop(message: str, code: ExitCode) -> NoReturn:
    """Print an error and end the command."""
    complain(message)
    raise typer.Exit(code)


def complain(message: str) -> None:
    """Print to standard error, without line breaks at the width of the terminal."""
    standard_error().print(f"headgate: {message}", markup=False, soft_wrap=True)


def print_result(
    document: Json, result_format: ResultFormat, render: Callable[[], "RenderableType"]
) -> None:
    """Print a result. render: it for people."""
    if result_format.is_document:
        print_document(document, result_format)
    else:
        print_renderable(render(), wide=result_format.kind == FormatKind.WIDE)


def print_document(document: Json, result_format: ResultFormat = JSON) -> None:
    """Print a result for programs."""
    try:
        text = format_document(document, result_format)
    except FormatError as error:
        stop(str(error), ExitCode.USAGE)
    if text:
        typer.echo(text)


def print_renderable(result: "RenderableType", *, wide: bool = False) -> None:
    """Print a result for people. On a terminal, a long one is shown in a pager. wide: do not
    shorten lines."""
    console = standard_output(wide=wide)
    if not console.is_terminal:
        console.print(result, markup=False)
        return
    with console.capture() as captured:
        console.print(result, markup=False)
    show_text(captured.get(), lines=console.height)
