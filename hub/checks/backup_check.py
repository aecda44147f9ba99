"""Is what was restored whole? Read with the database alone, before a server is started on it."""

from collections.abc import AsyncIterator

from engine.errors import HeadgateError
from engine.service.reads.audit_verification import check_all_logs
from engine.store.connection import Connection
from engine.store.invariants import counts, newest
from engine.store.schema_upgrade import outstanding
from hub.checks.database import check_rules
from hub.checks.keys import KeyFiles, check_keys
from hub.checks.results import Looked, State, fine, refused

_INCOMPLETE = "Restore another backup: this one is inconsistent or incomplete"


async def checked(conn: Connection, keys: KeyFiles) -> list[Looked]:
    """keys: what it is encrypted with."""
    try:
        left = await outstanding(conn)
    except HeadgateError as error:
        return [refused("schema", error)]
    if left:
        said = f"it is of an earlier version: no {', '.join(left)}"
        remedy = "Run `headgate admin migrate` on it, and check again"
        return [Looked("schema", State.WARNING, said, remedy)]
    return [
        fine("schema", "the schema is up to date"),
        *[one async for one in check_rules(conn, _INCOMPLETE)],
        *[one async for one in _trails(conn)],
        *[one async for one in check_keys(conn, keys)],
        *[one async for one in _contents(conn)],
    ]


async def _trails(conn: Connection) -> AsyncIterator[Looked]:
    trails = await check_all_logs(conn)
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
