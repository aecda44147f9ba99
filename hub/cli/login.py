"""headgate login, and headgate context: list, show, use and delete."""

import sys
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer

from headgate.connection import url_path
from headgate.errors import RequestError
from hub.cli import output
from hub.cli.client import ApiClient
from hub.cli.completion import complete_contexts
from hub.cli.context import ask_with, chosen_connection, print_result, stop
from hub.cli.exit_codes import ExitCode
from hub.cli.options import ConnectionOptions, PrintOptions, with_options
from hub.cli.saved_contexts import (
    ContextError,
    SavedContext,
    SavedContexts,
    contexts_path,
    read_contexts,
    write_contexts,
)

Json = Any
app = typer.Typer()
context = typer.Typer(help="List and choose saved servers and projects.", no_args_is_help=True)
app.add_typer(context, name="context")
Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Name of the context.", autocompletion=complete_contexts),
]
FIELDS = ("name", "current", "url", "project", "user", "token")


@app.command()
@with_options
def login(server: ConnectionOptions) -> None:
    """Check a token, and save it with the server and the project as a context.

    The command asks for the token, or reads it from the first line of standard input. The context
    becomes the current one: commands use it without --url, --project, --user and HEADGATE_TOKEN.
    """
    saved = _read()
    name = server.context or "default"
    known = saved.contexts.get(name)
    context = SavedContext(known.url, known.project, known.user) if known else None
    try:
        connection = chosen_connection(server).resolve_with(context or SavedContext(""))
    except ContextError as error:
        stop(str(error), ExitCode.USAGE)
    token = read_token()
    credentials = replace(connection.credentials, token=token, password="")
    connection = replace(connection, credentials=credentials)
    session = ask_with(connection, _read_session)
    context = SavedContext(connection.url, connection.project, connection.credentials.user, token)
    _write(saved.add(name, context))
    where = f"{connection.url}, project {connection.project}"
    typer.echo(f"Logged in to {where}, as {session['name']}.")
    typer.echo(f'Saved as context "{name}" in {contexts_path()}.')


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
        except typer.Abort:
            stop("nothing was saved", ExitCode.ERROR)
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
    columns = {"current": "", "name": "NAME", "url": "URL", "project": "PROJECT", "user": "USER",
               "token": "TOKEN"}  # fmt: skip
    print_result(rows, printing.format, lambda: output.table(table, columns))


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
