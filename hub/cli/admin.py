"""headgate admin ...: for whoever runs a server; reads its database, and asks no server."""

import asyncio
import re
import secrets
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID, uuid4

import typer

from engine.errors import HeadgateError
from hub.cli import tokens
from hub.cli.context import AsJson, stop
from hub.cli.exit_codes import Exit
from hub.cli.files import dump
from hub.cli.options import Config, DataDir

Json = Any
#: Number and hash of an entry of a trail.
Entry = tuple[int, str]
app = typer.Typer(help="For whoever runs a server.", no_args_is_help=True)
WRITTEN = re.compile(r"([1-9]\d{0,8}):([0-9a-f]{64})")


@app.command()
def verify_audit(
    stack: Annotated[
        UUID | None,
        typer.Argument(metavar="STACK_ID", help="Id of a stack, deleted or not; all if not said."),
    ] = None,
    expect: Annotated[
        str,
        typer.Option(
            metavar="NUMBER:HASH",
            help="An entry as you wrote it down: the trail must still have it.",
        ),
    ] = "",
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """See whether the audit trail is as it was written."""
    written = read_written(expect) if expect else None
    if written is not None and stack is None:
        stop("--expect is about one stack: name its id", Exit.USAGE)
    try:
        found = asyncio.run(_checked(config, data_dir, stack, written))
    except HeadgateError as error:
        stop(str(error), Exit.ERROR)
    if as_json:
        typer.echo(dump(found))
    else:
        typer.echo("\n".join(map(line, found)) or "nobody has decided anything")
    raise typer.Exit(Exit.ERROR if any(one["wrong"] for one in found) else Exit.COMPLETE)


@app.command()
def create_token(
    name: tokens.Name,
    role: tokens.Roles,
    expires_in: tokens.ExpiresIn = "",
    password: tokens.WithPassword = False,
    everywhere: tokens.Everywhere = False,
    project: Annotated[str, typer.Option("--project", help="The project it is for.")] = "",
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Give out a token without having one: the first, or after all are lost."""
    if everywhere == bool(project):
        stop("say for which project it is: --project NAME or --everywhere", Exit.USAGE)
    secret = tokens.read_password() if password else None
    try:
        made = asyncio.run(_given(config, data_dir, project, name, role, expires_in, secret))
    except HeadgateError as error:
        stop(str(error), Exit.ERROR)
    tokens.print_given(made, as_json)


async def _given(
    config: Path | None,
    data_dir: Path | None,
    project: str,
    name: str,
    roles: list[str],
    expires_in: str,
    password: str | None,
) -> Json:
    from engine.store import tokens as store
    from hub.api.headgate.tokens import document
    from hub.auth.giving import Wish, given
    from hub.settings import load_settings
    from hub.visiting import visited

    wish = Wish(
        id=uuid4(),
        project=project or store.EVERYWHERE,
        name=name,
        roles=roles,
        by="headgate admin",
        password=password,
        expires_in=expires_in,
        random_bytes=secrets.token_bytes(32),
    )
    kept, token = given(wish)
    settings = load_settings(config, {"database.data_dir": data_dir})
    async with visited(settings.database) as conn:
        return {**document(await store.create(conn, kept)), "token": token}


async def _checked(
    config: Path | None, data_dir: Path | None, stack: UUID | None, written: Entry | None
) -> list[Json]:
    # Only here, because other commands would wait for all of the engine to be read.
    from engine.service.auditing import Written, check_trail, check_trails
    from hub.settings import load_settings
    from hub.visiting import visited

    settings = load_settings(config, {"database.data_dir": data_dir})
    async with visited(settings.database) as conn:
        if stack is None:
            found = await check_trails(conn)
        else:
            wanted = Written(*written) if written else None
            found = [await check_trail(conn, stack, wanted)]
    return [asdict(one) | {"stack_id": str(one.stack_id)} for one in found]


def read_written(text: str) -> Entry:
    """``NUMBER:HASH``; raises typer's usage error."""
    match = WRITTEN.fullmatch(text)
    if match is None:
        raise typer.BadParameter(f'"{text}" is no entry; write NUMBER:HASH, as it was printed')
    return int(match[1]), match[2]


def line(one: Json) -> str:
    """Not folded on any terminal: its end is what one writes down."""
    if one["wrong"]:
        return f"{one['stack_id']}  wrong: {one['wrong']}"
    return f"{one['stack_id']}  ok {one['decisions']} decisions, last {one['last']}"
