"""A dispatcher that runs as a process, so that tests can kill it. Argument: the database URL."""

import asyncio
import sys
from ipaddress import ip_network
from uuid import UUID

from channels.attempt import Attempts
from channels.contract import ReceiverDecision
from channels.dispatcher import Dispatcher, DispatcherSettings
from channels.webhook.client import WebhookChannel, WebhookSettings
from engine.hooks.answer_rights import Automation
from engine.store.database import open_database
from tests.support.keys import KEYRING


async def _answer(
    hook_id: UUID, decision: ReceiverDecision, by: Automation, target: str
) -> str | None:
    return None


async def _entitle(one: Automation) -> Automation:
    return one


async def main(url: str) -> None:
    database = await open_database(url, size=4, keyring=KEYRING)
    async with WebhookChannel(WebhookSettings(allow=(ip_network("127.0.0.0/8"),))) as channel:
        settings = DispatcherSettings()
        attempts = Attempts(
            {channel.name: channel},
            settings.policy,
            token_for=lambda hook_id, _: str(hook_id),
            entitle=_entitle,
            public_url="http://hub.test",
            answer=_answer,
            random=lambda: 0.5,
        )
        dispatcher = Dispatcher(database, attempts, settings=settings)
        await dispatcher.run(asyncio.Event())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
