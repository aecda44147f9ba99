"""Is what was restored whole? Read with the database alone, before a server is started on it."""

from collections.abc import AsyncIterator
from pathlib import Path

from engine.errors import HeadgateError
from engine.service.auditing import check_trails
from engine.store.connection import Connection
from engine.store.counts import counts, newest
from engine.store.invariants import INVARIANTS, breaches
from engine.store.migrate import outstanding
from hub.doctor import Looked, State, fine, key_fits, refused

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
        await key_fits(conn, key_file),
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


async def _contents(conn: Connection) -> AsyncIterator[Looked]:
    there = await counts(conn)
    said = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in there.items())
    yield fine("contents", said)
    age = await newest(conn)
    if age is not None:
        yield fine("age", f"the newest commit is {age / 60:.0f} minutes old")
