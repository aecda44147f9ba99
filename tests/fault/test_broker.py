"""A broker that dies, hangs, is full or drops connections, and a cluster that loses nodes.

All events arrive, in order."""

import asyncio
import signal
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import aio_pika
import orjson
import pytest
import pytest_asyncio

from tests.integration.amqp.conftest import AmqpClient, running_client, subscribe
from tests.support.changes import thing
from tests.support.program import Json, Program, eventually, program
from tests.support.rabbit import Rabbit, running_cluster, running_rabbit
from tests.support.scripted_type import Thing, World

STACKS, ROUNDS = 4, 3
# A subscription gets no events about itself.
EVENTS = "select id::text from event where type not like 'headgate.subscription.%'"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def broker() -> AsyncIterator[Rabbit]:
    async with running_rabbit() as rabbit:
        yield rabbit


@pytest.fixture
async def damaged_broker(broker: Rabbit) -> Rabbit:
    """A healthy broker, which the test damages."""
    if not broker.is_running:
        broker.start()
        await broker.ready()
    return broker


@pytest.fixture
async def amqp(damaged_broker: Rabbit) -> AsyncIterator[AmqpClient]:
    async with running_client(damaged_broker) as opened:
        yield opened


@pytest.fixture
async def run(
    database_url: str, damaged_broker: Rabbit, amqp: AmqpClient
) -> AsyncIterator[Program]:
    settings = {"channels.amqp.url": damaged_broker.url, "engine.poll": "1s", **amqp.settings,
            "channels.amqp.publish_timeout": "2s", "channels.amqp.max_retry": "2s"}  # fmt: skip
    async with program(database_url, settings, types=[Thing(World())]) as run:
        await subscribe(run, amqp)
        yield run


async def change_stacks(run: Program, number: int) -> None:
    """Change several stacks concurrently."""

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


