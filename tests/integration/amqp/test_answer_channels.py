"""Conflicting answers to the same hooks at the same time, over every answer channel."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field

import orjson
from aio_pika.abc import AbstractIncomingMessage
from aiohttp import web

from tests.integration.amqp.conftest import AmqpClient, subscribe
from tests.support.changes import thing
from tests.support.program import Json, Program
from tests.support.receiver import Received, running_receiver, until
from tests.support.scripted_type import World

WAITING = "headgate.hook.waiting"
HOOKS, EACH = 10, 8


def decision(number: int) -> str:
    return "continue" if number % 2 else "reject"


@dataclass
class AnswerSender:
    """outcomes: by hook, the accepted decision or "refused"."""

    run: Program
    amqp: AmqpClient
    stack_id: str = ""
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    chance: random.Random = field(default_factory=lambda: random.Random(11))
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)

    async def random_delay(self) -> None:
        """Varies which channel is first."""
        await asyncio.sleep(self.chance.random() / 2)

    def record(self, hook: Json, status: int, sent: str, reply: Json) -> None:
        assert status in (200, 409), reply
        of = self.outcomes.setdefault(hook["id"], Counter())
        of[sent if status == 200 else "refused"] += 1

    async def by_webhook(self, received: Received) -> web.StreamResponse:
        """Webhooks hold their responses until all channels answer."""
        await self.gate.wait()
        await self.random_delay()
        return web.json_response({"decision": decision(received.event["sequence"])})

    async def by_name(self, hook: Json, number: int) -> None:
        await self.random_delay()
        status, response = await self.run.signal(hook, decision(number), user=f"u{number}")
        self.record(hook, status, decision(number), response)

    async def by_token(self, notification: AbstractIncomingMessage, number: int) -> None:
        await self.random_delay()
        data = orjson.loads(notification.body)["data"]
        body = {"decision": decision(number)}
        headers = {"Authorization": f"Bearer {data['token']}"}
        async with self.run.session.post(
            data["signal_url"], json=body, headers=headers
        ) as response:
            self.record(data["hook"], response.status, body["decision"], await response.json())

    async def by_unset_hook(self, hook: Json) -> None:
        await self.random_delay()
        path = f"/stacks/s/{self.stack_id}/resources/{hook['resource_name']}/signal"
        await self.run.call("POST", path, {"unset_hook": "pre-create"})

    async def by_message(self, notification: AbstractIncomingMessage, number: int) -> None:
        await self.random_delay()
        token = orjson.loads(notification.body)["data"]["token"]
        body = {"token": token, "decision": decision(number)}
        await self.amqp.publish(notification.correlation_id, body)

    async def answer_over_all_channels(
        self, notifications: list[AbstractIncomingMessage], hooks: Json
    ) -> None:
        self.gate.set()
        async with asyncio.TaskGroup() as group:
            for number in range(EACH):
                for notification in notifications:
                    hook = hooks[notification.correlation_id]
                    group.create_task(self.by_message(notification, number))
                    group.create_task(self.by_name(hook, number + 1))
                    group.create_task(self.by_token(notification, number))
                    group.create_task(self.by_unset_hook(hook))

    async def replies(self) -> Counter[tuple[str, bool]]:
        """Count the replies to the messages by hook and result."""
        found: Counter[tuple[str, bool]] = Counter()
        for _ in range(EACH * HOOKS):
            reply = await self.amqp.next(self.amqp.replies)
            found[str(reply.correlation_id), orjson.loads(reply.body)["accepted"]] += 1
        return found


async def test_one_answer_over_all_channels_decides(
    run: Program, amqp: AmqpClient, world: World
) -> None:
    channels, through = AnswerSender(run, amqp), Counter[str]()
    async with running_receiver() as receiver:
        receiver.handle = channels.by_webhook
        webhook = {"target": receiver.url, "events": [WAITING], "ordered": False}
        assert (await run.call("POST", "/subscriptions", webhook))[0] == 201
        await subscribe(run, amqp, events=[WAITING], ordered=False)
        rules = {"hooks": [{"at": "*", "on": "pre-create"}]}
        resources = {f"r{number}": thing() for number in range(HOOKS)}
        await run.create("s", resources, environment=rules)
        notifications = [await amqp.next() for _ in range(HOOKS)]
        hooks = {hook["id"]: hook for hook in await run.waiting_hooks("s", HOOKS)}
        await until(lambda: receiver.in_progress >= 8)
        channels.stack_id = (await run.stack("s"))["id"]
        await channels.answer_over_all_channels(notifications, hooks)
        replies = await channels.replies()
    assert await run.until_ended("s") in ("CREATE_COMPLETE", "CREATE_FAILED")
    for hook_id, counts in channels.outcomes.items():
        _, hook = await run.call("GET", f"/hooks/{hook_id}")
        other = "reject" if hook["decision"] == "continue" else "continue"
        assert counts[other] == 0, (hook["decision"], counts)
        assert replies[hook_id, True] + replies[hook_id, False] == EACH
        _, trail = await run.call("GET", f"/hooks/{hook_id}/decisions")
        (entry,) = trail["decisions"]
        assert entry["kind"] == hook["decision"]
        through[entry["channel"]] += 1
    print(f"decided by: {dict(through)}")
    assert len(channels.outcomes) == HOOKS
    creates = sum(operation == "create" for operation, _ in world.done)
    assert creates == len(world.things) <= HOOKS
