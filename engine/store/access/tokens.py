"""API tokens and passwords, stored as hashes, found by ID or name."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

import asyncpg

from engine.errors import Conflict, LimitReached
from engine.missing_objects import no_token
from engine.store.connection import Connection

Kind = Literal["token", "password"]
#: The project of tokens that are valid in all projects.
EVERYWHERE = "*"
#: The mode of [auth] in which tokens are accepted. A token without a row in token_mode has it.
MODE = "tokens"
#: Notified when a token changes.
CHANNEL = "headgate_tokens"


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """seconds_left: until it expires, when it was read; None: it does not expire. mode: of [auth]
    when it was created; only tokens created in mode tokens are accepted, in this mode. subject: of
    a sign-in with OpenID Connect, see `NewToken`."""

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
    subject: str | None


@dataclass(frozen=True, slots=True)
class NewToken:
    """lasts: time until it expires; None: it does not expire. mode: of [auth]. subject: the issuer,
    a space and the subject of the user who signed in with OpenID Connect; None: another token."""

    id: UUID
    project: str
    name: str
    roles: Sequence[str]
    kind: Kind
    hash: str = field(repr=False)
    created_by: str
    lasts: timedelta | None
    mode: str = MODE
    subject: str | None = None


CREATE = """
with created as (
    insert into token (id, project, name, roles, kind, hash, created_by, expires_at,
                       subject)
    values ($1, $2, $3, $4, $5, $6, $7, now() + $8::interval, $10)
    returning id
)
insert into token_mode (token_id, mode) select id, $9 from created
"""
READ = """
select id, project, name, roles, kind, hash, created_by, created_at, expires_at, used_at,
       revoked_at, revoked_by, seconds_left, mode, subject
  from token_details where id = $1
"""
#: `used_at` is updated once a minute.
USE = """
with used as (
    update token set used_at = now()
     where id = $1 and revoked_at is null and (expires_at is null or expires_at > now())
       and (used_at is null or used_at < now() - interval '1 minute')
)
select id, project, name, roles, kind, hash, created_by, created_at, expires_at, used_at,
       revoked_at, revoked_by, seconds_left, mode, subject
  from token_details where id = $1 and (kind = 'token' or $2) and is_accepted
"""
PASSWORDS = """
select id, project, name, roles, kind, hash, created_by, created_at, expires_at, used_at,
       revoked_at, revoked_by, seconds_left, mode, subject
  from token_details
 where name = $1 and project in ($2, '*') and kind = 'password' and is_accepted
 order by project = '*'
"""
#: $2: the issuer and a space.
SIGN_IN = """
select id, project, name, roles, kind, hash, created_by, created_at, expires_at, used_at,
       revoked_at, revoked_by, seconds_left, mode, subject
  from token_details
 where name = $1 and starts_with(subject, $2) and project in ($3, '*') and is_accepted
 order by created_at desc limit 1
"""
ROLES_BY_ID = "select roles from token_details where id = $1 and kind = 'token' and is_accepted"
ROLES_BY_NAME = """
select roles from token_details
 where project = $1 and name = $2 and kind = 'password' and is_accepted
"""
ROLES_BY_SUBJECT = """
select roles from token_details
 where subject = $1 and project in ($2, '*') and is_accepted
 order by created_at desc limit 1
"""
LIST = """
select id, project, name, roles, kind, hash, created_by, created_at, expires_at, used_at,
       revoked_at, revoked_by, seconds_left, mode, subject
  from token_details where project = $1 and ($2 or is_valid)
 order by created_at, id
"""
REVOKE = """
update token set revoked_at = now(), revoked_by = $3
 where id = $2 and project = $1 and revoked_at is null
returning id
"""
END_SIGN_IN = """
update token set revoked_at = now(), revoked_by = name
 where id = $1 and subject is not null and revoked_at is null
returning id
"""
#: With the rights and the times of the sign-in, if that has not ended: a copy is no newer sign-in
#: of its subject, see ROLES_BY_SUBJECT.
COPY_SIGN_IN = """
with source as (
    select project, name, roles, created_at, expires_at, subject, mode from token_details
     where id = $1 and subject is not null and is_accepted
), created as (
    insert into token (id, project, name, roles, kind, hash, created_by, created_at, expires_at,
                       subject)
    select $2, project, name, roles, 'token', $3, $4, created_at, expires_at, subject from source
    on conflict (id) do nothing
    returning id
)
insert into token_mode (token_id, mode)
select created.id, source.mode from created, source
returning token_id
"""
#: Copies of a sign-in begin when it began. The lock serializes them until the end of the
#: transaction.
LOCK_SIGN_IN = "select 1 from token where id = $1 for no key update"
COUNT_COPIES = """
select count(*)
  from (select id, subject, created_at from token where id = $1 and subject is not null) source
 cross join lateral (
       select c.id from token_details c
        where c.subject = source.subject and c.created_at = source.created_at and c.is_valid
       offset 0) copy
 where copy.id <> source.id
