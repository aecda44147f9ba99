"""Which programs may use one database at the same time, during a rolling upgrade.

A program is identified by the newest migration that it knows. Migrations and routines only add to
the schema, so a program of the previous release works on a database that this one has upgraded: it
may run beside this one, and start. Programs before the previous release may not.

A *contract* migration removes something that earlier programs use. Its first line names the newest
migration that a program must know to work without it::

    -- contract: 0062_rolling_upgrades.sql

Who upgrades a database records the oldest program that may use it. Every process records its
program. Both happen under one advisory lock, so neither can miss the other.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from engine import errors
from engine.store.connection import Connection
from engine.store.schema.routine_versions import SqlFile

#: The newest migration of the previous release, whose processes may run beside this program. A test
#: compares the statements of that release with this program's schema.
PREVIOUS_RELEASE = "0093_marked_drift.sql"

_CONTRACT = re.compile(r"\A-- contract: (?P<oldest>\S+\.sql)$", re.MULTILINE)

PRESENT = "select to_regclass('oldest_program') is not null"
READ = "select migration, required_by from oldest_program"
RECORD = """
insert into oldest_program (migration, required_by) values ($1, $2)
    on conflict (only_one) do update
       set migration = excluded.migration, required_by = excluded.required_by
     where oldest_program.migration < excluded.migration
"""
#: A process runs if its last report is at most two intervals old. Statements name the table `p`. A
#: database is also read before its upgrade, so this is not a function of the schema.
IS_RUNNING = "p.seen_at > clock_timestamp() - 2 * p.report_interval"
PROCESSES_PRESENT = "select to_regclass('process') is not null"
#: Through jsonb, because the table lacks the columns before it is upgraded.
LIST_RUNNING = f"""
select p.id, p.host, coalesce(to_jsonb(p) ->> 'version', '') as version,
       coalesce(to_jsonb(p) ->> 'migration', '') as migration,
       coalesce((to_jsonb(p) ->> 'routines')::integer, 0) as routines
  from process p
 where {IS_RUNNING}
 order by p.host, p.started_at, p.id
"""  # noqa: S608 - of a constant


@dataclass(frozen=True, slots=True)
class ProgramVersion:
    """version: of the package; empty: unknown. migration: the newest one that it knows. routines:
    the version of its functions and views."""

    version: str
    migration: str
    routines: int

    def __str__(self) -> str:
        return f"headgate {self.version}" if self.version else "an earlier headgate"


@dataclass(frozen=True, slots=True)
class OldestProgram:
    """migration: programs that do not know it may not use the database. required_by: the version of
    the program that requires this."""

    migration: str
    required_by: str


@dataclass(frozen=True, slots=True)
class RunningProgram:
    """A running process."""

    id: UUID
    host: str
    program: ProgramVersion


def contract_of(migration: SqlFile) -> str | None:
    """The newest migration that programs must know to work after this one; None: it only adds."""
    found = _CONTRACT.match(migration.text)
    return found["oldest"] if found else None


def oldest_beside(known: Sequence[SqlFile], previous: str = PREVIOUS_RELEASE) -> str:
    """The migration that programs must know to run beside a program that knows `known`. previous:
    the newest one of the previous release."""
    return max([previous, *filter(None, map(contract_of, known))])


def check_program(own: ProgramVersion, oldest: OldestProgram | None) -> None:
    """Raise Conflict if a program is too old for the database."""
    if oldest is not None and own.migration < oldest.migration:
        raise errors.Conflict(
            f"headgate {oldest.required_by} has upgraded the database for programs that know"
            f" {oldest.migration}; {own} knows migrations up to {own.migration} only",
            place="[database]",
            remedy=f"Start headgate {oldest.required_by}, or another one that knows this migration",
            code="DatabaseNewer",
        )


def find_older(oldest: str, running: Sequence[RunningProgram]) -> list[RunningProgram]:
    """The running processes whose programs do not know the migration `oldest`."""
    return [one for one in running if one.program.migration < oldest]


def check_running(own: ProgramVersion, oldest: str, running: Sequence[RunningProgram]) -> None:
    """Raise Conflict if a running process is too old for a program that requires `oldest`."""
    older = find_older(oldest, running)
    if not older:
        return
    one, more = older[0], len(older) - 1
    others = f" and {more} more" if more else ""
    raise errors.Conflict(
        f"process {one.id} on {one.host}{others} runs {one.program}, which does not know"
        f" {oldest}; {own} runs only beside programs that know it",
        place="[database]",
        remedy=f"Stop it, or upgrade it to the release before headgate {own.version}. A process"
        " that was killed counts as running for a minute",
        code="OlderProcesses",
    )


async def read_oldest(connection: Connection) -> OldestProgram | None:
    """None: the database is from before the first program that records it."""
    if not await connection.fetchval(PRESENT):
        return None
    row = await connection.fetchrow(READ)
    return OldestProgram(**row) if row else None


async def record_oldest(connection: Connection, oldest: OldestProgram) -> None:
    await connection.execute(RECORD, oldest.migration, oldest.required_by)


async def list_running(connection: Connection) -> list[RunningProgram]:
    """The running processes, also in the schema of an earlier version."""
    if not await connection.fetchval(PROCESSES_PRESENT):
        return []
    return [
        RunningProgram(
            row["id"],
            row["host"],
            ProgramVersion(row["version"], row["migration"], row["routines"]),
        )
        for row in await connection.fetch(LIST_RUNNING)
    ]
