"""Runs: deliveries of a stack that are claimed together and attempted in order."""

import asyncio
from dataclasses import replace

from aiohttp import web

from channels.attempt import unattempted
from channels.retry import RetryPolicy
from channels.store.claim import renew, runs
from channels.store.delivery_results import write_results
from channels.store.publish import publish
from channels.store.records import DeliveryState
from engine.store.database import Database
from tests.integration.channels.conftest import Dispatching
from tests.support.deliveries import CAPACITY, claim_ordinary, delivered, none_pending, settled
from tests.support.events import Scene, StackRow, resource_event
from tests.support.receiver import Received, Receiver, until

BEHIND = replace(CAPACITY, behind=3)


async def _published(scene: Scene, stack: StackRow, count: int) -> None:
    await scene.record(stack, *(resource_event(f"r{number}") for number in range(count)))
    await publish(scene.database, horizon=lambda _: 1.0, limit=100)


async def test_following_deliveries_are_claimed_with_the_first(
    scene: Scene, database: Database
) -> None:
    stacks = [await scene.stack() for _ in range(2)]
    await scene.subscription("http://127.0.0.1:1/")
    for stack in stacks:
        await _published(scene, stack, 6)
    claimed = await claim_ordinary(database, BEHIND)
    assert [[delivery.key.sequence for delivery in run] for run in runs(claimed)] == [
        [1, 2, 3, 4]
    ] * 2
    assert await claim_ordinary(database, BEHIND) == []
    await write_results(database, [delivered(delivery) for delivery in claimed], disable_after=9)
    claimed = await claim_ordinary(database, BEHIND)
    assert [[delivery.key.sequence for delivery in run] for run in runs(claimed)] == [[5, 6]] * 2


async def test_unordered_deliveries_are_independent(scene: Scene, database: Database) -> None:
    stack = await scene.stack()
    await scene.subscription("http://127.0.0.1:1/", ordered=False)
    await _published(scene, stack, 3)
    assert [len(run) for run in runs(await claim_ordinary(database, BEHIND))] == [1, 1, 1]


async def test_no_run_with_a_rate_limit_or_after_a_failed_attempt(
    scene: Scene, database: Database
) -> None:
    stack = await scene.stack()
    await scene.subscription("http://127.0.0.1:1/")
    await _published(scene, stack, 3)
    (delivery,) = await claim_ordinary(database, replace(BEHIND, paced=["webhook"]))
    await write_results(database, [settled(delivery, DeliveryState.PENDING)], disable_after=9)
    (again,) = await claim_ordinary(database, BEHIND)
    assert (again.key.sequence, again.attempts) == (1, 2)


async def test_unattempted_deliveries_are_unchanged(scene: Scene, database: Database) -> None:
    stack = await scene.stack()
    await scene.subscription("http://127.0.0.1:1/")
    await _published(scene, stack, 4)
    first, second, third, fourth = await claim_ordinary(database, BEHIND)
    results = [delivered(first), settled(second, DeliveryState.PENDING), unattempted(third)]
    await write_results(database, [*results, unattempted(fourth)], disable_after=9)
    rows = {row["sequence"]: row for row in await scene.deliveries()}
    assert [(rows[n]["state"], rows[n]["attempts"], rows[n]["next_at"] is None)
            for n in (1, 2, 3, 4)] == [
        ("delivered", 1, True), ("pending", 1, False), ("pending", 0, True), ("pending", 0, True),
    ]  # fmt: skip
    (again,) = await claim_ordinary(database, BEHIND)
    assert again.key.sequence == 2


async def test_released_deliveries_are_not_renewed(scene: Scene, database: Database) -> None:
    stack = await scene.stack()
    await scene.subscription("http://127.0.0.1:1/")
    await _published(scene, stack, 3)
    first, second, third = await claim_ordinary(database, BEHIND)
    results = [settled(first, DeliveryState.PENDING), unattempted(second)]
    await write_results(database, results, disable_after=9)
    before = await scene.deliveries()
    async with database.connection() as conn:
        await renew(conn, [first.key, second.key, third.key], lease=3600.0)
    after = await scene.deliveries()
    assert [one["next_at"] for one in after[:2]] == [one["next_at"] for one in before[:2]]
    assert after[2]["next_at"] > before[2]["next_at"]


