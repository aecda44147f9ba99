"""Shared by all commands: the options of the server, output, and exit codes."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, Concatenate, NoReturn, ParamSpec, TypeVar

import typer
from rich.console import Console, RenderableType
from yarl import URL as Address

from engine.hooks.durations import parse_duration
from hub.cli.client import Client, Refused, Who
from hub.cli.exit_codes import Exit
from hub.cli.file_references import Unreadable
from hub.cli.files import dump

Answer = TypeVar("Answer")
Rest = ParamSpec("Rest")
Json = Any


def http_url(text: str) -> str:
    """The address of a server; raises typer's usage error."""
    try:
        address = Address(text)
        usable = address.scheme in ("http", "https") and bool(address.host)
    except ValueError:
        usable = False
    if not usable:
        raise typer.BadParameter(f'"{text}" is not a valid address; write http://HOST:PORT')
    return text


def printable(text: str) -> str:
    """A name without control characters; raises typer's usage error."""
    if not text.isprintable():
        raise typer.BadParameter(
            f"{text!r} is not a valid name; remove the characters that cannot be printed"
        )
    return text


def seconds(text: str) -> float:
    """``90s``, ``30m``, ``2h``, ``1d``; raises typer's usage error."""
    found = parse_duration(text)
    if found is None:
        raise typer.BadParameter(f'"{text}" is not a duration; write 90s, 30m or 2h')
    return found.total_seconds()


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


PROJECT = "default"


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options of every command that calls the API, declared here alone: `uses_server` gives
    them to a command."""

    url: Annotated[
        str,
        typer.Option(
            "--url",
            envvar="HEADGATE_URL",
            help="Address of the server.",
            parser=http_url,
            metavar="URL",
        ),
    ] = "http://127.0.0.1:8004"
    project: Annotated[
        str, typer.Option("--project", envvar="HEADGATE_PROJECT", help="Whose stacks.")
    ] = PROJECT
    user: Annotated[
        str,
        typer.Option(
            "--user",
            envvar="HEADGATE_USER",
            help="Your user name.",
            parser=printable,
            metavar="NAME",
        ),
    ] = ""
    as_json: AsJson = False


def uses_server(command: Callable[Concatenate[ServerOptions, Rest], None]) -> Callable[..., None]:
    """Replaces the first parameter of a command by the options of `ServerOptions`, at the end."""
    return _with_options(command, [one.name for one in fields(ServerOptions)])


def uses_server_without_json(
    command: Callable[Concatenate[ServerOptions, Rest], None],
) -> Callable[..., None]:
    """As `uses_server`, for a command that prints nothing."""
    return _with_options(command, [one.name for one in fields(ServerOptions)][:-1])


def _with_options(
    command: Callable[Concatenate[ServerOptions, Rest], None], names: Sequence[str]
) -> Callable[..., None]:
    own = list(signature(command, eval_str=True).parameters.values())[1:]
    declared = signature(ServerOptions, eval_str=True).parameters
    options = [declared[name].replace(kind=Parameter.KEYWORD_ONLY) for name in names]

    @wraps(command)
    def with_options(**given: Any) -> None:
        server = ServerOptions(**{name: given.pop(name) for name in names})
        command(server, **given)  # type: ignore[call-arg]

    own = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in own]
    with_options.__signature__ = Signature([*own, *options])  # type: ignore[attr-defined]
    return with_options


#: The variable with your roles, separated by commas. The server accepts it in mode none alone.
ROLES = "HEADGATE_ROLES"
#: Variables with credentials: a token, or the password of --user. They are no options, because
#: other users of the machine can read the options of a process.
TOKEN, PASSWORD = "HEADGATE_TOKEN", "HEADGATE_PASSWORD"

#: Tables in files and pipes are not folded to a terminal's width.
WIDTH = None if sys.stdout.isatty() else 240
out = Console(highlight=False, width=WIDTH)
err = Console(stderr=True, highlight=False)


def ask(server: ServerOptions, work: Callable[[Client], Awaitable[Answer]]) -> Answer:
    """Run `work` with a client. An error is printed and ends the command with exit code 1."""

    roles, token, password = (_of_environment(name) for name in (ROLES, TOKEN, PASSWORD))

    async def run() -> Answer:
        who = Who(server.user, roles, token, password)
        async with Client(server.url, server.project, who) as client:
            return await work(client)

    try:
        return asyncio.run(run())
    except (Refused, Unreadable) as error:
        stop(str(error), Exit.ERROR)
    except KeyboardInterrupt:
        stop("interrupted; the action continues on the server", Exit.ERROR)


def _of_environment(name: str) -> str:
    try:
        return printable(os.environ.get(name, ""))
    except typer.BadParameter:
        stop(f"{name} contains characters that cannot be printed; remove them", Exit.USAGE)


def stop(message: str, code: Exit) -> NoReturn:
    complain(message)
    raise typer.Exit(code)


def complain(message: str) -> None:
    """To standard error, in lines as they are: scripts read them."""
    err.print(f"headgate: {message}", markup=False, soft_wrap=True)


def print_result(document: Json, as_json: bool, pretty: Callable[[], RenderableType]) -> None:
    if as_json:
        typer.echo(dump(document))
    else:
        out.print(pretty(), markup=False)
