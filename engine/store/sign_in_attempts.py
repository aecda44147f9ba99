"""Attempts to sign in by password, reserved before they are checked, across all processes.

The number of rows is bounded by the number of passwords that can be judged in one lock-out, and
each reservation deletes a few that are over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from engine.store.connection import Connection
from engine.store.database import Database

#: How long it is remembered from where a name has signed in.
PLACE_KNOWN = timedelta(days=30)

# A count is over when its last attempt is a lock-out ago; or ahead, when the clock was set back.
RESERVE = """
with over as (
    delete from sign_in_attempt where key in (
        select key from sign_in_attempt where last_at < clock_timestamp() - $3::interval
         order by last_at limit 10 for update skip locked)
       and key <> all ($1::bytea[])
)
insert into sign_in_attempt as a (key, count, last_at)
select key, 1, clock_timestamp() from unnest($1::bytea[]) as key order by key
on conflict (key) do update
   set count = case when a.last_at between clock_timestamp() - $3::interval
                                       and clock_timestamp() + $3::interval
                    then a.count + 1 else 1 end,
       last_at = clock_timestamp()
 where a.count < $2 or a.last_at not between clock_timestamp() - $3::interval
                                         and clock_timestamp() + $3::interval
returning key
"""
LOCKED = """
select key, greatest(extract(epoch from last_at + $3::interval - statement_timestamp()), 0)::float8
       as seconds
  from sign_in_attempt where key = any ($1::bytea[]) and count >= $2
"""
GIVE_BACK = """
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
    """failures: attempts until a lock-out. lockout: how long it lasts. place: how long a place is
    known after a sign-in."""

    failures: int
    lockout: timedelta
    place: timedelta = PLACE_KNOWN


class _NoneLeft(Exception):
    """Rolls back the reservation."""


async def reserve(
    database: Database, keys: Sequence[bytes], limits: AttemptLimits
) -> Mapping[bytes, float]:
    """Count one attempt for each of the keys; or for none, if one of them has no attempt left.

    Returns each key that has no attempt left, with the seconds until it has. Empty: the attempt was
    counted, and may be judged.
    """
    try:
        async with database.transaction() as conn:
            rows = await conn.fetch(RESERVE, keys, limits.failures, limits.lockout)
            if len(rows) < len(set(keys)):
                raise _NoneLeft
    except _NoneLeft:
        async with database.connection() as conn:
            found = await conn.fetch(LOCKED, keys, limits.failures, limits.lockout)
        # None is left here when another attempt was given back in between.
        return {row["key"]: row["seconds"] for row in found} or {keys[0]: 1.0}
    return {}


async def give_back(conn: Connection, keys: Sequence[bytes]) -> None:
    """The attempt was no wrong one."""
    await conn.execute(GIVE_BACK, keys)


async def is_known(conn: Connection, place: bytes, limits: AttemptLimits) -> bool:
    """Whether the name has signed in from there lately."""
    known: bool = await conn.fetchval(KNOWN, place, limits.place)
    return known


async def remember(conn: Connection, place: bytes) -> None:
    """The name has signed in from there."""
    await conn.execute(REMEMBER, place)
