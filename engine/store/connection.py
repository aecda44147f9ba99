"""Connections to PostgreSQL: how to open them, how to read jsonb, which errors are temporary.

Errors of asyncpg that mean "not now" become `engine.errors.Unavailable`; what else asyncpg raises
(a broken constraint, a wrong statement) is a fact about the statement and passes through.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import asyncpg
import orjson

from engine import errors
from engine.store.encryption import (
    PREFIX,
    Encrypted,
    Hidden,
    SealedDocument,
    Sealer,
    escape_keys,
    read_document,
)
from engine.words import Json

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

#: Seconds: to connect; for one statement, measured by us.
CONNECT_TIMEOUT = 10.0
COMMAND_TIMEOUT = 60.0

#: How servers and poolers show a connection; all that is sent when one is made, as poolers refuse
#: what they do not know.
STARTUP = {"application_name": "headgate"}
#: What PostgreSQL itself bounds, so that a lost client leaves no lock behind.
SET_SESSION = """
select set_config('timezone', 'UTC', false), set_config('jit', 'off', false),
       set_config('statement_timeout', '30s', false), set_config('lock_timeout', '15s', false),
       set_config('idle_in_transaction_session_timeout', '60s', false)
"""

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
#: The one of them that a statement meets which does too much at once.
TOO_SLOW = asyncpg.QueryCanceledError
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
    kind = errors.TimedOut if isinstance(error, TOO_SLOW) else errors.Unavailable
    return kind(reason, place="[database]", remedy=_remedy(error))


def is_refusal(error: errors.Unavailable) -> bool:
    """Whether the database answered, and waiting does not help: the settings are wrong."""
    return error.finding.place != "[database]" or isinstance(
        error.__cause__, (*REFUSED, asyncpg.ClientConfigurationError)
    )


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
#: Prefix of reserved keys in documents (engine/store/encryption.py).
_MARKER = f'"{PREFIX}'.encode()


class Documents:
    """How jsonb is written and read. sealer: None: hidden values cannot be written or revealed.

    Keys that look like the stored form of an encrypted value are escaped in every document, so
    that no document is mistaken for one.
    """

    def __init__(self, sealer: Sealer | None) -> None:
        self._sealer = sealer

    def encode(self, value: Json) -> bytes:
        ours = 0

        def plain(value: object) -> Json:
            nonlocal ours
            if isinstance(value, Hidden) and isinstance(value.value, SealedDocument):
                value = value.value  # it could not be decrypted, and stays as it is
            if isinstance(value, SealedDocument):
                return value.document
            if isinstance(value, Encrypted):
                ours += 1
                return value.stored()
            if isinstance(value, Hidden):
                ours += 1
                return self._hide(value)
            return str(value)  # asyncpg has a UUID of its own

        written = orjson.dumps(value, default=plain)
        if written.count(_MARKER) != ours:
            written = orjson.dumps(escape_keys(value), default=plain)
        return _JSONB + written

    def _hide(self, value: Hidden) -> Json:
        if self._sealer is None:
            raise RuntimeError("a hidden value is written without a key to seal it with")
        return self._sealer.hide(value)

    def decode(self, stored: bytes) -> Json:
        document = orjson.loads(memoryview(stored)[1:])
        return read_document(document, self._sealer) if _MARKER in stored else document

    async def prepare(self, connection: Connection) -> None:
        """Make a new connection ready: its session's settings, and jsonb."""
        await connection.execute(SET_SESSION)
        # In binary form, because COPY takes nothing else; it was as fast as text.
        await connection.set_type_codec(
            "jsonb", schema="pg_catalog", encoder=self.encode, decoder=self.decode, format="binary"
        )


async def connect(url: str) -> Connection:
    """Open one connection outside of any pool, ready for use. Unavailable when it cannot be had."""
    with connecting():
        connection = await asyncpg.connect(
            url,
            timeout=CONNECT_TIMEOUT,
            command_timeout=COMMAND_TIMEOUT,
            server_settings=STARTUP,
        )
        try:
            await Documents(None).prepare(connection)
        except BaseException:
            connection.terminate()
            raise
    return connection
