"""The application of a listener: its handlers, and the channel that serves it."""

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from headgate.errors import RequestError
from headgate.listener.handler_runner import HandlerRunner
from headgate.listener.routing import EventHandler, EventRoute, HookHandler, HookRoute
from headgate.listener.sources import AmqpQueue, EventSource, EventStream, WebhookServer, source_of

Json = Any
log = logging.getLogger("headgate.listener")


class Listener(HandlerRunner):
    """Calls handlers for hooks, and sends their answers.

    concurrency: handlers that run at the same time. backlog: notifications that wait for one to
    end; beyond that, Headgate must deliver again later. answer_within: seconds in which a handler
    can answer in the response of a webhook; a slower one answers with the token of the
    notification. on_error: the answer if a handler raises an exception; None: no answer. journal: a
    file with the notifications in work, whose handlers run again after a restart. grace: seconds in
    which handlers must end when the listener stops, before they are cancelled.
    """

    # -- registration ----------------------------------------------------------------------------

    def hook(
        self,
        *points: str,
        at: str | Sequence[str] = (),
        type: str | Sequence[str] = (),  # as in rules and subscriptions
        stack: str = "",
        operator: bool | None = None,
        extend: bool = True,
    ) -> Callable[[HookHandler], HookHandler]:
        """Register a handler for hooks. The first one that matches is called.

        points: globs, such as `pre-delete` or `pre-*`; none: all. at: globs on the name of the
        resource, or, with a slash, on its path from the root stack. type: globs on the type of the
        resource. stack: a glob on the name of the root stack. operator: True: only hooks of rules
        of the operator; False: only others. extend: extend the deadline while the handler runs.
        """

        def register(handler: HookHandler) -> HookHandler:
            route = HookRoute(handler, points, _globs(at), _globs(type), stack, operator, extend)
            self.hook_routes.append(route)
            return handler

        return register

    def event(self, *types: str) -> Callable[[EventHandler], EventHandler]:
        """Register a handler for other events. types: globs on the event type. If it raises an
        exception, Headgate delivers the event again, where the channel can."""
        if not types:
            raise ValueError("name at least one event type, such as headgate.stack.*.completed")

        def register(handler: EventHandler) -> EventHandler:
            self.event_routes.append(EventRoute(handler, types))
            return handler

        return register

    # -- serving ---------------------------------------------------------------------------------

    def run(
        self,
        *,
        webhook: str | WebhookServer | None = None,
        amqp: str | AmqpQueue | None = None,
        stream: str | EventStream | None = None,
    ) -> None:
        """Serve one channel until SIGTERM or Ctrl-C. webhook: `HOST:PORT`. amqp: the URL of the
        broker. stream: the URL of the server."""
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        source = source_of(webhook, amqp, stream)

        async def main() -> None:
            stop = asyncio.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
            async with self.serving(source):
                await stop.wait()

        failure: BaseException | None = None
        try:
            asyncio.run(main())
        except* RequestError as errors:
            failure = errors.exceptions[0]
        if failure is not None:
            log.error("the listener ends: %s", failure)
            sys.exit(1)

    @asynccontextmanager
    async def serving(self, source: EventSource) -> AsyncIterator[EventSource]:
        """Serve a channel in the background, as long as the context is open."""
        async with source.open(self):
            yield source


def _globs(globs: str | Sequence[str]) -> tuple[str, ...]:
    return (globs,) if isinstance(globs, str) else tuple(globs)
