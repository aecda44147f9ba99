"""A fair queue for requests that evaluate a whole template.

Such a request can use a database connection and a thread for seconds. The number of concurrent ones
is limited in total, for each project and, to two, for each user. The others wait; more than
`waiting_per_user` of one user are refused.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import wraps

from aiohttp import web

from engine.service.traversals.thread_pool import CLIENT, RequestClient, client_disconnected
from hub.api.app_context import identity_of, project_of
from hub.api.request_validation import read_body
from hub.api.routes import Handler
from hub.auth.throttle import QueueFull, TooManyRequests, TurnQueue

#: Concurrent requests of a user: one in a thread, and one that waits for the database.
PER_USER = 2
#: Seconds.
RETRY_AFTER = 5.0


class CostlyRequests:
    def __init__(self, connections: int, waiting_per_user: int) -> None:
        """connections: of the pool; some stay free. waiting_per_user: 0 for no limit."""
        places = max(2, connections * 6 // 10)
        self._max_waiting = waiting_per_user
        self._queue = TurnQueue(
            at_once=places,
            each=max(1, places - 2),
            each_member=PER_USER,
            waiting=waiting_per_user or None,
        )

    @asynccontextmanager
    async def turn(self, project: str, client: RequestClient) -> AsyncIterator[None]:
        """Wait in the queue. Raises TooManyRequests; Unavailable if the client has disconnected."""
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(self._queue.turn(project, client.user))
            except QueueFull:
                raise _too_many(self._max_waiting) from None
            if client.is_disconnected():
                raise client_disconnected()
            yield


COSTLY: web.RequestKey[CostlyRequests] = web.RequestKey("costly", CostlyRequests)


def costly(handler: Handler) -> Handler:
    """Decorate a handler that evaluates a whole template. The body is received before the wait."""

    @wraps(handler)
    async def handle(request: web.Request) -> web.StreamResponse:
        await read_body(request)
        who = identity_of(request)
        connection = _Connection(request)
        client = RequestClient(who.key or who.name, connection.is_disconnected)
        try:
            async with request[COSTLY].turn(project_of(request), client):
                before = CLIENT.set(client)
                try:
                    return await handler(request)
                finally:
                    CLIENT.reset(before)
        finally:
            connection.end()

    return handle


class _Connection:
    """Whether the client of a request is connected. Drops the request at its end, because tasks
    that start meanwhile keep the context variable, and the request contains a credential."""

    def __init__(self, request: web.Request) -> None:
        self._request: web.Request | None = request

    def is_disconnected(self) -> bool:
        transport = None if self._request is None else self._request.transport
        return transport is None or transport.is_closing()

    def end(self) -> None:
        self._request = None


def _too_many(max_waiting: int) -> TooManyRequests:
    return TooManyRequests(
        f"{max_waiting} creates, updates, previews and validations of this user are already"
        " waiting",
        "Wait for the time in Retry-After, and send fewer requests at once; the limit is"
        " [server] waiting_per_user.",
        RETRY_AFTER,
    )
