"""Requests, results and errors of all commands."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer
from rich.console import Console, RenderableType

from engine.errors import HeadgateError
from headgate.connection import ClientCredentials, Query
from headgate.errors import RequestError
from hub.cli.client import ApiClient, call_stack
from hub.cli.exit_codes import ExitCode
from hub.cli.files import InputError
from hub.cli.options import ConnectionOptions, OfflineOptions, printable
from hub.cli.output import format_json

if TYPE_CHECKING:
    from hub.settings.settings import Settings

Result = TypeVar("Result")
Json = Any


#: The variable with your roles, separated by commas. The server accepts it in mode none only.
ROLES = "HEADGATE_ROLES"
#: Variables with a token, or the password of --user. There are no options for these, because other
#: users of the machine can read the options of a process.
TOKEN, PASSWORD = "HEADGATE_TOKEN", "HEADGATE_PASSWORD"

#: The width of tables in files and pipes; None: the width of the terminal.
WIDTH = None if sys.stdout.isatty() else 240
out = Console(highlight=False, width=WIDTH)
err = Console(stderr=True, highlight=False)


def ask(server: ConnectionOptions, work: Callable[[ApiClient], Awaitable[Result]]) -> Result:
    """Run `work` with a client. An error is printed and ends the command with exit code 1."""
    variables = (_from_environment(name) for name in (ROLES, TOKEN, PASSWORD))
    credentials = ClientCredentials(server.user, *variables)

    async def run() -> Result:
        async with ApiClient(server.url, server.project, credentials) as client:
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


def print_result(document: Json, as_json: bool, render: Callable[[], RenderableType]) -> None:
    if as_json:
        typer.echo(format_json(document))
    else:
        out.print(render(), markup=False)
