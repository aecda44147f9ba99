"""Brings a database's schema up to what this version of the program needs.

Migrations are numbered files, ``migrations/0001_<what>.sql``, applied in the order of their names,
all that are pending in one transaction, under an advisory lock: any number of processes may start
at once. Forward only.

Routines (functions and views, see `engine.store.routine_versions`) are upgraded in the same
transaction. A process does not start on newer migrations or routines than its own.
"""

import asyncio
import importlib.resources
from collections.abc import Sequence
from importlib.resources.abc import Traversable

import asyncpg

from engine import errors
from engine.store.connection import TRANSIENT, Connection, connect, unavailable
from engine.store.pooler_check import check_pooling
from engine.store.routine_versions import (
    SqlFile,
    check_not_newer,
    database_version,
    own_version,
    read_sql,
    record_version,
    routines,
)

#: Any number, as long as nobody else uses it: the lock is for all headgates of one database.
LOCK_KEY = 0x6865616467617465

#: A large table may take its time; whoever waits for the lock waits for that.
SET_LONG_TIMEOUTS = """
select set_config('statement_timeout', '15min', false),
       set_config('lock_timeout', '15min', false)
"""

#: How long we wait for a table that others work on, while whoever comes after us waits for us.
PATIENCE = "set local lock_timeout = '5s'"
#: How often all of it is tried; seconds between.
TRIES, PAUSE = 20, 0.5
IN_THE_WAY = (asyncpg.DeadlockDetectedError, asyncpg.LockNotAvailableError)

LOCK = "select pg_advisory_xact_lock($1)"

CREATE = """
create table if not exists migration (
    name text primary key,
    applied_at timestamptz not null default now()
)
"""

PRESENT = "select to_regclass('migration') is not null"

APPLIED = "select name from migration order by name"

RECORD = "insert into migration (name) select * from unnest($1::text[])"

#: A migration: a numbered file of SQL.
Migration = SqlFile


def shipped(directory: Traversable | None = None) -> list[Migration]:
    """Read the migrations of this version, or of another directory, in order."""
    return read_sql(directory or importlib.resources.files("engine.store") / "migrations")


def pending(known: Sequence[Migration], applied: Sequence[str]) -> list[Migration]:
    """Say what is to be applied. Conflict: the database is not an earlier state of this version."""
    names = [migration.name for migration in known]
    if newer := sorted(set(applied) - set(names)):
        raise errors.Conflict(
            f"the database's schema is newer than this headgate, which does not know {newer[0]}",
            place="[database]",
            remedy="Run the version that migrated it, or a later one",
            code="DatabaseNewer",
        )
    left = [migration for migration in known if migration.name not in applied]
    if left and applied and left[0].name < max(applied):
        raise errors.Conflict(
            f"migration {left[0].name} is missing in the database, but {max(applied)} is there",
            place="[database]",
            remedy="Restore the database from a backup of a released version",
            code="MigrationMissing",
        )
    return left


async def migrate(url: str, directory: Traversable | None = None) -> list[str]:
    """Apply what is pending; return the names of what was applied, in order.

    Raises Conflict (newer database, or behind a pooler of transactions), Unavailable (not
    reachable), and MigrationFailed, which names the file, the line and PostgreSQL's reason; then
    nothing of it is left in the database.

    Processes may work meanwhile. Where theirs and our locks are in each other's way, ours are given
    back, and it begins anew.
    """
    known = shipped(directory)
    await check_pooling(url)
    connection = await connect(url)
    try:
        await connection.execute(SET_LONG_TIMEOUTS)
        for _ in range(TRIES - 1):
            try:
                return await _migrate(connection, known, routines() if directory is None else ())
            except IN_THE_WAY:
                await asyncio.sleep(PAUSE)
        return await _migrate(connection, known, routines() if directory is None else ())
    except (OSError, *TRANSIENT) as error:
        raise unavailable(error) from error
    finally:
        await connection.close(timeout=5)


async def _migrate(
    connection: Connection, known: Sequence[Migration], remade: Sequence[Migration]
) -> list[str]:
    """All or nothing."""
    async with connection.transaction():
        await connection.execute(LOCK, LOCK_KEY)
        await connection.execute(CREATE)
        applied = [row["name"] for row in await connection.fetch(APPLIED)]
        left = pending(known, applied)
        await connection.execute(PATIENCE)
        for migration in left:
            await _apply(connection, migration)
        if left:
            await connection.execute(RECORD, [migration.name for migration in left])
        if remade:
            await _upgrade_routines(connection, remade)
    return [migration.name for migration in left]


async def outstanding(connection: Connection) -> list[str]:
    """The migrations that the database does not have; changes nothing. Conflict: it is newer."""
    made = await connection.fetchval(PRESENT)
    applied = [row["name"] for row in await connection.fetch(APPLIED)] if made else []
    return [migration.name for migration in pending(shipped(), applied)]


async def routines_outdated(connection: Connection) -> bool:
    """Whether `migrate` would make the routines anew; changes nothing. Conflict: they are newer."""
    there, own = await database_version(connection), own_version()
    check_not_newer(there, own)
    return there != own


async def check_current(connection: Connection) -> None:
    """Raises Conflict unless the database is of this version; changes nothing."""
    left = await outstanding(connection)
    if left or await routines_outdated(connection):
        lacks = f"it has no {left[0]}" if left else "its routines are of another version"
        raise errors.Conflict(
            f"the database's schema is older than this headgate: {lacks}",
            place="[database]",
            remedy="Bring it up to date with `headgate admin migrate`; a server of this version"
            " does so when it starts",
            code="DatabaseOlder",
        )


async def _upgrade_routines(connection: Connection, known: Sequence[SqlFile]) -> None:
    """Make all of them anew, unless the database has these. Conflict: it has newer ones."""
    there, own = await database_version(connection), own_version()
    check_not_newer(there, own)
    if there == own:
        return
    for routine in known:
        await _apply(connection, routine)
    await record_version(connection, own)


class MigrationFailed(errors.HeadgateError):
    """A migration could not be applied; nothing of the whole run was kept."""


async def _apply(connection: asyncpg.Connection, migration: Migration) -> None:
    try:
        await connection.execute(migration.text, timeout=15 * 60)
    except TRANSIENT:
        raise
    except asyncpg.PostgresError as error:
        line = _line(migration.text, error)
        raise MigrationFailed(
            f"PostgreSQL refused it: {error}",
            place=f"{migration.name}, line {line}" if line else migration.name,
            remedy="Nothing was changed in the database; mend the cause and start again",
        ) from error


def _line(text: str, error: asyncpg.PostgresError) -> int | None:
    """Return the line PostgreSQL points at, which for most of its errors is none."""
    position = getattr(error, "position", None)
    return text.count("\n", 0, int(position)) + 1 if position else None
