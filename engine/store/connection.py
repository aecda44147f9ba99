"""A connection to PostgreSQL: how it is made, how jsonb is read, which errors mean "not now".

Errors of asyncpg that mean "not now" become `engine.errors.Unavailable`; what else asyncpg raises
(a broken constraint, a wrong statement) is a fact about the statement and passes through.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import asyncpg
import orjson

from engine import errors
from engine.store.sealing import Hidden, Sealer
from engine.words import Json

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

#: Seconds: to connect; for one statement, measured by us.
CONNECT_TIMEOUT = 10.0
COMMAND_TIMEOUT = 60.0

#: What PostgreSQL itself bounds, so that a lost client leaves no lock behind.
SESSION = {
    "application_name": "headgate",
    "timezone": "UTC",
    "jit": "off",
    "statement_timeout": "30s",
    "lock_timeout": "15s",
    "idle_in_transaction_session_timeout": "60s",
}

#: Errors of asyncpg that say nothing about the statement, only that it could not be run now.
TRANSIENT = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.LockNotAvailableError,
    asyncpg.TransactionRollbackError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.PostgresSystemError,
    asyncpg.ReadOnlySQLTransactionError,
)
#: All that may come of a connection that is made, given back or asked whether it lives.
FAILURES = (
    OSError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
#: The server is there, but these settings do not get in: waiting does not help.
REFUSED = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)


def unavailable(error: BaseException) -> errors.Unavailable:
    """Say that the database does not answer, and why; holds no password and no statement."""
    said = str(error) or type(error).__name__
    reason = f"the database cannot be used now: {said}"
    return errors.Unavailable(reason, place="[database]", remedy=_remedy(error))


def _remedy(error: BaseException) -> str:
    if isinstance(error, REFUSED):
        return "Check the account and database named by [database] url"
    if isinstance(error, asyncpg.DiskFullError):
        return "Make room on the volume of the database, and try again"
    return "Try again; see whether PostgreSQL runs and can be reached"


@contextmanager
def connecting() -> Iterator[None]:
    """Where a connection is made or borrowed: whatever goes wrong is Unavailable."""
    try:
        yield
    except FAILURES as error:
        raise unavailable(error) from error


#: The first byte of jsonb's binary form: its version.
_JSONB = b"\x01"


class Documents:
    """How jsonb is written and read. sealer: None: hidden values cannot be written, and are read as
    they are."""

    def __init__(self, sealer: Sealer | None) -> None:
        self._sealer = sealer

    def encode(self, value: Json) -> bytes:
        return _JSONB + orjson.dumps(value, default=self._plain)

    def _plain(self, value: object) -> Json:
        if not isinstance(value, Hidden):
            return str(value)  # asyncpg has a UUID of its own
        if self._sealer is None:
            raise RuntimeError("a hidden value is written without a key to seal it with")
        return self._sealer.hide(value)

    def decode(self, stored: bytes) -> Json:
        document = orjson.loads(memoryview(stored)[1:])
        if self._sealer is not None and self._sealer.marker in stored:
            return self._sealer.shown(document)
        return document

    async def prepare(self, connection: Connection) -> None:
        # In binary form, because COPY takes nothing else; it was as fast as text.
        await connection.set_type_codec(
            "jsonb", schema="pg_catalog", encoder=self.encode, decoder=self.decode, format="binary"
        )


async def connect(url: str, *, session: dict[str, str] | None = None) -> Connection:
    """Open one connection outside of any pool, codecs set. Unavailable when it cannot be had."""
    with connecting():
        connection = await asyncpg.connect(
            url,
            timeout=CONNECT_TIMEOUT,
            command_timeout=COMMAND_TIMEOUT,
            server_settings=SESSION | (session or {}),
        )
        try:
            await Documents(None).prepare(connection)
        except BaseException:
            connection.terminate()
            raise
    return connection
