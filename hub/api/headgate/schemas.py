"""What events look like, for programs that read them."""

from aiohttp import web

from channels.schemas.asyncapi import asyncapi
from hub.api.parts import Route, answer, parts_of


async def show(request: web.Request) -> web.Response:
    return answer(asyncapi(parts_of(request).settings.channels.amqp.answers))


ROUTES = (
    Route("GET", "/asyncapi.json", show, "Events, and the channels that carry them", "events"),
)
