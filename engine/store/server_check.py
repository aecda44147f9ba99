"""Checks, before a process uses a database, that its servers are those that it may use."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from engine import errors
from engine.store.connection import COMMAND_TIMEOUT, STARTUP, Connection
from engine.store.database_errors import FAILURES, connection_errors
from engine.store.hosts import Host
from engine.store.server_connector import DatabaseServer, ServerConnector, read_server

#: The time of this machine, in seconds since 1970.
Clock = Callable[[], float]

PLACE = "[database] url"
#: Receivers refuse a webhook whose timestamp differs by more from their clock.
MAX_SKEW = timedelta(minutes=5)

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
