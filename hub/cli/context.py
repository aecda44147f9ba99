"""What every command shares: where the server is, how to print, how to end."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from rich.console import Console, RenderableType
from yarl import URL as Address

from engine.hooks.durations import parse_duration
from hub.cli.client import Client, Refused, Who
from hub.cli.exit_codes import Exit
from hub.cli.file_references import Unreadable
from hub.cli.files import dump

Answer = TypeVar("Answer")
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


def sayable(text: str) -> str:
    """What can be sent as a name; raises typer's usage error."""
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


Url = Annotated[
    str,
    typer.Option("--url", envvar="HEADGATE_URL", help="Address of the server.", parser=http_url,
                 metavar="URL"),
]  # fmt: skip
Project = Annotated[str, typer.Option("--project", envvar="HEADGATE_PROJECT", help="Whose stacks.")]
User = Annotated[
    str,
    typer.Option("--user", envvar="HEADGATE_USER", help="Your user name.", parser=sayable,
                 metavar="NAME"),
]  # fmt: skip
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
URL = "http://127.0.0.1:8004"
PROJECT = "default"
USER = ""
#: The variable that holds your roles, separated by commas; believed in mode none alone.
ROLES = "HEADGATE_ROLES"
#: Variables that hold what lets you in: a token; or a password, beside --user. Never options, which
#: others on the machine could read.
TOKEN, PASSWORD = "HEADGATE_TOKEN", "HEADGATE_PASSWORD"

#: Tables in files and pipes are not folded to a terminal's width.
WIDTH = None if sys.stdout.isatty() else 240
out = Console(highlight=False, width=WIDTH)
err = Console(stderr=True, highlight=False)


@dataclass(frozen=True, slots=True)
class Where:
    url: str
    project: str
    user: str = USER


def ask(where: Where, work: Callable[[Client], Awaitable[Answer]]) -> Answer:
    """Do something with a client; what goes wrong is said, and ends the command."""

    roles, token, password = (_of_environment(name) for name in (ROLES, TOKEN, PASSWORD))

    async def run() -> Answer:
        who = Who(where.user, roles, token, password)
        async with Client(where.url, where.project, who) as client:
            return await work(client)

    try:
        return asyncio.run(run())
    except (Refused, Unreadable) as error:
        stop(str(error), Exit.ERROR)
    except KeyboardInterrupt:
        stop("interrupted; the action continues on the server", Exit.ERROR)


def _of_environment(name: str) -> str:
    try:
        return sayable(os.environ.get(name, ""))
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
