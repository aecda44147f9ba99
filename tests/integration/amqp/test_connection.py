"""A connection to a broker that is opened again."""

import asyncio
from typing import cast
from uuid import uuid4

import aio_pika
import pytest
from aio_pika.abc import AbstractConnection
from structlog.testing import capture_logs
from yarl import URL

from channels.amqp import connection as connection_module
from channels.amqp.broker import Broker, BrokerSettings, NotPublished
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


async def test_declarations_end_when_heartbeats_are_missing(rabbit: Rabbit) -> None:
    """aio-pika then cancels them: the connection is opened again, and the loss is logged."""
    prepared: list[AbstractConnection] = []

    async with running_relay(rabbit.url) as relay:

        async def prepare(connection: AbstractConnection) -> None:
            prepared.append(connection)
            if len(prepared) == 1:
                relay.silence()
                await connection.channel()

        url = str(URL(rabbit.url).with_port(relay.port).with_query(heartbeat=1))
        connection = BrokerConnection(ConnectionSettings([url], connect_timeout=1, first_retry=0.1))
        stop = asyncio.Event()
        with capture_logs() as logs:
            async with asyncio.timeout(90), asyncio.TaskGroup() as group:
                group.create_task(connection.run(stop, prepare))

                async def is_lost() -> bool:
                    return any(one["event"] == "amqp.disconnected" for one in logs)

                async def is_open() -> bool:
                    return connection.is_open

                await eventually(is_lost)
                relay.restore()
                await eventually(is_open)
                stop.set()
    assert "the connection was lost" in [one.get("reason") for one in logs]


async def test_a_publication_fails_when_heartbeats_are_missing(rabbit: Rabbit) -> None:
    name = uuid4().hex[:8]
    async with running_relay(rabbit.url) as relay:
        url = str(URL(rabbit.url).with_port(relay.port).with_query(heartbeat=1))
        broker = Broker(
            BrokerSettings(
                [url],
                answers=f"answers.{name}",
                unrouted=f"unrouted.{name}",
                exchanges=[f"headgate.{name}"],
                publish_timeout=60.0,
            )
        )
        stop = asyncio.Event()
        async with asyncio.timeout(90), asyncio.TaskGroup() as group:
            group.create_task(broker.run(stop))

            async def is_published() -> bool:
                try:
                    await broker.publish(f"headgate.{name}", "x", aio_pika.Message(b"1"))
                except NotPublished:
                    return False
                return True

            await eventually(is_published)
            relay.silence()
            with pytest.raises(NotPublished, match="the connection was lost"):
                await broker.publish(f"headgate.{name}", "x", aio_pika.Message(b"2"))
            stop.set()


async def test_connections_that_do_not_last_are_opened_less_and_less_often(rabbit: Rabbit) -> None:
    """`wait_at_most` gets the pauses."""
    pauses: list[float] = []
    stop = asyncio.Event()

    async def pause(_: asyncio.Event, seconds: float) -> bool:
        pauses.append(seconds)
        if len(pauses) == 4:
            stop.set()
        return stop.is_set()

    async def prepare(connection: AbstractConnection) -> None:
        pass

    async def consume(connection: AbstractConnection) -> None:
        raise ConnectionResetError("it does not last")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection_module, "wait_at_most", pause)
        connection = BrokerConnection(ConnectionSettings([rabbit.url]))
        async with asyncio.timeout(60):
            await connection.run(stop, prepare, consume)
    assert pauses == sorted(pauses) and pauses[0] < pauses[-1]


@pytest.mark.parametrize("cancelled", [False, True], ids=["stopped", "cancelled"])
async def test_a_consumer_that_waits_for_a_silent_broker_ends(
    rabbit: Rabbit, cancelled: bool
) -> None:
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
            running = group.create_task(connection.run(stop, prepare, consume))
            await consumes.wait()
            if cancelled:
                running.cancel()
            else:
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
