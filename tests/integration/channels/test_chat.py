"""Messages to incoming webhooks of chats, over the client of webhooks."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from channels.chat.channel import FORMS, ChatChannel
from channels.contract import Delivered, Endpoint, EventMessage, Failed
from channels.webhook.client import WebhookChannel, WebhookSettings
from engine.errors import Invalid
from tests.support.receiver import Receiver
from tests.unit.channels.test_envelope import EVENT, WAITING, render

MESSAGE = EventMessage(
    str(EVENT),
    "headgate.hook.waiting",
    render("headgate.hook.waiting", WAITING),
    datetime(2026, 1, 2, tzinfo=UTC),
    waiting=True,
)


def endpoint(target: str) -> Endpoint:
    return Endpoint(UUID(int=1), target, ("whsec_AAAA",))


@pytest.mark.parametrize("name", FORMS)
async def test_a_hook_is_posted_as_a_message(
    webhook: WebhookChannel, receiver: Receiver, name: str
) -> None:
    channel = ChatChannel(name, webhook, "https://headgate.example")
    outcome = await channel.deliver(MESSAGE, endpoint(f"{receiver.url}/services/T/B/x"))
    assert outcome == Delivered(200, "thanks")
    (received,) = receiver.received
    assert received.headers["Content-Type"] == "application/json"
    assert not [name for name in received.headers if name.lower().startswith("webhook-")]
    assert b"web/db: create waits for approval" in received.body
    assert b"https://headgate.example/#/demo/inbox/" in received.body
    assert b"a-token" not in received.body


@pytest.mark.parametrize("name", FORMS)
async def test_a_chat_cannot_answer_a_hook(
    webhook: WebhookChannel, receiver: Receiver, name: str
) -> None:
    receiver.respond_with({"decision": "continue"})
    outcome = await ChatChannel(name, webhook, "").deliver(MESSAGE, endpoint(receiver.url))
    assert isinstance(outcome, Delivered)
    assert outcome.decision is None


async def test_a_chat_that_is_busy_is_asked_later(
    webhook: WebhookChannel, receiver: Receiver
) -> None:
    receiver.respond_with_statuses(429, headers={"Retry-After": "7"})
    outcome = await ChatChannel("slack", webhook, "").deliver(MESSAGE, endpoint(receiver.url))
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.retry_after) == (429, 7.0)


async def test_a_private_address_is_refused_as_for_webhooks(receiver: Receiver) -> None:
    async with WebhookChannel(WebhookSettings()) as closed:
        channel = ChatChannel("slack", closed, "")
        with pytest.raises(Invalid, match="may not be reached"):
            await channel.check_target(receiver.url)
        outcome = await channel.deliver(MESSAGE, endpoint(receiver.url))
    assert isinstance(outcome, Failed)
    assert receiver.received == []
