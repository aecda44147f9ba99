"""What this installation keeps for itself: which encryption key it has, and the first key that
tokens derived from."""

from datetime import datetime
from uuid import UUID

from engine.errors import Unavailable
from engine.store.connection import Connection
from engine.store.encryption import Scope, Sealer
from engine.store.token_keys import reencrypt_token_keys

#: What the key is sealed for, in the place of a stack.
_SIGNING = Scope("", UUID("5e0f1c1c-9a68-4b0e-8f4e-6a2f2f7d5b1d"), "instance.signing_key")
#: Length of the key that earlier versions stored unencrypted.
PLAIN_BYTES = 32

KEEP_CHECK = "update instance set key_check = $1 where key_check is null"
READ_CHECK = "select key_check from instance"
RESEAL_KEY = "update instance set signing_key = $1 where signing_key = $2"
KEEP_KEY = "insert into instance (signing_key) values ($1) on conflict (only_one) do nothing"
READ_KEY = "select signing_key from instance"
SET_CHECK = "update instance set key_check = $1"
ALIVE = "select 1"
NOW = "select clock_timestamp()"


async def signing_key(conn: Connection, fresh: bytes, sealer: Sealer) -> bytes:
    """The key all processes on this database share, kept sealed; `fresh` becomes it when there is
    none. Raises Unavailable: what is in this database was sealed with another key."""
    await conn.execute(KEEP_KEY, sealer.seal(_SIGNING, fresh.hex()))
    await conn.execute(KEEP_CHECK, sealer.check)
    if await conn.fetchval(READ_CHECK) not in sealer.checks:
        raise Unavailable(
            "the hidden values in this database were sealed with another key",
            place="[credentials] key_file",
            remedy="Name the file that the server had before; all processes need the same one.",
        )
    kept: bytes = await conn.fetchval(READ_KEY)
    if len(kept) > PLAIN_BYTES:
        return bytes.fromhex(sealer.open(_SIGNING, kept))
    await conn.execute(RESEAL_KEY, sealer.seal(_SIGNING, kept.hex()), kept)
    return kept


async def reencrypt_instance(conn: Connection, sealer: Sealer) -> None:
    """The key of tokens, and which encryption key is this database's. Raises Sealed."""
    kept: bytes = await conn.fetchval(READ_KEY)
    if len(kept) > PLAIN_BYTES and not sealer.is_current(kept):
        await conn.execute(RESEAL_KEY, sealer.seal(_SIGNING, sealer.open(_SIGNING, kept)), kept)
    await reencrypt_token_keys(conn, sealer)
    await conn.execute(SET_CHECK, sealer.check)


async def key_check(conn: Connection) -> bytes | None:
    """Identifies the encryption key of this database; None: it has no encrypted values yet."""
    check: bytes | None = await conn.fetchval(READ_CHECK)
    return check


async def alive(conn: Connection) -> bool:
    return bool(await conn.fetchval(ALIVE))


async def read_now(conn: Connection) -> datetime:
    """The database's time, which is everybody's."""
    now: datetime = await conn.fetchval(NOW)
    return now
