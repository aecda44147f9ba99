"""What events look like and how they are signed, for programs that read them."""

from aiohttp import web

from channels.schemas.asyncapi import asyncapi
from channels.schemas.events import SCHEMAS
from channels.webhook.client import WebhookChannel
from engine.errors import NotFound, nearest
from hub.api.headgate import responses
from hub.api.parts import Route, answer, parts_of


async def show(request: web.Request) -> web.Response:
    return answer(asyncapi(parts_of(request).settings.channels.amqp.answers))


async def webhook_key(request: web.Request) -> web.Response:
    channel = parts_of(request).channels["webhook"]
    key = channel.public_key if isinstance(channel, WebhookChannel) else None
    return answer(responses.PublicKey(public_key=key))


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
        response=responses.PublicKey,
    ),
    Route("GET", "/asyncapi.json", show, "Events, and the channels that carry them", "events",
          response=responses.AsyncApi),
    Route("GET", "/schemas/{type}", schema, "The schema of an event's data", "events",
          response=responses.EventSchema),
)  # fmt: skip