async def receive_all(run: Program, rabbit: Rabbit, queue: str) -> tuple[int, int, int]:
    """Wait for all events; return the events, those that arrived more than once, and those that
    were lost.

    The events of each stack arrive in order, without the repeated ones.
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

        async def receive_next() -> bool:
            message = await from_queue.get(fail=False)
            if message is not None:
                await message.ack()
                event = orjson.loads(message.body)
                if not seen[event["id"]]:
                    order[event["data"]["stack"]["id"]].append(event["sequence"])
                seen[event["id"]] += 1
            return wanted <= seen.keys()

        async def is_complete() -> bool:
            return await receive_next()

        await eventually(is_complete)
    assert all(of == sorted(of) for of in order.values()), dict(order)
    again = sum(count > 1 for count in seen.values())
    return len(wanted), again, len(wanted - seen.keys())


async def test_a_broker_that_is_killed(
    run: Program, damaged_broker: Rabbit, amqp: AmqpClient
) -> None:
    await change_stacks(run, 0)
    for number in range(1, ROUNDS):
        damaged_broker.kill()
        await change_stacks(run, number)
        damaged_broker.start()
        await damaged_broker.ready()
    print(
        "{} events, {} more than once, {} lost".format(
            *await receive_all(run, damaged_broker, amqp.queue.name)
        )
    )


async def test_a_broker_that_hangs(run: Program, damaged_broker: Rabbit, amqp: AmqpClient) -> None:
    await change_stacks(run, 0)

    async def has_message() -> bool:
        declared = await amqp.channel.declare_queue(amqp.queue.name, passive=True)
        return bool(declared.declaration_result.message_count)

    # A broker that hangs before it has accepted the connection is another fault.
    await eventually(has_message)
    damaged_broker.send_signal(signal.SIGSTOP)
    try:
        await change_stacks(run, 1)

        async def error_is_shown() -> bool:
            return "did not confirm it within 2 s" in await errors(run)

        await eventually(error_is_shown)
    finally:
        damaged_broker.send_signal(signal.SIGCONT)
    print(
        "{} events, {} more than once, {} lost".format(
            *await receive_all(run, damaged_broker, amqp.queue.name)
        )
    )


async def errors(run: Program) -> str:
    _, listed = await run.call("GET", "/subscriptions")
    path = f"/subscriptions/{listed['subscriptions'][0]['id']}/deliveries?state=pending"
    _, response = await run.call("GET", path)
    return " ".join(one["error"] or "" for one in response["deliveries"])


async def test_a_broker_whose_disk_is_full(
    run: Program, damaged_broker: Rabbit, amqp: AmqpClient
) -> None:
    await change_stacks(run, 0)
    damaged_broker.control("set_disk_free_limit", "999999GB")
    try:
        await change_stacks(run, 1)

        async def error_is_shown() -> bool:
            return "did not confirm" in await errors(run)

        await eventually(error_is_shown)
    finally:
        damaged_broker.control("set_disk_free_limit", "10MB")
    print(
        "{} events, {} more than once, {} lost".format(
            *await receive_all(run, damaged_broker, amqp.queue.name)
        )
    )


async def test_connections_that_are_cut(
    run: Program, damaged_broker: Rabbit, amqp: AmqpClient
) -> None:
    await change_stacks(run, 0)
    for number in range(1, ROUNDS):
        async with asyncio.TaskGroup() as group:
            group.create_task(change_stacks(run, number))
            group.create_task(
                asyncio.to_thread(damaged_broker.control, "close_all_connections", "cut")
            )
    print(
        "{} events, {} more than once, {} lost".format(
            *await receive_all(run, damaged_broker, amqp.queue.name)
        )
    )


async def test_a_confirmed_answer_survives_the_death_of_the_broker(
    run: Program, damaged_broker: Rabbit, amqp: AmqpClient
) -> None:
    rules = {"hooks": [{"at": "a", "on": "pre-create"}]}
    await run.create("s", {"a": thing()}, environment=rules)
    notice = await amqp.next_of("headgate.hook.waiting")
    token = orjson.loads(notice.body)["data"]["token"]
    damaged_broker.send_signal(signal.SIGSTOP)
    damaged_broker.send_signal(signal.SIGCONT)
    decision: Json = {"token": token, "decision": "continue"}
    message = aio_pika.Message(
        orjson.dumps(decision),
        correlation_id=notice.correlation_id,
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
    )
    await amqp.channel.default_exchange.publish(message, notice.reply_to or "")
    damaged_broker.kill()
    damaged_broker.start()
    await damaged_broker.ready()
    assert await run.until_ended("s") == "CREATE_COMPLETE"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def nodes() -> AsyncIterator[list[Rabbit]]:
    async with running_cluster(3) as members:
        yield members


@pytest.fixture
async def cluster(nodes: list[Rabbit]) -> list[Rabbit]:
    """A cluster of three nodes, of which the test kills the first ones."""
    for node in nodes:
        if not node.is_running:
            node.start()
    for node in nodes:
        await node.ready()
    return nodes


@pytest.fixture
async def subscriber(cluster: list[Rabbit]) -> AsyncIterator[AmqpClient]:
    """A subscriber with a quorum queue, connected to the last node."""
    async with running_client(cluster[-1], "quorum") as opened:
        yield opened


@pytest.fixture
async def cluster_run(
    database_url: str, cluster: list[Rabbit], subscriber: AmqpClient
) -> AsyncIterator[Program]:
    async with running_program(database_url, cluster, subscriber) as run:
        await subscribe(run, subscriber)
        yield run


def running_program(
    database_url: str, cluster: list[Rabbit], subscriber: AmqpClient
) -> AbstractAsyncContextManager[Program]:
    """A program with the nodes of the cluster in order; it connects to the first one first."""
    settings = {"channels.amqp.url": [node.url for node in cluster], "engine.poll": "1s",
            **subscriber.settings,
            "channels.amqp.publish_timeout": "2s", "channels.amqp.max_retry": "2s"}  # fmt: skip
    return program(database_url, settings, types=[Thing(World())])


async def test_a_node_of_a_cluster_that_is_killed(
    cluster_run: Program, cluster: list[Rabbit], subscriber: AmqpClient
) -> None:
    """The node that the server is connected to, twice, while stacks change."""
    await change_stacks(cluster_run, 0)
    for number, node in enumerate(cluster[:2], start=1):
        async with asyncio.TaskGroup() as group:
            group.create_task(change_stacks(cluster_run, number))
            group.create_task(asyncio.to_thread(node.kill))
        await change_stacks(cluster_run, number + 2)  # two nodes are left
        node.start()
        await node.ready()
    counts = await receive_all(cluster_run, cluster[-1], subscriber.queue.name)
    print("{} events, {} more than once, {} lost".format(*counts))


async def test_a_confirmed_answer_survives_the_death_of_a_node(
    database_url: str, cluster: list[Rabbit], subscriber: AmqpClient
) -> None:
    """The answer queue is on the first node, too, when it is killed before a server reads it."""
    async with running_program(database_url, cluster, subscriber) as run:
        await subscribe(run, subscriber)
        rules = {"hooks": [{"at": "a", "on": "pre-create"}]}
        await run.create("s", {"a": thing()}, environment=rules)
        notice = await subscriber.next_of("headgate.hook.waiting")
    answer = {"token": orjson.loads(notice.body)["data"]["token"], "decision": "continue"}
    to = notice.reply_to or ""
    await subscriber.publish(notice.correlation_id, answer, to=to, reply=False)
    cluster[0].kill()
    async with running_program(database_url, cluster, subscriber) as run:
        assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_a_cluster_without_a_majority(
    cluster_run: Program, cluster: list[Rabbit], subscriber: AmqpClient
) -> None:
    """Events wait with the reason until a second node is back; stacks change meanwhile."""
    await change_stacks(cluster_run, 0)
    for node in cluster[:2]:
        node.kill()
    await change_stacks(cluster_run, 1)

    async def error_is_shown() -> bool:
        return "did not confirm" in await errors(cluster_run)

    await eventually(error_is_shown)
    cluster[0].start()
    await cluster[0].ready()
    counts = await receive_all(cluster_run, cluster[-1], subscriber.queue.name)
    print("{} events, {} more than once, {} lost".format(*counts))
