"""API tokens and passwords, stored as hashes, found by ID or name."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

import asyncpg

from engine.errors import Conflict, NotFound
from engine.store.connection import Connection

Kind = Literal["token", "password"]
#: The project of those that hold everywhere.
EVERYWHERE = "*"
#: The mode of [auth] in which tokens are accepted. Without a row in token_mode, one was made there.
MODE = "tokens"
#: Notifies caches of tokens when one has changed.
CHANNEL = "headgate_tokens"


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """seconds_left: until it expires, at the time it was read; None: it does not. mode: of [auth],
    when it was made; a token is accepted in mode tokens alone, and only if it was made there."""

    id: UUID
    project: str
    name: str
    roles: Sequence[str]
    kind: Kind
    hash: str = field(repr=False)
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None
    seconds_left: float | None
    mode: str


@dataclass(frozen=True, slots=True)
class NewToken:
    """lasts: until it expires; None: it does not. mode: of [auth]."""

    id: UUID
    project: str
    name: str
    roles: Sequence[str]
    kind: Kind
    hash: str = field(repr=False)
    created_by: str
    lasts: timedelta | None
    mode: str = MODE


CREATE = """
with made as (
    insert into token (id, project, name, roles, kind, hash, created_by, expires_at)
    values ($1, $2, $3, $4, $5, $6, $7, now() + $8::interval)
    returning id
)
insert into token_mode (token_id, mode) select id, $9 from made
"""
READ = """
select id, project, name, roles, kind, hash, created_by, created_at, expires_at, used_at,
       revoked_at, revoked_by, seconds_left, mode
  from token_details where id = $1
"""
#: A use is written down when the last one is a minute old.
USE = """
with used as (
    update token set used_at = now()
     where id = $1 and revoked_at is null and (expires_at is null or expires_at > now())
       and (used_at is null or used_at < now() - interval '1 minute')
)
select id, project, name, roles, kind, hash, created_by, created_at, expires_at, used_at,
       revoked_at, revoked_by, seconds_left, mode
  from token_details where id = $1 and (kind = 'token' or $2) and is_accepted
"""
PASSWORDS = """
select id, project, name, roles, kind, hash, created_by, created_at, expires_at, used_at,
       revoked_at, revoked_by, seconds_left, mode
  from token_details
 where name = $1 and project in ($2, '*') and kind = 'password' and is_accepted
 order by project = '*'
"""
#: None where it is not accepted now.
ROLES_OF_ONE = "select roles from token_details where id = $1 and kind = 'token' and is_accepted"
ROLES_OF_ACCOUNT = """
select roles from token_details
 where project = $1 and name = $2 and kind = 'password' and is_accepted
"""
LIST = """
select id, project, name, roles, kind, hash, created_by, created_at, expires_at, used_at,
       revoked_at, revoked_by, seconds_left, mode
  from token_details where project = $1 and ($2 or is_valid)
 order by created_at, id
"""
REVOKE = """
update token set revoked_at = now(), revoked_by = $3
 where id = $2 and project = $1 and revoked_at is null
returning id
"""
REHASH = "update token set hash = $3 where id = $1 and hash = $2"
WEAK_PASSWORDS = """
select count(*) from token
 where kind = 'password' and revoked_at is null and (expires_at is null or expires_at > now())
   and split_part(hash, '$', 2)::bigint * split_part(hash, '$', 3)::bigint
       * split_part(hash, '$', 4)::bigint < $1
"""
TELL = "notify headgate_tokens"


async def create(conn: Connection, new: NewToken) -> TokenRecord:
    """Raises Conflict: the name has a password there."""
    try:
        await conn.execute(
            CREATE, new.id, new.project, new.name, new.roles, new.kind, new.hash, new.created_by,
            new.lasts, new.mode,
        )  # fmt: skip
    except asyncpg.UniqueViolationError:
        raise Conflict(
            f"{new.name} has a password already",
            place="name",
            remedy="Revoke that one first, or choose another name.",
            code="PasswordExists",
        ) from None
    return await _read(conn, new.id)


async def _read(conn: Connection, token_id: UUID) -> TokenRecord:
    [row] = await conn.fetch(READ, token_id)
    return TokenRecord(**row)


async def use(conn: Connection, token_id: UUID, *, by_session: bool = False) -> TokenRecord | None:
    """A token that holds now; None: there is none such. by_session: or a password."""
    row = await conn.fetchrow(USE, token_id, by_session)
    return TokenRecord(**row) if row else None


async def passwords(conn: Connection, name: str, project: str) -> list[TokenRecord]:
    """Those of a name that hold now: of the project, and everywhere."""
    return [TokenRecord(**row) for row in await conn.fetch(PASSWORDS, name, project)]


async def rehash(conn: Connection, token_id: UUID, before: str, after: str) -> None:
    """The same password, hashed with other parameters."""
    await conn.execute(REHASH, token_id, before, after)


async def weak_passwords(conn: Connection, cost: int) -> int:
    """How many are hashed with less than this cost (N * r * p of scrypt)."""
    count: int = await conn.fetchval(WEAK_PASSWORDS, cost)
    return count


async def roles_of_token(conn: Connection, token_id: UUID) -> Sequence[str]:
    """Those that a token has now; none where it does not hold."""
    return await conn.fetchval(ROLES_OF_ONE, token_id) or ()


async def roles_of_account(conn: Connection, project: str, name: str) -> Sequence[str]:
    """The same, of a name with a password."""
    return await conn.fetchval(ROLES_OF_ACCOUNT, project, name) or ()


async def listed(conn: Connection, project: str, *, gone: bool) -> list[TokenRecord]:
    """gone: include revoked and expired ones."""
    return [TokenRecord(**row) for row in await conn.fetch(LIST, project, gone)]


async def revoke(conn: Connection, project: str, token_id: UUID, by: str) -> TokenRecord:
    """Revoke a token: it is no longer accepted. Raises NotFound."""
    if await conn.fetchval(REVOKE, project, token_id, by) is None:
        raise NotFound(
            f"there is no token {token_id} to revoke",
            remedy="GET .../tokens lists those of the project.",
            code="TokenNotFound",
        )
    await conn.execute(TELL)
    return await _read(conn, token_id)
