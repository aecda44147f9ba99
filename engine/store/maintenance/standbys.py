"""Standbys of a database that lack some of its commits: after a failover to one, these are lost."""

from dataclasses import dataclass

from engine.store.connection import Connection

READ_POSITION = "select pg_current_wal_insert_lsn()::text"
#: $1: a position of the write-ahead log. Connected standbys, and replication slots whose standby is
#: away. The name of a standby that the account may not see is null.
FIND_BEHIND = """
select case when pg_has_role(current_user, 'pg_read_all_stats', 'usage')
            then coalesce(nullif(r.application_name, ''), host(r.client_addr), r.pid::text)
       end as name
  from pg_stat_replication r
  left join pg_replication_slots s on s.active_pid = r.pid
 where coalesce(s.slot_type, 'physical') = 'physical' and r.state is distinct from 'backup'
   and (r.flush_lsn is null or r.flush_lsn < $1::text::pg_lsn)
union all
select s.slot_name::text from pg_replication_slots s
 where s.slot_type = 'physical' and not s.active and not s.temporary
   and s.restart_lsn < $1::text::pg_lsn
 order by 1
"""


@dataclass(frozen=True, slots=True)
class StandbysBehind:
    """names: of those that have not flushed a position. hidden: others, whose state the account may
    not see."""

    names: list[str]
    hidden: int


async def read_log_position(conn: Connection) -> str:
    """The end of the write-ahead log, after all commits that this session has seen."""
    position: str = await conn.fetchval(READ_POSITION)
    return position


async def find_behind(conn: Connection, position: str) -> StandbysBehind:
    """The standbys that have not flushed a position; a standby that is not connected and has no
    replication slot is not known."""
    names = [row["name"] for row in await conn.fetch(FIND_BEHIND, position)]
    known = [name for name in names if name is not None]
    return StandbysBehind(known, len(names) - len(known))
