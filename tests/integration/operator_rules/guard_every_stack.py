"""The settings of docs/how-to/guard-every-stack.md, with a policy program that a test controls."""

import asyncio
import re
import tomllib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from engine.hot.schema.type_schema import TypeSchema
from engine.types.contract import Call, Done, Outcome
from engine.types.inert_resources import NoneResource
from tests.support.program import Json, Program, program
from tests.support.receiver import Received, Receiver, running_receiver

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "guard-every-stack.md"
BLOCKS = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
#: Replaces `whsec_...`, as the page requires.
SECRET = "whsec_b3duZXJzLW93bmVycy1vd25lcnM="


class Server(NoneResource):
    """A server type with the name that the page's rule uses. Adopted servers exist already."""

    schema = TypeSchema("OS::Nova::Server", any_property=True, any_attribute=True)

    def adopt(self, call: Call) -> Outcome:
        return Done(call.physical_id)


def server(owner: str = "", **more: Json) -> Json:
    return {"type": "OS::Nova::Server", "properties": {"metadata": {"owner": owner}}, **more}


def recipe_settings(target: str) -> dict[str, Any]:
    """The first two blocks: the rule for each stack, and the one for each server."""
    text = "\n".join(BLOCKS[:2]).replace("whsec_...", SECRET)
    settings = tomllib.loads(re.sub(r"http://127.0.0.1:\d+", target, text))
    return {
        "hooks.rules": settings["hooks"]["rules"],
        "subscriptions": settings["subscriptions"],
        "channels.webhook.operator_allow": settings["channels"]["webhook"]["operator_allow"],
    }


@dataclass
class Policy:
    """A policy program that answers when `released` is set. decision: its answer."""

    receiver: Receiver
    decision: str = "reject"
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def decide(self, _: Received) -> web.StreamResponse:
        await self.released.wait()
        return web.json_response({"decision": self.decision, "reason": "by policy"})


@asynccontextmanager
async def running_policy() -> AsyncIterator[Policy]:
    async with running_receiver() as receiver:
        policy = Policy(receiver)
        receiver.handle = policy.decide
        try:
            yield policy
        finally:
            policy.released.set()


@asynccontextmanager
async def run_recipe(
    url: str, target: str, *, added: Sequence[Json] = (), is_later: bool = True, **changes: Any
) -> AsyncIterator[Program]:
    """The recipe in mode tokens. changes: to its first rule. added: further rules, after or before
    those of the recipe.
    """
    settings = recipe_settings(target) | {"auth.mode": "tokens", "engine.poll": "1s"}
    first, *others = settings["hooks.rules"]
    rules = [first | changes, *others]
    settings["hooks.rules"] = [*rules, *added] if is_later else [*added, *rules]
    async with program(url, settings, types=[Server()]) as run:
        yield run
