"""Posts events to the incoming webhook of a room in a chat.

The room cannot answer hooks: people answer in the dashboard, to which the message leads, or with
the buttons of a message in Slack (`slack_interaction`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import urlsplit
from uuid import UUID

import orjson

from channels.chat.slack import NO_BUTTONS, AnswerButtons, slack_message
from channels.chat.slack_interaction import DECISIONS, ButtonValue
from channels.chat.teams import teams_message
from channels.contract import Channel, Delivered, Endpoint, EventMessage, Failed
from channels.digest_summary import summarize_digest
from channels.selection import WAITING
from channels.summary import summarize
from engine.words import Decision, Json

#: The names of the channels.
FORMS = ("slack", "teams")


class HttpSender(Protocol):
    """Sends requests to targets, within limits on addresses, time and size."""

    async def check_target(self, target: str) -> None: ...

    async def post(
        self, message: EventMessage, endpoint: Endpoint, body: bytes, headers: Mapping[str, str]
    ) -> Delivered | Failed: ...


@dataclass(frozen=True, slots=True)
class SlackButtons:
    """How messages in Slack get buttons. hosts: of the incoming webhooks of Slack: other programs
    would show buttons that do nothing. token_for: of a button, by hook ID, subscription ID and the
    digest of the hook."""

    hosts: tuple[str, ...]
    token_for: Callable[[UUID, UUID, str], str]

    def buttons_of(self, document: Mapping[str, Json], endpoint: Endpoint) -> AnswerButtons:
        """No button approves if the answer must have data, for which there is a form in the
        dashboard."""
        if document["type"] != WAITING or urlsplit(endpoint.target).hostname not in self.hosts:
            return NO_BUTTONS
        hook = document["data"]["hook"]
        asks = {Decision.CONTINUE} if hook["ask"] else set()
        decisions = [one for one in DECISIONS if one in hook["allowed"] and one not in asks]
        hook_id, digest = UUID(hook["id"]), hook["digest"]
        token = self.token_for(hook_id, endpoint.subscription_id, digest)
        return AnswerButtons(decisions, str(ButtonValue(hook_id, digest, token)))


class ChatChannel:
    """http: open while this is used. base_url: of the dashboard, without a slash at the end.
    buttons: None: people answer in the dashboard only."""

    def __init__(
        self, name: str, http: HttpSender, base_url: str, buttons: SlackButtons | None = None
    ) -> None:
        self.name = name
        self._buttons = buttons
        self._http = http
        self._base_url = base_url

    async def check_target(self, target: str) -> None:
        await self._http.check_target(target)

    async def deliver(self, message: EventMessage, endpoint: Endpoint) -> Delivered | Failed:
        return await self._post(message, endpoint, self._form(message.document, endpoint))

    async def deliver_digest(
        self, messages: Sequence[EventMessage], endpoint: Endpoint
    ) -> Delivered | Failed:
        summary = summarize_digest(messages, self._base_url)
        form = slack_message(summary) if self.name == "slack" else teams_message(summary)
        return await self._post(messages[0], endpoint, form)

    async def _post(
        self, message: EventMessage, endpoint: Endpoint, form: Mapping[str, Json]
    ) -> Delivered | Failed:
        # A response is the chat's own, never an answer to a hook.
        posted, headers = replace(message, waiting=False), {"content-type": "application/json"}
        return await self._http.post(posted, endpoint, orjson.dumps(form), headers)

    def _form(self, document: Mapping[str, Json], endpoint: Endpoint) -> Mapping[str, Json]:
        summary = summarize(document, self._base_url)
        if self.name == "teams":
            return teams_message(summary)
        buttons = self._buttons.buttons_of(document, endpoint) if self._buttons else NO_BUTTONS
        return slack_message(summary, buttons)


def chat_channels(
    http: HttpSender, base_url: str, buttons: SlackButtons | None = None
) -> dict[str, Channel]:
    return {name: ChatChannel(name, http, base_url.rstrip("/"), buttons) for name in FORMS}
