"""headgate login and logout, and headgate context: list, show, use and delete."""

import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from headgate.connection import ClientCredentials, url_path
from headgate.errors import RequestError
from hub.cli import libraries
from hub.cli.completion import complete_contexts
from hub.cli.connection.client import ApiClient
from hub.cli.connection.connections import ResolvedConnection
from hub.cli.connection.saved_contexts import (
    ContextError,
    SavedContext,
    SavedContexts,
    contexts_path,
    read_contexts,
    write_contexts,
)
from hub.cli.context import ask_with, chosen_connection, print_result, print_rows
from hub.cli.exit_codes import ExitCode
from hub.cli.messages import note, stop
from hub.cli.options import ConnectionOptions, PrintOptions, with_options
from hub.cli.printing import output, tables
from hub.cli.signals import code_of_abort

Json = Any
app = typer.Typer()
context = typer.Typer(help="List and choose saved servers and projects.", no_args_is_help=True)
app.add_typer(context, name="context")
Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Name of the context.", autocompletion=complete_contexts),
]
#: The name of the context of a login if no other one is chosen.
FIRST_CONTEXT = "default"
#: Seconds for the end of a login that another one replaces.
_END_TIME = 10.0
FIELDS = ("name", "current", "url", "project", "user", "token", "expires_at")


Web = Annotated[
    bool,
    typer.Option("--web", help="Sign in with a browser, with the OpenID provider of the server."),
]
NoBrowser = Annotated[
    bool,
    typer.Option(
        "--no-browser",
        help="Print the address for --web, to open it in a browser on another machine.",
    ),
]


@app.command()
@with_options
def login(server: ConnectionOptions, web: Web = False, no_browser: NoBrowser = False) -> None:
    """Sign in with a token or a browser, and save the login with the server and the project.

    The command asks for the token, or reads it from the first line of standard input. With --web,
    you sign in with a browser instead. The login is saved as a context, which becomes the current
    one: commands use it without --url, --project, --user and HEADGATE_TOKEN. Without --context, it
    is the current context, and its server and project are the defaults. If there is none, or --url
    names another server, the login is saved as `default`. If the context has a login with --web
    already, that one ends.
    """
    saved = _read()
    name = chosen_name(saved, server)
    known = saved.contexts.get(name)
    context = SavedContext(known.url, known.project, known.user) if known else None
    try:
        connection = chosen_connection(server).resolve_with(context or SavedContext(""))
    except ContextError as error:
        stop(str(error), ExitCode.USAGE)
    if web or no_browser:
        context, user = _log_in_by_browser(connection, browser=not no_browser)
    else:
        context, user = _log_in_with_token(connection)
    _write(saved.add(name, context))
    if known and known.expires_at and known.token not in ("", context.token):
        _end_replaced_login(known)
    typer.echo(f"Signed in to {context.url}, project {context.project}, as {user}.")
    if context.expires_at:
        left = tables.time_left(context.expires_at, datetime.now(UTC))
        typer.echo(f"The login ends at {context.expires_at} ({left}).")
    typer.echo(f'Saved as context "{name}" in {contexts_path()}.')


def chosen_name(saved: SavedContexts, server: ConnectionOptions) -> str:
    """The context of a login. The current one does not become one of another server. Pure."""
    if server.context:
        return server.context
    current = saved.contexts.get(saved.current)
    if current is None or (server.url and server.url != current.url):
        return FIRST_CONTEXT
    return saved.current


def _end_replaced_login(context: SavedContext) -> None:
    """If its server responds; else the token stays valid, which is printed."""

    async def end(client: ApiClient) -> None:
        try:
            async with libraries.asyncio.timeout(_END_TIME):
                await client.call("DELETE", url_path("session"))
        except (RequestError, TimeoutError) as error:
            if not (isinstance(error, RequestError) and error.status == 401):
                reason = str(error) or f"no response within {_END_TIME:g} s"
                note(
                    f"the login that this one replaces stays valid until {context.expires_at}:"
                    f" {reason}"
                )

    credentials = ClientCredentials(token=context.token)
    ask_with(ResolvedConnection(context.url, context.project, credentials), end)


def _log_in_by_browser(
    connection: ResolvedConnection, *, browser: bool
) -> tuple[SavedContext, str]:
    """The context to save, and the name of the user."""
    # Imported here, because other commands of this module do not need it.
    from hub.cli.commands.provider_login import log_in

    created = log_in(connection, browser=browser)
    token, expires_at = created["token"], created["expires_at"] or ""
    context = SavedContext(connection.url, connection.project, "", token, expires_at)
    return context, created["name"]


def _log_in_with_token(connection: ResolvedConnection) -> tuple[SavedContext, str]:
    """The context to save, and the name of the user."""
    token = read_token()
    credentials = replace(connection.credentials, token=token, password="")
    connection = replace(connection, credentials=credentials)
    session = ask_with(connection, _read_session)
    context = SavedContext(connection.url, connection.project, connection.credentials.user, token)
    return context, session["name"]


