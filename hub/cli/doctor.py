"""headgate admin migrate, doctor and backup-check: checks of an installation."""

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer

from engine.errors import HeadgateError
from hub.cli import show
from hub.cli.context import AsJson, stop
from hub.cli.exit_codes import Exit
from hub.cli.files import dump
from hub.cli.options import Config, DataDir

Json = Any
Found = TypeVar("Found")


def migrate(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print pending migrations without applying them.")
    ] = False,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Upgrade the database schema to this version. A server does this when it starts."""
    found = _done(_migrated(config, data_dir, dry_run))
    if as_json:
        typer.echo(dump(found))
        return
    for name in found["pending"]:
        typer.echo(f"{name}: {'pending' if dry_run else 'applied'}")
    if found["routines"]:
        typer.echo(f"functions and views: {'pending' if dry_run else 'upgraded'}")
    if not found["pending"] and not found["routines"]:
        typer.echo("the schema is up to date")


def doctor(config: Config = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Check settings, database, broker, files and stuck work."""
    _end(_done(_examined(config, data_dir)), as_json)


def backup_check(config: Config = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Check a restored database for consistency, before you start a server on it."""
    _end(_done(_checked(config, data_dir)), as_json)


def _done(work: Coroutine[None, None, Found]) -> Found:
    try:
        return asyncio.run(work)
    except HeadgateError as error:
        stop(str(error), Exit.ERROR)


async def _migrated(config: Path | None, data_dir: Path | None, dry_run: bool) -> Json:
    # Only here, because other commands would wait for all of the engine to be read.
    from engine.store.schema_upgrade import migrate as carry_out
    from engine.store.schema_upgrade import outstanding, routines_outdated
    from hub.checks.offline_database import looked_into, reached
    from hub.settings.settings import load_settings

    settings = load_settings(config, {"database.data_dir": data_dir})
    async with reached(settings.database) as url:
        async with looked_into(url) as conn:
            left = await outstanding(conn)
            remade = await routines_outdated(conn)
        if not dry_run:
            left = await carry_out(url)
    return {"pending": left, "routines": remade, "applied": not dry_run}


async def _examined(config: Path | None, data_dir: Path | None) -> list[Json]:
    from hub.checks.doctor import run_checks
    from hub.checks.results import refused
    from hub.settings.settings import load_settings

    try:
        settings = load_settings(config, {"database.data_dir": data_dir})
    except HeadgateError as error:
        return [refused("settings", error).document]
    return [one.document for one in await run_checks(settings, config)]


async def _checked(config: Path | None, data_dir: Path | None) -> list[Json]:
    from hub.checks.backup_check import checked
    from hub.checks.keys import KeyFiles
    from hub.checks.offline_database import looked_into, reached
    from hub.settings.settings import load_settings

    settings = load_settings(config, {"database.data_dir": data_dir})
    keys = KeyFiles.of(settings)
    async with reached(settings.database) as url, looked_into(url) as conn:
        return [one.document for one in await checked(conn, keys)]


def _end(found: Sequence[Json], as_json: bool) -> NoReturn:
    """Say what was found; the code is 1 when anything is wrong, a warning is none."""
    typer.echo(dump(found) if as_json else "\n".join(map(line, found)))
    wrong = any(one["state"] == "wrong" for one in found)
    raise typer.Exit(Exit.ERROR if wrong else Exit.COMPLETE)


def line(one: Json) -> str:
    remedy = f". {one['remedy']}" if one["remedy"] else ""
    return show.plain(f"{one['what']:<12} {one['state']:<8} {one['said']}{remedy}")


def add_to(app: typer.Typer) -> None:
    app.command()(migrate)
    app.command()(doctor)
    app.command()(backup_check)
