"""Is what was restored whole? Read with the database alone, before a server is started on it."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

from engine.errors import HeadgateError
from engine.service.auditing import check_trails
from engine.store.counts import counts, newest
from engine.store.credentials import sealed_ones
from engine.store.database import Connection
from engine.store.instance import key_check
from engine.store.invariants import INVARIANTS, breaches
from engine.store.migrate import outstanding
from engine.store.sealing import KEY_BYTES, Sealed, Sealer
from hub.doctor import Looked, State, fine, refused

#: How many breaches of a rule are named.
NAMED = 5


async def checked(conn: Connection, key_file: Path) -> list[Looked]:
    """key_file: what it was sealed with."""
    try:
        left = await outstanding(conn)
    except HeadgateError as error:
        return [refused("schema", error)]
    if left:
        said = f"it is of an earlier version: no {', '.join(left)}"
        remedy = "Run `headgate admin migrate` on it, and check again"
        return [Looked("schema", State.WARNING, said, remedy)]
    return [
        fine("schema", "it is of this version"),
        *[one async for one in _rules(conn)],
        *[one async for one in _trails(conn)],
        await _sealed(conn, key_file),
        *[one async for one in _contents(conn)],
    ]


async def _rules(conn: Connection) -> AsyncIterator[Looked]:
    broken = await breaches(conn)
    remedy = "Restore another backup: this one is not of one moment, or rows were lost"
    for rule, found in broken.items():
        some = "; ".join(found[:NAMED])
        yield Looked("rules", State.WRONG, f"{rule}: {len(found)} break it: {some}", remedy)
    if not broken:
        yield fine("rules", f"all {len(INVARIANTS)} hold")


async def _trails(conn: Connection) -> AsyncIterator[Looked]:
    trails = await check_trails(conn)
    wrong = [one for one in trails if one.wrong]
    for one in wrong:
        yield Looked("trail", State.WRONG, f"stack {one.stack_id}: {one.wrong}",
                     "Compare with the entries you wrote down elsewhere")  # fmt: skip
    if not wrong:
        yield fine("trail", f"{sum(one.decisions for one in trails)} decisions of {len(trails)}"
                   " stacks are as they were written")  # fmt: skip


async def _sealed(conn: Connection, key_file: Path) -> Looked:
    check = await key_check(conn)
    if check is None:
        return fine("key", "nothing is sealed with one yet")
    remedy = "Restore the key of [credentials] key_file that belongs to this database"
    try:
        sealer = Sealer(_key(key_file), random_bytes=bytes)
    except (OSError, ValueError) as error:
        return Looked("key", State.WRONG, f"no key is in {key_file}: {error}", remedy)
    if sealer.check != check:
        return Looked("key", State.WRONG, f"this database was not sealed with {key_file}", remedy)
    closed = [one for one in await sealed_ones(conn) if not _opens(sealer, *one)]
    if closed:
        said = f"{len(closed)} credentials do not open with {key_file}"
        return Looked("key", State.WARNING, said, "Their changes ask for others, or fail")
    return fine("key", f"this database was sealed with {key_file}")


def _key(file: Path) -> bytes:
    """Raises OSError, ValueError."""
    key = file.read_bytes()
    if len(key) != KEY_BYTES:
        raise ValueError(f"it has {len(key)} bytes, not {KEY_BYTES}")
    return key


def _opens(sealer: Sealer, stack_id: UUID, sealed: bytes) -> bool:
    try:
        sealer.open(stack_id, sealed)
    except Sealed:
        return False
    return True


async def _contents(conn: Connection) -> AsyncIterator[Looked]:
    there = await counts(conn)
    said = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in there.items())
    yield fine("contents", said)
    age = await newest(conn)
    if age is not None:
        yield fine("age", f"the newest commit is {age / 60:.0f} minutes old")
