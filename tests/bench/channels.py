"""Deliveries: how many a second, next to the bare client; and how soon one comes."""

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from ipaddress import ip_network
from typing import Any
from uuid import UUID, uuid4

import aio_pika
import aiohttp
import orjson

from channels.amqp.broker import Broker, BrokerSettings
from channels.amqp.publisher import AmqpChannel
from channels.contract import Channel
from channels.dispatcher import Dispatcher, DispatcherSettings
from channels.webhook import sign
from channels.webhook.client import WebhookChannel, WebhookSettings
from engine.hooks.automation import Automation
from engine.store.database import Database, open_database
from hub.program.app import collect_seldom
from tests.support.events import Scene, resource_event
from tests.support.keys import A_SEALER
from tests.support.postgres import TestServer
from tests.support.program import free_port
from tests.support.rabbit import Rabbit, running_rabbit

STACKS, EVENTS, AT_ONCE, SINGLE, RUNS = 800, 25, 20, 200, 3
WEBHOOKS = WebhookSettings(allow=(ip_network("127.0.0.0/8"),))
EXCHANGE = "headgate.bench"


async def deliveries(postgres: TestServer) -> None:
    collect_seldom()  # as the program does
    async with running_rabbit() as rabbit, sink() as url:
        title = f"deliveries, {STACKS * EVENTS:,} of {STACKS} stacks in order"
        print(f"{title:<56}/s    bare/s   share")
        bare = await bare_webhooks(url)
        rate = await median(lambda: by_webhook(postgres, url))
        print(f"  webhook{rate:>46,.0f}{bare:>10,.0f}{rate / bare:>8.0%}")
        bare = await bare_messages(rabbit)
        rate = await median(lambda: by_amqp(postgres, rabbit))
        print(f"  AMQP, confirmed{rate:>38,.0f}{bare:>10,.0f}{rate / bare:>8.0%}")
        print("\nfrom the commit to the receiver, one at a time       median        p99")
        for name, hanging in (("idle", False), ("another target hangs", True)):
            took = await alone(postgres, url, hanging=hanging)
            p99 = took[int(len(took) * 0.99) - 1]
            print(f"  {name:<28}{statistics.median(took) * 1000:>25.1f} ms{p99 * 1000:>8.1f} ms")
    print()


async def median(run: Callable[[], Awaitable[float]]) -> float:
    return statistics.median([await run() for _ in range(RUNS)])


@asynccontextmanager
async def sink() -> AsyncIterator[str]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "tests.bench.sink", str(port)])
    url = f"http://127.0.0.1:{port}/"
    try:
        async with asyncio.timeout(20):
            while True:
                try:
                    async with aiohttp.ClientSession() as session, session.get(url):
                        break
                except aiohttp.ClientError:
                    await asyncio.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait()


@asynccontextmanager
async def dispatching(
    database: Database, channels: dict[str, Channel]
) -> AsyncIterator[asyncio.Task[None]]:
    async def nobody(*_: Any) -> str | None:
        return None

    async def entitle(one: Automation) -> Automation:
        return one

    dispatcher = Dispatcher(
        database,
        channels,
        settings=DispatcherSettings(each=AT_ONCE),
        token_for=lambda hook_id, _: str(hook_id),
        entitle=entitle,
        public_url="http://hub.test",
        answer=nobody,
        random=lambda: 0.5,
    )
    stop = asyncio.Event()
    task = asyncio.create_task(dispatcher.run(stop))
    try:
        yield task
    finally:
        stop.set()
        await task


@asynccontextmanager
async def scene_of(postgres: TestServer) -> AsyncIterator[Scene]:
    async with postgres.new_database() as url:
        database = await open_database(url, sealer=A_SEALER)
        try:
            yield Scene(database)
        finally:
            await database.close()


async def fill(scene: Scene) -> None:
    """Events that wait for a dispatcher."""
    for _ in range(STACKS):
        stack = await scene.stack()
        await scene.record(stack, *(resource_event(f"r{n}") for n in range(EVENTS)))