@app.command()
def logout(
    name: Annotated[
        str,
        typer.Option(
            "--context",
            metavar="NAME",
            help="The context. Default: the current one.",
            autocompletion=complete_contexts,
        ),
    ] = "",
) -> None:
    """End a login, and delete its token from this machine.

    A token from `headgate login --web` is revoked. Other tokens stay valid; see `headgate token
    revoke`.
    """
    saved = _read()
    name = name or saved.current
    if not name:
        stop("there is no current context; see `headgate context list`", ExitCode.ERROR)
    try:
        context = saved.find(name)
        without = saved.log_out(name)
    except ContextError as error:
        stop(str(error), ExitCode.ERROR)
    if not context.token:
        stop(f'the context "{name}" has no token', ExitCode.ERROR)
    if context.expires_at:
        credentials = ClientCredentials(token=context.token)
        ask_with(ResolvedConnection(context.url, context.project, credentials), _end_login)
    _write(without)
    place = f"{context.url}, project {context.project}"
    if context.expires_at:
        typer.echo(f"Signed out of {place}.")
    else:
        typer.echo(f"Deleted the token for {place} from this machine. It stays valid until it is"
                   " revoked.")  # fmt: skip


async def _end_login(client: ApiClient) -> None:
    """Raises RequestError, unless the login has already ended."""
    try:
        await client.call("DELETE", url_path("session"))
    except RequestError as error:
        if error.status != 401:
            remedy = "Nothing was deleted. Try again, or use `headgate context delete`."
            raise RequestError(error.status, f"{error} {remedy}") from error


async def _read_session(client: ApiClient) -> Json:
    try:
        return await client.call("GET", url_path("session"))
    except RequestError as error:
        if error.status == 401:
            raise RequestError(401, "the server refused the token; nothing was saved") from error
        raise


def read_token() -> str:
    """Prompt on a terminal, else read the first line of standard input. Empty: none."""
    if sys.stdin.isatty():
        try:
            text = typer.prompt("Token (empty if the server needs none)", default="",
                                hide_input=True, show_default=False, err=True)  # fmt: skip
        except typer.Abort as abort:
            stop("nothing was saved", code_of_abort(abort))
    else:
        text = sys.stdin.readline()
    token = str(text).strip()
    if not token.isprintable() or not token.isascii():
        stop("the token contains characters that no token has; nothing was saved", ExitCode.USAGE)
    return token


@context.command(name="list")
@with_options
def list_(printing: PrintOptions) -> None:
    """List the saved contexts; a star marks the current one."""
    saved = _read()
    rows = [_row(saved, name) for name in saved.contexts]
    table = [one | {"current": "*" if one["current"] else ""} for one in rows]
    columns: tables.Columns = {
        "current": "",
        "name": "NAME",
        "url": "URL",
        "project": "PROJECT",
        "user": "USER",
        "token": "TOKEN",
        "expires_at": tables.deadline_column("EXPIRES"),
    }
    none = "no saved context; `headgate login` saves one"
    print_rows(rows, printing.format, lambda: output.table(table, columns), none)


@context.command(name="show")
@with_options
def show_(
    printing: PrintOptions,
    name: Annotated[
        str,
        typer.Argument(
            metavar="[NAME]",
            help="Name. Default: the current context.",
            autocompletion=complete_contexts,
        ),
    ] = "",
) -> None:
    """Show a context, without its token."""
    saved = _read()
    if not (name or saved.current):
        stop("there is no current context; see `headgate context list`", ExitCode.ERROR)
    row = _find(saved, name or saved.current)
    print_result(row, printing.format, lambda: output.fields(row, FIELDS))


@context.command()
def use(name: Name) -> None:
    """Make a context the current one."""
    try:
        _write(_read().select(name))
    except ContextError as error:
        stop(str(error), ExitCode.ERROR)


@context.command()
def delete(name: Name) -> None:
    """Delete a context with its token from this machine. The token stays valid."""
    try:
        _write(_read().remove(name))
    except ContextError as error:
        stop(str(error), ExitCode.ERROR)


def _row(saved: SavedContexts, name: str) -> dict[str, Json]:
    """A context with the word `saved` in place of its token."""
    one = asdict(saved.contexts[name])
    token = "saved" if one["token"] else ""
    return {"name": name, "current": name == saved.current, **one, "token": token}


def _find(saved: SavedContexts, name: str) -> dict[str, Json]:
    try:
        saved.find(name)
    except ContextError as error:
        stop(str(error), ExitCode.ERROR)
    return _row(saved, name)


def _read() -> SavedContexts:
    try:
        return read_contexts(contexts_path())
    except ContextError as error:
        stop(str(error), ExitCode.ERROR)


def _write(saved: SavedContexts) -> None:
    try:
        write_contexts(contexts_path(), saved)
    except ContextError as error:
        stop(str(error), ExitCode.ERROR)
