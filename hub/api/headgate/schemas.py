"""What events look like and how they are signed, for programs that read them."""

from aiohttp import web

from channels.schemas.asyncapi import asyncapi
from channels.webhook.client import WebhookChannel
from hub.api.headgate import documents as gives
from hub.api.parts import Route, answer, parts_of


async def show(request: web.Request) -> web.Response:
    return answer(asyncapi(parts_of(request).settings.channels.amqp.answers))


async def webhook_key(request: web.Request) -> web.Response:
    channel = parts_of(request).channels["webhook"]
    key = channel.public_key if isinstance(channel, WebhookChannel) else None
    return answer({"public_key": key})


ROUTES = (
    Route(
        "GET",
        "/v1/{project}/webhook-key",
        webhook_key,
        "What webhooks may be checked with besides their secret",
        "events",
        gives=gives.PUBLIC_KEY,
    ),
    Route("GET", "/asyncapi.json", show, "Events, and the channels that carry them", "events",
          gives=gives.ASYNCAPI),
)  # fmt: skip
