"""Replicas of the database: whether one has all that its primary had committed at some moment.

The primary's write-ahead log has positions. A replica that has replayed a position shows all that
was committed before it. Positions of two servers can be compared if both are of one cluster and of
one timeline: a promotion begins a new timeline, and a replica that does not follow it may have
commits that the new primary never had.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

import asyncpg

from engine.store.database_errors import FAILURES
from engine.store.server_connector import HOST_TIMEOUT, Connection, ServerConnector

#: The end of the primary's log, after all commits that other sessions can see; the rest is null on
#: a replica. Only commits that are not waited for can be seen before they are flushed. An OID
#: identifies a database of the cluster, and replicas have the same.
READ_POSITION = """
select s.system_identifier as system, d.oid as database,
       case when not pg_is_in_recovery()
            then substr(pg_walfile_name(pg_current_wal_flush_lsn()), 1, 8) end as timeline,
       l.lsn::text, l.lsn - '0/0'::pg_lsn as bytes,
       current_setting('wal_block_size')::integer as block
  from pg_control_system() s, pg_database d,
       (select case when pg_is_in_recovery() then null
                    when current_setting('synchronous_commit') = 'off'
                    then pg_current_wal_insert_lsn() else pg_current_wal_flush_lsn() end) l (lsn)
 where d.datname = current_database()
"""
#: Without a commit, the log can be flushed up to the end of a block, in the middle of a record that
#: no replica can replay. This commits, so the log is flushed up to the end of a record.
FLUSH_LOG = "select pg_logical_emit_message(true, 'headgate', '')"
#: The state of a replica, and whether it has replayed a position. Its timeline is at least the
#: highest one that it shows: the one of the last restart point can be minutes old, and others than
#: monitoring roles see no timeline of the WAL receiver.
READ_STATE = """
select s.system_identifier as system, d.oid as database, pg_is_in_recovery() as standby,
       greatest(c.timeline_id, r.min_recovery_end_timeline, w.received_tli) as timeline,
       coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, false) as replayed
  from pg_control_system() s cross join pg_control_checkpoint() c
 cross join pg_control_recovery() r cross join pg_database d
  left join pg_stat_wal_receiver w on true
 where d.datname = current_database()
"""
NO_POSITION = "the primary does not tell the end of its log"
#: Seconds between two polls of a replica that is behind: the first and the longest pause.
FIRST_PAUSE, MAX_PAUSE = 0.001, 0.05


class ReadOutcome(StrEnum):
    """Who served a read, and why it was not a replica."""

    REPLICA = "replica"
    AWAY = "away"  # it cannot be reached, or was lost during the read
    BEHIND = "behind"  # it has not replayed what the primary had committed
    UNSUITABLE = "unsuitable"  # it is no replica of the primary, or not any more
    REPEATED = "repeated"  # it cancelled the statement, for example to replay its log
    PAUSED = "paused"  # it was not asked, because a read has failed recently


class ReplicaUnusable(Exception):
    """A read must use the primary. outcome, reason: why."""

    def __init__(self, outcome: ReadOutcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class WalPosition:
    """A position in the log of a primary. system: of its cluster. database: its OID."""

    system: int
    database: int
    timeline: int
    lsn: str


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """standby: it replays the log of another server. replayed: it has reached the position."""

    system: int
    database: int
    standby: bool
    timeline: int
    replayed: bool


async def read_position(conn: Connection) -> WalPosition | None:
    """The end of the log of the primary. None: the server is a replica, or does not tell, as some
    managed services."""
    try:
        row = await conn.fetchrow(READ_POSITION)
        if row is not None and row["lsn"] is not None and row["bytes"] % row["block"] == 0:
            await conn.execute(FLUSH_LOG)
            row = await conn.fetchrow(READ_POSITION)
    except (asyncpg.SyntaxOrAccessError, asyncpg.FeatureNotSupportedError):
        return None
    if row is None or row["lsn"] is None:
        return None
    return WalPosition(row["system"], row["database"], int(row["timeline"], 16), row["lsn"])


async def read_state(conn: Connection, position: WalPosition) -> ReplicaState:
    """Raises ReplicaUnusable if the server does not tell its state."""
    try:
        row: Any = await conn.fetchrow(READ_STATE, position.lsn)
    except (asyncpg.SyntaxOrAccessError, asyncpg.FeatureNotSupportedError) as error:
        reason = f"its state cannot be read: {error}"
        raise ReplicaUnusable(ReadOutcome.UNSUITABLE, reason) from error
    return ReplicaState(**row)


def other_database(state: ReplicaState, position: WalPosition) -> str | None:
    """The reason if a server has another database than the primary."""
    if state.system != position.system:
        return "it belongs to another database cluster than [database] url"
    if state.database != position.database:
        return "it has another database of the cluster than [database] url"
    return None


def why_unsuitable(state: ReplicaState, position: WalPosition) -> str | None:
    """The reason if positions of the primary mean nothing on a server."""
    if reason := other_database(state, position):
        return reason
    if not state.standby:
        return "it accepts writes: it is the primary, or was promoted"
    if state.timeline != position.timeline:
        return f"it is on timeline {state.timeline}, and the primary on {position.timeline}"
    return None


async def await_state(conn: Connection, position: WalPosition, lag: timedelta) -> ReplicaState:
    """The state of a server as soon as it has replayed a position or never will; at the latest
    after `lag`. Raises ReplicaUnusable if the server does not tell its state.

    conn: not in a transaction, which would keep the snapshot of the last look: the replica could
    not replay a log that deletes rows of that snapshot.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + lag.total_seconds()
    pauses = _pauses()
    while True:
        state = await read_state(conn, position)
        pause = next(pauses)
        if state.replayed or why_unsuitable(state, position) or loop.time() + pause > deadline:
            return state
        await asyncio.sleep(pause)


async def until_replayed(conn: Connection, position: WalPosition, lag: timedelta) -> None:
    """Wait until a replica has replayed a position. Raises ReplicaUnusable, also if it takes longer
    than `lag`. conn: not in a transaction."""
    state = await await_state(conn, position, lag)
    if reason := why_unsuitable(state, position):
        raise ReplicaUnusable(ReadOutcome.UNSUITABLE, reason)
    if not state.replayed:
        raise ReplicaUnusable(ReadOutcome.BEHIND, behind(lag))


def behind(lag: timedelta) -> str:
    return f"it is more than {lag.total_seconds():g} s behind the primary"


def _pauses() -> Iterator[float]:
    pause = FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, MAX_PAUSE)


class ReplicaConnector(ServerConnector):
    """Opens connections to the replicas of one URL, to each in turn; an unreachable one is left
    out."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._opened = 0

    async def open(self, *_: object, **options: Any) -> Connection:
        """Raises the errors of asyncpg."""
        options.pop("loop", None)
        if not self.hosts:
            return await self.open_bare(**options | {"timeout": HOST_TIMEOUT})
        options.pop("timeout", None)
        first = self._opened % len(self.hosts)
        self._opened += 1
        failures: list[Exception] = []
        for host in (*self.hosts[first:], *self.hosts[:first]):
            try:
                return await self.open_at(host, target="standby", **options)
            except FAILURES as error:
                failures.append(error)
        raise failures[0]
