"""Keys from which tokens of hooks, signal URLs and servers are derived.

The newest version in `token_key` makes tokens. Earlier versions are kept while their tokens are
accepted: those of a hook as long as a hook from that time waits, those of signals and servers until
`expires_at`. Deleting a version revokes its tokens.

`instance` has the first token key, and identifies the encryption key of this database.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from engine.errors import Unavailable
from engine.hooks.derived_tokens import TokenKey
from engine.store.connection import Connection
from engine.store.encryption.secret_values import Keyring, Scope

#: Notified when versions change.
CHANGED = "headgate_token_key"
#: A process that has not noticed a rotation yet makes tokens with the previous version.
NOTICED_WITHIN = timedelta(minutes=2)
#: Length of the first token key in databases that store it unencrypted (earlier versions).
PLAIN_BYTES = 32

#: The owner is a constant, in place of a stack.
_SIGNING = Scope("", UUID("5e0f1c1c-9a68-4b0e-8f4e-6a2f2f7d5b1d"), "instance.signing_key")

INSERT_SIGNING_KEY = """
insert into instance (signing_key) values ($1) on conflict (only_one) do nothing
"""
READ_SIGNING_KEY = "select signing_key from instance"
UPDATE_SIGNING_KEY = "update instance set signing_key = $1 where signing_key = $2"
INSERT_CHECK = "update instance set key_check = $1 where key_check is null"
READ_CHECK = "select key_check from instance"
UPDATE_CHECK = "update instance set key_check = $1"
READ = """
select version, encrypted, retired_at, coalesce(expires_at > clock_timestamp(), true) as signals
  from token_key order by version desc
"""
INSERT_FIRST = """
insert into token_key (version, encrypted) select 1, $1 where not exists (select from token_key)
on conflict do nothing
"""
LOCK = "lock table token_key in share row exclusive mode"
RETIRE = """
update token_key set retired_at = statement_timestamp(), expires_at = statement_timestamp() + $1
 where retired_at is null
"""
INSERT = "insert into token_key (version, encrypted) values ($1, $2)"
NEXT_VERSION = "select coalesce(max(version), 0) + 1 from token_key"
REVOKE = "delete from token_key where retired_at is not null"
REENCRYPT = "update token_key set encrypted = $2 where version = $1"
NOTIFY = "select pg_notify('headgate_token_key', '')"
OPENED_BEFORE = "select exists (select from hook where id = $1 and opened_at <= $2)"


async def signing_key(conn: Connection, fresh: bytes, keyring: Keyring) -> bytes:
    """The first token key, which all processes share; a new database gets `fresh`.

    Raises Unavailable if the values of this database were encrypted with another key.
    """
    await conn.execute(INSERT_SIGNING_KEY, keyring.encrypt(_SIGNING, fresh.hex()))
    await conn.execute(INSERT_CHECK, keyring.check)
    if await conn.fetchval(READ_CHECK) not in keyring.checks:
        raise Unavailable(
            "the secret values in this database were encrypted with another key",
            place="[credentials] key_file",
            remedy="Name the file that the server had before; all processes need the same one.",
        )
    stored: bytes = await conn.fetchval(READ_SIGNING_KEY)
    if len(stored) > PLAIN_BYTES:
        return bytes.fromhex(keyring.decrypt(_SIGNING, stored))
    await conn.execute(UPDATE_SIGNING_KEY, keyring.encrypt(_SIGNING, stored.hex()), stored)
    return stored


async def key_check(conn: Connection) -> bytes | None:
    """Identifies the encryption key of this database; None: it has no encrypted values yet."""
    check: bytes | None = await conn.fetchval(READ_CHECK)
    return check


async def reencrypt_instance(conn: Connection, keyring: Keyring) -> None:
    """Re-encrypt all token keys, and record the encryption key. Raises DecryptionFailed."""
    stored: bytes = await conn.fetchval(READ_SIGNING_KEY)
    if len(stored) > PLAIN_BYTES and not keyring.is_current(stored):
        text = keyring.decrypt(_SIGNING, stored)
        await conn.execute(UPDATE_SIGNING_KEY, keyring.encrypt(_SIGNING, text), stored)
    await conn.execute(LOCK)
    changed = [
        (row["version"], keyring.encrypt(_scope(row["version"]), _decrypt(row, keyring).hex()))
        for row in await conn.fetch(READ)
        if not keyring.is_current(row["encrypted"])
    ]
    if changed:
        await conn.executemany(REENCRYPT, changed)
    await conn.execute(UPDATE_CHECK, keyring.check)


async def ensure_token_key(conn: Connection, first: bytes, keyring: Keyring) -> None:
    """Store `first` as version 1 if there is no version."""
    await conn.execute(INSERT_FIRST, keyring.encrypt(_scope(1), first.hex()))


async def read_token_keys(conn: Connection, keyring: Keyring) -> list[TokenKey]:
    """Newest first. Raises DecryptionFailed."""
    return [
        TokenKey(row["version"], _decrypt(row, keyring), row["retired_at"], row["signals"])
        for row in await conn.fetch(READ)
    ]


async def rotate_token_key(
    conn: Connection, fresh: bytes, keyring: Keyring, *, keep: timedelta, revoke: bool
) -> int:
    """Make tokens with `fresh` from now on; returns its version.

    keep: how long existing tokens of signals and servers are accepted. revoke: reject all existing
    tokens.
    """
    async with conn.transaction():
        await conn.execute(LOCK)
        version: int = await conn.fetchval(NEXT_VERSION)
        await conn.execute(RETIRE, keep)
        await conn.execute(INSERT, version, keyring.encrypt(_scope(version), fresh.hex()))
        if revoke:
            await conn.execute(REVOKE)
        await conn.execute(NOTIFY)
    return version


async def accepts_hook(conn: Connection, hook_id: UUID, key: TokenKey) -> bool:
    """Whether a hook accepts tokens of this version: it was opened before the version retired."""
    if key.retired_at is None:
        return True
    opened: bool = await conn.fetchval(OPENED_BEFORE, hook_id, key.retired_at + NOTICED_WITHIN)
    return opened


def encrypt_token_key(version: int, key: bytes, keyring: Keyring) -> bytes:
    return keyring.encrypt(_scope(version), key.hex())


def _decrypt(row: Any, keyring: Keyring) -> bytes:
    return bytes.fromhex(keyring.decrypt(_scope(row["version"]), row["encrypted"]))


def _scope(version: int) -> Scope:
    return Scope("", UUID(int=version), "token_key.encrypted")
