"""headgate admin purge: what is old and needed no more goes now."""

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
        bool, typer.Option("--dry-run", help="Do it in a transaction, and take it back.")
    ] = False,
    older_than: Annotated[
        str,
        typer.Option(metavar="TIME", help="Such as 30d; in place of what [retention] says."),
    ] = "",
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Purge what is older than [retention] says. Trails of decisions go by the settings alone."""
    age = timedelta(seconds=seconds(older_than)) if older_than else None
    try:
        gone = asyncio.run(_purged(config, data_dir, age, dry_run))
    except HeadgateError as error:
        stop(str(error), Exit.ERROR)
    if as_json:
        typer.echo(dump(gone))
        return
    said = "would go" if dry_run else "gone"
    for kind, count in gone.items():
        typer.echo(f"{kind.replace('_', ' ')}: {count} {said}")


async def _purged(
    config: Path | None, data_dir: Path | None, age: timedelta | None, dry_run: bool
) -> dict[str, int]:
    # Only here, because other commands would wait for all of the engine to be read.
    from engine.work.purging import purge_old, rehearsed
    from hub.settings import load_settings
    from hub.visiting import visited
    from hub.wiring import ages

    settings = load_settings(config, {"database.data_dir": data_dir})
    async with visited(settings.database) as conn:
        carry_out = rehearsed if dry_run else purge_old
        return dict(await carry_out(conn, ages(settings.retention, age)))


def add_to(app: typer.Typer) -> None:
    app.command()(purge)
