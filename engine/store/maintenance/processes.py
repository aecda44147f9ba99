"""The running Headgate processes of this database, which report at intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from engine.store.connection import Connection

#: Also deletes processes that have not reported for a day.
REPORT = """
with ended as (
    delete from process where id <> $1 and seen_at < clock_timestamp() - interval '1 day'
)
insert into process (id, host, roles, report_interval, key_ids) values ($1, $2, $3, $4, $5)
    on conflict (id) do update set seen_at = clock_timestamp(), key_ids = excluded.key_ids
"""
REMOVE = "delete from process where id = $1"
LIST_PROCESSES = """
select id, host, roles, report_interval, started_at, seen_at,
       seen_at > clock_timestamp() - 2 * report_interval as up, key_ids
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
    key_ids: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """up: its last report is at most two intervals old."""

    id: UUID
    host: str
    roles: Sequence[str]
    report_interval: timedelta
    started_at: datetime
    seen_at: datetime
    up: bool
    key_ids: Sequence[str] = ()


async def report(conn: Connection, process: Process) -> None:
    await conn.execute(
        REPORT, process.id, process.host, process.roles, process.report_interval, process.key_ids
    )


async def remove(conn: Connection, process_id: UUID) -> None:
    await conn.execute(REMOVE, process_id)


async def list_processes(conn: Connection) -> list[ProcessRecord]:
    return [ProcessRecord(**row) for row in await conn.fetch(LIST_PROCESSES)]
