"""headgate admin: create-token, purge, migrate, upgrade-check, doctor, backup-check,
rotate-encryption-key and rotate-token-key.

These commands work on the database without a server. Those for the audit log are in
hub/cli/commands/admin_audit.py.
"""

import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NoReturn
from uuid import uuid4

import typer

from hub.cli import options
from hub.cli.commands import token
from hub.cli.confirmation import confirm
from hub.cli.context import INTERRUPTED, print_document, print_result, run_offline
from hub.cli.exit_codes import ExitCode
from hub.cli.messages import report_progress, stop
from hub.cli.options import OfflineOptions, seconds, with_options
from hub.cli.printing import tables
from hub.cli.printing.formats import ResultFormat
from hub.cli.printing.renderables import wrapped_text

if TYPE_CHECKING:
    from hub.settings.settings import Settings
if TYPE_CHECKING:
    from engine.store.encryption.secret_values import Keyring
    from hub.keys.rotation import Rotation
    from hub.settings.settings import Settings


Json = Any
app = typer.Typer(
    help="Administer a server: keys, tokens, audit log, database.", no_args_is_help=True
)


@app.command()
@with_options
def create_token(
    offline: OfflineOptions,
    name: token.Name,
    role: token.Roles,
    expires_in: token.ExpiresIn = "",
    password: token.WithPassword = False,
    everywhere: token.Everywhere = False,
    project: Annotated[str, typer.Option("--project", help="The project of the token.")] = "",
) -> None:
    """Create a token without signing in: the first one, or after losing all others.

    With the settings of an API process that serves cells, it is created in the cell of its project,
    or in all cells.
    """
    if everywhere == bool(project):
        stop("name the project with --project NAME, or use --everywhere", ExitCode.USAGE)
    secret = token.read_password() if password else None

    async def work(settings: "Settings") -> Json:
        import orjson

        from engine.store.access.tokens import EVERYWHERE
        from hub.api.headgate.tokens import document
        from hub.auth.token_issuer import TokenRequest, issue
        from hub.cli.commands.token_creation import create_token

        request = TokenRequest(
            id=uuid4(),
            project=project or EVERYWHERE,
            name=name,
            roles=role,
            by="headgate admin",
            password=secret,
            expires_in=expires_in,
            random_bytes=secrets.token_bytes(32),
        )
        record, text = issue(request)
        created = {**document(await create_token(settings, record)), "token": text}
        # As in a response of the API: the row has a UUID.
        return orjson.loads(orjson.dumps(created, default=str))

    token.print_token(run_offline(offline, work, of_cells=True), offline.format)


@app.command()
@with_options
def purge(
    offline: OfflineOptions,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be purged without deleting it.")
    ] = False,
    older_than: Annotated[
        str,
        typer.Option(metavar="TIME", help="Age, such as 30d; overrides the settings."),
    ] = "",
    yes: options.Yes = False,
) -> None:
    """Purge data that is older than the settings allow.

    Audit log entries follow the settings only, not --older-than.
    """
    age = timedelta(seconds=seconds(older_than)) if older_than else None

    async def work(settings: "Settings", *, dry_run: bool) -> dict[str, int]:
        from engine.work.purge import archive_and_purge, count_purgeable
        from hub.checks.offline_database import open_offline
        from hub.program.wiring import ages

        async with open_offline(settings.database) as conn:
            run = count_purgeable if dry_run else archive_and_purge
            return dict(await run(conn, ages(settings.retention, age)))

    if older_than and not dry_run and not yes:
        counts = run_offline(offline, partial(work, dry_run=True))
        facts = [f"  {count} {kind.replace('_', ' ')}" for kind, count in counts.items() if count]
        facts = ["Records that it deletes:", *facts] if facts else ["There are none now."]
        confirm(f"Delete records that are older than {older_than}?", facts, yes)
    counts = run_offline(offline, partial(work, dry_run=dry_run), interrupted=INTERRUPTED)
    if offline.format.is_document:
        print_document(counts, offline.format)
        return
    suffix = "would be deleted" if dry_run else "deleted"
    for kind, count in counts.items():
        typer.echo(f"{kind.replace('_', ' ')}: {count} {suffix}")


@app.command()
@with_options
def migrate(
    offline: OfflineOptions,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print pending migrations without applying them.")
    ] = False,
) -> None:
    """Upgrade the database schema to this version. A server does this when it starts."""

    async def work(settings: "Settings") -> Json:
        from importlib.metadata import version

        from engine.store.schema import upgrade as schema_upgrade
        from engine.store.server_check import check_servers
        from hub.checks.offline_database import connect, locate_database

        async with locate_database(settings.database) as url:
            await check_servers(url, time.time)
            async with connect(url) as conn:
                pending = await schema_upgrade.read_pending(conn)
                outdated = await schema_upgrade.are_routines_outdated(conn)
            if not dry_run:
                pending = await schema_upgrade.migrate(url, version=version("headgate"))
        return {"pending": pending, "routines": outdated, "applied": not dry_run}

    result = run_offline(offline, work, interrupted=INTERRUPTED)
    if offline.format.is_document:
        print_document(result, offline.format)
        return
    for name in result["pending"]:
        typer.echo(f"{name}: {'pending' if dry_run else 'applied'}")
    if result["routines"]:
        typer.echo(f"functions and views: {'pending' if dry_run else 'upgraded'}")
    if not result["pending"] and not result["routines"]:
        typer.echo("the schema is up to date")


