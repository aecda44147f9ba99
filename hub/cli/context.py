"""Requests, results and errors of all commands."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer
from rich.console import Console, RenderableType

from engine.errors import HeadgateError
from headgate.client import PROJECT, URL
from headgate.connection import ClientCredentials, Query
from headgate.errors import RequestError
from hub.cli.client import ApiClient, call_stack
from hub.cli.exit_codes import ExitCode
from hub.cli.files import InputError
from hub.cli.formats import JSON, FormatError, FormatKind, ResultFormat, format_document
from hub.cli.options import ConnectionOptions, OfflineOptions, printable
from hub.cli.pager import show_text
from hub.cli.saved_contexts import ContextError, SavedContext, contexts_path, read_contexts
from hub.cli.tables import UNLIMITED

if TYPE_CHECKING:
    from hub.settings.settings import Settings

Result = TypeVar("Result")
Json = Any


#: The variable with your roles, separated by commas. The server accepts it in mode none only.
ROLES = "HEADGATE_ROLES"
#: Variables with a token, or the password of --user. There are no options for these, because other
#: users of the machine can read the options of a process.
TOKEN, PASSWORD = "HEADGATE_TOKEN", "HEADGATE_PASSWORD"

#: The width of tables; None: that of the terminal.
WIDTH = None if sys.stdout.isatty() else UNLIMITED
out = Console(highlight=False, width=WIDTH)
err = Console(stderr=True, highlight=False)


@dataclass(frozen=True, slots=True)
class Connection:
    """Where requests are sent, and with which credentials."""

    url: str
    project: str
    credentials: ClientCredentials


def resolve_connection(server: ConnectionOptions, context: SavedContext) -> Connection:
    """Options and variables precede the values of the context."""
    roles, token, password = (_from_environment(name) for name in (ROLES, TOKEN, PASSWORD))
    if not token and not password:
        token = context.token
    user = server.user or context.user
    return Connection(
        server.url or context.url or URL,
        server.project or context.project or PROJECT,
        ClientCredentials(user, roles, token, password),
    )


def select_context(server: ConnectionOptions) -> SavedContext:
    """The context of the command, or an empty one. Raises ContextError.

    A current context does not apply to another server, which must not receive its token.
    """
    saved, none = read_contexts(contexts_path()), SavedContext("")
    if server.context:
        found = saved.find(server.context)
        if server.url and server.url != found.url:
            raise ContextError(
                f'--url {server.url}: the context "{server.context}" is of {found.url}. '
                "Use either --context or --url."
            )
        return found
    found = saved.find(saved.current) if saved.current else none
    return none if server.url and server.url != found.url else found


def _find_context(server: ConnectionOptions) -> SavedContext:
    try:
        return select_context(server)
    except ContextError as error:
        stop(str(error), ExitCode.USAGE if server.context else ExitCode.ERROR)


def ask(server: ConnectionOptions, work: Callable[[ApiClient], Awaitable[Result]]) -> Result:
    """Run `work` with a client. An error is printed and ends the command with exit code 1."""
    return ask_with(resolve_connection(server, _find_context(server)), work)


def ask_with(connection: Connection, work: Callable[[ApiClient], Awaitable[Result]]) -> Result:
    """See `ask`."""

    async def run() -> Result:
        async with ApiClient(connection.url, connection.project, connection.credentials) as client:
            return await work(client)

    try:
        return asyncio.run(run())
    except (RequestError, InputError) as error:
        stop(str(error), ExitCode.ERROR)
    except KeyboardInterrupt:
        stop("interrupted; the action continues on the server", ExitCode.ERROR)


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


def _from_environment(name: str) -> str:
    try:
        return printable(os.environ.get(name, ""))
    except typer.BadParameter:
        stop(f"{name} contains control characters; remove them", ExitCode.USAGE)


def run_offline(options: OfflineOptions, work: Callable[["Settings"], Awaitable[Result]]) -> Result:
    """Run `work` with the settings of a server. An error is printed and ends the command with exit
    code 1."""
    # Imported here, because it takes long, and most commands do not need it.
    from hub.settings.settings import load_settings

    async def run() -> Result:
        return await work(load_settings(options.config, {"database.data_dir": options.data_dir}))

    try:
        return asyncio.run(run())
    except (HeadgateError, OSError) as error:
        stop(str(error), ExitCode.ERROR)


def stop(message: str, code: ExitCode) -> NoReturn:
    """Print an error and end the command."""
    complain(message)
    raise typer.Exit(code)


def complain(message: str) -> None:
    """Print to standard error, without line breaks at the width of the terminal."""
    err.print(f"headgate: {message}", markup=False, soft_wrap=True)


def print_result(
    document: Json, result_format: ResultFormat, render: Callable[[], RenderableType]
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


def print_renderable(result: RenderableType, *, wide: bool = False) -> None:
    """Print a result for people. On a terminal, a long one is shown in a pager. wide: do not
    shorten lines."""
    if not out.is_terminal:
        out.print(result, markup=False)
        return
    console = Console(highlight=False, width=UNLIMITED) if wide else out
    with console.capture() as captured:
        console.print(result, markup=False)
    show_text(captured.get(), lines=out.height)
