"""A dispatcher in a process of its own, to be killed; run as a module with the URL."""

import asyncio
import sys
from ipaddress import ip_network
from uuid import UUID

from channels.contract import ReceiverDecision
from channels.dispatcher import Dispatcher, DispatcherSettings
from channels.webhook.client import WebhookChannel, WebhookSettings
from engine.hooks.automation import Automation
from engine.store.database import open_database
from tests.support.keys import A_SEALER


async def _answer(hook_id: UUID, said: ReceiverDecision, by: Automation, target: str) -> str | None:
    return None


async def _entitle(one: Automation) -> Automation:
    return one


async def main(url: str) -> None:
    database = await open_database(url, size=4, sealer=A_SEALER)
    async with WebhookChannel(WebhookSettings(allow=(ip_network("127.0.0.0/8"),))) as channel:
        dispatcher = Dispatcher(
            database,
            {channel.name: channel},
            settings=DispatcherSettings(),
            token_for=lambda hook_id, _: str(hook_id),
            entitle=_entitle,
            public_url="http://hub.test",
            answer=_answer,
            random=lambda: 0.5,
        )
        await dispatcher.run(asyncio.Event())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
