"""Connections to PostgreSQL and their transactions, and how jsonb is written and read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

import asyncpg
import orjson

from engine.store.database_errors import connection_errors
from engine.store.encryption.secret_values import (
    PREFIX,
    EncryptedDocument,
    EncryptedValue,
    Keyring,
    Secret,
    escape_keys,
    read_document,
)
from engine.store.server_connector import CONNECT_TIMEOUT as CONNECT_TIMEOUT
from engine.store.server_connector import ServerConnector
from engine.words import Json

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

#: Seconds for one statement, as the client measures them.
COMMAND_TIMEOUT = 60.0
#: Seconds that a server has to end a statement that was cancelled. After that, its connection is
#: terminated.
CANCEL_TIMEOUT = 1.0

#: The name of connections in PostgreSQL and in poolers. No other startup parameter is sent, because
#: poolers reject those that they do not know.
STARTUP = {"application_name": "headgate"}
#: Timeouts of the server, so that a lost client leaves no lock behind. A connection keeps the plans
#: that it made while tables were small, so no plan reads a whole table if an index has the rows.
SET_SESSION = """
select set_config('timezone', 'UTC', false), set_config('jit', 'off', false),
       set_config('enable_seqscan', 'off', false),
       set_config('statement_timeout', '30s', false), set_config('lock_timeout', '15s', false),
       set_config('idle_in_transaction_session_timeout', '60s', false)
"""
TRY_LOCK = "select pg_try_advisory_xact_lock($1)"

#: The first byte of jsonb's binary form: its version.
_JSONB = b"\x01"
#: Prefix of reserved keys in documents (engine/store/encryption/secret_values.py).
_MARKER = f'"{PREFIX}'.encode()


class JsonbCodec:
    """Writes and reads jsonb. keyring: None: secrets cannot be written or decrypted.

    Keys in documents of users that look like the stored form of an encrypted value are escaped.
    """

    def __init__(self, keyring: Keyring | None) -> None:
        self._keyring = keyring

    def encode(self, value: Json) -> bytes:
        markers = 0

        def plain(value: object) -> Json:
            nonlocal markers
            if isinstance(value, Secret) and isinstance(value.value, EncryptedDocument):
                value = value.value  # it could not be decrypted, and is written back unchanged
            if isinstance(value, EncryptedDocument):
                return value.document
            if isinstance(value, EncryptedValue):
                markers += 1
                return value.as_document()
            if isinstance(value, Secret):
                markers += 1
                return self._encrypt(value)
            return str(value)  # asyncpg has its own UUID class

        written = orjson.dumps(value, default=plain)
        if written.count(_MARKER) != markers:
            written = orjson.dumps(escape_keys(value), default=plain)
        return _JSONB + written

    def _encrypt(self, secret: Secret) -> Json:
        if self._keyring is None:
            raise RuntimeError("a secret value cannot be written without an encryption key")
        return self._keyring.encrypt_value(secret)

    def decode(self, stored: bytes) -> Json:
        document = orjson.loads(memoryview(stored)[1:])
        return read_document(document, self._keyring) if _MARKER in stored else document

    async def prepare(self, connection: Connection) -> None:
        """Configure a new connection: its session's settings, and jsonb."""
        await connection.execute(SET_SESSION)
        await self.register(connection)

    async def register(self, connection: Connection) -> None:
        """Use this codec for jsonb on a connection."""
        # Binary, because COPY accepts nothing else; text is not faster.
        await connection.set_type_codec(
            "jsonb", schema="pg_catalog", encoder=self.encode, decoder=self.decode, format="binary"
        )


def size_of(document: Json) -> int:
    """Bytes of a document as JSON, with unencrypted secrets. Raises the same errors as writing."""
    return len(orjson.dumps(document, default=_plain_value))


def _plain_value(value: object) -> Json:
    match value:
        case Secret():
            return value.value
        case EncryptedDocument():
            return value.document
        case EncryptedValue():
            return value.text
        case _:
            return str(value)


def terminate(connection: Connection) -> None:
    """Close a connection at once."""
    with suppress(asyncpg.InterfaceError):  # already returned to the pool
        connection.terminate()


@asynccontextmanager
async def run_transaction(
    connection: Connection, transaction: asyncpg.transaction.Transaction
) -> AsyncIterator[None]:
    """A transaction that is rolled back if it is cancelled. A server that does not respond delays
    this by at most `CANCEL_TIMEOUT`."""
    cancelled: asyncio.CancelledError | None = None
    timer: asyncio.TimerHandle | None = None
    try:
        async with transaction:
            try:
                yield
            except asyncio.CancelledError as error:
                cancelled = error
                loop = asyncio.get_running_loop()
                timer = loop.call_later(CANCEL_TIMEOUT, terminate, connection)
                raise
    except Exception:
        if cancelled is not None:
            raise cancelled from None
        raise
    finally:
        if timer is not None:
            timer.cancel()  # the connection may be in use again


async def try_lock(conn: Connection, key: int) -> bool:
    """Take an advisory lock until the end of the transaction; False: another session has it."""
    locked: bool = await conn.fetchval(TRY_LOCK, key)
    return locked


async def connect(url: str) -> Connection:
    """Open one connection outside of any pool. Raises Unavailable."""
    return await connect_with(ServerConnector(url))


async def connect_with(connector: ServerConnector) -> Connection:
    """Open one connection outside of any pool. Raises Unavailable."""
    with connection_errors():
        connection = await connector.open(command_timeout=COMMAND_TIMEOUT, server_settings=STARTUP)
        try:
            await JsonbCodec(None).prepare(connection)
        except BaseException:
            connection.terminate()
            raise
    return connection
