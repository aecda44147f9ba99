"""Runs: deliveries of a stack that are claimed together and attempted in order."""

import asyncio
from dataclasses import replace

from aiohttp import web

from channels.attempt import unattempted_result
from channels.retry import RetryPolicy
from channels.store.claim import renew, runs
from channels.store.delivery_results import write_results
from channels.store.publish import publish
from channels.store.records import DeliveryState
from engine.store.database import Database
from tests.integration.channels.conftest import RunDispatcher
from tests.support.deliveries import CAPACITY, all_ended, claim_deliveries, delivered, result_of
from tests.support.engine_rows import EngineRows, StackRow, resource_event
from tests.support.receiver import Received, Receiver, until

FOLLOWING = replace(CAPACITY, behind=3)


async def _published(engine_rows: EngineRows, stack: StackRow, count: int) -> None:
    await engine_rows.record(stack, *(resource_event(f"r{number}") for number in range(count)))
    await publish(engine_rows.database, horizon=lambda _: 1.0, limit=100)


async def test_following_deliveries_are_claimed_with_the_first(
    engine_rows: EngineRows, database: Database
) -> None:
    stacks = [await engine_rows.stack() for _ in range(2)]
    await engine_rows.subscription("http://127.0.0.1:1/")
    for stack in stacks:
        await _published(engine_rows, stack, 6)
    claimed = await claim_deliveries(database, FOLLOWING)
    assert [[delivery.key.sequence for delivery in run] for run in runs(claimed)] == [
        [1, 2, 3, 4]
    ] * 2
    assert await claim_deliveries(database, FOLLOWING) == []
    await write_results(database, [delivered(delivery) for delivery in claimed], disable_after=9)
    claimed = await claim_deliveries(database, FOLLOWING)
    assert [[delivery.key.sequence for delivery in run] for run in runs(claimed)] == [[5, 6]] * 2


