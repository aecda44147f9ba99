"""What events look like and how they are signed, for programs that read them."""

from aiohttp import web

from channels.schemas.asyncapi import asyncapi
from channels.schemas.events import SCHEMAS
from channels.webhook.client import WebhookChannel
from engine.errors import NotFound, nearest
from hub.api.headgate import documents as gives
from hub.api.parts import Route, answer, parts_of


async def show(request: web.Request) -> web.Response:
    return answer(asyncapi(parts_of(request).settings.channels.amqp.answers))


async def webhook_key(request: web.Request) -> web.Response:
    channel = parts_of(request).channels["webhook"]
    key = channel.public_key if isinstance(channel, WebhookChannel) else None
    return answer({"public_key": key})


async def schema(request: web.Request) -> web.Response:
    kind = request.match_info["type"]
    if kind not in SCHEMAS:
        raise NotFound(
            f'there is no event type "{kind}"',
            remedy=nearest(kind, list(SCHEMAS)) or "GET /asyncapi.json names all of them.",
            code="EventTypeNotFound",
        )
    found = SCHEMAS[kind]
    return answer({"$schema": found["$schema"], **found["properties"]["data"]})


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
    Route("GET", "/schemas/{type}", schema, "The schema of an event's data", "events",
          gives=gives.SCHEMA),
)  # fmt: skip
