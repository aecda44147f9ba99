"""Opens the database of a process, or of one of its cells, and its replicas."""

import secrets
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from engine.store.access.token_keys import ensure_token_key, signing_key
from engine.store.connection import Connection
from engine.store.database import Database, open_database
from engine.store.encryption.secret_values import Keyring
from engine.store.maintenance.processes import Process, register
from engine.store.projects.cells import check_no_cell
from engine.store.read_database import open_replica
from hub.keys.token_keys import StoredTokenKeys


async def open_registered(
    url: str,
    size: int,
    keyring: Keyring,
    process: Process,
    *,
    identify: Callable[[Connection], Awaitable[object]] | None = None,
    pooler_url: str = "",
) -> tuple[Database, StoredTokenKeys]:
    """A database where this process is registered, with its token keys. Raises Unavailable, and
    Conflict if the database is too new. identify: makes the database a cell before that, and
    raises its errors; None: also raises Conflict if this process has the role api and the database
    is a cell. pooler_url: see `open_database`."""
    database = await open_database(url, size=size, keyring=keyring, pooler_url=pooler_url)
    try:
        async with database.connection() as conn:
            if identify is not None:
                await identify(conn)
            async with conn.transaction():
                await register(conn, process)  # it excludes `identify` of other processes
                if "api" in process.roles and identify is None:
                    await check_no_cell(conn)
            first = await signing_key(conn, secrets.token_bytes(32), keyring)
            await ensure_token_key(conn, first, keyring)
        token_keys = StoredTokenKeys(database, keyring, first)
        await token_keys.refresh()
        return database, token_keys
    except BaseException:
        await database.close()
        raise


async def open_replicas(
    stack: AsyncExitStack, read_url: str, size: int, keyring: Keyring
) -> Database | None:
    """Replicas for the time of the stack; None: there are none."""
    if not read_url:
        return None
    replica = await open_replica(read_url, size=size, keyring=keyring)
    stack.push_async_callback(replica.close)
    return replica
