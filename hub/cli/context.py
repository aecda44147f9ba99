"""What every command shares: where the server is, how to print, how to end."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from rich.console import Console, RenderableType

from hub.cli.client import Client, Refused
from hub.cli.exit_codes import Exit
from hub.cli.files import Unreadable, dump

Answer = TypeVar("Answer")
Json = Any

Url = Annotated[str, typer.Option("--url", envvar="HEADGATE_URL", help="Where the server is.")]
Project = Annotated[str, typer.Option("--project", envvar="HEADGATE_PROJECT", help="Whose stacks.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
URL = "http://127.0.0.1:8004"
PROJECT = "default"

out = Console(highlight=False, soft_wrap=False)
err = Console(stderr=True, highlight=False)


@dataclass(frozen=True, slots=True)
class Where:
    url: str
    project: str


def ask(where: Where, work: Callable[[Client], Awaitable[Answer]]) -> Answer:
    """Do something with a client; what goes wrong is said, and ends the command."""

    async def run() -> Answer:
        async with Client(where.url, where.project) as client:
            return await work(client)

    try:
        return asyncio.run(run())
    except (Refused, Unreadable) as error:
        stop(str(error), Exit.ERROR)
    except KeyboardInterrupt:
        stop("interrupted; the server goes on without us", Exit.ERROR)


def stop(message: str, code: Exit) -> NoReturn:
    err.print(f"headgate: {message}", markup=False)
    raise typer.Exit(code)


def tell(document: Json, as_json: bool, pretty: Callable[[], RenderableType]) -> None:
    if as_json:
        typer.echo(dump(document))
    else:
        out.print(pretty())


def parse_seconds(text: str) -> float:
    """``90s``, ``30m``, ``2h``; raises typer's usage error."""
    from engine.hooks.rules import parse_duration

    found = parse_duration(text)
    if found is None:
        raise typer.BadParameter(f'"{text}" is no time; write 90s, 30m or 2h')
    return found.total_seconds()
