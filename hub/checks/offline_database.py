"""The database, for who looks into it without a server: one in use is shared, one at rest is
started for the while."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.errors import Unavailable
from engine.store.connection import Connection
from engine.store.database import open_database
from engine.store.embedded import EmbeddedServer
from engine.store.encryption import Sealer
from engine.store.pooler_check import check_pooling
from engine.store.schema_upgrade import check_current
from hub.settings.settings import DatabaseSettings


@asynccontextmanager
async def open_offline(
    settings: DatabaseSettings, *, sealer: Sealer | None = None
) -> AsyncIterator[Connection]:
    """A connection; nothing is made or migrated. Call it from the main thread. sealer: to read and
    write encrypted values.

    Raises Unavailable (there is none, or it cannot be reached), Conflict (of another version).
    """
    async with reached(settings) as url, looked_into(url, sealer=sealer) as conn:
        await check_current(conn)
        yield conn


@asynccontextmanager
async def looked_into(url: str, *, sealer: Sealer | None = None) -> AsyncIterator[Connection]:
    """A connection to a database of whatever version.

    Raises Unavailable, Conflict (behind a pooler of transactions).
    """
    await check_pooling(url)
    database = await open_database(url, size=1, sealer=sealer)
    try:
        async with database.connection() as conn:
            yield conn
    finally:
        await database.close()


@asynccontextmanager
async def reached(settings: DatabaseSettings) -> AsyncIterator[str]:
    """The URL of the database, of whatever version. Raises Unavailable, when there is none."""
    said = settings.url.get_secret_value()
    if said:
        yield said
        return
    server = EmbeddedServer(settings.data_dir, binaries=settings.programs, account=settings.account)
    if not server.made:
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
