"""Dispatchers that die, are late, or meet each other: nothing is lost, nothing is doubled."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from channels.contract import Delivered, Endpoint, Failed, Letter
from channels.settler import Settler
from channels.store.claim import Room, claim
from channels.store.publish import publish
from channels.store.records import DeliveryState, Due, Settlement
from channels.store.settle import LOCK_SUBSCRIPTIONS, RELEASE, settle
from engine.store.database import Database
from tests.integration.channels.conftest import Away, Dispatching
from tests.support.events import Scene, resource_event
from tests.support.receiver import Received, Receiver, until

ROOM = Room(free=50, retries=50, each=50, busy={})


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


async def test_killed_between_sending_and_recording(
    scene: Scene, receiver: Receiver, dispatching: Dispatching, database_url: str
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    receiver.hangs()
    await scene.record(stack, *(resource_event(f"r{number}") for number in range(5)))
    async with dispatch_process(database_url) as process:
        await until(lambda: receiver.received)
        process.send_signal(signal.SIGKILL)
        assert await process.wait() == -signal.SIGKILL
    sent = receiver.events[0]["id"]
    receiver.answers(200)
    receiver.received.clear()
    assert (await scene.deliveries())[0]["state"] == "pending"
    await _leases_end(scene)
    async with dispatching():
        await until(lambda: _none_pending(scene))
    assert receiver.events[0]["id"] == sent
    assert [event["sequence"] for event in receiver.events] == [1, 2, 3, 4, 5]


async def test_a_late_settlement_is_fenced_off(scene: Scene, database: Database) -> None:
    stack = await scene.stack()
    await scene.subscription("http://127.0.0.1:1/")
    await scene.record(stack, resource_event("a"))
    await publish(database, horizon=1.0, limit=10)
    (late,) = await _claim(database)
    assert await _claim(database) == []  # leased
    await _leases_end(scene)
    (now,) = await _claim(database)
    assert (now.event.id, now.attempts) == (late.event.id, 2)
    assert await settle(database, [_dead(late)], disable_after=9) == 0
    assert (await scene.deliveries())[0]["state"] == "pending"
    assert await settle(database, [_dead(now)], disable_after=9) == 1
    assert await settle(database, [_dead(now)], disable_after=9) == 0
    assert await scene.value("select count(*) from event") == 2  # the event, and one death


async def test_so_many_at_once_for_one_subscription(
    scene: Scene, receiver: Receiver, other_receiver: Receiver, dispatching: Dispatching
) -> None:
    stack, other = await scene.stack(), await scene.stack()
    await scene.subscription(receiver.url, ordered=False, stacks=[stack.name])
    await scene.subscription(other_receiver.url, ordered=False, stacks=[other.name])
    receiver.hangs()
    async with dispatching(capacity=20, each=3, drain=0.05):
        await scene.record(stack, *(resource_event(f"r{number}") for number in range(9)))
        await until(lambda: receiver.under_way == 3)
        for number in range(5):
            await scene.record(other, resource_event(f"o{number}"))
            await until(lambda number=number: len(other_receiver.received) == number + 1)
        assert receiver.most_under_way == 3


async def test_only_the_first_in_order_is_claimed(scene: Scene, database: Database) -> None:
    stacks = [await scene.stack() for _ in range(3)]
    await scene.subscription("http://127.0.0.1:1/")
    for stack in stacks:
        await scene.record(stack, resource_event("a"), resource_event("b"))
        await publish(database, horizon=1.0, limit=10)
        await scene.record(stack, resource_event("c"))
        await publish(database, horizon=1.0, limit=10)
    for sequence in (1, 2, 3):
        claimed = await _claim(database)
        assert [due.key.sequence for due in claimed] == [sequence] * 3
        assert await _claim(database) == []
        await settle(database, [_delivered(due) for due in claimed], disable_after=9)
    assert await _claim(database) == []


async def test_publishers_and_settlers_at_once_leave_nothing_blocked(
    scene: Scene, database: Database
) -> None:
    stack = await scene.stack()
    await scene.subscription("http://127.0.0.1:1/")
    left = 60

    async def write() -> None:
        for number in range(30):
            await scene.record(stack, resource_event(f"r{number}"))
            await publish(database, horizon=1.0, limit=3)

    async def carry() -> None:
        nonlocal left
        while left:
            claimed = await _claim(database)
            assert len(claimed) <= 1
            await settle(database, [_delivered(due) for due in claimed], disable_after=9)
            left -= len(claimed)
            await publish(database, horizon=1.0, limit=3)

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        for job in (write(), write(), carry()):
            group.create_task(job)
    assert await _none_pending(scene)


async def test_what_joins_an_order_while_its_head_leaves_is_not_left_behind(
    scene: Scene, database: Database
) -> None:
    stack = await scene.stack()
    await scene.subscription("http://127.0.0.1:1/")
    await scene.record(stack, resource_event("a"))
    await publish(database, horizon=1.0, limit=10)
    (head,) = await _claim(database)
    await scene.record(stack, resource_event("b"))
    async with database.transaction() as conn:  # what `settle` does, held open
        await conn.execute(LOCK_SUBSCRIPTIONS, [head.key.subscription_id])
        await conn.execute("update delivery set state = 'delivered', next_at = null")
        await conn.execute(RELEASE, [head.key.subscription_id], [stack.id])
        joining = asyncio.create_task(publish(database, horizon=1.0, limit=10))
        await until(lambda: _done_or_waiting(scene, joining))
    await joining
    assert [due.key.sequence for due in await _claim(database)] == [2]


async def _done_or_waiting(scene: Scene, task: "asyncio.Task[object]") -> bool:
    waiting = "select exists (select 1 from pg_locks where not granted)"
    return task.done() or bool(await scene.value(waiting))


async def test_one_publisher_at_a_time(scene: Scene, database: Database) -> None:
    stack = await scene.stack()
    await scene.record(stack, resource_event("a"))
    async with database.transaction() as conn:
        await conn.execute("select position from publishing for update")
        assert await publish(database, horizon=1.0, limit=10) is None
    first = await publish(database, horizon=1.0, limit=10)
    assert first is not None
    assert (first.rows, first.deliveries) == (1, 0)


async def test_what_commits_late_gets_a_later_position(scene: Scene, database: Database) -> None:
    early, late = await scene.stack(), await scene.stack()
    async with database.transaction() as conn:
        await scene.record_in(conn, late, resource_event("slow"))
        await scene.record(early, resource_event("quick"))
        await publish(database, horizon=1.0, limit=10)
    await publish(database, horizon=1.0, limit=10)
    names = await scene.value(
        "select array_agg(e.resource_name order by o.position) from outbox o"
        " join event e on e.stack_id = o.stack_id"
    )
    assert names == ["quick", "slow"]


async def test_a_backlog_of_one_does_not_hold_up_another(scene: Scene, database: Database) -> None:
    stack, other = await scene.stack(), await scene.stack()
    await scene.subscription("http://127.0.0.1:1/", ordered=False, stacks=[stack.name])
    small = await scene.subscription("http://127.0.0.1:1/", ordered=False, stacks=[other.name])
    await scene.record(stack, *(resource_event(f"r{number}") for number in range(200)))
    await scene.record(other, resource_event("a"))
    await publish(database, horizon=1.0, limit=10)
    claimed = await _claim(database, Room(free=10, retries=10, each=8, busy={}))
    assert small.id in {due.key.subscription_id for due in claimed}
    assert len(claimed) == 9


async def test_retries_leave_room_for_first_attempts(scene: Scene, database: Database) -> None:
    stack = await scene.stack()
    await scene.subscription("http://127.0.0.1:1/", ordered=False)
    await scene.record(stack, *(resource_event(f"r{number}") for number in range(10)))
    await publish(database, horizon=1.0, limit=10)
    claimed = await _claim(database)
    again = [_settled(due, DeliveryState.PENDING) for due in claimed]
    await settle(database, again, disable_after=9)
    assert len(await _claim(database, Room(free=10, retries=4, each=10, busy={}))) == 4


async def test_a_channel_that_breaks_is_a_failed_attempt(
    scene: Scene, dispatching: Dispatching
) -> None:
    class Broken:
        name = "broken"

        async def check_target(self, target: str) -> None:
            raise NotImplementedError

        async def deliver(self, letter: Letter, endpoint: Endpoint) -> Delivered | Failed:
            raise RuntimeError("a bug")

    stack = await scene.stack()
    await scene.subscription("x", channel="broken", events=["headgate.resource.*"])
    await scene.subscription("x", channel="none", events=["headgate.resource.*"])
    await scene.record(stack, resource_event("a"))
    async with dispatching(channels={"broken": Broken()}):
        await until(lambda: _none_pending(scene))
    rows = await scene.deliveries()
    assert sorted(row["error"].partition(";")[0] for row in rows) == [
        "an error of ours: RuntimeError", 'there is no channel "none" here',
    ]  # fmt: skip


async def test_a_dispatcher_begins_anew_after_an_error_of_ours(
    scene: Scene, receiver: Receiver, dispatching: Dispatching, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [RuntimeError("a bug")]

    async def shaky(*args: Any, **named: Any) -> Any:
        if left:
            raise left.pop()
        return await publish(*args, **named)

    monkeypatch.setattr("channels.dispatcher.publish", shaky)
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    await scene.record(stack, resource_event("a"))
    with capture_logs() as logs:
        async with dispatching(poll=0.1):
            await until(lambda: _none_pending(scene))
    assert [one["event"] for one in logs] == ["dispatcher.broken"]


async def test_a_settlement_that_cannot_be_written_takes_no_other_with_it(
    scene: Scene, database: Database
) -> None:
    stack = await scene.stack()
    await scene.subscription("http://127.0.0.1:1/", ordered=False)
    await scene.record(stack, *(resource_event(f"r{number}") for number in range(3)))
    await publish(database, horizon=1.0, limit=10)
    claimed = await _claim(database)
    bad = replace(_delivered(claimed[1]), answer="\x00")
    settler = Settler(database, disable_after=9)
    with capture_logs() as logs:
        running = asyncio.create_task(settler.run())
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            for one in (_delivered(claimed[0]), bad, _delivered(claimed[2])):
                group.create_task(settler.write(one))
        running.cancel()
        await asyncio.wait([running])
    assert [row["state"] for row in await scene.deliveries()] == [
        "delivered", "pending", "delivered",
    ]  # fmt: skip
    assert [one["delivery"] for one in logs if one["event"] == "settle.dropped"] == [str(bad.id)]


async def test_a_database_that_goes_away_and_comes_back_is_survived(
    scene: Scene, receiver: Receiver, dispatching: Dispatching, away: Away
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    with capture_logs() as logs:
        async with dispatching(poll=0.1):
            await scene.record(stack, resource_event("a"))
            await until(lambda: receiver.received)
            async with away():
                for said in ("lane.unavailable", "publish.unavailable"):
                    await until(lambda said=said: any(one["event"] == said for one in logs))
            await scene.record(stack, resource_event("b"))
            await until(lambda: len(receiver.received) >= 2)
            await until(lambda: _none_pending(scene))


async def test_a_dispatcher_waits_for_its_database(
    scene: Scene, receiver: Receiver, dispatching: Dispatching, away: Away
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    await scene.record(stack, resource_event("a"))
    with capture_logs() as logs:
        async with AsyncExitStack() as running:
            async with away():
                await running.enter_async_context(dispatching(poll=0.1))
                await until(lambda: any(one["event"] == "dispatcher.unavailable" for one in logs))
            await until(lambda: _none_pending(scene))


async def test_what_cannot_be_settled_now_is_settled_later(
    scene: Scene, receiver: Receiver, dispatching: Dispatching, away: Away
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    go = asyncio.Event()

    async def slow(_: Received) -> web.StreamResponse:
        await go.wait()
        return web.Response()

    receiver.handle = slow
    await scene.record(stack, resource_event("a"))
    with capture_logs() as logs:
        async with dispatching():
            await until(lambda: receiver.under_way)
            async with away():
                go.set()
                await until(lambda: any(one["event"] == "settle.unavailable" for one in logs))
            await until(lambda: _none_pending(scene))
    assert len(receiver.received) == 1


async def _claim(database: Database, room: Room = ROOM) -> list[Due]:
    async with database.connection() as conn:
        return await claim(conn, urgent=False, room=room, lease=30.0)


async def _leases_end(scene: Scene) -> None:
    past = timedelta(hours=1)
    await scene.value("update delivery set next_at = next_at - $1::interval", past)


async def _none_pending(scene: Scene) -> bool:
    rows = await scene.deliveries()
    return bool(rows) and all(row["state"] != "pending" for row in rows)


def _delivered(due: Due) -> Settlement:
    return _settled(due, DeliveryState.DELIVERED)


def _dead(due: Due) -> Settlement:
    return _settled(due, DeliveryState.DEAD)


def _settled(due: Due, state: DeliveryState) -> Settlement:
    return Settlement(
        key=due.key, id=due.id, hook_id=due.hook_id, channel=due.channel, target=due.target,
        event_id=due.event.id, event_type=due.event.type, attempts=due.attempts, state=state,
        code=200, error="", answer="",
    )  # fmt: skip
