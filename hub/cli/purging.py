"""headgate admin purge: delete data beyond its retention."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from engine.errors import HeadgateError
from hub.cli.context import AsJson, seconds, stop
from hub.cli.exit_codes import Exit
from hub.cli.files import dump
from hub.cli.options import Config, DataDir


def purge(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be purged without deleting it.")
    ] = False,
    older_than: Annotated[
        str,
        typer.Option(metavar="TIME", help="Age, such as 30d; overrides the settings."),
    ] = "",
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Purge data that is older than the settings allow.

    Audit log entries follow the settings only, not --older-than.
    """
    age = timedelta(seconds=seconds(older_than)) if older_than else None
    try:
        gone = asyncio.run(_purged(config, data_dir, age, dry_run))
    except HeadgateError as error:
        stop(str(error), Exit.ERROR)
    if as_json:
        typer.echo(dump(gone))
        return
    done = "would be deleted" if dry_run else "deleted"
    for kind, count in gone.items():
        typer.echo(f"{kind.replace('_', ' ')}: {count} {done}")


async def _purged(
    config: Path | None, data_dir: Path | None, age: timedelta | None, dry_run: bool
) -> dict[str, int]:
    # Only here, because other commands would wait for all of the engine to be read.
    from engine.work.purge import count_purgeable, purge_old
    from hub.checks.offline_database import open_offline
    from hub.program.wiring import ages
    from hub.settings.settings import load_settings

    settings = load_settings(config, {"database.data_dir": data_dir})
    async with open_offline(settings.database) as conn:
        carry_out = count_purgeable if dry_run else purge_old
        return dict(await carry_out(conn, ages(settings.retention, age)))


def add_to(app: typer.Typer) -> None:
    app.command()(purge)
