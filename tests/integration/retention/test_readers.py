"""Readers of the event stream whose next events have been purged."""

from collections import Counter
from contextlib import aclosing

import pytest

from channels.store.publish import publish
from channels.stream import StreamFilter
from engine.errors import Conflict
from engine.store.database import Database
from engine.work.purge import purge_old
from tests.integration.channels.test_stream import Reader, running_feed
from tests.integration.retention.test_purge import AT_ONCE, purge
from tests.support.changes import thing
from tests.support.engine_rows import EngineRows, resource_event
from tests.support.full_stack import until_delivered, value
from tests.support.program import Program


async def test_a_reader_of_purged_events_gets_410_and_one_without_missed_events_continues(
    run: Program,
) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await until_delivered(run)
    last = await value(
        run,
        "select position || '-' || last from outbox where project = 'p' order by position desc limit 1",
    )
    await purge(run)
    url = f"{run.url}/v1/p/events/stream"
    async with run.session.get(url, headers={"Last-Event-ID": "1-1"}) as answer:
        assert answer.status == 410
        error = (await answer.json())["error"]
    assert error["type"] == "EventsGone"
    # The remedy has the first position that is still available.
    floor = error["remedy"].rpartition(" ")[2].rstrip(".")
    for position in (floor, last):
        async with run.session.get(url, headers={"Last-Event-ID": position}) as answer:
            assert answer.status == 200
            assert await answer.content.readline() == b": connected\n"
    # No events of another project were purged.
    async with run.session.get(
        f"{run.url}/v1/q/events/stream", headers={"Last-Event-ID": "1-1"}
    ) as answer:
        assert answer.status == 200


async def test_a_connected_reader_behind_purged_events_gets_an_error(database: Database) -> None:
    engine_rows = EngineRows(database)
    stack = await engine_rows.stack()
    for number in range(4):
        await engine_rows.record(stack, resource_event(f"r{number}"))
    await publish(database, horizon=lambda _: 0.0, limit=100)
    async with running_feed(database, page=1) as feed:
        start, wanted = await feed.start("demo", "0-0"), StreamFilter("demo")
        async with aclosing(feed.events(wanted, start)) as events:
            assert (await anext(events)) is not None
            async with database.connection() as conn:
                assert +await purge_old(conn, AT_ONCE) == Counter(events=3)
            with pytest.raises(Conflict, match="have been deleted"):
                await anext(events)
        reader = Reader()
        # The feed ends the stream; the reader reconnects and gets the error.
        await feed.pump(wanted, start, reader.write)
        assert reader.events == []
        with pytest.raises(Conflict, match="have been deleted"):
            await feed.start("demo", "0-0")
