"""A dispatcher continues after outages, of the database in particular."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from channels.contract import Delivered, Endpoint, EventMessage, Failed
from channels.result_writer import ResultWriter
from channels.store.claim import Capacity, claim
from channels.store.publish import publish
from engine.store.database import Database
from tests.integration.channels.conftest import Dispatching
from tests.integration.conftest import Away
from tests.support.deliveries import claim_ordinary, delivered, none_pending
from tests.support.events import Scene, resource_event
from tests.support.receiver import Received, Receiver, until


async def test_an_error_of_a_channel_is_a_failed_attempt(
    scene: Scene, dispatching: Dispatching
) -> None:
    class Broken:
        name = "broken"

        async def check_target(self, target: str) -> None:
            raise NotImplementedError

        async def deliver(self, message: EventMessage, endpoint: Endpoint) -> Delivered | Failed:
            raise RuntimeError("a bug")

    stack = await scene.stack()
    await scene.subscription("x", channel="broken", events=["headgate.resource.*"])
    await scene.subscription("x", channel="none", events=["headgate.resource.*"])
    await scene.record(stack, resource_event("a"))
    async with dispatching(channels={"broken": Broken()}):
        await until(lambda: none_pending(scene))
    rows = await scene.deliveries()
    internal, unknown = sorted(row["error"].partition(";")[0] for row in rows)
    assert internal.startswith("internal error ")
    assert unknown == 'there is no channel "none" here'


async def test_a_dispatcher_restarts_after_an_internal_error(
    scene: Scene, receiver: Receiver, dispatching: Dispatching, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [RuntimeError("a bug")]

    async def shaky(*args: Any, **named: Any) -> Any:
        if left:
            raise left.pop()
        return await publish(*args, **named)

    monkeypatch.setattr("channels.outbox.publish", shaky)
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    await scene.record(stack, resource_event("a"))
    with capture_logs() as logs:
        async with dispatching(poll=0.1):
            await until(lambda: none_pending(scene))
    assert not logs  # it was published in two halves


async def test_a_result_that_cannot_be_written_fails_alone(
    scene: Scene, database: Database
) -> None:
    stack = await scene.stack()
    await scene.subscription("http://127.0.0.1:1/", ordered=False)
    await scene.record(stack, *(resource_event(f"r{number}") for number in range(3)))
    await publish(database, horizon=lambda _: 1.0, limit=10)
    claimed = await claim_ordinary(database)
    bad = replace(delivered(claimed[1]), answer="\x00")
    writer = ResultWriter(database, disable_after=9)
    with capture_logs() as logs:
        running = asyncio.create_task(writer.run())
        async with asyncio.timeout(20):
            wanted = (delivered(claimed[0]), bad, delivered(claimed[2]))
            await asyncio.gather(*map(writer.write, wanted))
        running.cancel()
        await asyncio.wait([running])
    assert [row["state"] for row in await scene.deliveries()] == ["delivered", "dead", "delivered"]
    (line,) = [one for one in logs if one["event"] == "settle.failed"]
    assert line["delivery"] == str(bad.id)
    assert line["error_id"] in (await scene.deliveries())[1]["error"]


async def test_a_dispatcher_survives_an_outage_of_the_database(
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
            await until(lambda: none_pending(scene))


async def test_an_attempt_may_last_longer_than_its_lease(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    await scene.record(stack, resource_event("a"))
    go = asyncio.Event()

    async def slow(_: Received) -> web.StreamResponse:
        await go.wait()
        return web.Response()

    receiver.handle = slow
    async with dispatching(lease=0.3, poll=0.1), dispatching(lease=0.3, poll=0.1):
        await until(lambda: receiver.under_way)
        since = await scene.value("select next_at from delivery")
        later = "select next_at > $1::timestamptz + interval '1 second' from delivery"
        await until(lambda: scene.value(later, since))
        go.set()
        await until(lambda: none_pending(scene))
    assert len(receiver.received) == 1


async def test_another_dispatcher_takes_over_after_the_lease(
    scene: Scene, receiver: Receiver, dispatching: Dispatching, database: Database
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    await scene.record(stack, resource_event("a"))
    await publish(database, horizon=lambda _: 1.0, limit=10)
    async with database.connection() as conn:
        room = Capacity(free=1, retries=1, each=1, busy={})
        assert len(await claim(conn, urgent=False, capacity=room, lease=0.5)) == 1  # then it dies
    async with dispatching(poll=0.1):
        await until(lambda: none_pending(scene))
    assert [row["attempts"] for row in await scene.deliveries()] == [2]


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
            await until(lambda: none_pending(scene))


async def test_a_result_is_written_after_an_outage(
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
            await until(lambda: none_pending(scene))
    assert len(receiver.received) == 1
