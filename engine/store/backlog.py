"""How much work is waiting, and whether any is stuck. Partial indexes make the queries cheap."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.store.connection import Connection

WORK = """
select (select count(*) from hook where state = 'waiting') as hooks_waiting,
       (select extract(epoch from clock_timestamp() - min(opened_at))::double precision
          from hook where state = 'waiting') as oldest_hook,
       (select count(*) from hook
         where state = 'waiting' and deadline < clock_timestamp() - $1::interval) as hooks_overdue,
       (select count(*) from traversal t
         where t.wake_at < clock_timestamp() - $1::interval and exists (
               select from node n
                where n.stack_id = t.stack_id and n.traversal = t.number and n.state = 'ready'
                  and n.wake_at < clock_timestamp() - $1::interval)) as unclaimed,
       (select count(*) from traversal t
         where t.wake_at < clock_timestamp() - $1::interval and exists (
               select from node n
                where n.stack_id = t.stack_id and n.traversal = t.number and n.state = 'running'
                  and n.wake_at < clock_timestamp() - $1::interval)) as expired_leases,
       (select count(*) from traversal
         where state = 'ending' and wake_at < clock_timestamp() - $1::interval) as unended
"""
SERVER = """
select current_setting('server_version') as version,
       current_setting('server_version_num')::integer as number, clock_timestamp() as now,
       pg_is_in_recovery() as standby
"""
# Bounded, because metrics read it often.
SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Work:
    """oldest_hook: seconds it has waited; None: none waits. Of what is stuck, the traversals:
    unclaimed: with nodes that nobody takes up; expired_leases: whose worker is gone, and that
    nobody takes up again; unended: of which nothing is left, and that nobody ends."""

    hooks_waiting: int
    oldest_hook: float | None
    hooks_overdue: int
    unclaimed: int
    expired_leases: int
    unended: int


async def work(conn: Connection, patience: timedelta) -> Work:
    """patience: how long due work may wait before it counts as stuck."""
    row = await conn.fetchrow(WORK, patience, timeout=SECONDS)
    return Work(**row)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Server:
    """number: the version as PostgreSQL counts them, 150012 say. standby: it takes no changes."""

    version: str
    number: int
    now: datetime
    standby: bool


async def server(conn: Connection) -> Server:
    row = await conn.fetchrow(SERVER, timeout=SECONDS)
    return Server(**row)  # type: ignore[arg-type]
