"""What this installation keeps for itself: the key that hook tokens are made with."""

from engine.store.database import Connection

KEEP_KEY = "insert into instance (signing_key) values ($1) on conflict (only_one) do nothing"
READ_KEY = "select signing_key from instance"
ALIVE = "select 1"


async def signing_key(conn: Connection, fresh: bytes) -> bytes:
    """The key all processes on this database share; `fresh` becomes it when there is none."""
    await conn.execute(KEEP_KEY, fresh)
    key: bytes = await conn.fetchval(READ_KEY)
    return key


async def alive(conn: Connection) -> bool:
    return bool(await conn.fetchval(ALIVE))
