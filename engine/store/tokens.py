"""API tokens and passwords: kept as hashes, read by id or by name."""

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
#: Told to whoever remembers tokens, when one may have to be forgotten.
CHANNEL = "headgate_tokens"


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """seconds_left: until it expires, at the time it was read; None: it does not."""

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


@dataclass(frozen=True, slots=True)
class NewToken:
    """lasts: until it expires; None: it does not."""

    id: UUID
    project: str
    name: str
    roles: Sequence[str]
    kind: Kind
    hash: str = field(repr=False)
    created_by: str
    lasts: timedelta | None


CREATE = """
insert into token (id, project, name, roles, kind, hash, created_by, expires_at)
values ($1, $2, $3, $4, $5, $6, $7, now() + $8::interval)
returning *, extract(epoch from expires_at - now())::float8 as seconds_left
"""
#: A use is written down when the last one is a minute old.
USE = """
with used as (
    update token set used_at = now()
     where id = $1 and revoked_at is null and (expires_at is null or expires_at > now())
       and (used_at is null or used_at < now() - interval '1 minute')
)
select *, extract(epoch from expires_at - now())::float8 as seconds_left from token
 where id = $1 and kind = 'token' and revoked_at is null
   and (expires_at is null or expires_at > now())
"""
PASSWORDS = """
select *, extract(epoch from expires_at - now())::float8 as seconds_left from token
 where name = $1 and project in ($2, '*') and kind = 'password' and revoked_at is null
   and (expires_at is null or expires_at > now())
 order by project = '*'
"""
LIST = """
select *, extract(epoch from expires_at - now())::float8 as seconds_left from token
 where project = $1 and ($2 or (revoked_at is null and (expires_at is null or expires_at > now())))
 order by created_at, id
"""
REVOKE = """
update token set revoked_at = now(), revoked_by = $3
 where id = $2 and project = $1 and revoked_at is null
returning *, extract(epoch from expires_at - now())::float8 as seconds_left
"""
TELL = "notify headgate_tokens"


async def create(conn: Connection, new: NewToken) -> TokenRecord:
    """Raises Conflict: the name has a password there."""
    try:
        [row] = await conn.fetch(
            CREATE, new.id, new.project, new.name, new.roles, new.kind, new.hash, new.created_by,
            new.lasts,
        )  # fmt: skip
    except asyncpg.UniqueViolationError:
        raise Conflict(
            f"{new.name} has a password already",
            place="name",
            remedy="Revoke that one first, or choose another name.",
            code="PasswordExists",
        ) from None
    return TokenRecord(**row)


async def use(conn: Connection, token_id: UUID) -> TokenRecord | None:
    """A token that holds now; None: there is none such."""
    row = await conn.fetchrow(USE, token_id)
    return TokenRecord(**row) if row else None


async def passwords(conn: Connection, name: str, project: str) -> list[TokenRecord]:
    """Those of a name that hold now: of the project, and everywhere."""
    return [TokenRecord(**row) for row in await conn.fetch(PASSWORDS, name, project)]


async def listed(conn: Connection, project: str, *, gone: bool) -> list[TokenRecord]:
    """gone: those that are revoked or have expired, too."""
    return [TokenRecord(**row) for row in await conn.fetch(LIST, project, gone)]


async def revoke(conn: Connection, project: str, token_id: UUID, by: str) -> TokenRecord:
    """From now on nobody gets in by it. Raises NotFound."""
    row = await conn.fetchrow(REVOKE, project, token_id, by)
    if row is None:
        raise NotFound(
            f"there is no token {token_id} that could be revoked",
            remedy="GET .../tokens lists those of the project.",
            code="TokenNotFound",
        )
    await conn.execute(TELL)
    return TokenRecord(**row)
