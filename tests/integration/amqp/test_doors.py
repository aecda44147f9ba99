"""Conflicting answers to the same hooks at the same time, over every answer channel."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field

import orjson
from aio_pika.abc import AbstractIncomingMessage
from aiohttp import web

from tests.integration.amqp.conftest import Post, subscribe
from tests.support.changes import thing
from tests.support.program import Json, Program
from tests.support.receiver import Received, receiving, until
from tests.support.things import World

WAITING = "headgate.hook.waiting"
HOOKS, EACH = 10, 8


def decision(number: int) -> str:
    return "continue" if number % 2 else "reject"


@dataclass
class Doors:
    """outcomes: by hook, the accepted decision or "refused"."""

    run: Program
    box: Post
    stack_id: str = ""
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    chance: random.Random = field(default_factory=lambda: random.Random(11))
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)

    async def some_time(self) -> None:
        """Varies which channel is first."""
        await asyncio.sleep(self.chance.random() / 2)

    def note(self, hook: Json, status: int, sent: str, reply: Json) -> None:
        assert status in (200, 409), reply
        of = self.outcomes.setdefault(hook["id"], Counter())
        of[sent if status == 200 else "refused"] += 1

    async def by_webhook(self, received: Received) -> web.StreamResponse:
        """Webhooks hold their responses until all channels answer."""
        await self.gate.wait()
        await self.some_time()
        return web.json_response({"decision": decision(received.event["sequence"])})

    async def by_name(self, hook: Json, number: int) -> None:
        await self.some_time()
        status, said = await self.run.signal(hook, decision(number), user=f"u{number}")
        self.note(hook, status, decision(number), said)

    async def by_token(self, notice: AbstractIncomingMessage, number: int) -> None:
        await self.some_time()
        data = orjson.loads(notice.body)["data"]
        said = {"decision": decision(number)}
        headers = {"Authorization": f"Bearer {data['token']}"}
        async with self.run.session.post(
            data["signal_url"], json=said, headers=headers
        ) as response:
            self.note(data["hook"], response.status, said["decision"], await response.json())

    async def by_unset_hook(self, hook: Json) -> None:
        await self.some_time()
        path = f"/stacks/s/{self.stack_id}/resources/{hook['resource_name']}/signal"
        await self.run.call("POST", path, {"unset_hook": "pre-create"})

    async def by_message(self, notice: AbstractIncomingMessage, number: int) -> None:
        await self.some_time()
        token = orjson.loads(notice.body)["data"]["token"]
        said = {"token": token, "decision": decision(number)}
        await self.box.say(notice.correlation_id, said)

    async def all_at_once(self, notices: list[AbstractIncomingMessage], hooks: Json) -> None:
        self.gate.set()
        async with asyncio.TaskGroup() as group:
            for number in range(EACH):
                for notice in notices:
                    hook = hooks[notice.correlation_id]
                    group.create_task(self.by_message(notice, number))
                    group.create_task(self.by_name(hook, number + 1))
                    group.create_task(self.by_token(notice, number))
                    group.create_task(self.by_unset_hook(hook))

    async def replies(self) -> Counter[tuple[str, bool]]:
        """Count the replies to the messages by hook and result."""
        found: Counter[tuple[str, bool]] = Counter()
        for _ in range(EACH * HOOKS):
            reply = await self.box.next(self.box.replies)
            found[str(reply.correlation_id), orjson.loads(reply.body)["taken"]] += 1
        return found


async def test_concurrent_answers_over_all_channels_make_one_decision(
    run: Program, box: Post, world: World
) -> None:
    doors, through = Doors(run, box), Counter[str]()
    async with receiving() as receiver:
        receiver.handle = doors.by_webhook
        webhook = {"target": receiver.url, "events": [WAITING], "ordered": False}
        assert (await run.call("POST", "/subscriptions", webhook))[0] == 201
        await subscribe(run, box, events=[WAITING], ordered=False)
        rules = {"hooks": [{"at": "*", "on": "pre-create"}]}
        resources = {f"r{number}": thing() for number in range(HOOKS)}
        await run.create("s", resources, environment=rules)
        notices = [await box.next() for _ in range(HOOKS)]
        hooks = {hook["id"]: hook for hook in await run.waiting("s", HOOKS)}
        await until(lambda: receiver.under_way >= 8)
        doors.stack_id = (await run.stack("s"))["id"]
        await doors.all_at_once(notices, hooks)
        replies = await doors.replies()
    assert await run.until_ended("s") in ("CREATE_COMPLETE", "CREATE_FAILED")
    for hook_id, said in doors.outcomes.items():
        _, hook = await run.call("GET", f"/hooks/{hook_id}")
        other = "reject" if hook["decision"] == "continue" else "continue"
        assert said[other] == 0, (hook["decision"], said)
        assert replies[hook_id, True] + replies[hook_id, False] == EACH
        _, trail = await run.call("GET", f"/hooks/{hook_id}/decisions")
        (entry,) = trail["decisions"]
        assert entry["kind"] == hook["decision"]
        through[entry["door"]] += 1
    print(f"decided by: {dict(through)}")
    assert len(doors.outcomes) == HOOKS
    made = sum(operation == "create" for operation, _ in world.done)
    assert made == len(world.things) <= HOOKS
