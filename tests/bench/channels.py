"""Deliveries of events: the rate, compared with a client of the channel that does nothing else, and
the latency of single events."""

import asyncio
import base64
import hashlib
import hmac
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import aio_pika
import aiohttp
import orjson

from tests.bench.client import Client, exchange, percentiles, seconds_of
from tests.bench.run import Run
from tests.bench.server import ROOT, Server, Settings
from tests.bench.shapes import wide
from tests.support.ports import free_port
from tests.support.rabbit import Rabbit, running_rabbit

Json = Any
#: Stacks and resources of each; a resource has two events.
STACKS, SIZE = 800, 12
EVENTS = STACKS * SIZE * 2
#: Deliveries at the same time, as the default of [channels.webhook] concurrency.
CONCURRENCY = 20
#: Single events for the latency.
SINGLE = 200
EXCHANGE, QUEUE = "headgate.bench", "bench"
#: Seconds until all events must have arrived.
TIMEOUT = 600.0


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Messages that have arrived; first, last: seconds since 1970."""

    count: int
    first: float
    last: float


async def deliveries(run: Run) -> None:
    rounds = min(run.rounds, 3)
    async with running_sink() as url:
        for _ in range(rounds):
            limit = {"limit": await webhook_limit(url)} if run.limits else {}
            await reset_sink(url)
            await measure_deliveries(run, "webhook", url, lambda: arrivals(url), limit)
        for case, hanging in (("webhook, one event", False), ("another target hangs", True)):
            await reset_sink(url)
            await measure_single_events(run, url, case, hanging=hanging)
    async with running_rabbit() as rabbit:
        for _ in range(rounds):
            limit = {"limit": await message_limit(rabbit)} if run.limits else {}
            async with queue_of(rabbit) as depth:
                settings = {"channels.amqp": {"url": rabbit.url}}
                await measure_deliveries(run, "amqp", EXCHANGE, depth, limit, settings=settings)


async def measure_deliveries(
    run: Run,
    channel: str,
    target: str,
    read_arrivals: Callable[[], Awaitable[Arrivals]],
    limit: dict[str, float],
    *,
    settings: Settings | None = None,
) -> None:
    """Requests cause events while no dispatcher runs. Then a dispatcher is started."""
    async with run.postgres.new_database() as url:
        api, dispatcher = (
            Server(run.postgres, url, source=run.source, roles=roles, settings=settings)
            for roles in (("api", "engine"), ("dispatch",))
        )
        try:
            await asyncio.to_thread(api.start)
            async with Client.open(api.url) as client:
                await subscribe(client, channel, target, "headgate.resource.*")
                requests = [client.creation(f"s{n}", wide(SIZE)) for n in range(STACKS)]
                await exchange(api.url, requests)
                await client.until_idle(pause=0.2)
            await asyncio.to_thread(dispatcher.start)
            before, used = await read_arrivals(), dispatcher.usage()
            arrived = await until_arrived(read_arrivals, EVENTS)
            used = dispatcher.usage() - used
        finally:
            await asyncio.to_thread(dispatcher.stop)
            await asyncio.to_thread(api.stop)
    rate = arrived.count / (arrived.last - arrived.first)
    costs = used.each(max(1, arrived.count - before.count))
    run.add("deliver", channel, EVENTS, rate=rate, **limit, **costs)


async def until_arrived(read_arrivals: Callable[[], Awaitable[Arrivals]], count: int) -> Arrivals:
    async with asyncio.timeout(TIMEOUT):
        while (arrived := await read_arrivals()).count < count:
            await asyncio.sleep(0.05)
        return arrived


async def subscribe(client: Client, channel: str, target: str, events: str) -> None:
    body = {"channel": channel, "target": target, "events": [events]}
    await client.call("POST", "/subscriptions", body, expected=201)


async def measure_single_events(run: Run, url: str, case: str, *, hanging: bool) -> None:
    """From the time of an event to its arrival, for stacks that are created one after the other."""
    async with run.server() as (_, client):
        await subscribe(client, "webhook", f"{url}kept", "headgate.stack.create.started")
        if hanging:
            await subscribe(client, "webhook", f"{url}hang", "headgate.stack.create.started")
        for number in range(SINGLE):
            await client.until_ended(await client.create(f"s{number}", wide(1)), pause=0.02)
        await until_arrived(lambda: arrivals(url), SINGLE)
        kept = (await status(url))["kept"]
    latencies = [arrival - seconds_of(at) for _, at, arrival in kept]
    run.add("deliver", case, 1, **percentiles(latencies))


@asynccontextmanager
async def running_sink() -> AsyncIterator[str]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "tests.bench.sink", str(port)], cwd=ROOT)
    url = f"http://127.0.0.1:{port}/"
    try:
        async with asyncio.timeout(20):
            while True:
                try:
                    await arrivals(url)
                    break
                except aiohttp.ClientError:
                    await asyncio.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait()


async def status(url: str) -> Json:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return await answer.json()


async def arrivals(url: str) -> Arrivals:
    report = await status(url)
    return Arrivals(report["count"], report["first"], report["last"])


async def reset_sink(url: str) -> None:
    async with aiohttp.ClientSession() as session, session.delete(url) as answer:
        await answer.read()


@asynccontextmanager
async def queue_of(rabbit: Rabbit) -> AsyncIterator[Callable[[], Awaitable[Arrivals]]]:
    """A function that counts the messages in a queue of the subscription's exchange. first: when it
    saw the first one."""
    connection = await aio_pika.connect(rabbit.url)
    async with connection:
        channel = await connection.channel()
        exchange = await channel.declare_exchange(EXCHANGE, "topic", durable=True)
        queue = await channel.declare_queue(
            QUEUE, durable=True, arguments={"x-queue-type": "quorum"}
        )
        await queue.bind(exchange, "#")
        first = 0.0

        async def read_arrivals() -> Arrivals:
            nonlocal first
            queue_state = await channel.declare_queue(QUEUE, passive=True)
            count, now = queue_state.declaration_result.message_count or 0, time.time()
            if count and not first:
                first = now
            return Arrivals(count, first or now, now)

        yield read_arrivals
        await queue.delete(if_unused=False, if_empty=False)


def body() -> bytes:
    """As large as an event of a resource."""
    return orjson.dumps({"id": str(uuid4()), "data": {"text": "x" * 700}})


async def webhook_limit(url: str) -> float:
    """Requests per second of a client that signs and sends, and does nothing else."""
    remaining, secret = iter(range(EVENTS)), b"s" * 24

    async def worker(session: aiohttp.ClientSession) -> None:
        for _ in remaining:
            content, name, now = body(), str(uuid4()), str(int(time.time()))
            signed = hmac.digest(secret, f"{name}.{now}.".encode() + content, hashlib.sha256)
            headers = {
                "webhook-id": name,
                "webhook-timestamp": now,
                "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
            }
            async with session.post(url, data=content, headers=headers) as answer:
                await answer.read()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        return await measure_rate(lambda: worker(session))


async def message_limit(rabbit: Rabbit) -> float:
    """Confirmed messages per second of a client that does nothing else."""
    remaining = iter(range(EVENTS))
    connection = await aio_pika.connect(rabbit.url)
    async with connection:
        channel = await connection.channel()
        queue = await channel.declare_queue(
            "limit", durable=True, arguments={"x-queue-type": "quorum"}
        )

        async def worker() -> None:
            for _ in remaining:
                message = aio_pika.Message(body(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
                await channel.default_exchange.publish(message, "limit")

        rate = await measure_rate(worker)
        await queue.delete(if_unused=False, if_empty=False)
        return rate


async def measure_rate(worker: Callable[[], Any]) -> float:
    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(CONCURRENCY):
            group.create_task(worker())
    return EVENTS / (time.perf_counter() - started)
