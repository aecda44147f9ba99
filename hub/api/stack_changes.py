"""A queue for the requests that change one stack.

Each of them waits for the lock of the stack with a database connection of its own. Without the
queue, the requests to one busy stack would take all connections of the process.
"""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from aiohttp import web

from engine.service.traversals.thread_pool import client_disconnected
from engine.words import uuid_or_none
from hub.api.request_validation import read_body
from hub.auth.throttle import UNLIMITED, TurnQueue

P = ParamSpec("P")

#: Requests to one stack that have a connection: one changes it, and one waits for its lock.
PER_STACK = 2


def make_queue() -> TurnQueue:
    return TurnQueue(at_once=UNLIMITED, each=PER_STACK, waiting=None)


CHANGES: web.RequestKey[TurnQueue] = web.RequestKey("changes", TurnQueue)


def changes_stack(
    handler: Callable[Concatenate[web.Request, P], Awaitable[web.StreamResponse]],
) -> Callable[Concatenate[web.Request, P], Awaitable[web.StreamResponse]]:
    """Decorate a handler that changes the stack of its path. The body is received before the
    wait, so the caller must be authenticated. Raises Unavailable if the client has disconnected
    meanwhile."""

    @wraps(handler)
    async def handle(
        request: web.Request, /, *args: P.args, **options: P.kwargs
    ) -> web.StreamResponse:
        await read_body(request)
        text = request.match_info.get("id") or request.match_info["stack"]
        stack = uuid_or_none(text)  # which has several spellings
        async with request[CHANGES].turn(text if stack is None else str(stack)):
            if request.transport is None or request.transport.is_closing():
                raise client_disconnected()
            return await handler(request, *args, **options)

    return handle
