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
from tests.integration.channels.conftest import RunDispatcher
from tests.integration.conftest import DatabaseOutage
from tests.support.deliveries import all_ended, claim_deliveries, delivered
from tests.support.engine_rows import EngineRows, resource_event
from tests.support.receiver import Received, Receiver, until


async def test_an_error_of_a_channel_is_a_failed_attempt(
    engine_rows: EngineRows, run_dispatcher: RunDispatcher
) -> None:
    class Broken:
        name = "broken"

        async def check_target(self, target: str) -> None:
            raise NotImplementedError

        async def deliver(self, message: EventMessage, endpoint: Endpoint) -> Delivered | Failed:
            raise RuntimeError("a bug")

    stack = await engine_rows.stack()
    await engine_rows.subscription("x", channel="broken", events=["headgate.resource.*"])
    await engine_rows.subscription("x", channel="none", events=["headgate.resource.*"])
    await engine_rows.record(stack, resource_event("a"))
    async with run_dispatcher(channels={"broken": Broken()}):
        await until(lambda: all_ended(engine_rows))
    rows = await engine_rows.deliveries()
    internal, unknown = sorted(row["error"].partition(";")[0] for row in rows)
    assert internal.startswith("internal error ")
    assert unknown == 'there is no channel "none" here'


async def test_a_dispatcher_restarts_after_an_internal_error(
    engine_rows: EngineRows,
    receiver: Receiver,
    run_dispatcher: RunDispatcher,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = [RuntimeError("a bug")]

    async def fail_once(*args: Any, **named: Any) -> Any:
        if left:
            raise left.pop()
        return await publish(*args, **named)

    monkeypatch.setattr("channels.dispatcher.publish", fail_once)
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url)
    await engine_rows.record(stack, resource_event("a"))
    with capture_logs() as logs:
        async with run_dispatcher(poll=0.1):
            await until(lambda: all_ended(engine_rows))
    assert not logs  # it was published in two parts


async def test_a_result_that_cannot_be_written_fails_alone(
    engine_rows: EngineRows, database: Database
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription("http://127.0.0.1:1/", ordered=False)
    await engine_rows.record(stack, *(resource_event(f"r{number}") for number in range(3)))
    await publish(database, horizon=lambda _: 1.0, limit=10)
    claimed = await claim_deliveries(database)
    bad = replace(delivered(claimed[1]), response="\x00")
    writer = ResultWriter(database, disable_after=9)
    with capture_logs() as logs:
        running = asyncio.create_task(writer.run())
        async with asyncio.timeout(20):
            wanted = (delivered(claimed[0]), bad, delivered(claimed[2]))
            await asyncio.gather(*map(writer.write, wanted))
        running.cancel()
        await asyncio.wait([running])
    assert [row["state"] for row in await engine_rows.deliveries()] == [
        "delivered",
        "dead",
        "delivered",
    ]
    (line,) = [one for one in logs if one["event"] == "delivery_results.failed"]
    assert line["delivery"] == str(bad.id)
    assert line["error_id"] in (await engine_rows.deliveries())[1]["error"]


async def test_a_dispatcher_survives_an_outage_of_the_database(
    engine_rows: EngineRows,
    receiver: Receiver,
    run_dispatcher: RunDispatcher,
    database_outage: DatabaseOutage,
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url)
    with capture_logs() as logs:
        async with run_dispatcher(poll=0.1):
            await engine_rows.record(stack, resource_event("a"))
            await until(lambda: receiver.received)
            async with database_outage():
                for event in ("delivery_queue.unavailable", "publish.unavailable"):
                    await until(lambda event=event: any(one["event"] == event for one in logs))
            await engine_rows.record(stack, resource_event("b"))
            await until(lambda: len(receiver.received) >= 2)
            await until(lambda: all_ended(engine_rows))


async def test_an_attempt_may_last_longer_than_its_lease(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url)
    await engine_rows.record(stack, resource_event("a"))
    go = asyncio.Event()

    async def slow(_: Received) -> web.StreamResponse:
        await go.wait()
        return web.Response()

    receiver.handle = slow
    async with run_dispatcher(lease=0.3, poll=0.1), run_dispatcher(lease=0.3, poll=0.1):
        await until(lambda: receiver.in_progress)
        since = await engine_rows.value("select next_at from delivery")
        later = "select next_at > $1::timestamptz + interval '1 second' from delivery"
        await until(lambda: engine_rows.value(later, since))
        go.set()
        await until(lambda: all_ended(engine_rows))
    assert len(receiver.received) == 1


async def test_another_dispatcher_takes_over_after_the_lease(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher, database: Database
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url)
    await engine_rows.record(stack, resource_event("a"))
    await publish(database, horizon=lambda _: 1.0, limit=10)
    async with database.connection() as conn:
        room = Capacity(free=1, retries=1, each=1, busy={})
        assert (
            len(await claim(conn, urgent=False, capacity=room, lease=0.5)) == 1
        )  # the first dispatcher dies
    async with run_dispatcher(poll=0.1):
        await until(lambda: all_ended(engine_rows))
    assert [row["attempts"] for row in await engine_rows.deliveries()] == [2]


async def test_a_dispatcher_waits_for_its_database(
    engine_rows: EngineRows,
    receiver: Receiver,
    run_dispatcher: RunDispatcher,
    database_outage: DatabaseOutage,
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url)
    await engine_rows.record(stack, resource_event("a"))
    with capture_logs() as logs:
        async with AsyncExitStack() as running:
            async with database_outage():
                await running.enter_async_context(run_dispatcher(poll=0.1))
                await until(lambda: any(one["event"] == "dispatcher.unavailable" for one in logs))
            await until(lambda: all_ended(engine_rows))


async def test_a_result_is_written_after_an_outage(
    engine_rows: EngineRows,
    receiver: Receiver,
    run_dispatcher: RunDispatcher,
    database_outage: DatabaseOutage,
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url)
    go = asyncio.Event()

    async def slow(_: Received) -> web.StreamResponse:
        await go.wait()
        return web.Response()

    receiver.handle = slow
    await engine_rows.record(stack, resource_event("a"))
    with capture_logs() as logs:
        async with run_dispatcher():
            await until(lambda: receiver.in_progress)
            async with database_outage():
                go.set()
                await until(
                    lambda: any(one["event"] == "delivery_results.unavailable" for one in logs)
                )
            await until(lambda: all_ended(engine_rows))
    assert len(receiver.received) == 1
