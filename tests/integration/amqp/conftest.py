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

from tests.support.program import Json, Program, eventually, program
from tests.support.rabbit import Rabbit
from tests.support.things import Thing, World


@dataclass
class Post:
    """Names of one test on a broker, and a channel to it.

    queue: gets what is published to `exchange`. replies: where answers to answers come.
    """

    channel: AbstractChannel
    name: str
    queue: AbstractQueue
    replies: AbstractQueue
    got: list[AbstractIncomingMessage] = field(default_factory=list)

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

    async def say(
        self, correlation: str | None, body: bytes | Json, *, to: str = "", reply: bool = True
    ) -> None:
        """Send to the queue of answers."""
        message = aio_pika.Message(
            body if isinstance(body, bytes) else orjson.dumps(body),
            correlation_id=correlation,
            reply_to=self.replies.name if reply else None,
        )
        key = to or f"answers.{self.name}"
        await self.channel.default_exchange.publish(message, key)

    async def answer(
        self, notice: AbstractIncomingMessage, decision: str = "continue", **more: Json
    ) -> Json:
        """Answer a notification as it specifies; return the reply."""
        token = orjson.loads(notice.body)["data"]["token"]
        said = {"token": token, "decision": decision, **more}
        await self.say(notice.correlation_id, said, to=notice.reply_to or "")
        return orjson.loads((await self.next(self.replies)).body)


@asynccontextmanager
async def post(rabbit: Rabbit) -> AsyncIterator[Post]:
    connection = await aio_pika.connect(rabbit.url)
    async with connection:
        channel = await connection.channel(on_return_raises=True)
        name = uuid4().hex[:8]
        queue = await channel.declare_queue(f"test.{name}", durable=True)
        replies = await channel.declare_queue(f"replies.{name}", durable=True)
        made = Post(channel, name, queue, replies)
        exchange = await channel.declare_exchange(
            made.exchange,
            aio_pika.ExchangeType.TOPIC,
            durable=True,
            arguments={"alternate-exchange": f"unrouted.{name}"},
        )
        await queue.bind(exchange, "headgate.#")
        yield made


@pytest.fixture
async def box(rabbit: Rabbit) -> AsyncIterator[Post]:
    async with post(rabbit) as made:
        yield made


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def run(database_url: str, rabbit: Rabbit, box: Post, world: World) -> AsyncIterator[Program]:
    said = {"channels.amqp.url": rabbit.url, "engine.poll": "1s", **box.settings}
    async with program(database_url, said, types=[Thing(world)]) as made:
        yield made


async def subscribe(run: Program, box: Post, **more: Json) -> Json:
    body = {"channel": "amqp", "target": box.exchange, **more}
    status, said = await run.call("POST", "/subscriptions", body)
    assert status == 201, said
    return said
