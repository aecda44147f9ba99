"""headgate admin ...: commands that work on the server's database directly, without a server."""

import asyncio
import re
import secrets
from collections.abc import Sequence
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
app = typer.Typer(
    help="Administer a server: keys, tokens, audit log, database.", no_args_is_help=True
)
WRITTEN = re.compile(r"([1-9]\d{0,8}):([0-9a-f]{64})")


@app.command()
def verify_audit(
    stack: Annotated[
        UUID | None,
        typer.Argument(
            metavar="STACK_ID", help="ID of a stack, which may be deleted. Default: all stacks."
        ),
    ] = None,
    expect: Annotated[
        str,
        typer.Option(
            metavar="NUMBER:HASH",
            help="An entry that you noted earlier; the audit log must still contain it.",
        ),
    ] = "",
    signed: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE",
            help="Signed checkpoints; may repeat. Default: the server's own file, if it exists.",
        ),
    ] = [],  # noqa: B006
    public_key: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE",
            help="A key of `headgate admin audit-key`; may repeat. Default: the server's own key.",
        ),
    ] = [],  # noqa: B006
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Verify the hash chains and signatures of the audit log."""
    written = read_written(expect) if expect else None
    if written is not None and stack is None:
        stop("--expect needs the ID of the stack", Exit.USAGE)
    try:
        found, projects = asyncio.run(
            _checked(config, data_dir, stack, written, signed, public_key)
        )
    except HeadgateError as error:
        stop(str(error), Exit.ERROR)
    if as_json:
        typer.echo(dump(found))
    else:
        typer.echo("\n".join(report(found, projects)))
    raise typer.Exit(Exit.ERROR if any(one["wrong"] for one in found) else Exit.COMPLETE)


@app.command()
def create_token(
    name: tokens.Name,
    role: tokens.Roles,
    expires_in: tokens.ExpiresIn = "",
    password: tokens.WithPassword = False,
    everywhere: tokens.Everywhere = False,
    project: Annotated[str, typer.Option("--project", help="The project of the token.")] = "",
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Create a token without signing in: the first one, or after losing all others."""
    if everywhere == bool(project):
        stop("name the project with --project NAME, or use --everywhere", Exit.USAGE)
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
    from hub.auth.token_issuer import TokenRequest, given
    from hub.checks.offline_database import open_offline
    from hub.settings.settings import load_settings

    wish = TokenRequest(
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
    async with open_offline(settings.database) as conn:
        return {**document(await store.create(conn, kept)), "token": token}


@app.command()
def sign_audit(config: Config = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Sign the audit log now. The server does this every hour."""
    try:
        count = asyncio.run(_signed(config, data_dir))
    except (HeadgateError, OSError) as error:
        stop(str(error), Exit.ERROR)
    typer.echo(dump({"checkpoints": count}) if as_json else f"signed {count} checkpoints")


@app.command()
def audit_key(config: Config = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Print the public key that verifies the signatures of the audit log."""
    from hub.keys.audit_key import public_pem
    from hub.settings.settings import load_settings

    try:
        settings = load_settings(config, {"database.data_dir": data_dir})
        key = public_pem(settings.audit.key_path(settings.database.data_dir))
    except HeadgateError as error:
        stop(str(error), Exit.ERROR)
    typer.echo(dump({"public_key": key}) if as_json else key, nl=as_json)


async def _signed(config: Path | None, data_dir: Path | None) -> int:
    from engine.work.audit_signing import export_checkpoints, sign_heads
    from hub.checks.offline_database import open_offline
    from hub.keys.audit_key import appending, signer_of
    from hub.settings.settings import load_settings

    settings = load_settings(config, {"database.data_dir": data_dir})
    audit, directory = settings.audit, settings.database.data_dir
    async with open_offline(settings.database) as conn:
        count = await sign_heads(conn, signer_of(audit.key_path(directory)))
        await export_checkpoints(conn, appending(audit.checkpoints_path(directory)))
    return count


async def _checked(
    config: Path | None,
    data_dir: Path | None,
    stack: UUID | None,
    written: Entry | None,
    signed: list[Path],
    public_keys: list[Path],
) -> tuple[list[Json], int]:
    """A document for each stack and, last, one for the checkpoints; and how many projects have
    entries."""
    # Only here, because other commands would wait for all of the engine to be read.
    from engine.hooks.checkpoint import first_fault
    from engine.service.reads.audit_verification import (
        KnownEntry,
        check_all_logs,
        check_heads,
        check_log,
    )
    from engine.store.audit_log import count_projects
    from hub.checks.offline_database import open_offline
    from hub.keys.audit_key import read_checkpoints, read_public
    from hub.settings.settings import load_settings

    settings = load_settings(config, {"database.data_dir": data_dir})
    audit, directory = settings.audit, settings.database.data_dir
    own = audit.checkpoints_path(directory)
    checkpoints = read_checkpoints(signed or ([own] if own.exists() else []))
    fault = None
    if checkpoints:
        fault = first_fault(checkpoints, read_public(public_keys or [audit.key_path(directory)]))
    async with open_offline(settings.database) as conn:
        if stack is None:
            found = await check_all_logs(conn)
        else:
            wanted = KnownEntry(*written) if written else None
            found = [await check_log(conn, stack, wanted)]
        found = await check_heads(conn, found, checkpoints, settings.retention.trails)
        if stack is not None:
            found = [one for one in found if one.stack_id == stack]
        projects = await count_projects(conn, [one.stack_id for one in found])
    said = [asdict(one) | {"stack_id": str(one.stack_id)} for one in found]
    if checkpoints:
        said.append({"checkpoints": len(checkpoints), "wrong": fault})
    return said, projects


def read_written(text: str) -> Entry:
    """``NUMBER:HASH``; raises typer's usage error."""
    match = WRITTEN.fullmatch(text)
    if match is None:
        raise typer.BadParameter(
            f'"{text}" is not an audit log entry; write NUMBER:HASH as verify-audit prints it'
        )
    return int(match[1]), match[2]


def report(found: Sequence[Json], projects: int) -> list[str]:
    """The lines to print: what is right, then what is wrong, then a summary.

    found: of each stack, and of the checkpoints if there are any. projects: that have entries.
    """
    stacks = [one for one in found if "stack_id" in one]
    entries = sum(one["decisions"] for one in stacks)
    signatures = sum(one.get("checkpoints", 0) for one in found)
    problems = sum(bool(one["wrong"]) for one in found)
    summary = (
        f"checked {_count(entries, 'entry', 'entries')} of"
        f" {_count(len(stacks), 'stack')} in {_count(projects, 'project')}"
        f" and {_count(signatures, 'signed checkpoint')}:"
        f" {_count(problems, 'problem')}"
    )
    return [*map(line, sorted(found, key=lambda one: bool(one["wrong"]))), summary]


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def line(one: Json) -> str:
    """Not folded on any terminal: its end is what one writes down."""
    if "checkpoints" in one:
        wrong = one["wrong"]
        return f"checkpoints  wrong: {wrong}" if wrong else f"checkpoints  ok {one['checkpoints']}"
    if one["wrong"]:
        return f"{one['stack_id']}  wrong: {one['wrong']}"
    return f"{one['stack_id']}  ok {one['decisions']} decisions, last {one['last']}"
