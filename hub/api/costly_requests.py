"""Requests that read a whole template: a few at a time, in an order that is fair to all projects.

Each may hold a connection to the database and a thread for seconds. So only some of them are worked
on at once, fewer of one project, and two of one user; the others wait their turn, and more than
`waiting_per_user` of one user are refused.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps

from aiohttp import web

from engine.service.traversals.fair_queue import FairQueue
from engine.service.traversals.thread_pool import CLIENT, Client, client_gone
from hub.api.parts import Handler, identity_of, project_of, read_body
from hub.auth.throttle import TooMany

#: Of one user at a time: one in a thread, and one that waits for the database.
OF_ONE_USER = 2
#: Seconds after which a refused request may be sent again.
RETRY_AFTER = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class _Ticket:
    project: str
    client: Client
    turn: "asyncio.Future[None]"

    @property
    def user(self) -> str:
        return self.client.user


class CostlyRequests:
    def __init__(self, connections: int, waiting_per_user: int) -> None:
        """connections: of the pool, some of which stay free. waiting_per_user: 0: any number."""
        places = max(2, connections * 6 // 10)
        self._queue: FairQueue[_Ticket] = FairQueue(places, max(1, places - 2), OF_ONE_USER)
        self._most = waiting_per_user

    @asynccontextmanager
    async def turn(self, project: str, client: Client) -> AsyncIterator[None]:
        """Waits until it is this client's turn. Raises TooMany; Unavailable when the client has
        gone by then."""
        if 0 < self._most <= self._queue.waiting(project, client.user):
            raise _too_many(self._most)
        ticket = _Ticket(project, client, asyncio.get_running_loop().create_future())
        self._queue.add(ticket)
        self._call()
        try:
            await ticket.turn
            if client.gone():
                raise client_gone()
            yield
        finally:
            if ticket.turn.done() and not ticket.turn.cancelled():
                self._queue.done(ticket)
            else:
                self._queue.discard(ticket)
            self._call()

    def _call(self) -> None:
        while (ticket := self._queue.take()) is not None:
            if ticket.turn.done():  # cancelled a moment ago
                self._queue.done(ticket)
            else:
                ticket.turn.set_result(None)


COSTLY: web.AppKey[CostlyRequests] = web.AppKey("costly", CostlyRequests)


def costly(handler: Handler) -> Handler:
    """For a handler that reads a whole template. The request is received before it waits."""

    @wraps(handler)
    async def handle(request: web.Request) -> web.StreamResponse:
        await read_body(request)
        who = identity_of(request)
        waiting = _Waiting(request)
        client = Client(who.key or who.name, waiting.gone)
        try:
            async with request.app[COSTLY].turn(project_of(request), client):
                before = CLIENT.set(client)
                try:
                    return await handler(request)
                finally:
                    CLIENT.reset(before)
        finally:
            waiting.end()

    return handle


class _Waiting:
    """A request whose client may go. Forgets the request at its end: what is begun meanwhile, such
    as a connection to the database, keeps the context for good, and the request has a credential.
    """

    def __init__(self, request: web.Request) -> None:
        self._request: web.Request | None = request

    def gone(self) -> bool:
        transport = None if self._request is None else self._request.transport
        return transport is None or transport.is_closing()

    def end(self) -> None:
        self._request = None


def _too_many(most: int) -> TooMany:
    return TooMany(
        f"{most} creates, updates, previews and validations of this user are waiting already",
        "Wait for the time in Retry-After, and send fewer at once; the limit is"
        " [server] waiting_per_user.",
        RETRY_AFTER,
    )
