"""Reads notifications from the event stream, and answers with the rights of a user."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

from headgate.client import Client
from headgate.connection import url_path
from headgate.listener.handler_runner import HandlerRunner, is_hook_notification
from headgate.listener.notification import WAITING, HookNotification
from headgate.listener.sending import read_refusals

if TYPE_CHECKING:
    from headgate.documents import Hook
    from headgate.listener.sources import EventStream

Json = Any
#: Seconds for which the stream tries to reconnect.
RECONNECT_TIMEOUT = 86400.0
log = logging.getLogger("headgate.listener")


class UserSender:
    """Sends answers with the credentials of the client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def send(self, notification: HookNotification, body: Mapping[str, Json]) -> str | None:
        path = url_path("hooks", notification.id, "signal")
        async with read_refusals():
            hook = await self._client.connection.call("POST", path, body=body)
            return str(hook.get("deadline") or "") or None


def event_of_hook(hook: "Hook", project: str) -> dict[str, Json]:
    """The notification of a hook that is listed, as the event stream has it, with the attributes
    that the list knows."""
    names = hook["path"].split("/") if hook["path"] else []
    stack_path = "/".join(names[:-1] if hook["resource_name"] is not None else names)
    stack = {
        "id": hook["stack_id"],
        "name": hook["stack_name"],
        "project": project,
        "path": stack_path,
        "root": {"id": hook["root_stack_id"], "name": hook["root_stack_name"]},
    }
    data = {
        "hook": hook,
        "stack": stack,
        "traversal": hook["traversal"],
        "node": hook["node"],
        "resource": hook["resource"],
        "signal_url": None,
        "token": None,
    }
    if "change" in hook:
        data["change"] = hook["change"]
    return {"specversion": "1.0", "id": hook["id"], "type": WAITING, "data": data}


@asynccontextmanager
async def open_stream(source: "EventStream", listener: HandlerRunner) -> AsyncIterator[None]:
    """Follow the stream in the background. An error of the stream that lasts ends the context."""
    async with Client(source.url, source.project, source.credentials) as client:
        sender = UserSender(client)
        connected = asyncio.Event()

        async def catch_up() -> None:
            """Hooks that opened before the connection; each is handled once."""
            hooks = client.hooks.list(state="waiting", stack=source.stack, mine=True)
            async with aclosing(hooks) as waiting:
                async for hook in waiting:
                    await listener.until_free()
                    listener.accept(event_of_hook(hook, client.connection.project), sender)
            log.info("listening to the event stream of %s", client.connection.url)
            connected.set()

        async def follow() -> None:
            stream = client.events.stream(
                stack=source.stack, reconnect_timeout=RECONNECT_TIMEOUT, on_connect=catch_up
            )
            async with aclosing(stream) as events:
                async for event in events:
                    if is_hook_notification(event.document):
                        await listener.until_free()
                        listener.accept(event.document, sender)
                    else:
                        await listener.handle_event_once(event.document)

        async with listener.working(), asyncio.TaskGroup() as group:
            following = group.create_task(follow())
            waiting = group.create_task(connected.wait())
            await asyncio.wait({following, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            try:
                yield
            finally:
                following.cancel()
