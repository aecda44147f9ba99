"""Connects to the database without a server. An embedded database that does not run is started for
the time of the connection."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.errors import Unavailable
from engine.store.connection import Connection
from engine.store.database import open_database
from engine.store.embedded.server import EmbeddedServer
from engine.store.encryption.secret_values import Keyring
from engine.store.pooler_check import check_pooling
from engine.store.schema.upgrade import check_current
from hub.settings.settings import DatabaseSettings


@asynccontextmanager
async def open_offline(
    settings: DatabaseSettings, *, keyring: Keyring | None = None
) -> AsyncIterator[Connection]:
    """A connection to a database of this version; nothing is created or migrated. Call it from the
    main thread. keyring: for encrypted values.

    Raises Unavailable (no database, or no connection) and Conflict (another version).
    """
    async with locate_database(settings) as url, connect(url, keyring=keyring) as conn:
        await check_current(conn)
        yield conn


@asynccontextmanager
async def connect(url: str, *, keyring: Keyring | None = None) -> AsyncIterator[Connection]:
    """A connection to a database of any version.

    Raises Unavailable, Conflict (behind a pooler of transactions).
    """
    await check_pooling(url)
    database = await open_database(url, size=1, keyring=keyring)
    try:
        async with database.connection() as conn:
            yield conn
    finally:
        await database.close()


@asynccontextmanager
async def locate_database(settings: DatabaseSettings) -> AsyncIterator[str]:
    """The URL of a database of any version. Raises Unavailable if there is none."""
    configured = settings.url.get_secret_value()
    if configured:
        yield configured
        return
    server = EmbeddedServer(settings.data_dir, binaries=settings.programs, account=settings.account)
    if not server.has_cluster:
        raise Unavailable(
            f"there is no database in {settings.data_dir}",
            place="[database] data_dir",
            remedy="Name the server's settings with --config, or its directory with --data-dir",
        )
    try:
        url = await server.start()
    except Unavailable:
        in_use = server.url_in_use()
        if in_use is None:
            raise
        url = in_use
    try:
        yield url
    finally:
        await server.stop()
