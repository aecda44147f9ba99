"""Connections through a pooler in transaction mode, as PgBouncer with `pool_mode = transaction`.

The pooler assigns a server process to each transaction, so nothing outlives one: no setting, no
prepared statement, no LISTEN. Each statement outside of a transaction is one of its own here, and
each transaction begins with the settings that another connection has for its session. Statements
are planned each time; those of routines are not, because server processes keep their plans.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from engine.store.built_in_types import BuiltInTypesConnection
from engine.store.connection import Connection, run_transaction
from engine.store.server_connector import CONNECT_TIMEOUT

#: `SET_SESSION` for one transaction.
SET_TRANSACTION = """
select set_config('timezone', 'UTC', true), set_config('jit', 'off', true),
       set_config('enable_seqscan', 'off', true),
       set_config('statement_timeout', '30s', true), set_config('lock_timeout', '15s', true),
       set_config('idle_in_transaction_session_timeout', '60s', true)
"""
#: What asyncpg executes at the start of a transaction begins with this word.
_BEGIN = "BEGIN"


class PoolerConnection(BuiltInTypesConnection):
    __slots__ = ()

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:  # noqa: ASYNC109
        if query.startswith(_BEGIN) and not args:
            return str(await super().execute(f"{query}{SET_TRANSACTION}", timeout=timeout))
        async with self._in_transaction():
            return str(await super().execute(query, *args, timeout=timeout))

    async def executemany(
        self,
        command: str,
        args: Iterable[Sequence[Any]],
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> None:
        async with self._in_transaction():
            await super().executemany(command, args, timeout=timeout)

    async def fetch(self, *args: Any, **options: Any) -> Any:
        async with self._in_transaction():
            return await super().fetch(*args, **options)

    async def fetchrow(self, *args: Any, **options: Any) -> Any:
        async with self._in_transaction():
            return await super().fetchrow(*args, **options)

    async def fetchval(self, *args: Any, **options: Any) -> Any:
        async with self._in_transaction():
            return await super().fetchval(*args, **options)

    async def copy_records_to_table(self, *args: Any, **options: Any) -> str:
        async with self._in_transaction():
            return str(await super().copy_records_to_table(*args, **options))

    @asynccontextmanager
    async def _in_transaction(self) -> AsyncIterator[None]:
        if self.is_in_transaction():
            yield
            return
        async with run_transaction(self, self.transaction()):
            yield


class PoolerConnector:
    """Opens connections to the pooler of one URL."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def open(self, *_: object, **options: Any) -> Connection:
        """Open a connection. options: for asyncpg. Further arguments, of asyncpg's pool, are
        ignored. Raises the errors of asyncpg."""
        options.pop("loop", None)
        options.setdefault("timeout", CONNECT_TIMEOUT)
        options |= {"connection_class": PoolerConnection, "statement_cache_size": 0}
        connection: Connection = await asyncpg.connect(self.url, **options)
        return connection
