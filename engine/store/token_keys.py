"""The versions of the key that tokens of hooks, signals and servers derive from.

The newest makes tokens. Those before it are kept while their tokens are accepted: a hook's as long
as the hook waits that was opened before, those for signals and servers until `expires_at`. To
revoke them is to delete their versions.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from engine.hooks.tokens import TokenKey
from engine.store.connection import Connection
from engine.store.encryption import Scope, Sealer

#: Notified when versions change.
CHANGED = "headgate_token_key"
#: A process that has not noticed the rotation yet makes tokens with the version before.
NOTICED_WITHIN = timedelta(minutes=2)

READ = """
select version, sealed, retired_at, coalesce(expires_at > clock_timestamp(), true) as signals
  from token_key order by version desc
"""
KEEP_FIRST = """
insert into token_key (version, sealed) select 1, $1 where not exists (select from token_key)
on conflict do nothing
"""
LOCK = "lock table token_key in share row exclusive mode"
RETIRE = """
update token_key set retired_at = clock_timestamp(), expires_at = clock_timestamp() + $1
 where retired_at is null
"""
INSERT = "insert into token_key (version, sealed) values ($1, $2)"
NEXT_VERSION = "select coalesce(max(version), 0) + 1 from token_key"
REVOKE = "delete from token_key where retired_at is not null"
RESEAL = "update token_key set sealed = $2 where version = $1"
NOTIFY = "select pg_notify('headgate_token_key', '')"
OPENED_BEFORE = "select exists (select from hook where id = $1 and opened_at <= $2)"


async def ensure_token_key(conn: Connection, first: bytes, sealer: Sealer) -> None:
    """first: becomes the first version, when there is none."""
    await conn.execute(KEEP_FIRST, sealer.seal(_scope(1), first.hex()))


async def read_token_keys(conn: Connection, sealer: Sealer) -> list[TokenKey]:
    """The newest first. Raises Sealed."""
    return [
        TokenKey(row["version"], _opened(row, sealer), row["retired_at"], row["signals"])
        for row in await conn.fetch(READ)
    ]


async def rotate_token_key(
    conn: Connection, fresh: bytes, sealer: Sealer, *, keep: timedelta, revoke: bool
) -> int:
    """Make tokens with `fresh` from now on; returns its version. keep: how long tokens for signals
    and servers made before are accepted. revoke: no token made before is."""
    async with conn.transaction():
        await conn.execute(LOCK)
        version: int = await conn.fetchval(NEXT_VERSION)
        await conn.execute(RETIRE, keep)
        await conn.execute(INSERT, version, sealer.seal(_scope(version), fresh.hex()))
        if revoke:
            await conn.execute(REVOKE)
        await conn.execute(NOTIFY)
    return version


async def accepts_hook(conn: Connection, hook_id: UUID, key: TokenKey) -> bool:
    """Whether a hook takes tokens of this version: it was opened while that made them."""
    if key.retired_at is None:
        return True
    opened: bool = await conn.fetchval(OPENED_BEFORE, hook_id, key.retired_at + NOTICED_WITHIN)
    return opened


async def reencrypt_token_keys(conn: Connection, sealer: Sealer) -> None:
    """In the caller's transaction. Raises Sealed."""
    await conn.execute(LOCK)
    stale = [row for row in await conn.fetch(READ) if not sealer.is_current(row["sealed"])]
    anew = [
        (row["version"], sealer.seal(_scope(row["version"]), _opened(row, sealer).hex()))
        for row in stale
    ]
    if anew:
        await conn.executemany(RESEAL, anew)


def _opened(row: Any, sealer: Sealer) -> bytes:
    return bytes.fromhex(sealer.open(_scope(row["version"]), row["sealed"]))


def _scope(version: int) -> Scope:
    return Scope("", UUID(int=version), "token_key.sealed")
