"""Opens connections to the primary of a database, and detects failovers.

A URL can name several hosts. All are asked at once, because one that drops packets would delay
those after it; the host that was the primary last gets a head start.

Each connection reads which server it is connected to. A new timeline is a failover: another server
was promoted. Then the connections to the former primary are closed, and before a connection to the
new one is used, the callbacks compare what this process knows with the database: with asynchronous
replication, commits can be lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import asyncpg
import structlog
from asyncpg.connect_utils import SessionAttribute
from structlog.typing import FilteringBoundLogger

from engine.store.built_in_types import BuiltInTypesConnection
from engine.store.hosts import Host, hosts_of, target_of

log: FilteringBoundLogger = structlog.get_logger()

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

#: Seconds to connect to the only host of a URL; to one of several.
CONNECT_TIMEOUT, HOST_TIMEOUT = 10.0, 3.0
#: Seconds that the last primary is asked before the other hosts are.
HEAD_START = 0.5

#: The current server. A name of a WAL file begins with the timeline.
READ_SERVER = """
select s.system_identifier as system, pg_postmaster_start_time() as started,
       case when not pg_is_in_recovery()
            then substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) end as timeline
  from pg_control_system() s
"""

#: What an attempt to connect can raise.
_FAILURES = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
#: Errors that all hosts of a cluster have in common, so that a repetition fails again.
_REFUSALS = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.ClientConfigurationError,
)


@dataclass(frozen=True, slots=True)
class DatabaseServer:
    """A PostgreSQL server. system: identifies the cluster; replicas have that of their primary.

    timeline: a promotion begins a new one; None: the server is a replica.
    """

    system: int
    timeline: int | None
    started: datetime

    @property
    def history(self) -> tuple[int, int | None]:
        """Servers with the same history have the same commits."""
        return self.system, self.timeline


@dataclass(frozen=True, slots=True)
class Failover:
    """former, current: the primaries before and after it."""

    former: DatabaseServer
    current: DatabaseServer


#: Called with a connection to the new primary, which it must not close.
FailoverCallback = Callable[[Connection, Failover], Awaitable[None]]


class FormerPrimary(ConnectionError):
    """The server was the primary before the last failover."""


class OtherCluster(ConnectionError):
    """The server is no replica of the servers of the other hosts."""


class NoPrimary(ConnectionError):
    """No host of the URL is reachable and accepts writes. failures: why, by host."""

    def __init__(self, failures: Mapping[Host, Exception]) -> None:
        self.failures = failures
        reasons = ", ".join(f"{host} ({_reason(one)})" for host, one in failures.items())
        super().__init__(f"no host of [database] url accepts writes: {reasons}")

    @property
    def is_up(self) -> bool:
        """Whether a host may still be the primary: it has no connection to spare."""
        busy = asyncpg.InsufficientResourcesError
        return any(isinstance(one, busy) for one in self.failures.values())


def _reason(error: Exception) -> str:
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return "is a read-only replica"
    if isinstance(error, TimeoutError):
        return f"no answer within {HOST_TIMEOUT:.0f} s"
    return str(error) or type(error).__name__


async def read_server(conn: Connection) -> DatabaseServer | None:
    """The server of a connection; None: it does not tell, as some managed services."""
    try:
        row = await conn.fetchrow(READ_SERVER)
    except (asyncpg.SyntaxOrAccessError, asyncpg.FeatureNotSupportedError):
        return None
    if row is None:
        return None
    timeline = row["timeline"]
    return DatabaseServer(row["system"], int(timeline, 16) if timeline else None, row["started"])


class ServerConnector:
    """Opens connections to the primary of one URL. hosts: the URL's, if there are several."""

    def __init__(self, url: str) -> None:
        self.url = url
        named = hosts_of(url)
        self.hosts = tuple(named) if len(named) > 1 else ()
        self._primary: Host | None = None
        self._server: DatabaseServer | None = None
        self._servers: WeakKeyDictionary[Connection, DatabaseServer] = WeakKeyDictionary()
        self._callbacks: list[FailoverCallback] = []
        self._admitting = asyncio.Lock()

    def on_failover(self, callback: FailoverCallback) -> None:
        self._callbacks.append(callback)

    async def open(self, *_: object, **options: Any) -> Connection:
        """Open a connection. options: for asyncpg. Further arguments, of asyncpg's pool, are
        ignored.

        Raises the errors of asyncpg, and NoPrimary if the URL has several hosts.
        """
        connection = await self.open_bare(**options)
        try:
            server = await read_server(connection)
            if server is not None:
                await self._admit(connection, server)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def open_bare(self, **options: Any) -> Connection:
        """Open a connection on which no statement is prepared, if the URL has one host."""
        options.pop("loop", None)
        if self.hosts:
            return await self._first_primary(options)
        options.setdefault("timeout", CONNECT_TIMEOUT)
        options["connection_class"] = BuiltInTypesConnection
        connection: Connection = await asyncpg.connect(self.url, **options)
        return connection

    async def open_at(self, host: Host, *, target: str = "any", **options: Any) -> Connection:
        """Connect to one host of the URL. target: `target_session_attrs`."""
        options |= {"timeout": HOST_TIMEOUT, "connection_class": BuiltInTypesConnection}
        connection: Connection = await asyncpg.connect(
            self.url,
            host=host.name,
            port=host.port,
            target_session_attrs=SessionAttribute(target),
            **options,
        )
        return connection

    def close_all(self) -> None:
        """Close all connections at once, because there is no primary."""
        for connection in [*self._servers]:
            connection.terminate()

    async def _first_primary(self, options: Mapping[str, Any]) -> Connection:
        """Ask all hosts, and return the connection to the first primary."""
        first = self._primary
        tasks: dict[asyncio.Task[Connection], Host] = {}
        failures: dict[Host, Exception] = {}
        try:
            for host in sorted(self.hosts, key=lambda one: one != first):
                asking = asyncio.create_task(self._ask(host, options))
                tasks[asking] = host
                if host == first:
                    await asyncio.wait(tasks, timeout=HEAD_START)
                    if asking.done() and asking.exception() is None:
                        break
            waiting = {*tasks}
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    error = task.exception()
                    if error is None:
                        self._primary = tasks.pop(task)
                        return task.result()
                    if not isinstance(error, _FAILURES):
                        raise error
                    failures[tasks[task]] = error
        finally:
            await _discard([*tasks])
        if all(isinstance(one, _REFUSALS) for one in failures.values()):
            raise next(iter(failures.values()))
        raise NoPrimary(failures)

    async def _ask(self, host: Host, options: Mapping[str, Any]) -> Connection:
        """Connect to a host. Raises FormerPrimary and OtherCluster."""
        async with asyncio.timeout(HOST_TIMEOUT):
            target = target_of(self.url) or "read-write"
            connection = await self.open_at(host, target=target, **options)
            try:
                self._check(await read_server(connection))
            except BaseException:
                connection.terminate()
                raise
        return connection

    def _check(self, server: DatabaseServer | None) -> None:
        known = self._server
        if server is None or known is None:
            return
        if server.system != known.system:
            raise OtherCluster("belongs to another database cluster")
        if (server.timeline or 0) < (known.timeline or 0):
            raise FormerPrimary("is a former primary, and must not accept writes any more")

    async def _admit(self, connection: Connection, server: DatabaseServer) -> None:
        """Note the server of a new connection. After a failover, call the callbacks first."""
        async with self._admitting:
            if self.hosts:
                self._check(server)
            known = self._server
            if known is not None and known.history != server.history:
                log.warning("database.failover", former=known.timeline, current=server.timeline)
                for callback in self._callbacks:
                    await callback(connection, Failover(known, server))
            self._server = server
            self._servers[connection] = server
            if known != server:
                self._close_others(server)

    def _close_others(self, server: DatabaseServer) -> None:
        """Close the connections to other servers. Their statements may wait for a dead host."""
        for connection, of in [*self._servers.items()]:
            if of != server:
                connection.terminate()


async def _discard(tasks: "list[asyncio.Task[Connection]]") -> None:
    """Cancel attempts to connect, and close the connections of the others."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        with suppress(asyncio.CancelledError, *_FAILURES):
            task.result().terminate()