async def test_after_a_dead_delivery_the_rest_is_released(scene: Scene, database: Database) -> None:
    """The first delivery is dead and the others were released: the next one becomes due."""
    stack = await scene.stack()
    await scene.subscription("http://127.0.0.1:1/")
    await _published(scene, stack, 3)
    first, *rest = await claim_ordinary(database, BEHIND)
    await write_results(database, [settled(first, DeliveryState.DEAD)], disable_after=9)
    await write_results(database, [unattempted(delivery) for delivery in rest], disable_after=9)
    claimed = await claim_ordinary(database, BEHIND)
    assert [delivery.key.sequence for delivery in claimed][:2] == [2, 3]


async def test_the_run_of_a_killed_dispatcher_restarts_with_its_first_delivery(
    scene: Scene, database: Database
) -> None:
    stack = await scene.stack()
    await scene.subscription("http://127.0.0.1:1/")
    await _published(scene, stack, 4)
    first, *_ = await claim_ordinary(database, BEHIND)
    await write_results(database, [delivered(first)], disable_after=9)
    await scene.value("update delivery set next_at = now() - interval '1 h' where next_at > now()")
    for sequence in (2, 3, 4):
        (delivery,) = await claim_ordinary(database, BEHIND)
        assert delivery.key.sequence == sequence
        await write_results(database, [delivered(delivery)], disable_after=9)


async def test_a_run_ends_before_a_delivery_that_is_claimed(
    scene: Scene, database: Database
) -> None:
    stack = await scene.stack()
    await scene.subscription("http://127.0.0.1:1/")
    await _published(scene, stack, 4)
    async with database.transaction() as conn:
        await conn.execute("select from delivery where sequence = 3 for update")
        async with asyncio.timeout(10):
            claimed = await claim_ordinary(database, BEHIND)
    assert [delivery.key.sequence for delivery in claimed] == [1, 2]


async def test_a_failure_in_the_middle_keeps_the_order(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    receiver.answers(200, 200, 500, 200, 503, 200)
    await scene.record(stack, *(resource_event(f"r{number}") for number in range(6)))
    async with dispatching(retry=RetryPolicy(attempts=5, first=0.02, longest=0.02)):
        await until(lambda: none_pending(scene))
    tried = [event["sequence"] for event in receiver.events]
    assert tried == [1, 2, 3, 3, 4, 4, 5, 6]
    attempts = [row["attempts"] for row in await scene.deliveries()]
    assert attempts == [1, 1, 2, 2, 1, 1]


async def test_a_stack_with_many_events_needs_few_transactions(
    scene: Scene, database: Database, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    await scene.record(stack, *(resource_event(f"r{number}") for number in range(100)))
    async with dispatching(behind=24):
        await until(lambda: none_pending(scene))
    assert [event["sequence"] for event in receiver.events] == list(range(1, 101))
    # Each write of results is a transaction; the distinct xmin of the rows count them.
    assert await scene.value("select count(distinct xmin::text) from delivery") < 60


async def test_results_are_written_during_a_slow_attempt(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    await scene.record(stack, resource_event("a"), resource_event("b"))

    async def second_hangs(one: Received) -> web.StreamResponse:
        if one.event["sequence"] == 2:
            await asyncio.Event().wait()
        return web.Response()

    receiver.handle = second_hangs
    async with dispatching(drain=0.05):
        await until(lambda: len(receiver.received) == 2)
        await until(lambda: scene.value("select 1 from delivery where state = 'delivered'"))
        assert receiver.under_way == 1


async def test_a_stop_releases_unattempted_deliveries(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    await scene.record(stack, *(resource_event(f"r{number}") for number in range(5)))
    go = receiver.holds()
    async with dispatching(behind=24, drain=20.0):
        await until(lambda: receiver.under_way)
        asyncio.get_running_loop().call_later(0.2, go.set)
    assert [(row["state"], row["attempts"]) for row in await scene.deliveries()] == [
        ("delivered", 1), *[("pending", 0)] * 4,
    ]  # fmt: skip
    async with dispatching():
        await until(lambda: none_pending(scene))
    assert [event["sequence"] for event in receiver.events] == [1, 2, 3, 4, 5]
