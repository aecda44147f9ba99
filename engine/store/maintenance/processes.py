"""The running Headgate processes of this database, which report at intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from engine.store.connection import Connection
from engine.store.schema.compatibility import OldestProgram, ProgramVersion, check_program
from engine.store.schema.upgrade import LOCK_KEY

#: Also deletes processes that have not reported for a day. Returns the oldest program that may use
#: the database.
REPORT = """
with ended as (
    delete from process where id <> $1 and seen_at < clock_timestamp() - interval '1 day'
)
insert into process (id, host, roles, report_interval, key_ids, version, migration, routines)
values ($1, $2, $3, $4, $5, $6, $7, $8)
    on conflict (id) do update set seen_at = clock_timestamp(), key_ids = excluded.key_ids
returning (select migration from oldest_program) as migration,
          (select required_by from oldest_program) as required_by
"""
#: Migrations take the same lock alone.
LOCK = "select pg_advisory_xact_lock_shared($1)"
REMOVE = "delete from process where id = $1"
LIST_PROCESSES = """
select id, host, roles, report_interval, started_at, seen_at,
       seen_at > clock_timestamp() - 2 * report_interval as up, key_ids, version, migration,
       routines
  from process order by host, started_at, id
"""


@dataclass(frozen=True, slots=True)
class Process:
    """report_interval: time between reports. key_ids: IDs of its encryption keys; the first one
    encrypts."""

    id: UUID
    host: str
    roles: Sequence[str]
    report_interval: timedelta
    program: ProgramVersion
    key_ids: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """up: its last report is at most two intervals old. version, migration, routines: of its
    program, see `ProgramVersion`."""

    id: UUID
    host: str
    roles: Sequence[str]
    report_interval: timedelta
    started_at: datetime
    seen_at: datetime
    up: bool
    key_ids: Sequence[str] = ()
    version: str = ""
    migration: str = ""
    routines: int = 0


async def register(conn: Connection, process: Process) -> None:
    """Report for the first time, not during a migration.

    Raises Conflict, and does not report, if the program is too old for the database.
    """
    async with conn.transaction():
        await conn.execute(LOCK, LOCK_KEY)
        await report(conn, process)


async def report(conn: Connection, process: Process) -> None:
    """Raises Conflict if the program is too old for the database."""
    program = process.program
    row = await conn.fetchrow(
        REPORT,
        process.id,
        process.host,
        process.roles,
        process.report_interval,
        process.key_ids,
        program.version,
        program.migration,
        program.routines,
    )
    if row is not None and row["migration"] is not None:
        check_program(program, OldestProgram(**row))


async def remove(conn: Connection, process_id: UUID) -> None:
    await conn.execute(REMOVE, process_id)


async def list_processes(conn: Connection) -> list[ProcessRecord]:
    return [ProcessRecord(**row) for row in await conn.fetch(LIST_PROCESSES)]
