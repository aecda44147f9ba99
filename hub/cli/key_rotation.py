"""headgate admin rotate-...: rotate keys while servers run."""

import asyncio
import secrets
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.errors import HeadgateError
from hub.cli.context import AsJson, seconds, stop
from hub.cli.exit_codes import Exit
from hub.cli.files import dump
from hub.cli.options import Config, DataDir

if TYPE_CHECKING:
    from engine.store.encryption import Sealer
    from hub.keys.rotation import Rotation
    from hub.settings.settings import Settings

Json = Any


def rotate_encryption_key(
    config: Config = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Re-encrypt all stored secrets with the key of credentials.key_file while servers run.

    You can run it again after an interruption.
    """
    try:
        done = asyncio.run(_rotated(config, data_dir, as_json))
    except HeadgateError as error:
        stop(str(error), Exit.ERROR)
    typer.echo(dump(asdict(done)) if as_json else "\n".join(_lines(done)))
    raise typer.Exit(Exit.COMPLETE if done.complete else Exit.ERROR)


def rotate_token_key(
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Revoke all earlier tokens at once.")
    ] = False,
    keep_for: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="How long earlier tokens of signals and servers stay valid."
        ),
    ] = "30d",
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Rotate the key of hook, signal and server tokens while servers run."""
    keep = timedelta(seconds=seconds(keep_for))
    try:
        version = asyncio.run(_token_key_rotated(config, data_dir, keep, revoke))
    except HeadgateError as error:
        stop(str(error), Exit.ERROR)
    if as_json:
        typer.echo(dump({"version": version, "revoked": revoke}))
        return
    typer.echo(f"tokens are created with version {version} of the key")
    if revoke:
        typer.echo("Earlier tokens are revoked.")
    else:
        typer.echo(
            "Earlier tokens stay valid: of hooks until their deadline, of signals and"
            f" servers for {keep_for}."
        )


async def _token_key_rotated(
    config: Path | None, data_dir: Path | None, keep: timedelta, revoke: bool
) -> int:
    from engine.store.encryption import KEY_BYTES
    from engine.store.token_keys import rotate_token_key
    from hub.checks.offline_database import open_offline
    from hub.keys.rotation import check_key
    from hub.settings.settings import load_settings

    settings = load_settings(config, {"database.data_dir": data_dir})
    sealer = _sealer(settings)
    fresh = secrets.token_bytes(KEY_BYTES)
    async with open_offline(settings.database, sealer=sealer) as conn:
        await check_key(conn, sealer)
        return await rotate_token_key(conn, fresh, sealer, keep=keep, revoke=revoke)


def _sealer(settings: "Settings") -> "Sealer":
    """Of keys that are there: none is made here."""
    from hub.program.wiring import make_sealer

    key_file = settings.credentials.path(settings.database.data_dir)
    if not key_file.exists():
        stop(f"no encryption key {key_file}: make it first", Exit.ERROR)
    return make_sealer(settings)


async def _rotated(config: Path | None, data_dir: Path | None, as_json: bool) -> "Rotation":
    # Only here, because other commands would wait for all of the engine to be read.
    from hub.checks.offline_database import open_offline
    from hub.keys.rotation import rotate_encryption_key
    from hub.settings.settings import load_settings

    def report(table: str, rows: int) -> None:
        if rows and not as_json:
            typer.echo(f"{table}: {rows} rows encrypted", err=True)

    settings = load_settings(config, {"database.data_dir": data_dir})
    sealer = _sealer(settings)
    async with open_offline(settings.database, sealer=sealer) as conn:
        return await rotate_encryption_key(conn, sealer, report)


def _lines(done: "Rotation") -> list[str]:
    lines = [f"{done.rows} rows encrypted with the key {done.key_id}"]
    lines += [f"not decrypted: {why}" for why in done.undecryptable]
    lines += [f"still encrypts with another key: process {one}" for one in done.encrypting]
    if done.complete:
        lines.append("All values use this key. Remove fallback_key_files and restart.")
    elif done.encrypting:
        lines.append("Restart these processes with the new key_file, then run this command again.")
    elif done.failures:
        lines.append(
            "Keep the old keys. Restore these values or their keys, then run this command again."
        )
    else:
        lines.append("Other processes still write values with other keys. Run this command again.")
    return lines


def add_to(app: typer.Typer) -> None:
    app.command()(rotate_encryption_key)
    app.command()(rotate_token_key)
