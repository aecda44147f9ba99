"""The running Headgate processes of this database, which report at intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from engine.store.connection import Connection
from engine.store.schema.compatibility import (
    IS_RUNNING,
    OldestProgram,
    ProgramVersion,
    check_program,
)
from engine.store.schema.upgrade import LOCK_KEY
from engine.store.traversals.advance import UNLABELLED

#: Also deletes processes that have not reported for a day. Returns the oldest program that may use
#: the database, and `OtherEngines`.
REPORT = f"""
with ended as (
    delete from process where id <> $1 and seen_at < clock_timestamp() - interval '1 day'
)
insert into process (id, host, roles, report_interval, key_ids, version, migration, routines,
                     labels)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    on conflict (id) do update set seen_at = clock_timestamp(), key_ids = excluded.key_ids
returning (select migration from oldest_program) as migration,
          (select required_by from oldest_program) as required_by,
          (select row (count(*),
                       count(*) filter (where (p.started_at, p.id)
                                              < (process.started_at, process.id)))
             from process p
            where p.id <> $1 and 'engine' = any (p.roles) and p.labels && $9
              and {IS_RUNNING}) as other_engines
"""  # noqa: S608 - of a constant
#: Migrations take the same lock alone.
LOCK = "select pg_advisory_xact_lock_shared($1)"
REMOVE = "delete from process where id = $1"
LIST_PROCESSES = f"""
select p.id, p.host, p.roles, p.report_interval, p.started_at, p.seen_at, {IS_RUNNING} as up,
       p.key_ids, p.version, p.migration, p.routines, p.labels
  from process p order by p.host, p.started_at, p.id
"""  # noqa: S608 - of a constant

#: Of processes with the role engine that are up.
READ_SERVED_LABELS = f"""
select coalesce(array_agg(distinct l.label), '{{}}')
  from process p cross join unnest(p.labels) l (label)
 where 'engine' = any (p.roles) and {IS_RUNNING}
"""  # noqa: S608 - of a constant
#: Due nodes of labels that no such process has. Nothing is due if no label is used.
READ_UNSERVED_LABELS = f"""
select w.label, sum(n.count)::bigint as nodes, min(w.wake_at) as since
  from labelled_work w
 cross join lateral (
       select count(*) from node n
        where n.stack_id = w.stack_id and n.traversal = w.traversal and n.label = w.label
          and n.wake_at <= clock_timestamp() offset 0) n
 where w.wake_at <= clock_timestamp() and n.count > 0
   and not exists (
       select from process p
        where w.label = any (p.labels) and 'engine' = any (p.roles)
          and {IS_RUNNING})
 group by w.label order by w.label
"""  # noqa: S608 - of a constant


@dataclass(frozen=True, slots=True)
class Process:
    """report_interval: time between reports. key_ids: IDs of its encryption keys; the first one
    encrypts. labels: of its workers; "": they execute nodes without a label."""

    id: UUID
    host: str
    roles: Sequence[str]
    report_interval: timedelta
    program: ProgramVersion
    key_ids: Sequence[str] = ()
    labels: Sequence[str] = UNLABELLED


@dataclass(frozen=True, slots=True)
class OtherEngines:
    """count: other processes that are up and claim the same nodes. earlier: those of them that have
    started before this one."""

    count: int = 0
    earlier: int = 0


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """up: its last report is at most two intervals old. version, migration, routines: of its
    program, see `ProgramVersion`. labels: as in `Process`."""

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
    labels: Sequence[str] = UNLABELLED


@dataclass(frozen=True, slots=True)
class UnservedLabel:
    """A label that no running worker has, although nodes with it are due. nodes: their number.
    since: when the first of them became due."""

    label: str
    nodes: int
    since: datetime


async def register(conn: Connection, process: Process) -> None:
    """Report for the first time, not during a migration.

    Raises Conflict, and does not report, if the program is too old for the database.
    """
    async with conn.transaction():
        await conn.execute(LOCK, LOCK_KEY)
        await report(conn, process)


async def report(conn: Connection, process: Process) -> OtherEngines:
    """Returns the other processes that are up, have the role engine and one of the same labels.

    Raises Conflict if the program is too old for the database.
    """
    program = process.program
    (row,) = await conn.fetch(
        REPORT,
        process.id,
        process.host,
        process.roles,
        process.report_interval,
        process.key_ids,
        program.version,
        program.migration,
        program.routines,
        process.labels,
    )
    if row["migration"] is not None:
        check_program(program, OldestProgram(row["migration"], row["required_by"]))
    return OtherEngines(*row["other_engines"])


async def remove(conn: Connection, process_id: UUID) -> None:
    await conn.execute(REMOVE, process_id)


async def list_processes(conn: Connection) -> list[ProcessRecord]:
    return [ProcessRecord(**row) for row in await conn.fetch(LIST_PROCESSES)]


async def read_served_labels(conn: Connection) -> frozenset[str]:
    """The labels of the workers of running processes; "": some execute nodes without a label."""
    return frozenset(await conn.fetchval(READ_SERVED_LABELS))


async def read_unserved_labels(conn: Connection) -> list[UnservedLabel]:
    return [UnservedLabel(**row) for row in await conn.fetch(READ_UNSERVED_LABELS)]
