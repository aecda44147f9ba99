"""docs/how-to/guard-every-stack.md as it is written, with a policy program that waits."""

import asyncio
import re
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from engine.hot.schema.type_schema import TypeSchema
from engine.types.contract import Call, Done, Outcome
from engine.types.inert_resources import NoneResource
from tests.support.program import Json, Program, program
from tests.support.receiver import Received, Receiver, receiving

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "guard-every-stack.md"
BLOCKS = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
#: In place of the page's `whsec_...`, which it says to replace.
SECRET = "whsec_b3duZXJzLW93bmVycy1vd25lcnM="


class Server(NoneResource):
    """Under the name of the page's rule. What is adopted exists already."""

    schema = TypeSchema("OS::Nova::Server", any_property=True, any_attribute=True)

    def adopt(self, call: Call) -> Outcome:
        return Done(call.physical_id)


def server(owner: str = "", **more: Json) -> Json:
    return {"type": "OS::Nova::Server", "properties": {"metadata": {"owner": owner}}, **more}


def recipe(target: str) -> dict[str, Any]:
    """The first two blocks: the gate before the stack, and that before each server."""
    text = "\n".join(BLOCKS[:2]).replace("whsec_...", SECRET)
    said = tomllib.loads(re.sub(r"http://127.0.0.1:\d+", target, text))
    return {
        "hooks.rules": said["hooks"]["rules"],
        "subscriptions": said["subscriptions"],
        "channels.webhook.operator_allow": said["channels"]["webhook"]["operator_allow"],
    }


@dataclass
class Policy:
    """Answers when it is told to. decision: what it answers then."""

    receiver: Receiver
    decision: str = "reject"
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def judge(self, _: Received) -> web.StreamResponse:
        await self.released.wait()
        return web.json_response({"decision": self.decision, "reason": "by policy"})


@asynccontextmanager
async def waiting_policy() -> AsyncIterator[Policy]:
    async with receiving() as receiver:
        policy = Policy(receiver)
        receiver.handle = policy.judge
        try:
            yield policy
        finally:
            policy.released.set()


@asynccontextmanager
async def guarded(url: str, target: str, **changes: Any) -> AsyncIterator[Program]:
    """The recipe in mode tokens. changes: of its first rule."""
    said = recipe(target) | {"auth.mode": "tokens", "engine.poll": "1s"}
    first, *others = said["hooks.rules"]
    said["hooks.rules"] = [first | changes, *others]
    async with program(url, said, types=[Server()]) as run:
        yield run
