"""Upgrades the schema of a database to the one that this program needs.

A new database gets ``migrations/0040_baseline.sql``, and then the migrations after it: numbered
files, applied in the order of their names. A database from before the baseline gets the file of
``upgrades`` in its place. All pending files are applied in one transaction, under an advisory lock,
so any number of processes can start at once. There are no downgrades.

Routines (functions and views, see `engine.store.schema.routine_versions`) are upgraded in the same
transaction. A process starts on newer migrations and routines only if they allow its version (see
`engine.store.schema.compatibility`).
"""

import asyncio
import functools
import importlib.resources
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from types import MappingProxyType

import asyncpg

from engine import errors
from engine.store.connection import Connection, connect
from engine.store.database_errors import TRANSIENT, unavailable
from engine.store.pooler_check import check_pooling
from engine.store.schema.compatibility import (
    OldestProgram,
    ProgramVersion,
    RunningProgram,
    check_program,
    check_running,
    list_running,
    oldest_beside,
    read_oldest,
    record_oldest,
)
from engine.store.schema.routine_versions import (
    RoutineVersion,
    SqlFile,
    database_version,
    own_version,
    read_sql,
    record_version,
    routines,
)

#: Key of the advisory lock that the processes of one database share.
LOCK_KEY = 0x6865616467617465

#: A migration of a large table may take minutes, and other processes wait for its lock.
SET_LONG_TIMEOUTS = """
select set_config('statement_timeout', '15min', false),
       set_config('lock_timeout', '15min', false)
"""

#: Limits the wait for a table in use, because statements of other processes wait behind this one.
SET_LOCK_TIMEOUT = "set local lock_timeout = '5s'"
#: Number of attempts, and the seconds between two.
TRIES, PAUSE = 20, 0.5
LOCK_ERRORS = (asyncpg.DeadlockDetectedError, asyncpg.LockNotAvailableError)

LOCK = "select pg_advisory_xact_lock($1)"

#: Rows of projects that are on the way to another cell, as texts of the schema at that time.
HAS_MOVING = "select to_regclass('moving_row') is not null"
FIND_MOVING = "select project from moving_row order by project limit 1"

CREATE = """
create table if not exists migration (
    name text primary key,
    applied_at timestamptz not null default now()
)
"""

_STORE = importlib.resources.files("engine.store")

PRESENT = "select to_regclass('migration') is not null"

APPLIED = "select name from migration order by name"

RECORD = "insert into migration (name) select * from unnest($1::text[]) on conflict do nothing"

#: A migration: a numbered file of SQL.
Migration = SqlFile

#: The schema of a new database.
BASELINE = "0040_baseline.sql"
#: Newest migration of a database from before the baseline -> the file of ``upgrades`` for it.
UPGRADES: Mapping[str, str] = MappingProxyType(
    {
        "0024_source.sql": "0024_to_0040.sql",
    }
)


def read_migrations(directory: Traversable | None = None) -> list[Migration]:
    """Read the migrations of this version, or of another directory, in order."""
    return read_sql(directory) if directory else [*_own_migrations()]


@functools.cache
def _own_migrations() -> Sequence[Migration]:
    return tuple(read_sql(_STORE / "migrations"))


def pending_migrations(
    known: Sequence[Migration], applied: Sequence[str], *, may_be_newer: bool = False
) -> list[Migration]:
    """The files to apply to a database, in order. known: migrations of this version, in order.
    may_be_newer: this version works with the later migrations of the database.

    Raises Conflict if this version cannot upgrade the database: a newer version migrated it
    (DatabaseNewer), it is between two versions from before the baseline (DatabaseUnreleased), or it
    lacks a migration before its newest one (MigrationMissing).
    """
    names = [migration.name for migration in known]
    if applied and BASELINE in names:
        if max(applied) < BASELINE:
            return [*_upgrade_to_baseline(max(applied)), *known[names.index(BASELINE) + 1 :]]
        applied = [name for name in applied if name >= BASELINE]
    unknown = sorted(set(applied) - set(names))
    if newer := [name for name in unknown if not may_be_newer or name < names[-1]]:
        raise errors.Conflict(
            f"the database's schema is newer than this headgate, which does not know {newer[0]}",
            place="[database]",
            remedy="Run the version that migrated it, or a later one",
            code="DatabaseNewer",
        )
    pending = [migration for migration in known if migration.name not in applied]
    if pending and applied and pending[0].name < max(applied):
        raise errors.Conflict(
            f"the database has migration {max(applied)}, but not {pending[0].name}",
            place="[database]",
            remedy="Restore the database from a backup of a released version",
            code="MigrationMissing",
        )
    return pending


