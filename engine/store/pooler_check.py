"""Detects a connection pooler between Headgate and PostgreSQL, and its pooling mode.

Headgate uses prepared statements and LISTEN, so a connection needs the same server process for its
whole session. A pooler in transaction mode assigns a server process to each transaction instead.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum

import asyncpg

from engine import errors
from engine.store.connection import COMMAND_TIMEOUT, CONNECT_TIMEOUT, Connection
from engine.store.database_errors import TRANSIENT, connection_errors, unavailable
from engine.store.server_connector import ServerConnector

SERVER_PROCESS = "select pg_backend_pid()"

#: Errors if a statement is prepared in one server process and executed in another.
PREPARED_STATEMENT_ERRORS = (
    asyncpg.InvalidSQLStatementNameError,
    asyncpg.DuplicatePreparedStatementError,
)
#: PgBouncer's error for a transaction in statement mode.
STATEMENT_MODE_ERROR = "not allowed in statement pooling mode"
#: How many times the server processes of two connections are compared.
ROUNDS = 20


class Pooling(StrEnum):
    NONE = "none"
    SESSION = "session"
    TRANSACTION = "transaction"


async def find_pooling(url: str) -> Pooling:
    """Return the pooling mode of connections to a URL. Raises Unavailable."""
    try:
        async with _bare_connection(url) as one:
            first = await _server_process(one)
            if one.get_server_pid() == first:  # the process ID that the server sent on connection
                return Pooling.NONE
            async with _bare_connection(url) as other:
                if await _share_processes(one, other, first):
                    return Pooling.TRANSACTION
        return Pooling.SESSION
    except PREPARED_STATEMENT_ERRORS:
        return Pooling.TRANSACTION
    except (OSError, TimeoutError, asyncpg.InterfaceError, *TRANSIENT) as error:
        if STATEMENT_MODE_ERROR in str(error):
            return Pooling.TRANSACTION
        raise unavailable(error) from error


async def check_pooling(url: str) -> Pooling:
    """Return the pooling mode. Raises Conflict if it is TRANSACTION."""
    found = await find_pooling(url)
    if found is Pooling.TRANSACTION:
        raise errors.Conflict(
            "the connection pooler in front of PostgreSQL does not use session mode, which prepared"
            " statements and LISTEN require",
            place="[database] url",
            remedy="Name the PostgreSQL server in [database] url and the pooler in [database]"
            " pooler_url, or set pool_mode = session for this database in the pooler",
            code="TransactionPooling",
        )
    return found


async def _share_processes(one: Connection, other: Connection, first: int) -> bool:
    """Return whether both connections use one server process, or one of them uses several.

    `first` is the process that `one` has used. In transaction mode, a pooler assigns the process
    that `one` has just released to `other`. If it uses its processes in turn, or other clients are
    faster, one of the connections gets a process that it has not used before.
    """
    processes, processes_of_other = {first}, set[int]()
    for _ in range(ROUNDS):
        async with other.transaction():
            processes_of_other.add(await other.fetchval(SERVER_PROCESS))
            processes.add(await _server_process(one))
        if len(processes) > 1 or len(processes_of_other) > 1 or processes & processes_of_other:
            return True
    return False


async def _server_process(connection: Connection) -> int:
    """The ID of the server process. In a transaction, so that a pooler cannot change the process
    between prepare and execute."""
    async with connection.transaction():
        pid: int = await connection.fetchval(SERVER_PROCESS)
    return pid


@asynccontextmanager
async def _bare_connection(url: str) -> AsyncIterator[Connection]:
    """A connection that prepares no named statements and changes no settings."""
    with connection_errors():
        connection = await ServerConnector(url).open_bare(
            command_timeout=COMMAND_TIMEOUT, statement_cache_size=0
        )
    try:
        yield connection
    finally:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await connection.close(timeout=CONNECT_TIMEOUT)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            connection.terminate()