async def test_unordered_deliveries_are_independent(
    engine_rows: EngineRows, database: Database
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription("http://127.0.0.1:1/", ordered=False)
    await _published(engine_rows, stack, 3)
    assert [len(run) for run in runs(await claim_deliveries(database, FOLLOWING))] == [1, 1, 1]


async def test_no_run_with_a_rate_limit_or_after_a_failed_attempt(
    engine_rows: EngineRows, database: Database
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription("http://127.0.0.1:1/")
    await _published(engine_rows, stack, 3)
    (delivery,) = await claim_deliveries(database, replace(FOLLOWING, rate_limited=["webhook"]))
    await write_results(database, [result_of(delivery, DeliveryState.PENDING)], disable_after=9)
    (repeated,) = await claim_deliveries(database, FOLLOWING)
    assert (repeated.key.sequence, repeated.attempts) == (1, 2)


async def test_unattempted_deliveries_are_unchanged(
    engine_rows: EngineRows, database: Database
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription("http://127.0.0.1:1/")
    await _published(engine_rows, stack, 4)
    first, second, third, fourth = await claim_deliveries(database, FOLLOWING)
    results = [
        delivered(first),
        result_of(second, DeliveryState.PENDING),
        unattempted_result(third),
    ]
    await write_results(database, [*results, unattempted_result(fourth)], disable_after=9)
    rows = {row["sequence"]: row for row in await engine_rows.deliveries()}
    assert [(rows[n]["state"], rows[n]["attempts"], rows[n]["next_at"] is None)
            for n in (1, 2, 3, 4)] == [
        ("delivered", 1, True), ("pending", 1, False), ("pending", 0, True), ("pending", 0, True),
    ]  # fmt: skip
    (repeated,) = await claim_deliveries(database, FOLLOWING)
    assert repeated.key.sequence == 2


async def test_released_deliveries_are_not_renewed(
    engine_rows: EngineRows, database: Database
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription("http://127.0.0.1:1/")
    await _published(engine_rows, stack, 3)
    first, second, third = await claim_deliveries(database, FOLLOWING)
    results = [result_of(first, DeliveryState.PENDING), unattempted_result(second)]
    await write_results(database, results, disable_after=9)
    before = await engine_rows.deliveries()
    async with database.connection() as conn:
        await renew(conn, [first.key, second.key, third.key], lease=3600.0)
    after = await engine_rows.deliveries()
    assert [one["next_at"] for one in after[:2]] == [one["next_at"] for one in before[:2]]
    assert after[2]["next_at"] > before[2]["next_at"]


async def test_after_a_dead_delivery_the_rest_is_released(
    engine_rows: EngineRows, database: Database
) -> None:
    """The first delivery is dead and the others were released: the next one becomes due."""
    stack = await engine_rows.stack()
    await engine_rows.subscription("http://127.0.0.1:1/")
    await _published(engine_rows, stack, 3)
    first, *rest = await claim_deliveries(database, FOLLOWING)
    await write_results(database, [result_of(first, DeliveryState.DEAD)], disable_after=9)
    await write_results(
        database, [unattempted_result(delivery) for delivery in rest], disable_after=9
    )
    claimed = await claim_deliveries(database, FOLLOWING)
    assert [delivery.key.sequence for delivery in claimed][:2] == [2, 3]


async def test_the_run_of_a_killed_dispatcher_restarts_with_its_first_delivery(
    engine_rows: EngineRows, database: Database
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription("http://127.0.0.1:1/")
    await _published(engine_rows, stack, 4)
    first, *_ = await claim_deliveries(database, FOLLOWING)
    await write_results(database, [delivered(first)], disable_after=9)
    await engine_rows.value(
        "update delivery set next_at = now() - interval '1 h' where next_at > now()"
    )
    for sequence in (2, 3, 4):
        (delivery,) = await claim_deliveries(database, FOLLOWING)
        assert delivery.key.sequence == sequence
        await write_results(database, [delivered(delivery)], disable_after=9)


async def test_a_run_ends_before_a_delivery_that_is_claimed(
    engine_rows: EngineRows, database: Database
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription("http://127.0.0.1:1/")
    await _published(engine_rows, stack, 4)
    async with database.transaction() as conn:
        await conn.execute("select from delivery where sequence = 3 for update")
        async with asyncio.timeout(10):
            claimed = await claim_deliveries(database, FOLLOWING)
    assert [delivery.key.sequence for delivery in claimed] == [1, 2]


async def test_a_failure_in_the_middle_keeps_the_order(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url)
    receiver.respond_with_statuses(200, 200, 500, 200, 503, 200)
    await engine_rows.record(stack, *(resource_event(f"r{number}") for number in range(6)))
    async with run_dispatcher(retry=RetryPolicy(attempts=5, first=0.02, max_pause=0.02)):
        await until(lambda: all_ended(engine_rows))
    tried = [event["sequence"] for event in receiver.events]
    assert tried == [1, 2, 3, 3, 4, 4, 5, 6]
    attempts = [row["attempts"] for row in await engine_rows.deliveries()]
    assert attempts == [1, 1, 2, 2, 1, 1]


async def test_a_stack_with_many_events_needs_few_transactions(
    engine_rows: EngineRows, database: Database, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url)
    await engine_rows.record(stack, *(resource_event(f"r{number}") for number in range(100)))
    async with run_dispatcher(behind=24):
        await until(lambda: all_ended(engine_rows))
    assert [event["sequence"] for event in receiver.events] == list(range(1, 101))
    # Each write of results is a transaction, so the number of distinct xmin counts them.
    assert await engine_rows.value("select count(distinct xmin::text) from delivery") < 60


async def test_results_are_written_during_a_slow_attempt(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url)
    await engine_rows.record(stack, resource_event("a"), resource_event("b"))

    async def second_hangs(one: Received) -> web.StreamResponse:
        if one.event["sequence"] == 2:
            await asyncio.Event().wait()
        return web.Response()

    receiver.handle = second_hangs
    async with run_dispatcher(drain=0.05):
        await until(lambda: len(receiver.received) == 2)
        await until(lambda: engine_rows.value("select 1 from delivery where state = 'delivered'"))
        assert receiver.in_progress == 1


async def test_a_stop_releases_unattempted_deliveries(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url)
    await engine_rows.record(stack, *(resource_event(f"r{number}") for number in range(5)))
    go = receiver.respond_when_set()
    async with run_dispatcher(behind=24, drain=20.0):
        await until(lambda: receiver.in_progress)
        asyncio.get_running_loop().call_later(0.2, go.set)
    assert [(row["state"], row["attempts"]) for row in await engine_rows.deliveries()] == [
        ("delivered", 1), *[("pending", 0)] * 4,
    ]  # fmt: skip
    async with run_dispatcher():
        await until(lambda: all_ended(engine_rows))
    assert [event["sequence"] for event in receiver.events] == [1, 2, 3, 4, 5]
