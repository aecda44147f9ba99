"""What readers of the event stream are told whose place is gone."""

from collections import Counter
from contextlib import aclosing

import pytest

from channels.store.publish import publish
from channels.stream.feed import StreamFilter
from engine.errors import Conflict
from engine.store.database import Database
from engine.work.purge import purge_old
from tests.integration.channels.test_stream import Reader, feeding
from tests.integration.retention.test_purge import NOW, purged
from tests.support.changes import thing
from tests.support.events import Scene, resource_event
from tests.support.program import Program
from tests.support.whole_life import settled, value


async def test_a_reader_whose_place_is_gone_is_told_and_one_who_missed_nothing_goes_on(
    run: Program,
) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await settled(run)
    last = await value(
        run,
        "select position || '-' || last from outbox where project = 'p' order by position desc limit 1",
    )
    await purged(run)
    url = f"{run.url}/v1/p/events/stream"
    async with run.session.get(url, headers={"Last-Event-ID": "1-1"}) as answer:
        assert answer.status == 410
        said = (await answer.json())["error"]
    assert said["type"] == "EventsGone"
    # Where what is left begins, as it says.
    floor = said["remedy"].rpartition(" ")[2].rstrip(".")
    for place in (floor, last):
        async with run.session.get(url, headers={"Last-Event-ID": place}) as answer:
            assert answer.status == 200
            assert await answer.content.readline() == b": connected\n"
    # Nothing has gone in another project.
    async with run.session.get(
        f"{run.url}/v1/q/events/stream", headers={"Last-Event-ID": "1-1"}
    ) as answer:
        assert answer.status == 200


async def test_a_reader_who_is_behind_what_is_purged_is_told_too(database: Database) -> None:
    scene = Scene(database)
    stack = await scene.stack()
    for number in range(4):
        await scene.record(stack, resource_event(f"r{number}"))
    await publish(database, horizon=lambda _: 0.0, limit=100)
    async with feeding(database, page=1) as feed:
        start, wanted = await feed.start("demo", "0-0"), StreamFilter("demo")
        async with aclosing(feed.events(wanted, start)) as events:
            assert (await anext(events)) is not None
            async with database.connection() as conn:
                assert +await purge_old(conn, NOW) == Counter(events=3)
            with pytest.raises(Conflict, match="have been deleted"):
                await anext(events)
        reader = Reader()
        # Whoever pumps ends the stream; its reader comes back, and is told.
        await feed.pump(wanted, start, reader.write)
        assert reader.events == []
        with pytest.raises(Conflict, match="have been deleted"):
            await feed.start("demo", "0-0")
