"""A broker that dies, hangs, is full or cuts its connections: everything arrives, in order."""

import asyncio
import signal
from collections import defaultdict
from collections.abc import AsyncIterator

import aio_pika
import orjson
import pytest
import pytest_asyncio

from tests.integration.amqp.conftest import Post, post, subscribe
from tests.support.changes import thing
from tests.support.program import Json, Program, eventually, program
from tests.support.rabbit import Rabbit, running_rabbit
from tests.support.things import Thing, World

STACKS, ROUNDS = 4, 3
# A subscription is not told of itself.
EVENTS = "select id::text from event where type not like 'headgate.subscription.%'"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def broker() -> AsyncIterator[Rabbit]:
    async with running_rabbit() as rabbit:
        yield rabbit


@pytest.fixture
async def own(broker: Rabbit) -> Rabbit:
    """A broker that is well, and will suffer."""
    if not broker.runs:
        broker.start()
        await broker.ready()
    return broker


@pytest.fixture
async def box(own: Rabbit) -> AsyncIterator[Post]:
    async with post(own) as made:
        yield made


@pytest.fixture
async def run(database_url: str, own: Rabbit, box: Post) -> AsyncIterator[Program]:
    said = {"channels.amqp.url": own.url, "engine.poll": "1s", **box.settings,
            "channels.amqp.publish_timeout": "2s", "channels.amqp.max_retry": "2s"}  # fmt: skip
    async with program(database_url, said, types=[Thing(World())]) as made:
        await subscribe(made, box)
        yield made


async def busy(run: Program, number: int) -> None:
    """Changes of several stacks at the same time."""

    async def one(stack: int) -> None:
        name = f"s{stack}"
        if number == 0:
            await run.create(name, {"a": thing(), "b": thing(depends_on="a")})
        else:
            await run.update(name, tags=f"round{number}")
        await run.until_ended(name)

    async with asyncio.TaskGroup() as group:
        for stack in range(STACKS):
            group.create_task(one(stack))


async def arrived(run: Program, rabbit: Rabbit, queue: str) -> tuple[int, int, int]:
    """Wait for everything; events, those that came more than once, those that were lost.

    Each stack's events come in order, the repeated ones left out.
    """
    async with run.database.connection() as conn:
        rows = await conn.fetch(EVENTS)
    wanted: set[str] = {row["id"] for row in rows}
    seen: dict[str, int] = defaultdict(int)
    order: dict[str, list[int]] = defaultdict(list)
    connection = await aio_pika.connect(rabbit.url)
    async with connection:
        channel = await connection.channel()
        from_queue = await channel.get_queue(queue)

        async def more() -> bool:
            message = await from_queue.get(fail=False)
            if message is not None:
                await message.ack()
                event = orjson.loads(message.body)
                if not seen[event["id"]]:
                    order[event["data"]["stack"]["id"]].append(event["sequence"])
                seen[event["id"]] += 1
            return wanted <= seen.keys()

        async def all_there() -> bool:
            return await more()

        await eventually(all_there)
    assert all(of == sorted(of) for of in order.values()), dict(order)
    again = sum(count > 1 for count in seen.values())
    return len(wanted), again, len(wanted - seen.keys())


async def test_a_broker_that_is_killed(run: Program, own: Rabbit, box: Post) -> None:
    await busy(run, 0)
    for number in range(1, ROUNDS):
        own.kill()
        await busy(run, number)
        own.start()
        await own.ready()
    print("{} events, {} more than once, {} lost".format(*await arrived(run, own, box.queue.name)))


async def test_a_broker_that_hangs(run: Program, own: Rabbit, box: Post) -> None:
    await busy(run, 0)
    own.halt(signal.SIGSTOP)
    try:
        await busy(run, 1)

        async def told() -> bool:
            return "did not confirm it within 2 s" in await errors(run)

        await eventually(told)
    finally:
        own.halt(signal.SIGCONT)
    print("{} events, {} more than once, {} lost".format(*await arrived(run, own, box.queue.name)))


async def errors(run: Program) -> str:
    _, listed = await run.call("GET", "/subscriptions")
    path = f"/subscriptions/{listed['subscriptions'][0]['id']}/deliveries?state=pending"
    _, said = await run.call("GET", path)
    return " ".join(one["error"] or "" for one in said["deliveries"])


async def test_a_broker_whose_disk_is_full(run: Program, own: Rabbit, box: Post) -> None:
    await busy(run, 0)
    own.control("set_disk_free_limit", "999999GB")
    try:
        await busy(run, 1)

        async def told() -> bool:
            return "did not confirm" in await errors(run)

        await eventually(told)
    finally:
        own.control("set_disk_free_limit", "10MB")
    print("{} events, {} more than once, {} lost".format(*await arrived(run, own, box.queue.name)))


async def test_connections_that_are_cut(run: Program, own: Rabbit, box: Post) -> None:
    await busy(run, 0)
    for number in range(1, ROUNDS):
        async with asyncio.TaskGroup() as group:
            group.create_task(busy(run, number))
            group.create_task(asyncio.to_thread(own.control, "close_all_connections", "cut"))
    print("{} events, {} more than once, {} lost".format(*await arrived(run, own, box.queue.name)))


async def test_an_answer_that_was_sent_is_not_lost_with_the_broker(
    run: Program, own: Rabbit, box: Post
) -> None:
    rules = {"hooks": [{"at": "a", "on": "pre-create"}]}
    await run.create("s", {"a": thing()}, environment=rules)
    notice = await box.next_of("headgate.hook.waiting")
    token = orjson.loads(notice.body)["data"]["token"]
    own.halt(signal.SIGSTOP)
    own.halt(signal.SIGCONT)
    said: Json = {"token": token, "decision": "continue"}
    message = aio_pika.Message(
        orjson.dumps(said),
        correlation_id=notice.correlation_id,
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
    )
    await box.channel.default_exchange.publish(message, notice.reply_to or "")
    own.kill()
    own.start()
    await own.ready()
    assert await run.until_ended("s") == "CREATE_COMPLETE"