@app.command()
@with_options
def upgrade_check(offline: OfflineOptions) -> None:
    """Check whether this version may start on the database, beside the processes that run on it.

    It changes nothing. The exit code is 1 if a server of this version would refuse to start.
    """

    async def work(settings: "Settings") -> list[Json]:
        from importlib.metadata import version

        from engine.store.server_check import check_servers
        from hub.checks.offline_database import connect, locate_database
        from hub.checks.upgrade import check_upgrade

        async with locate_database(settings.database) as url:
            await check_servers(url, time.time)
            async with connect(url) as conn:
                results = await check_upgrade(conn, version("headgate"))
                return [one.document for one in results]

    _print_results(run_offline(offline, work), offline.format)


@app.command()
@with_options
def doctor(offline: OfflineOptions) -> None:
    """Check settings, database, broker, files and stuck work."""
    from engine.errors import HeadgateError
    from hub.checks.database import error_result
    from hub.checks.doctor import run_checks
    from hub.settings.settings import load_settings

    async def work(settings: "Settings") -> list[Json]:
        return [one.document for one in await run_checks(settings, offline.config)]

    try:
        load_settings(offline.config, {"database.data_dir": offline.data_dir})
    except HeadgateError as error:
        _print_results([error_result("settings", error).document], offline.format)
    _print_results(run_offline(offline, work, of_cells=True), offline.format)


@app.command()
@with_options
def backup_check(offline: OfflineOptions) -> None:
    """Check a restored database for consistency, before you start a server on it."""

    async def work(settings: "Settings") -> list[Json]:
        from hub.checks.database import KeyFiles, check_backup
        from hub.checks.offline_database import connect, locate_database

        keys = KeyFiles.from_settings(settings)
        async with locate_database(settings.database) as url, connect(url) as conn:
            return [one.document for one in await check_backup(conn, keys)]

    _print_results(run_offline(offline, work), offline.format)


def _print_results(results: Sequence[Json], result_format: ResultFormat) -> NoReturn:
    """Print the results of checks. The exit code is 1 if a check failed; warnings do not count."""
    print_result(results, result_format, lambda: wrapped_text("\n".join(map(_line, results))))
    failed = any(one["state"] == "error" for one in results)
    raise typer.Exit(ExitCode.ERROR if failed else ExitCode.COMPLETE)


def _line(result: Json) -> str:
    remedy = f". {result['remedy']}" if result["remedy"] else ""
    return tables.plain(f"{result['check']:<12} {result['state']:<8} {result['reason']}{remedy}")


@app.command()
@with_options
def rotate_encryption_key(offline: OfflineOptions) -> None:
    """Re-encrypt all stored secrets with the key of credentials.key_file while servers run.

    You can run it again after an interruption.
    """

    def report(table: str, rows: int) -> None:
        if rows:
            report_progress(f"{table}: {rows} rows encrypted")

    async def work(settings: "Settings") -> "Rotation":
        # Imported here, because it takes long, and most commands do not need it.
        from hub.checks.offline_database import open_offline
        from hub.keys.rotation import rotate_encryption_key

        keyring = _keyring(settings)
        async with open_offline(settings.database, keyring=keyring) as conn:
            return await rotate_encryption_key(conn, keyring, report)

    rotation = run_offline(offline, work, interrupted=INTERRUPTED)
    print_result(
        asdict(rotation), offline.format, lambda: wrapped_text("\n".join(_lines(rotation)))
    )
    raise typer.Exit(ExitCode.COMPLETE if rotation.complete else ExitCode.ERROR)


@app.command()
@with_options
def rotate_token_key(
    offline: OfflineOptions,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Revoke all earlier tokens at once.")
    ] = False,
    keep_for: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="How long earlier tokens of signals and servers stay valid."
        ),
    ] = "30d",
    yes: options.Yes = False,
) -> None:
    """Rotate the key of hook, signal and server tokens while servers run."""
    keep = timedelta(seconds=seconds(keep_for))
    if revoke:
        lost = "Programs that answer hooks or send signals with an earlier token are refused."
        confirm("Revoke all earlier tokens of hooks, signals and servers?", [lost], yes)

    async def work(settings: "Settings") -> int:
        from engine.store.access.token_keys import rotate_token_key
        from engine.store.encryption.secret_values import KEY_BYTES
        from hub.checks.offline_database import open_offline
        from hub.keys.rotation import check_key

        keyring = _keyring(settings)
        key = secrets.token_bytes(KEY_BYTES)
        async with open_offline(settings.database, keyring=keyring) as conn:
            await check_key(conn, keyring)
            return await rotate_token_key(conn, key, keyring, keep=keep, revoke=revoke)

    number = run_offline(offline, work)
    if offline.format.is_document:
        print_document({"version": number, "revoked": revoke}, offline.format)
        return
    typer.echo(f"tokens are created with version {number} of the key")
    if revoke:
        typer.echo("Earlier tokens are revoked.")
    else:
        typer.echo(
            "Earlier tokens stay valid: of hooks until their deadline, of signals and"
            f" servers for {keep_for}."
        )


def _keyring(settings: "Settings") -> "Keyring":
    """The keys in the key files. Ends the command if there is no encryption key."""
    from hub.program.wiring import make_keyring

    key_file = settings.credentials.path(settings.database.data_dir)
    if not key_file.exists():
        stop(f"no encryption key {key_file}: create it first", ExitCode.ERROR)
    return make_keyring(settings)


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
