"""Browser sessions, stored with a hash of their cookie; the cookie is not stored."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from engine.store.connection import Connection

#: Notified when a session ends before it expires.
CHANNEL = "headgate_sessions"

#: Also deletes some expired sessions, and the oldest ones of an owner with more than 100.
BEGIN = """
with expired as (
    delete from session where id in (
        select id from session where expires_at < statement_timestamp()
         order by expires_at limit 100 for update skip locked)
), surplus as (
    delete from session where id in (
        select id from session where owner = $3
         order by created_at desc offset 99 for update skip locked)
)
insert into session (id, mode, owner, token_id, name, encrypted, expires_at)
values ($1, $2, $3, $4, $5, $6, clock_timestamp() + $7::interval)
returning expires_at
"""
READ = """
select id, mode, owner, token_id, name, encrypted, expires_at from session
 where id = $1 and mode = $2 and expires_at > clock_timestamp()
"""
END = "delete from session where id = $1"
NOTIFY = "notify headgate_sessions"


@dataclass(frozen=True, slots=True)
class NewSession:
    """mode: of [auth]. owner: the principal that signed in. Credentials, by mode: token_id: the
    token or password; name: the name that was sent; encrypted: a token of Keystone."""

    id: bytes = field(repr=False)
    mode: str
    owner: str
    token_id: UUID | None
    name: str
    encrypted: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class SessionRecord(NewSession):
    expires_at: datetime


async def begin(conn: Connection, new: NewSession, lasts: timedelta) -> SessionRecord:
    values = (new.id, new.mode, new.owner, new.token_id, new.name, new.encrypted)
    expires_at = await conn.fetchval(BEGIN, *values, lasts)
    return SessionRecord(*values, expires_at)


async def read(conn: Connection, session_id: bytes, mode: str) -> SessionRecord | None:
    """None: there is no such session, it has expired, or it began in another mode."""
    row = await conn.fetchrow(READ, session_id, mode)
    return SessionRecord(**row) if row else None


async def end(conn: Connection, session_id: bytes) -> bool:
    """Return whether the session existed."""
    existed = await conn.execute(END, session_id) != "DELETE 0"
    await conn.execute(NOTIFY)
    return existed