"""
REHASH = "update token set hash = $3 where id = $1 and hash = $2"
WEAK_PASSWORDS = """
select count(*) from token
 where kind = 'password' and revoked_at is null and (expires_at is null or expires_at > now())
   and split_part(hash, '$', 2)::bigint * split_part(hash, '$', 3)::bigint
       * split_part(hash, '$', 4)::bigint < $1
"""
NOTIFY = "notify headgate_tokens"


async def create(conn: Connection, new: NewToken) -> TokenRecord:
    """Raises Conflict if the name has a password in the project."""
    try:
        await conn.execute(
            CREATE, new.id, new.project, new.name, new.roles, new.kind, new.hash, new.created_by,
            new.lasts, new.mode, new.subject,
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
    """A token that is accepted now, or None. by_session: also a password."""
    row = await conn.fetchrow(USE, token_id, by_session)
    return TokenRecord(**row) if row else None


async def copy_sign_in(
    conn: Connection, sign_in: UUID, token_id: UUID, hashed: str, created_by: str, *, limit: int
) -> TokenRecord | None:
    """Create a token that begins and expires with a sign-in with OpenID Connect. None: the sign-in
    has ended, or there already is a token with this ID. hashed: of the token. limit: of valid
    tokens with this sign-in. Raises LimitReached."""
    async with conn.transaction():
        await conn.execute(LOCK_SIGN_IN, sign_in)
        await check_copies(conn, sign_in, limit)
        if await conn.fetchval(COPY_SIGN_IN, sign_in, token_id, hashed, created_by) is None:
            return None
        return await _read(conn, token_id)


async def check_copies(conn: Connection, sign_in: UUID, limit: int) -> None:
    """Raises LimitReached if a sign-in has as many valid copies."""
    if await conn.fetchval(COUNT_COPIES, sign_in) >= limit:
        raise LimitReached(
            f"the sign-in in this browser has {limit} logins of the command line",
            remedy="Run `headgate logout` where you no longer need the login, or sign out in the"
            " browser and sign in again.",
        )


async def end_sign_in(conn: Connection, token_id: UUID) -> None:
    """Revoke a token if it is that of a sign-in with OpenID Connect."""
    if await conn.fetchval(END_SIGN_IN, token_id) is not None:
        await conn.execute(NOTIFY)


async def passwords(conn: Connection, name: str, project: str) -> list[TokenRecord]:
    """The accepted passwords of a name: in the project, and in all projects."""
    return [TokenRecord(**row) for row in await conn.fetch(PASSWORDS, name, project)]


async def sign_in(conn: Connection, name: str, issuer: str, project: str) -> TokenRecord | None:
    """The last sign-in of a user of this OpenID provider to a project, until it ends."""
    row = await conn.fetchrow(SIGN_IN, name, f"{issuer} ", project)
    return TokenRecord(**row) if row else None


async def rehash(conn: Connection, token_id: UUID, before: str, after: str) -> None:
    """Replace the hash of a password by one with other parameters."""
    await conn.execute(REHASH, token_id, before, after)


async def weak_passwords(conn: Connection, cost: int) -> int:
    """The number of passwords whose hash has less than this cost (N * r * p of scrypt)."""
    count: int = await conn.fetchval(WEAK_PASSWORDS, cost)
    return count


async def roles_of_token(conn: Connection, token_id: UUID) -> Sequence[str]:
    """The current roles of a token; empty if it is not accepted."""
    return await conn.fetchval(ROLES_BY_ID, token_id) or ()


async def roles_of_account(conn: Connection, project: str, name: str) -> Sequence[str]:
    """The current roles of a name with a password."""
    return await conn.fetchval(ROLES_BY_NAME, project, name) or ()


async def roles_of_subject(conn: Connection, project: str, subject: str) -> Sequence[str]:
    """The roles of the last sign-in of a subject to a project, until it ends."""
    return await conn.fetchval(ROLES_BY_SUBJECT, subject, project) or ()


async def list_tokens(conn: Connection, project: str, *, all_tokens: bool) -> list[TokenRecord]:
    """all_tokens: include revoked and expired tokens."""
    return [TokenRecord(**row) for row in await conn.fetch(LIST, project, all_tokens)]


async def revoke(conn: Connection, project: str, token_id: UUID, by: str) -> TokenRecord:
    """Raises NotFound."""
    if await conn.fetchval(REVOKE, project, token_id, by) is None:
        raise no_token(token_id)
    await conn.execute(NOTIFY)
    return await _read(conn, token_id)
