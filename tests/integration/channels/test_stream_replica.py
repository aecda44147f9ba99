"""Readers of the event stream that are behind get their events from a replica: each event once, in
order, and an error if some have been purged.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from channels.stream import Feed, FeedSettings, StreamFilter, parse_event_id
from engine.errors import Conflict
from engine.store.database import Database, open_database
from engine.store.read_database import ReadDatabase, open_replica
from engine.store.replica import ReadOutcome
from engine.store.schema.upgrade import migrate
from tests.integration.channels.test_stream import publish_events, read_stream
from tests.support.engine_rows import DELETE_EVENTS, EngineRows, StackRow, resource_event
from tests.support.keys import KEYRING
from tests.support.program import PATIENCE, eventually
from tests.support.receiver import until
from tests.support.replication import ReplicatedPair, running_pair

NOTE_PURGED = """
insert into purged_position (project, position, sequence) select 'demo', position, 0 from outbox_cursor
"""
#: Commits wait for a server that does not exist, so only the replica shows them.
WAIT_FOREVER = "alter system set synchronous_standby_names = 'FIRST 2 (second, absent)'"


#: A session that has looked whether the replica has replayed the log.
WAITING = """
select count(*) > 0 from pg_stat_activity
 where query like '%pg_last_wal_replay_lsn%' and state = 'idle'
"""


class ReplicatedFeed:
    """outcomes: of the reads of readers that are behind."""

    def __init__(self, pair: ReplicatedPair, primary: Database, replica: Database) -> None:
        self.pair, self.primary = pair, primary
        self.rows = EngineRows(primary)
        self.outcomes: list[ReadOutcome] = []
        backlog = ReadDatabase(
            primary, replica, lag=timedelta(seconds=PATIENCE), record=self.outcomes.append
        )
        self.feed = Feed(primary, FeedSettings(page=4, kept=8), backlog=backlog)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Feed]:
        stop = asyncio.Event()
        task = asyncio.create_task(self.feed.run(stop))
        try:
            yield self.feed
        finally:
            stop.set()
            async with asyncio.timeout(PATIENCE):
                await task


@pytest.fixture
async def replicated() -> AsyncIterator[ReplicatedFeed]:
    async with running_pair(synchronous=False) as pair:
        await migrate(pair.first.url())
        primary = await open_database(pair.first.url(), keyring=KEYRING)
        replica = await open_replica(pair.second.url(), size=5, keyring=KEYRING)
        try:
            yield ReplicatedFeed(pair, primary, replica)
        finally:
            await replica.close()
            await primary.close()


async def test_readers_that_are_behind_miss_no_event_of_a_late_replica(
    replicated: ReplicatedFeed,
) -> None:
    await replicated.pair.second.execute("alter system set recovery_min_apply_delay = '50ms'")
    await replicated.pair.second.execute("select pg_reload_conf()")
    stacks = [await replicated.rows.stack() for _ in range(3)]
    async with replicated.running() as feed, asyncio.TaskGroup() as group:

        async def write(stack: StackRow) -> None:
            for number in range(20):
                event = resource_event(f"{stack.name}:{number}")
                await publish_events(replicated.rows, stack, event)

        async def read() -> None:
            async with read_stream(feed, StreamFilter("demo"), "0-0") as reader:
                await until(lambda: len(reader.events) == 60)
                ids = [event["id"] for event in reader.events]
                assert len(set(ids)) == 60
                assert ids == sorted(ids, key=parse_event_id)
                for stack in stacks:
                    mine = [s for s in reader.subjects if s.startswith(f"{stack.name}:")]
                    assert mine == [f"{stack.name}:{number}" for number in range(20)]

        writing = [group.create_task(write(stack)) for stack in stacks]
        for _ in range(3):
            group.create_task(read())
        await asyncio.wait(writing)
        group.create_task(read())  # is behind from the start
    assert {*replicated.outcomes} == {"replica"}


async def test_a_reader_that_is_behind_waits_for_the_replica(replicated: ReplicatedFeed) -> None:
    second = replicated.pair.second
    stack = await replicated.rows.stack()
    async with replicated.running() as feed, read_stream(feed, StreamFilter("demo")) as current:
        await second.execute("select pg_wal_replay_pause()")
        for number in range(20):
            await publish_events(replicated.rows, stack, resource_event(f"a{number}"))
        await until(lambda: len(current.events) == 20)
        async with read_stream(feed, StreamFilter("demo"), "0-0") as behind:
            await eventually(lambda: second.execute(WAITING))
            assert behind.events == []
            await second.execute("select pg_wal_replay_resume()")
            await until(lambda: len(behind.events) == 20)
        assert behind.events == current.events
    assert {*replicated.outcomes} == {"replica"}


async def test_events_that_only_the_replica_shows_as_purged_are_not_left_out_silently(
    replicated: ReplicatedFeed,
) -> None:
    stack = await replicated.rows.stack()
    for name in ("a", "b"):
        await publish_events(replicated.rows, stack, resource_event(name))
    cursor = await replicated.feed.start("demo", "0-0")
    first, second = replicated.pair.first, replicated.pair.second
    await first.execute(WAIT_FOREVER)
    await first.execute("select pg_reload_conf()")
    await eventually(
        lambda: first.execute("select current_setting('synchronous_standby_names') <> ''")
    )

    async def purge() -> None:
        async with replicated.primary.transaction() as conn:
            await conn.execute(DELETE_EVENTS, stack.id)
            await conn.execute(NOTE_PURGED)

    purging = asyncio.create_task(purge())
    purged = "select count(*) > 0 from purged_position"
    try:
        await eventually(lambda: second.execute(purged, database="headgate"))
        assert not await first.execute(purged, database="headgate")
        with pytest.raises(Conflict) as gone:
            await anext(replicated.feed.events(StreamFilter("demo"), cursor))
        assert gone.value.code == "EventsGone"
        assert replicated.outcomes == ["replica"]
    finally:
        await first.execute("alter system reset synchronous_standby_names")
        await first.execute("select pg_reload_conf()")
        await purging