async def all_delivered(scene: Scene) -> float:
    """When, by the machine's clock."""
    query = "select count(*) from delivery where state = 'delivered'"
    while await scene.value(query) < STACKS * EVENTS:
        await asyncio.sleep(0.02)
    return time.time()


async def by_webhook(postgres: TestServer, url: str) -> float:
    async with scene_of(postgres) as scene, WebhookChannel(WEBHOOKS) as channel:
        await scene.subscription(url)
        await fill(scene)
        began = time.time()
        async with dispatching(scene.database, {"webhook": channel}):
            return STACKS * EVENTS / (await all_delivered(scene) - began)


async def by_amqp(postgres: TestServer, rabbit: Rabbit) -> float:
    broker, stop = Broker(BrokerSettings([rabbit.url], [EXCHANGE])), asyncio.Event()
    async with scene_of(postgres) as scene, asyncio.TaskGroup() as group:
        group.create_task(broker.run(stop))
        await scene.subscription(EXCHANGE, channel="amqp")
        await fill(scene)
        await ready(broker)
        began = time.time()
        channel = AmqpChannel(broker, ["headgate.*"])
        async with dispatching(scene.database, {"amqp": channel}):
            rate = STACKS * EVENTS / (await all_delivered(scene) - began)
        stop.set()
    return rate


async def ready(broker: Broker) -> None:
    async with asyncio.timeout(10):
        while not broker.ready:
            await asyncio.sleep(0.01)


def a_body() -> bytes:
    """As large as an event of these is."""
    return orjson.dumps({"id": str(uuid4()), "data": {"text": "x" * 700}})


async def bare_webhooks(url: str) -> float:
    """The same client and signature, and nothing behind it: the machine's limit."""
    left, secret = iter(range(STACKS * EVENTS)), sign.secret_of(bytes(24))

    async def worker(session: aiohttp.ClientSession) -> None:
        for _ in left:
            body, name = a_body(), str(uuid4())
            headers = sign.headers(name, datetime.now(UTC), body, (secret,))
            async with session.post(url, data=body, headers=headers) as answer:
                await answer.read()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(worker(session))
        return STACKS * EVENTS / (time.perf_counter() - began)


async def bare_messages(rabbit: Rabbit) -> float:
    left = iter(range(STACKS * EVENTS))
    connection = await aio_pika.connect(rabbit.url)
    async with connection:
        channel = await connection.channel()
        await channel.declare_queue("bench", durable=True, arguments={"x-queue-type": "quorum"})

        async def worker() -> None:
            for _ in left:
                message = aio_pika.Message(a_body(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
                await channel.default_exchange.publish(message, "bench")

        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(worker())
        return STACKS * EVENTS / (time.perf_counter() - began)


async def alone(postgres: TestServer, url: str, *, hanging: bool) -> list[float]:
    async with scene_of(postgres) as scene, WebhookChannel(WEBHOOKS) as channel:
        await scene.subscription(url)
        if hanging:
            await scene.subscription(f"{url}hang")
        stacks = [await scene.stack() for _ in range(SINGLE)]
        sent: list[tuple[UUID, float]] = []
        async with (
            dispatching(scene.database, {"webhook": channel}),
            aiohttp.ClientSession() as http,
        ):
            await asyncio.sleep(0.5)
            for stack in stacks:
                await scene.record(stack, resource_event("a"))
                sent.append((stack.id, time.time()))
                await asyncio.sleep(0.02)
            async with asyncio.timeout(30):
                while len(found := await arrivals(scene, http, url)) < SINGLE:
                    await asyncio.sleep(0.1)
    return sorted(found[stack] - committed for stack, committed in sent)


async def arrivals(scene: Scene, http: aiohttp.ClientSession, url: str) -> dict[UUID, float]:
    """By stack, when its one event came."""
    async with http.get(url) as answer:
        when = await answer.json()
    async with scene.database.connection() as conn:
        rows = await conn.fetch("select id::text, stack_id from event")
    return {row["stack_id"]: when[row["id"]] for row in rows if row["id"] in when}
