"""The IDs of events contain their sequence numbers, by which events are found."""

from uuid import UUID

import pytest

from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.stacks.events import EventFilter, list_events, read_event, sequence_range
from tests.support.engine_rows import EngineRows, resource_event
from tests.support.rows_read import rows_read_by, without_statistics

EVENTS = 200
#: As earlier versions have recorded them.
RANDOM_IDS = "update event set id = gen_random_uuid()"
IDS = "select id from event where stack_id = $1 order by sequence"


async def record(database: Database) -> tuple[UUID, list[UUID]]:
    """A stack, and the IDs of its events; another stack has as many."""
    rows = EngineRows(database)
    other, stack = await rows.stack("other"), await rows.stack("s")
    for one in (other, stack):
        await rows.record(one, *(resource_event("a") for _ in range(EVENTS)))
    async with database.connection() as conn:
        return stack.id, [row["id"] for row in await conn.fetch(IDS, stack.id)]


async def test_an_id_contains_the_sequence_number_and_is_unique(database: Database) -> None:
    _, found = await record(database)
    assert [sequence_range(one) for one in found] == [(n, n) for n in range(1, EVENTS + 1)]
    async with database.connection() as conn:
        assert await conn.fetchval("select count(distinct id) from event") == 2 * EVENTS


@pytest.mark.parametrize("earlier", [False, True], ids=["numbered", "random"])
async def test_an_event_and_the_page_after_it_are_found_by_its_id(
    database: Database, earlier: bool
) -> None:
    stack, _ = await record(database)
    async with database.connection() as conn:
        await without_statistics(conn)
        if earlier:
            await conn.execute(RANDOM_IDS)
        ids = [row["id"] for row in await conn.fetch(IDS, stack)]

        async def read_one(conn: Connection) -> None:
            found = await read_event(conn, stack, ids[100])
            assert found is not None and found[0].sequence == 101

        read = await rows_read_by(conn, read_one)
        assert earlier or read < 10, read
        for descending, following in ((False, ids[101:104]), (True, ids[99:96:-1])):
            for by_type in (False, True):
                page = EventFilter(marker=ids[100], limit=3, descending=descending, by_type=by_type)
                listed = await list_events(conn, stack, "s", page, {})
                assert [one.id for one in listed] == following
