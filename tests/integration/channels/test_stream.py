"""The event stream: its content, resuming, and slow readers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from channels.selection import Selection
from channels.store.publish import publish
from channels.stream import (
    HEARTBEAT,
    Feed,
    FeedSettings,
    StreamFilter,
    parse_event_id,
    place_text,
)
from engine.errors import Invalid
from engine.store.database import Database
from tests.integration.conftest import DatabaseOutage
from tests.support.engine_rows import EngineRows, StackRow, resource_event, stack_event
from tests.support.receiver import until


class Reader:
    """Parses the stream like a browser."""

    def __init__(self) -> None:
        self.text = b""

    async def write(self, text: bytes) -> None:
        self.text += text

    @property
    def events(self) -> list[dict[str, Any]]:
        blocks = [block for block in self.text.split(b"\n\n") if b"\ndata:" in block]
        return [_parsed(block.decode()) for block in blocks]

    @property
    def subjects(self) -> list[str]:
        return [event["data"].get("subject") for event in self.events]


def _parsed(block: str) -> dict[str, Any]:
    fields = dict(line.split(": ", 1) for line in block.splitlines())
    return fields | {"data": orjson.loads(fields["data"])}


@asynccontextmanager
async def running_feed(database: Database, **settings: Any) -> AsyncIterator[Feed]:
    feed, stop = Feed(database, FeedSettings(**settings)), asyncio.Event()
    task = asyncio.create_task(feed.run(stop))
    try:
        yield feed
    finally:
        stop.set()
        async with asyncio.timeout(10):
            await task


@asynccontextmanager
async def read_stream(
    feed: Feed, wanted: StreamFilter, last: str | None = None, reader: Reader | None = None
) -> AsyncIterator[Reader]:
    reader = reader or Reader()
    start = await feed.start("demo", last)
    task = asyncio.create_task(feed.pump(wanted, start, reader.write))
    try:
        yield reader
    finally:
        task.cancel()
        await asyncio.wait([task])


async def publish_events(engine_rows: EngineRows, stack: StackRow, *events: dict[str, Any]) -> None:
    await engine_rows.record(stack, *events)
    # A concurrent publisher may not see these events.
    await until(lambda: publish(engine_rows.database, horizon=lambda _: 1.0, limit=100))


async def test_readers_get_new_events_of_their_project(
    engine_rows: EngineRows, database: Database
) -> None:
    mine, theirs = await engine_rows.stack("web"), await engine_rows.stack(project="other")
    await publish_events(engine_rows, mine, resource_event("old"))
    async with running_feed(database) as feed, read_stream(feed, StreamFilter("demo")) as reader:
        await publish_events(engine_rows, theirs, resource_event("theirs"))
        await publish_events(
            engine_rows, mine, stack_event("create", "failed", "FAILED"), resource_event("a")
        )
        await until(lambda: len(reader.events) == 2)
    first, second = reader.events
    assert (first["event"], first["data"]["type"]) == ("headgate.stack.create.failed",) * 2
    assert second["data"]["subject"] == "a"
    assert first["data"]["source"] == f"/v1/demo/stacks/web/{mine.id}"


async def test_a_reader_resumes_after_its_last_event(
    engine_rows: EngineRows, database: Database
) -> None:
    stack = await engine_rows.stack()
    async with running_feed(database, page=3, kept=4) as feed:
        async with read_stream(feed, StreamFilter("demo")) as reader:
            for number in range(10):
                await publish_events(
                    engine_rows, stack, resource_event(f"a{number}"), resource_event(f"b{number}")
                )
            await until(lambda: len(reader.events) == 20)
        whole = reader.subjects
        assert whole == [f"{letter}{number}" for number in range(10) for letter in "ab"]
        for place in (0, 6, 7, 18, 19):
            again = Reader()
            async with read_stream(feed, StreamFilter("demo"), reader.events[place]["id"], again):
                await publish_events(engine_rows, stack, resource_event("last"))
                await until(lambda again=again: again.subjects[-1:] == ["last"])
            assert [s for s in again.subjects if s != "last"] == whole[place + 1 :]


async def test_many_readers_miss_no_event_under_load(
    engine_rows: EngineRows, database: Database
) -> None:
    stacks = [await engine_rows.stack() for _ in range(3)]
    async with running_feed(database, page=4, kept=8) as feed, asyncio.TaskGroup() as group:

        async def write(stack: StackRow) -> None:
            for number in range(20):
                await publish_events(engine_rows, stack, resource_event(f"{stack.name}:{number}"))

        async def read() -> None:
            async with read_stream(feed, StreamFilter("demo"), "0-0") as reader:
                await until(lambda: len(reader.events) == 60)
                ids = [event["id"] for event in reader.events]
                assert len(set(ids)) == 60
                assert ids == sorted(ids, key=parse_event_id)
                for stack in stacks:
                    mine = [s for s in reader.subjects if s.startswith(f"{stack.name}:")]
                    assert mine == [f"{stack.name}:{number}" for number in range(20)]

        for stack in stacks:
            group.create_task(write(stack))
        for _ in range(5):
            group.create_task(read())


async def test_a_blocked_reader_does_not_delay_thousands_of_others(
    engine_rows: EngineRows, database: Database
) -> None:
    stack, readers = await engine_rows.stack(), [Reader() for _ in range(2000)]

    async def nothing(_: bytes) -> None:
        await asyncio.Event().wait()

    async with running_feed(database, cut_off=60.0) as feed, asyncio.TaskGroup() as group:
        start = await feed.start("demo", None)
        tasks = [
            group.create_task(feed.pump(StreamFilter("demo"), start, one.write)) for one in readers
        ]
        tasks.append(group.create_task(feed.pump(StreamFilter("demo"), start, nothing)))
        await until(lambda: feed.readers == 2001)
        await publish_events(
            engine_rows, stack, *(resource_event(f"r{number}") for number in range(5))
        )
        await until(lambda: all(one.text.count(b"data: ") == 5 for one in readers))
        for task in tasks:
            task.cancel()
    assert {one.text for one in readers} == {readers[0].text}
    assert readers[0].subjects == [f"r{number}" for number in range(5)]
    assert feed.readers == 0


async def test_a_reader_can_filter_events(engine_rows: EngineRows, database: Database) -> None:
    one, other = await engine_rows.stack(), await engine_rows.stack()
    wanted = StreamFilter(
        "demo", Selection(stack_id=one.id, events=("headgate.resource.*.completed",))
    )
    for last in ("0-0", None):
        async with running_feed(database) as feed, read_stream(feed, wanted, last) as reader:
            for stack in (other, one):
                await publish_events(
                    engine_rows, stack, resource_event("a"), resource_event("b", "completed")
                )  # fmt: skip
            await until(lambda reader=reader: reader.events)
        assert {event["data"]["source"].rpartition("/")[2] for event in reader.events} == {
            str(one.id)
        }
        assert set(reader.subjects) == {"b"}


@pytest.mark.parametrize(
    ("selection", "subjects"),
    [
        (Selection(stacks=("web-*",)), {"a", "db"}),
        (Selection(resources=("d?",)), {"db"}),
        (Selection(points=("pre-*",)), {"db"}),
        (Selection(types=("OS::Nova::*",)), set()),
        (Selection(tags=("prod",)), {"c"}),
        (Selection(events=("headgate.subscription.*",)), {None}),
    ],
    ids=["stacks", "resources", "points", "types", "tags", "events"],
)
async def test_a_reader_has_all_filters_of_a_subscription(
    engine_rows: EngineRows, database: Database, selection: Selection, subjects: set[str | None]
) -> None:
    with_subscriptions = replace(engine_rows, with_subscriptions=True)
    web, tagged = await engine_rows.stack("web-1"), await engine_rows.stack("other")
    async with database.connection() as conn:
        await conn.execute("update stack set tags = '{prod}' where id = $1", tagged.id)
    async with (
        running_feed(database) as feed,
        read_stream(feed, StreamFilter("demo", selection)) as live,
        read_stream(feed, StreamFilter("demo", selection), "0-0") as later,
        read_stream(feed, StreamFilter("demo")) as whole,
    ):
        await with_subscriptions.subscription("https://a.test/")
        await publish_events(engine_rows, web, resource_event("a"))
        await engine_rows.hook(web, "db")
        await publish_events(engine_rows, tagged, resource_event("c"))
        await until(lambda: len(whole.events) == 4)
        for reader in (live, later):
            await until(lambda reader=reader: set(reader.subjects) == subjects)


async def test_heartbeats_without_events(engine_rows: EngineRows, database: Database) -> None:
    async with (
        running_feed(database, heartbeat=0.02) as feed,
        read_stream(feed, StreamFilter("demo")) as reader,
    ):
        await until(lambda: reader.text.count(HEARTBEAT) >= 3)
        assert reader.events == []
        # A heartbeat has the place of the stream: after events that are not selected, too.
        stack = await engine_rows.stack()
        others = StreamFilter("demo", Selection(resources=["b"]))
        async with read_stream(feed, others) as other:
            await publish_events(engine_rows, stack, resource_event("a"), resource_event("a2"))
            await until(lambda: len(reader.events) == 2)
            last = HEARTBEAT + place_text(parse_event_id(reader.events[-1]["id"]))
            for one in (reader, other):
                await until(lambda one=one: one.text.endswith(last))
            assert other.events == []


async def test_readers_get_no_token(engine_rows: EngineRows, database: Database) -> None:
    stack = await engine_rows.stack()
    async with running_feed(database) as feed, read_stream(feed, StreamFilter("demo")) as reader:
        await engine_rows.hook(stack)
        await publish(database, horizon=lambda _: 1.0, limit=10)
        await until(lambda: reader.events)
    data = reader.events[0]["data"]["data"]
    assert (data["token"], data["signal_url"]) == (None, None)
    assert data["hook"]["state"] == "waiting"


async def test_a_slow_reader_is_disconnected_and_resumes(
    engine_rows: EngineRows, database: Database
) -> None:
    stack = await engine_rows.stack()

    class SlowReader(Reader):
        async def write(self, text: bytes) -> None:
            if len(self.events) == 2:
                await asyncio.Event().wait()
            await super().write(text)

    slow = SlowReader()
    async with running_feed(database, cut_off=0.05) as feed:
        start = await feed.start("demo", None)
        pumping = asyncio.create_task(feed.pump(StreamFilter("demo"), start, slow.write))
        await publish_events(
            engine_rows, stack, *(resource_event(f"r{number}") for number in range(5))
        )
        async with asyncio.timeout(10):
            await pumping
        assert slow.subjects == ["r0", "r1"]
        async with read_stream(feed, StreamFilter("demo"), slow.events[-1]["id"]) as reader:
            await until(lambda: reader.subjects == ["r2", "r3", "r4"])


async def test_streams_survive_an_outage_of_the_database(
    engine_rows: EngineRows, database: Database, database_outage: DatabaseOutage
) -> None:
    stack = await engine_rows.stack()
    with capture_logs() as logs:
        async with (
            running_feed(database, poll=0.1) as feed,
            read_stream(feed, StreamFilter("demo")) as reader,
        ):
            await until(lambda: feed.readers)
            async with database_outage():
                await until(lambda: any(one["event"] == "stream.unavailable" for one in logs))
            await publish_events(engine_rows, stack, resource_event("a"))
            await until(lambda: reader.subjects == ["a"])


async def test_an_unknown_id_is_refused(engine_rows: EngineRows, database: Database) -> None:
    stack = await engine_rows.stack()
    await publish_events(engine_rows, stack, resource_event("a"))
    feed = Feed(database)
    for wrong in ("nonsense", "99-1"):
        with pytest.raises(Invalid):
            await feed.start("demo", wrong)
    assert (await feed.start("demo", "1-1")).position == 1
    assert await feed.start("demo", "") == await feed.start("demo", None)


async def test_the_stream_ends_with_the_program(database: Database) -> None:
    async with running_feed(database) as feed:
        start = await feed.start("demo", None)
        pumping = asyncio.create_task(feed.pump(StreamFilter("demo"), start, Reader().write))
        await until(lambda: feed.readers == 1)
    async with asyncio.timeout(5):
        await pumping
    assert feed.readers == 0
