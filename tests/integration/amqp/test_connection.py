"""A connection to a broker that is opened again."""

import asyncio
from typing import cast
from uuid import uuid4

import aio_pika
import pytest
from aio_pika.abc import AbstractConnection
from yarl import URL

from channels.amqp.connection import BrokerConnection, ConnectionSettings
from channels.amqp.notification_listener import ListenerSettings, ProviderNotificationListener
from tests.support.program import eventually
from tests.support.rabbit import Rabbit
from tests.support.relay import running_relay


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


async def test_a_lost_connection_is_opened_again(rabbit: Rabbit) -> None:
    """Also one that nothing uses at that moment."""
    prepared: list[AbstractConnection] = []

    async def prepare(connection: AbstractConnection) -> None:
        prepared.append(connection)

    async with running_relay(rabbit.url) as relay:
        url = str(URL(rabbit.url).with_port(relay.port))
        connection = BrokerConnection(ConnectionSettings([url], first_retry=0.01, max_retry=0.1))
        stop = asyncio.Event()
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(connection.run(stop, prepare))

            async def is_open() -> bool:
                return connection.is_open

            async def is_lost() -> bool:
                return not connection.is_open and "cannot connect" in connection.reason

            await eventually(is_open)
            relay.cut()
            await eventually(is_lost)
            relay.restore()
            await eventually(is_open)
            stop.set()
    assert len(prepared) == 2


async def test_a_consumer_that_waits_for_a_silent_broker_ends(rabbit: Rabbit) -> None:
    ended: list[BaseException] = []
    consumes = asyncio.Event()

    async with running_relay(rabbit.url) as relay:

        async def prepare(_: AbstractConnection) -> None:
            pass

        async def consume(connection: AbstractConnection) -> None:
            consumes.set()
            try:
                await asyncio.Event().wait()
            finally:
                relay.silence()
                try:
                    await connection.channel()  # as a consumer that cancels its consumption
                except BaseException as error:
                    ended.append(error)

        url = str(URL(rabbit.url).with_port(relay.port))
        connection = BrokerConnection(ConnectionSettings([url]))
        stop = asyncio.Event()
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(connection.run(stop, prepare, consume))
            await consumes.wait()
            stop.set()
    assert len(ended) == 1


@pytest.mark.parametrize("step", ["_consume", "_bind"])
async def test_a_listener_leaves_a_broker_that_no_longer_answers(
    rabbit: Rabbit, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The broker accepts the connection, and is silent from a step on: the listener opens another
    connection."""
    begun = getattr(ProviderNotificationListener, step)
    begins: list[AbstractConnection] = []

    async def report(_: object) -> None:
        pass

    async with running_relay(rabbit.url) as relay:

        async def silent(
            self: ProviderNotificationListener, connection: AbstractConnection, *more: str
        ) -> object:
            if not begins:
                relay.silence()
            begins.append(connection)
            return await begun(self, connection, *more)

        monkeypatch.setattr(ProviderNotificationListener, step, silent)
        url = str(URL(rabbit.url).with_port(relay.port))
        settings = ConnectionSettings([url, rabbit.url], prepare_timeout=0.5, first_retry=0.01)
        name = uuid4().hex[:8]
        listening = ListenerSettings([f"nova.{name}"], ["notifications"], [], f"observed.{name}")
        listener = ProviderNotificationListener(settings, listening, report)
        stop = asyncio.Event()
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(listener.run(stop))

            async def begins_again() -> bool:
                return len(begins) > 1 and begins[0] is not begins[1]

            await eventually(begins_again)
            stop.set()