def _upgrade_to_baseline(newest: str) -> list[Migration]:
    if newest not in UPGRADES:
        raise errors.Conflict(
            f"an unreleased build created the database's newest migration, {newest}, and this"
            " headgate cannot upgrade it",
            place="[database]",
            remedy="Run `headgate admin migrate` of the build whose newest migration is "
            f"{' or '.join(UPGRADES)}; then start this version again. If you have no such build,"
            " restore a backup of a released version",
            code="DatabaseUnreleased",
        )
    name = UPGRADES[newest]
    return [one for one in read_sql(_STORE / "upgrades") if one.name == name]


async def migrate(
    url: str, directory: Traversable | None = None, *, version: str = ""
) -> list[str]:
    """Apply the pending migrations; return the names of the applied files, in order. version: of
    this program.

    Raises Conflict (see `pending_migrations`; this program is too old for the database; a running
    process is too old for this program; or the database is behind a pooler in transaction mode),
    Unavailable (not reachable), and MigrationFailed, which names the file, the line and
    PostgreSQL's reason. An error leaves the database unchanged.

    Processes can work during the migration. If a lock conflicts with theirs, the transaction is
    rolled back and starts again.
    """
    known = read_migrations(directory)
    own = ProgramVersion(version, known[-1].name, own_version().number)
    oldest = oldest_beside(known) if directory is None else oldest_beside(known, previous="")
    own_routines = routines() if directory is None else ()
    await check_pooling(url)
    connection = await connect(url)
    try:
        await connection.execute(SET_LONG_TIMEOUTS)
        for _ in range(TRIES - 1):
            try:
                return await _migrate(connection, own, oldest, known, own_routines)
            except LOCK_ERRORS:
                await asyncio.sleep(PAUSE)
        return await _migrate(connection, own, oldest, known, own_routines)
    except (OSError, *TRANSIENT) as error:
        raise unavailable(error) from error
    finally:
        await connection.close(timeout=5)


async def _migrate(
    connection: Connection,
    own: ProgramVersion,
    oldest: str,
    known: Sequence[Migration],
    own_routines: Sequence[SqlFile],
) -> list[str]:
    """own: this program. oldest: what programs must know to run beside it."""
    async with connection.transaction():
        await connection.execute(LOCK, LOCK_KEY)
        await connection.execute(CREATE)
        plan = await _plan(connection, own, oldest, known)
        plan.check_running()
        await connection.execute(SET_LOCK_TIMEOUT)
        for migration in plan.pending:
            await _apply(connection, migration)
        await connection.execute(RECORD, [migration.name for migration in known])
        if own_routines:
            await _upgrade_routines(connection, own_routines, migrated=bool(plan.pending))
        if plan.raises_oldest:
            await record_oldest(connection, OldestProgram(oldest, own.version))
    return [migration.name for migration in plan.pending]


@dataclass(frozen=True, slots=True)
class UpgradePlan:
    """What the start of a program does to a database.

    pending: the migrations that it applies. unknown: migrations of the database that it does not
    know, and works with. routines: of the database; None: it has none. required: the oldest program
    that may use the database now. oldest: what programs must know to run beside this one. running:
    the running processes. moving: a project whose rows are between two cells.
    """

    own: ProgramVersion
    pending: Sequence[Migration]
    unknown: Sequence[str]
    routines: RoutineVersion | None
    required: OldestProgram | None
    oldest: str
    running: Sequence[RunningProgram]
    moving: str | None = None

    @property
    def raises_oldest(self) -> bool:
        """Whether programs that may use the database now may not use it afterwards."""
        return self.oldest > (self.required.migration if self.required else "")

    def check_running(self) -> None:
        """Raise Conflict if a running process is too old for this program, or if the migrations
        would change tables whose rows are between two cells."""
        if self.pending and self.moving is not None:
            raise errors.Conflict(
                f'the move of the project "{self.moving}" between cells is not finished, and its'
                " rows do not fit the tables after the upgrade",
                place="[database]",
                remedy="Finish it with `headgate admin move-project` of the version that the"
                " database has; `headgate admin doctor` of this version names the cells",
                code="MoveUnderWay",
            )
        if self.raises_oldest:
            check_running(self.own, self.oldest, self.running)


