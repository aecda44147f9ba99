"""Checks whether there is a connection pooler before PostgreSQL, and whether it pools sessions.

Headgate prepares statements and listens for notifications, so a connection must stay with one
server process for its whole session. A pooler that hands out server processes for a transaction
breaks both.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum

import asyncpg

from engine import errors
from engine.store.connection import (
    COMMAND_TIMEOUT,
    CONNECT_TIMEOUT,
    TRANSIENT,
    Connection,
    connecting,
    unavailable,
)

SERVER_PROCESS = "select pg_backend_pid()"

#: Errors when a statement is prepared on one server process and run on another.
MIXED_UP = (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError)
#: PgBouncer's error for a transaction in statement mode.
REFUSAL = "not allowed in statement pooling mode"
#: How often the server processes of two connections are compared.
ROUNDS = 5


class Pooling(StrEnum):
    NONE = "none"
    SESSION = "session"
    TRANSACTION = "transaction"


async def find_pooling(url: str) -> Pooling:
    """How connections to a URL are pooled. Raises Unavailable."""
    try:
        async with _bare_connection(url) as one:
            first = await _server_process(one)
            if one.get_server_pid() == first:  # the server's own value, from the connect
                return Pooling.NONE
            async with _bare_connection(url) as other:
                for _ in range(ROUNDS):
                    if await _shared(one, other, first):
                        return Pooling.TRANSACTION
        return Pooling.SESSION
    except MIXED_UP:
        return Pooling.TRANSACTION
    except (OSError, TimeoutError, asyncpg.InterfaceError, *TRANSIENT) as error:
        if REFUSAL in str(error):
            return Pooling.TRANSACTION
        raise unavailable(error) from error


async def check_pooling(url: str) -> Pooling:
    """Raise Conflict when a pooler does not keep a session on one server process."""
    found = await find_pooling(url)
    if found is Pooling.TRANSACTION:
        raise errors.Conflict(
            "the connection pooler in front of PostgreSQL pools transactions, which breaks prepared"
            " statements and LISTEN",
            place="[database] url",
            remedy="Set pool_mode = session for this database in the pooler, or name PostgreSQL"
            " itself",
            code="TransactionPooling",
        )
    return found


async def _shared(one: Connection, other: Connection, first: int) -> bool:
    """Whether one server process serves both, or two serve one of them.

    In a pool of transactions the other connection is given the process that the first one has just
    used; where the pool takes turns, or other clients are quicker, the first one is given another.
    """
    async with other.transaction():
        theirs: int = await other.fetchval(SERVER_PROCESS)
        ours = await _server_process(one)
    return theirs == first or ours != first


async def _server_process(connection: Connection) -> int:
    """In a transaction, so that a pooler cannot change the process between prepare and execute."""
    async with connection.transaction():
        pid: int = await connection.fetchval(SERVER_PROCESS)
    return pid


@asynccontextmanager
async def _bare_connection(url: str) -> AsyncIterator[Connection]:
    """A connection that prepares no named statement and sets nothing."""
    with connecting():
        connection = await asyncpg.connect(
            url,
            timeout=CONNECT_TIMEOUT,
            command_timeout=COMMAND_TIMEOUT,
            statement_cache_size=0,
        )
    try:
        yield connection
    finally:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await connection.close(timeout=CONNECT_TIMEOUT)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            connection.terminate()
