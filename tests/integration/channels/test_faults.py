"""Dispatchers that are killed, late or concurrent: no event is lost, and none is delivered twice in
error.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from aiohttp import web

from channels.store.claim import Capacity
from channels.store.delivery_results import LOCK_SUBSCRIPTIONS, RELEASE, write_results
from channels.store.publish import publish
from channels.store.records import DeliveryState
from engine.store.database import Database
from tests.integration.channels.conftest import RunDispatcher
from tests.support.deliveries import all_ended, claim_deliveries, dead, delivered, result_of
from tests.support.engine_rows import EngineRows, resource_event
from tests.support.program import Json
from tests.support.receiver import Received, Receiver, until


@asynccontextmanager
async def dispatch_process(url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.dispatch_process", url
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_a_dispatcher_killed_between_sending_and_recording(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher, database_url: str
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url)
    receiver.never_respond()
    await engine_rows.record(stack, *(resource_event(f"r{number}") for number in range(5)))
    async with dispatch_process(database_url) as process:
        await until(lambda: receiver.received)
        process.send_signal(signal.SIGKILL)
        assert await process.wait() == -signal.SIGKILL
    sent = receiver.events[0]["id"]
    receiver.respond_with_statuses(200)
    receiver.received.clear()
    assert (await engine_rows.deliveries())[0]["state"] == "pending"
    await _expire_leases(engine_rows)
    async with run_dispatcher():
        await until(lambda: all_ended(engine_rows))
    assert receiver.events[0]["id"] == sent
    assert [event["sequence"] for event in receiver.events] == [1, 2, 3, 4, 5]


async def test_a_dispatcher_killed_repeatedly(
    engine_rows: EngineRows, receiver: Receiver, database_url: str
) -> None:
    stacks = [await engine_rows.stack() for _ in range(4)]
    await engine_rows.subscription(receiver.url)
    for stack in stacks:
        await engine_rows.record(stack, *(resource_event(f"r{number}") for number in range(25)))
    kills = 0
    for messages in (1, 9, 16, 5, 22):  # after this many more messages, one gets no response
        blocked = hang_after(receiver, messages)
        async with dispatch_process(database_url) as process:
            await until(blocked.is_set)
            process.send_signal(signal.SIGKILL)
            assert await process.wait() == -signal.SIGKILL
        kills += 1
        await _expire_leases(engine_rows)
    receiver.respond_with_statuses(200)
    async with dispatch_process(database_url):
        await until(lambda: all_ended(engine_rows))
    assert {row["state"] for row in await engine_rows.deliveries()} == {"delivered"}
    arrived = first_arrivals(receiver)
    for stack in stacks:
        source = f"/v1/{stack.project}/stacks/{stack.name}/{stack.id}"
        assert [one["sequence"] for one in arrived if one["source"] == source] == [*range(1, 26)]
    twice = len(receiver.received) - len(arrived)
    assert twice >= kills
    print(
        f"{kills} kills, 100 events, {100 - len(arrived)} missing, {twice} twice, same id each time"
    )


def hang_after(receiver: Receiver, messages: int) -> asyncio.Event:
    """Set when a message arrives that gets no response."""
    last, blocked = len(receiver.received) + messages, asyncio.Event()

    async def handle(_: Received) -> web.StreamResponse:
        if len(receiver.received) > last:
            blocked.set()
            await asyncio.Event().wait()
        return web.Response()

    receiver.handle = handle
    return blocked


def first_arrivals(receiver: Receiver) -> list[Json]:
    """Each event once, in the order of its first attempt; all attempts have the same message."""
    messages: dict[str, Received] = {}
    for one in receiver.received:
        first = messages.setdefault(one.headers["webhook-id"], one)
        assert one.body == first.body
        assert one.event["id"] == one.headers["webhook-id"]
    return [one.event for one in messages.values()]


async def test_a_late_result_is_ignored(engine_rows: EngineRows, database: Database) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription("http://127.0.0.1:1/")
    await engine_rows.record(stack, resource_event("a"))
    await publish(database, horizon=lambda _: 1.0, limit=10)
    (late,) = await claim_deliveries(database)
    assert await claim_deliveries(database) == []  # leased
    await _expire_leases(engine_rows)
    (now,) = await claim_deliveries(database)
    assert (now.event.id, now.attempts) == (late.event.id, 2)
    assert await write_results(database, [dead(late)], disable_after=9) == 0
    assert (await engine_rows.deliveries())[0]["state"] == "pending"
    assert await write_results(database, [dead(now)], disable_after=9) == 1
    assert await write_results(database, [dead(now)], disable_after=9) == 0
    assert (
        await engine_rows.value("select count(*) from event") == 2
    )  # the event and the dead delivery


async def test_concurrent_attempts_for_one_subscription_are_limited(
    engine_rows: EngineRows,
    receiver: Receiver,
    other_receiver: Receiver,
    run_dispatcher: RunDispatcher,
) -> None:
    stack, other = await engine_rows.stack(), await engine_rows.stack()
    await engine_rows.subscription(receiver.url, ordered=False, stacks=[stack.name])
    await engine_rows.subscription(other_receiver.url, ordered=False, stacks=[other.name])
    receiver.never_respond()
    async with run_dispatcher(capacity=20, each=3, drain=0.05):
        await engine_rows.record(stack, *(resource_event(f"r{number}") for number in range(9)))
        await until(lambda: receiver.in_progress == 3)
        for number in range(5):
            await engine_rows.record(other, resource_event(f"o{number}"))
            await until(lambda number=number: len(other_receiver.received) == number + 1)
        assert receiver.max_in_progress == 3


async def test_only_the_first_in_order_is_claimed(
    engine_rows: EngineRows, database: Database
) -> None:
    stacks = [await engine_rows.stack() for _ in range(3)]
    await engine_rows.subscription("http://127.0.0.1:1/")
    for stack in stacks:
        await engine_rows.record(stack, resource_event("a"), resource_event("b"))
        await publish(database, horizon=lambda _: 1.0, limit=10)
        await engine_rows.record(stack, resource_event("c"))
        await publish(database, horizon=lambda _: 1.0, limit=10)
    for sequence in (1, 2, 3):
        claimed = await claim_deliveries(database)
        assert [due.key.sequence for due in claimed] == [sequence] * 3
        assert await claim_deliveries(database) == []
        await write_results(database, [delivered(due) for due in claimed], disable_after=9)
    assert await claim_deliveries(database) == []


async def test_concurrent_publishers_and_result_writers_block_no_delivery(
    engine_rows: EngineRows, database: Database
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription("http://127.0.0.1:1/")
    left = 60

    async def write() -> None:
        for number in range(30):
            await engine_rows.record(stack, resource_event(f"r{number}"))
            await publish(database, horizon=lambda _: 1.0, limit=3)

    async def deliver() -> None:
        nonlocal left
        while left:
            claimed = await claim_deliveries(database)
            assert len(claimed) <= 1
            await write_results(database, [delivered(due) for due in claimed], disable_after=9)
            left -= len(claimed)
            await publish(database, horizon=lambda _: 1.0, limit=3)

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        for job in (write(), write(), deliver()):
            group.create_task(job)
    assert await all_ended(engine_rows)


async def test_a_delivery_added_while_the_first_one_leaves_is_released(
    engine_rows: EngineRows, database: Database
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription("http://127.0.0.1:1/")
    await engine_rows.record(stack, resource_event("a"))
    await publish(database, horizon=lambda _: 1.0, limit=10)
    (head,) = await claim_deliveries(database)
    await engine_rows.record(stack, resource_event("b"))
    async with database.transaction() as conn:  # what `settle` does, held open
        await conn.execute(LOCK_SUBSCRIPTIONS, [head.key.subscription_id])
        await conn.execute("update delivery set state = 'delivered', next_at = null")
        await conn.execute(RELEASE, [head.key.subscription_id], [stack.id])
        joining = asyncio.create_task(publish(database, horizon=lambda _: 1.0, limit=10))
        await until(lambda: _done_or_waiting(engine_rows, joining))
    await joining
    assert [due.key.sequence for due in await claim_deliveries(database)] == [2]


async def _done_or_waiting(engine_rows: EngineRows, task: "asyncio.Task[object]") -> bool:
    waiting = "select exists (select 1 from pg_locks where not granted)"
    return task.done() or bool(await engine_rows.value(waiting))


async def test_one_publisher_at_a_time(engine_rows: EngineRows, database: Database) -> None:
    stack = await engine_rows.stack()
    await engine_rows.record(stack, resource_event("a"))
    async with database.transaction() as conn:
        await conn.execute("select position from outbox_cursor for update")
        assert await publish(database, horizon=lambda _: 1.0, limit=10) is None
    first = await publish(database, horizon=lambda _: 1.0, limit=10)
    assert first is not None
    assert (first.rows, first.deliveries) == (1, 0)


async def test_a_late_commit_gets_a_later_position(
    engine_rows: EngineRows, database: Database
) -> None:
    early, late = await engine_rows.stack(), await engine_rows.stack()
    async with database.transaction() as conn:
        await engine_rows.record_in(conn, late, resource_event("slow"))
        await engine_rows.record(early, resource_event("quick"))
        await publish(database, horizon=lambda _: 1.0, limit=10)
    await publish(database, horizon=lambda _: 1.0, limit=10)
    names = await engine_rows.value(
        "select array_agg(e.resource_name order by o.position) from outbox o"
        " join event e on e.stack_id = o.stack_id"
    )
    assert names == ["quick", "slow"]


async def test_a_backlog_does_not_delay_other_subscriptions(
    engine_rows: EngineRows, database: Database
) -> None:
    stack, other = await engine_rows.stack(), await engine_rows.stack()
    await engine_rows.subscription("http://127.0.0.1:1/", ordered=False, stacks=[stack.name])
    small = await engine_rows.subscription(
        "http://127.0.0.1:1/", ordered=False, stacks=[other.name]
    )
    await engine_rows.record(stack, *(resource_event(f"r{number}") for number in range(200)))
    await engine_rows.record(other, resource_event("a"))
    await publish(database, horizon=lambda _: 1.0, limit=10)
    claimed = await claim_deliveries(database, Capacity(free=10, retries=10, each=8, busy={}))
    assert small.id in {due.key.subscription_id for due in claimed}
    assert len(claimed) == 9


async def test_retries_leave_capacity_for_first_attempts(
    engine_rows: EngineRows, database: Database
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription("http://127.0.0.1:1/", ordered=False)
    await engine_rows.record(stack, *(resource_event(f"r{number}") for number in range(10)))
    await publish(database, horizon=lambda _: 1.0, limit=10)
    claimed = await claim_deliveries(database)
    again = [result_of(due, DeliveryState.PENDING) for due in claimed]
    await write_results(database, again, disable_after=9)
    assert (
        len(await claim_deliveries(database, Capacity(free=10, retries=4, each=10, busy={}))) == 4
    )


async def _expire_leases(engine_rows: EngineRows) -> None:
    past = timedelta(hours=1)
    await engine_rows.value("update delivery set next_at = next_at - $1::interval", past)