async def plan_upgrade(connection: Connection, version: str = "") -> UpgradePlan:
    """What the start of this program, with this version, would do to a database.

    Raises Conflict if it must not use the database (see `migrate`). `UpgradePlan.check_running`
    checks the running processes.
    """
    known = read_migrations()
    return await _plan(connection, own_program(version), oldest_beside(known), known)


def own_program(version: str) -> ProgramVersion:
    """This program, whose package has this version."""
    return ProgramVersion(version, read_migrations()[-1].name, own_version().number)


async def _plan(
    connection: Connection, own: ProgramVersion, oldest: str, known: Sequence[Migration]
) -> UpgradePlan:
    exists = await connection.fetchval(PRESENT)
    applied = [row["name"] for row in await connection.fetch(APPLIED)] if exists else []
    required = await read_oldest(connection)
    check_program(own, required)
    pending = pending_migrations(known, applied, may_be_newer=required is not None)
    names = {migration.name for migration in known}
    return UpgradePlan(
        own=own,
        pending=pending,
        unknown=[name for name in applied if name not in names and name > BASELINE],
        routines=await database_version(connection),
        required=required,
        oldest=oldest,
        running=await list_running(connection),
        moving=await _find_moving(connection),
    )


async def _find_moving(connection: Connection) -> str | None:
    if not await connection.fetchval(HAS_MOVING):
        return None
    project: str | None = await connection.fetchval(FIND_MOVING)
    return project


async def read_pending(connection: Connection) -> list[str]:
    """The names of the pending migrations. Raises the errors of `plan_upgrade`."""
    plan = await plan_upgrade(connection, "of this installation")
    return [migration.name for migration in plan.pending]


async def are_routines_outdated(connection: Connection) -> bool:
    """Whether `migrate` would upgrade the routines."""
    return is_outdated(await database_version(connection), own_version())


def is_outdated(installed: RoutineVersion | None, own: RoutineVersion) -> bool:
    """Whether a program replaces the routines of a database: those of a later version stay."""
    return installed is None or (installed != own and not own < installed)


async def check_current(connection: Connection) -> None:
    """Raise Conflict unless this version works with the schema of the database."""
    pending = await read_pending(connection)
    if pending or await are_routines_outdated(connection):
        difference = f"it lacks {pending[0]}" if pending else "its routines have an older version"
        raise errors.Conflict(
            f"the database's schema is older than this headgate: {difference}",
            place="[database]",
            remedy="Upgrade it with `headgate admin migrate`; a server of this version upgrades it"
            " when it starts",
            code="DatabaseOlder",
        )


async def _upgrade_routines(
    connection: Connection, known: Sequence[SqlFile], *, migrated: bool
) -> None:
    """Create all routines again, unless the database has this version or a later one. migrated:
    even then: a migration may have dropped a table with the views that read it."""
    if not migrated and not await are_routines_outdated(connection):
        return
    for routine in known:
        await _apply(connection, routine)
    await record_version(connection, own_version())


class MigrationFailed(errors.HeadgateError):
    """A migration could not be applied. The database is unchanged."""


async def _apply(connection: asyncpg.Connection, migration: Migration) -> None:
    try:
        await connection.execute(migration.text, timeout=15 * 60)
    except TRANSIENT:
        raise
    except asyncpg.PostgresError as error:
        line = _line(migration.text, error)
        raise MigrationFailed(
            f"PostgreSQL rejected the migration: {error}",
            place=f"{migration.name}, line {line}" if line else migration.name,
            remedy="The database is unchanged. Remove the cause and start again",
        ) from error


def _line(text: str, error: asyncpg.PostgresError) -> int | None:
    """The line number in PostgreSQL's error; most errors have none."""
    position = getattr(error, "position", None)
    return text.count("\n", 0, int(position)) + 1 if position else None
