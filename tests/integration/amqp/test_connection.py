"""A connection to a broker that is opened again."""

import asyncio
from typing import cast

import aio_pika
from aio_pika.abc import AbstractConnection

from channels.amqp.connection import BrokerConnection, ConnectionSettings
from tests.support.program import eventually
from tests.support.rabbit import Rabbit


async def test_each_node_gets_its_turn(rabbit: Rabbit) -> None:
    """Also after one that accepts connections but no declarations, as a node without a majority."""
    unusable = f"{rabbit.url}?heartbeat=61"
    tried: list[str] = []

    async def prepare(connection: AbstractConnection) -> None:
        url = cast(aio_pika.Connection, connection).url
        tried.append(str(url))
        if "heartbeat" in url.query:
            raise ConnectionError("no majority")

    urls = [unusable, f"{unusable}&x=1", f"{unusable}&x=2", rabbit.url]
    connection = BrokerConnection(ConnectionSettings(urls, first_retry=0.01, max_retry=0.1))
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(connection.run(stop, prepare))

        async def is_open() -> bool:
            return connection.is_open

        await eventually(is_open)
        stop.set()
    assert tried == urls


async def test_declarations_that_the_broker_never_answers_end(rabbit: Rabbit) -> None:
    """As those of quorum queues on nodes without a majority: the connection is opened again."""
    answered = asyncio.Event()

    async def prepare(_: AbstractConnection) -> None:
        await answered.wait()

    connection = BrokerConnection(ConnectionSettings([rabbit.url], prepare_timeout=0.1))
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(connection.run(stop, prepare))

        async def is_open() -> bool:
            return connection.is_open

        async def gave_up() -> bool:
            return "did not declare exchanges and queues within 0.1 s" in connection.reason

        await eventually(gave_up)
        answered.set()
        await eventually(is_open)
        stop.set()
