"""Checks, before a process uses a database, that its servers are those that it may use."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

import asyncpg

from engine import errors
from engine.store.connection import COMMAND_TIMEOUT, STARTUP, Connection, connect
from engine.store.database_errors import FAILURES, connection_errors
from engine.store.hosts import Host
from engine.store.pooler_check import STATEMENT_MODE_ERROR
from engine.store.pooler_connection import PoolerConnector
from engine.store.replica import (
    NO_POSITION,
    ReplicaConnector,
    ReplicaState,
    ReplicaUnusable,
    WalPosition,
    await_state,
    behind,
    other_database,
    read_position,
    why_unsuitable,
)
from engine.store.server_connector import DatabaseServer, ServerConnector, read_server

#: The time of this machine, in seconds since 1970.
Clock = Callable[[], float]

PLACE, REPLICA_PLACE = "[database] url", "[database] read_url"
POOLER_PLACE = "[database] pooler_url"
#: Receivers refuse a webhook whose timestamp differs by more from their clock.
MAX_SKEW = timedelta(minutes=5)

READ_DATABASE = "select current_database()"
READ_STATE = "select pg_is_in_recovery() as standby, clock_timestamp() as now"


@dataclass(frozen=True, slots=True)
class ServerState:
    """server: None: unknown. ahead: seconds that the server's clock is ahead of this machine's."""

    server: DatabaseServer | None
    standby: bool
    ahead: float


async def check_servers(url: str, clock: Clock) -> None:
    """Raise Conflict if the only host of a URL is a replica, if its hosts are of several clusters,
    if two of them accept writes, or if the clocks differ too much. Raises Unavailable."""
    connector = ServerConnector(url)
    if not connector.hosts:
        with connection_errors():
            connection = await connector.open_bare(
                command_timeout=COMMAND_TIMEOUT, server_settings=STARTUP
            )
            state = await _read_state(connection, clock)
        judge_servers({"the server": state})
        return
    judge_servers(await read_hosts(connector, clock))


async def read_hosts(connector: ServerConnector, clock: Clock) -> dict[str, ServerState]:
    """The states of those hosts that answer."""

    async def read(host: Host) -> ServerState | None:
        try:
            connection = await connector.open_at(
                host, command_timeout=COMMAND_TIMEOUT, server_settings=STARTUP
            )
            return await _read_state(connection, clock)
        except FAILURES:
            return None

    states = await asyncio.gather(*map(read, connector.hosts))
    by_host = zip(connector.hosts, states, strict=True)
    return {str(host): state for host, state in by_host if state is not None}


async def check_pooler_url(url: str, pooler_url: str) -> None:
    """Raise Conflict if a pooler leads to another database than the URL of the server, or does not
    keep the statements of a transaction together. "": there is none. Raises Unavailable."""
    if not pooler_url:
        return
    found = []
    for opener in (ServerConnector(url), PoolerConnector(pooler_url)):
        with connection_errors():
            try:
                connection = await opener.open(
                    command_timeout=COMMAND_TIMEOUT, server_settings=STARTUP
                )
                try:
                    found.append(await _read_database(connection))
                finally:
                    connection.terminate()
            except asyncpg.PostgresError as error:
                if STATEMENT_MODE_ERROR not in str(error):
                    raise
                raise errors.Conflict(
                    "the connection pooler uses statement mode, in which there are no transactions",
                    place=POOLER_PLACE,
                    remedy="Set pool_mode = transaction for this database in the pooler",
                    code="UnsuitablePooler",
                ) from None
    if found[0] != found[1]:
        raise errors.Conflict(
            "the connection pooler leads to another database than `url` beside it",
            place=POOLER_PLACE,
            remedy="Name a pooler in front of the server of `url`, and the same database",
            code="UnsuitablePooler",
        )


async def _read_database(connection: Connection) -> tuple[int | None, str]:
    """The cluster of a connection, None if it does not tell, and the database."""
    async with connection.transaction():
        server = await read_server(connection)
        return None if server is None else server.system, await connection.fetchval(READ_DATABASE)


async def check_replicas(
    url: str, read_url: str, lag: timedelta = timedelta(0)
) -> dict[str, str | None]:
    """Why the servers of `[database] read_url` do not serve reads now, by host; None: they do. A
    server may be behind for `lag`.

    Raises Conflict if one has another database than the primary, and Unavailable.
    """
    if not read_url:
        return {}
    connection = await connect(url)
    try:
        with connection_errors():
            position = await read_position(connection)
    finally:
        connection.terminate()
    connector = ReplicaConnector(read_url)
    hosts: list[Host | None] = [*connector.hosts] or [None]
    names = [str(host or "the server") for host in hosts]
    if position is None:
        return dict.fromkeys(names, NO_POSITION)
    asking = (_read_replica(connector, host, position, lag) for host in hosts)
    states = dict(zip(names, await asyncio.gather(*asking), strict=True))
    for name, state in states.items():
        if isinstance(state, ReplicaState) and (reason := other_database(state, position)):
            raise errors.Conflict(
                f"{name} is no replica of the primary: {reason}",
                place=REPLICA_PLACE,
                remedy="Name replicas of the servers of [database] url, and the same database",
                code="NotItsReplica",
            )
    return {name: _why_not(state, position, lag) for name, state in states.items()}


def _why_not(state: ReplicaState | str, position: WalPosition, lag: timedelta) -> str | None:
    if isinstance(state, str):
        return state
    return why_unsuitable(state, position) or (None if state.replayed else behind(lag))


async def _read_replica(
    connector: ReplicaConnector, host: Host | None, position: WalPosition, lag: timedelta
) -> ReplicaState | str:
    """The state of a server of the URL, or why it cannot be read. host: None for the only one."""
    try:
        if host is None:
            connection = await connector.open_bare(
                command_timeout=COMMAND_TIMEOUT, server_settings=STARTUP
            )
        else:
            connection = await connector.open_at(
                host, command_timeout=COMMAND_TIMEOUT, server_settings=STARTUP
            )
        try:
            return await await_state(connection, position, lag)
        finally:
            connection.terminate()
    except (ReplicaUnusable, *FAILURES) as error:
        return str(error) or type(error).__name__


async def _read_state(connection: Connection, clock: Clock) -> ServerState:
    """Read the state of the server, and close the connection."""
    try:
        began = clock()
        row = await connection.fetchrow(READ_STATE)
        middle = (began + clock()) / 2
        server = await read_server(connection)
    finally:
        connection.terminate()
    if row is None:
        raise ConnectionError("the server has no state")
    return ServerState(server, row["standby"], row["now"].timestamp() - middle)


def judge_servers(states: Mapping[str, ServerState]) -> None:
    """Raise Conflict if a process must not use these servers. Keys: hosts."""
    if len(states) == 1:
        (only,) = states.values()
        if only.standby and "the server" in states:
            raise errors.Conflict(
                "the server is a read-only replica",
                place=PLACE,
                remedy="Name the primary, or all hosts of the cluster:"
                " postgresql://USER@HOST1,HOST2/DATABASE",
                code="ReplicaNotPrimary",
            )
    systems = {one.server.system: host for host, one in states.items() if one.server}
    if len(systems) > 1:
        raise errors.Conflict(
            f"the hosts {' and '.join(sorted(systems.values()))} belong to different database"
            " clusters",
            place=PLACE,
            remedy="Name a primary and its own replicas",
            code="DifferentClusters",
        )
    primaries = [host for host, one in states.items() if not one.standby]
    if len(primaries) > 1:
        raise errors.Conflict(
            f"the hosts {' and '.join(primaries)} both accept writes",
            place=PLACE,
            remedy="Stop the former primary, and make it a replica of the current one",
            code="TwoPrimaries",
        )
    for host, one in states.items():
        if abs(one.ahead) > MAX_SKEW.total_seconds():
            direction = "ahead of" if one.ahead > 0 else "behind"
            raise errors.Conflict(
                f"the clock of {host} is {abs(one.ahead):.0f} s {direction} the clock of this"
                " machine",
                place=PLACE,
                remedy="Synchronize both clocks with NTP",
                code="ClocksApart",
            )
