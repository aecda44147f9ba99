"""A program with a broker, and a client that receives messages and answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import aio_pika
import orjson
import pytest
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue
from aio_pika.exceptions import ChannelNotFoundEntity
from pamqp.common import FieldTable

from tests.support.program import Json, Program, eventually, program
from tests.support.rabbit import Rabbit
from tests.support.scripted_type import Thing, World


@dataclass
class AmqpClient:
    """Names of one test on a broker, and a channel to it.

    queue: gets the messages that are published to `exchange`. replies: gets the results of answers.
    """

    channel: AbstractChannel
    name: str
    queue: AbstractQueue
    replies: AbstractQueue
    received: list[AbstractIncomingMessage] = field(default_factory=list)

    @property
    def exchange(self) -> str:
        return f"headgate.{self.name}"

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "channels.amqp.answers": f"answers.{self.name}",
            "channels.amqp.unrouted": f"unrouted.{self.name}",
            "channels.amqp.first_retry": "1s",
        }

    async def next(self, queue: AbstractQueue | str | None = None) -> AbstractIncomingMessage:
        """The next message of a queue, acknowledged."""
        if isinstance(queue, str):
            queue = await self.channel.get_queue(queue, ensure=False)
        message = await eventually(lambda: (queue or self.queue).get(fail=False))
        assert isinstance(message, AbstractIncomingMessage)
        await message.ack()
        return message

    async def next_of(self, kind: str) -> AbstractIncomingMessage:
        """The next message of this type; messages before it are discarded."""
        while True:
            message = await self.next()
            if message.type == kind:
                return message

    async def publish(
        self,
        correlation: str | None,
        body: bytes | Json,
        *,
        to: str = "",
        reply: bool = True,
        message_id: str | None = None,
    ) -> None:
        """Publish to the answer queue."""
        message = aio_pika.Message(
            body if isinstance(body, bytes) else orjson.dumps(body),
            correlation_id=correlation,
            message_id=message_id,
            reply_to=self.replies.name if reply else None,
        )
        key = to or f"answers.{self.name}"
        await self.channel.default_exchange.publish(message, key)

    async def answer(
        self, notification: AbstractIncomingMessage, decision: str = "continue", **more: Json
    ) -> Json:
        """Answer a notification as it specifies; return the reply."""
        token = orjson.loads(notification.body)["data"]["token"]
        body = {"token": token, "decision": decision, **more}
        await self.publish(notification.correlation_id, body, to=notification.reply_to or "")
        return orjson.loads((await self.next(self.replies)).body)


@asynccontextmanager
async def running_client(rabbit: Rabbit, queue_type: str = "classic") -> AsyncIterator[AmqpClient]:
    """queue_type: of the queue of events; "quorum": on all nodes of a cluster."""
    connection = await aio_pika.connect(rabbit.url)
    async with connection:
        channel = await connection.channel(on_return_raises=True)
        name = uuid4().hex[:8]
        arguments: FieldTable = {"x-queue-type": queue_type}
        queue = await channel.declare_queue(f"test.{name}", durable=True, arguments=arguments)
        replies = await channel.declare_queue(f"replies.{name}", durable=True)
        opened = AmqpClient(channel, name, queue, replies)
        exchange = await channel.declare_exchange(
            opened.exchange,
            aio_pika.ExchangeType.TOPIC,
            durable=True,
            arguments={"alternate-exchange": f"unrouted.{name}"},
        )
        await queue.bind(exchange, "headgate.#")
        yield opened


@pytest.fixture
async def amqp(rabbit: Rabbit) -> AsyncIterator[AmqpClient]:
    async with running_client(rabbit) as opened:
        yield opened


@pytest.fixture
async def run(
    database_url: str, rabbit: Rabbit, amqp: AmqpClient, world: World
) -> AsyncIterator[Program]:
    settings = {"channels.amqp.url": rabbit.url, "engine.poll": "1s", **amqp.settings}
    async with program(database_url, settings, types=[Thing(world)]) as opened:
        yield opened


async def until_consumed(url: str, queue: str) -> None:
    """Wait until a queue of the broker at `url` exists and has a consumer."""

    async def is_consumed() -> bool:
        async with await aio_pika.connect(url) as connection:
            another = await connection.channel()  # closed if there is no queue
            try:
                found = await another.declare_queue(queue, passive=True)
            except ChannelNotFoundEntity:
                return False
            return bool(found.declaration_result.consumer_count)

    await eventually(is_consumed)


async def subscribe(run: Program, amqp: AmqpClient, **more: Json) -> Json:
    body = {"channel": "amqp", "target": amqp.exchange, **more}
    status, response = await run.call("POST", "/subscriptions", body)
    assert status == 201, response
    return response
