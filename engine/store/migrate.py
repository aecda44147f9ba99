"""Brings a database's schema up to what this version of the program needs.

Migrations are numbered files, ``migrations/0001_<what>.sql``, applied in the order of their names,
all that are pending in one transaction, under an advisory lock: any number of processes may start
at once. Forward only.

Routines (functions and views, ``routines/*.sql``) hold no data: all of them are made anew, in the
same transaction, whenever any of them differs from what the database has.
"""

import asyncio
import hashlib
import importlib.resources
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable

import asyncpg

from engine import errors
from engine.store.connection import TRANSIENT, Connection, connect, unavailable

#: Any number, as long as nobody else uses it: the lock is for all headgates of one database.
LOCK_KEY = 0x6865616467617465

#: A large table may take its time; whoever waits for the lock waits for that.
SESSION = {"statement_timeout": "15min", "lock_timeout": "15min"}

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


CREATE_ROUTINES = """
create table if not exists routines (
    only_one boolean primary key default true check (only_one),
    digest text not null
)
"""

ROUTINES = "select digest from routines"

RECORD_ROUTINES = """
insert into routines (digest) values ($1)
on conflict (only_one) do update set digest = excluded.digest
"""


@dataclass(frozen=True, slots=True)
class Migration:
    name: str
    text: str


def shipped(directory: Traversable | None = None) -> list[Migration]:
    """Read the migrations of this version, or of another directory, in order."""
    return _read(directory or importlib.resources.files("engine.store") / "migrations")


def routines() -> list[Migration]:
    """Read the functions and views of this version, in the order in which they are made."""
    return _read(importlib.resources.files("engine.store") / "routines")


def _read(source: Traversable) -> list[Migration]:
    return sorted(
        (
            Migration(entry.name, entry.read_text(encoding="utf-8"))
            for entry in source.iterdir()
            if entry.name.endswith(".sql")
        ),
        key=lambda migration: migration.name,
    )


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
            remedy="Restore the database from a copy made by a released version",
            code="MigrationMissing",
        )
    return left


async def migrate(url: str, directory: Traversable | None = None) -> list[str]:
    """Apply what is pending; return the names of what was applied, in order.

    Raises Conflict (newer database), Unavailable (not reachable), and MigrationFailed, which names
    the file, the line and PostgreSQL's reason; then nothing of it is left in the database.

    Processes may work meanwhile. Where theirs and our locks are in each other's way, ours are given
    back, and it begins anew.
    """
    known = shipped(directory)
    connection = await connect(url, session=SESSION)
    try:
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
            await _make_routines(connection, remade)
    return [migration.name for migration in left]


async def outstanding(connection: Connection) -> list[str]:
    """The migrations that the database does not have; changes nothing. Conflict: it is newer."""
    made = await connection.fetchval(PRESENT)
    applied = [row["name"] for row in await connection.fetch(APPLIED)] if made else []
    return [migration.name for migration in pending(shipped(), applied)]


async def check_current(connection: Connection) -> None:
    """Raises Conflict unless the database is of this version; changes nothing."""
    left = await outstanding(connection)
    if left:
        raise errors.Conflict(
            f"the database's schema is older than this headgate: it has no {left[0]}",
            place="[database]",
            remedy="Bring it up to date with `headgate admin migrate`; a server of this version"
            " does so when it starts",
            code="DatabaseOlder",
        )


async def _make_routines(connection: asyncpg.Connection, known: Sequence[Migration]) -> None:
    await connection.execute(CREATE_ROUTINES)
    digest = hashlib.sha256("\0".join(one.text for one in known).encode()).hexdigest()
    if await connection.fetchval(ROUTINES) == digest:
        return
    for routine in known:
        await _apply(connection, routine)
    await connection.execute(RECORD_ROUTINES, digest)


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
