"""The lockout after wrong passwords: when it starts and ends, across all processes.

An attempt is reserved before its password is checked. `LockoutRule` (hub/auth/lockout.py) has the
rule, also for wrong tokens; RESERVE and LOCKED apply it to rows that several processes count at
once.

The number of rows is limited by the number of passwords that can be checked during one lockout;
each reservation deletes some expired rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from engine.store.connection import Connection
from engine.store.database import Database

#: How long a place is known from which a name has signed in.
PLACE_KNOWN = timedelta(days=30)

#: A count expires one lockout after its last attempt, or if that is in the future because the clock
#: was set back.
RESERVE = """
with expired as (
    delete from sign_in_attempt where key in (
        select key from sign_in_attempt where last_at < clock_timestamp() - $3::interval
         order by last_at limit 10 for update skip locked)
       and key <> all ($1::bytea[])
)
insert into sign_in_attempt as a (key, count, last_at)
select key, 1, clock_timestamp() from unnest($1::bytea[]) as key order by key
on conflict (key) do update
   set count = case when a.last_at > clock_timestamp() - $3::interval
                     and a.last_at < clock_timestamp() + $3::interval
                    then a.count + 1 else 1 end,
       last_at = clock_timestamp()
 where a.count < $2 or a.last_at <= clock_timestamp() - $3::interval
    or a.last_at >= clock_timestamp() + $3::interval
returning key
"""
LOCKED = """
select key, extract(epoch from last_at + $3::interval - statement_timestamp())::float8 as seconds
  from sign_in_attempt
 where key = any ($1::bytea[]) and count >= $2
   and last_at > statement_timestamp() - $3::interval
   and last_at < statement_timestamp() + $3::interval
"""
RELEASE = """
update sign_in_attempt set count = count - 1 where key in (
    select key from sign_in_attempt where key = any ($1::bytea[]) and count > 0
     order by key for update)
"""
KNOWN = """
select exists (select from sign_in_place
                where key = $1 and last_at > clock_timestamp() - $2::interval)
"""
REMEMBER = """
insert into sign_in_place as p (key, last_at) values ($1, clock_timestamp())
on conflict (key) do update set last_at = excluded.last_at
 where p.last_at < excluded.last_at - interval '1 day'
"""


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    """failures: number of attempts before a lockout. lockout: its duration. place: how long a place
    is known after a sign-in."""

    failures: int
    lockout: timedelta
    place: timedelta = PLACE_KNOWN


class _NoAttemptLeft(Exception):
    """Rolls back the reservation."""


async def reserve(
    database: Database, keys: Sequence[bytes], limits: AttemptLimits
) -> Mapping[bytes, float]:
    """Count one attempt for each key, or for none of them if a key is locked out.

    Returns the keys that are locked out, with the seconds until the lockout ends. Empty: the
    attempt was counted, and the password may be checked.
    """
    try:
        async with database.transaction() as conn:
            rows = await conn.fetch(RESERVE, keys, limits.failures, limits.lockout)
            if len(rows) < len(set(keys)):
                raise _NoAttemptLeft
    except _NoAttemptLeft:
        async with database.connection() as conn:
            found = await conn.fetch(LOCKED, keys, limits.failures, limits.lockout)
        # Empty if another attempt was released in between.
        return {row["key"]: row["seconds"] for row in found} or {keys[0]: 1.0}
    return {}


async def release(conn: Connection, keys: Sequence[bytes]) -> None:
    """Take back an attempt with a correct password."""
    await conn.execute(RELEASE, keys)


async def is_known(conn: Connection, place: bytes, limits: AttemptLimits) -> bool:
    """Whether the name has signed in from there within `limits.place`."""
    known: bool = await conn.fetchval(KNOWN, place, limits.place)
    return known


async def remember(conn: Connection, place: bytes) -> None:
    """Record a sign-in of a name from a place."""
    await conn.execute(REMEMBER, place)
