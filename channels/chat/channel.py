"""Posts events to the incoming webhook of a room in a chat.

The room cannot answer hooks: people answer in the dashboard, to which the message leads.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

import orjson

from channels.chat.slack import slack_message
from channels.chat.teams import teams_message
from channels.contract import Channel, Delivered, Endpoint, EventMessage, Failed
from channels.summary import Summary, summarize
from engine.words import Json

#: The form of the message, by the name of the channel.
FORMS: Mapping[str, Callable[[Summary], Mapping[str, Json]]] = {
    "slack": slack_message,
    "teams": teams_message,
}


class HttpSender(Protocol):
    """Sends requests to targets, within limits on addresses, time and size."""

    async def check_target(self, target: str) -> None: ...

    async def post(
        self, message: EventMessage, endpoint: Endpoint, body: bytes, headers: Mapping[str, str]
    ) -> Delivered | Failed: ...


class ChatChannel:
    """http: open while this is used. base_url: of the dashboard, without a slash at the end."""

    def __init__(self, name: str, http: HttpSender, base_url: str) -> None:
        self.name = name
        self._form = FORMS[name]
        self._http = http
        self._base_url = base_url

    async def check_target(self, target: str) -> None:
        await self._http.check_target(target)

    async def deliver(self, message: EventMessage, endpoint: Endpoint) -> Delivered | Failed:
        body = orjson.dumps(self._form(summarize(message.document, self._base_url)))
        # A response is the chat's own, never an answer to a hook.
        posted = replace(message, waiting=False)
        return await self._http.post(posted, endpoint, body, {"content-type": "application/json"})


def chat_channels(http: HttpSender, base_url: str) -> dict[str, Channel]:
    return {name: ChatChannel(name, http, base_url.rstrip("/")) for name in FORMS}
