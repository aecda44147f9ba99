"""The channels over which a listener gets notifications, as options of `Listener.run`."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headgate.connection import ClientCredentials

if TYPE_CHECKING:
    from headgate.listener.handler_runner import HandlerRunner


class EventSource(ABC):
    """A channel. Its libraries are imported when it is opened."""

    @abstractmethod
    def open(self, listener: "HandlerRunner") -> AbstractAsyncContextManager[object]:
        """Give events to the listener, as long as the context is open."""


@dataclass(slots=True)
class WebhookServer(EventSource):
    """Receives webhooks. address: `HOST:PORT`; port 0: any, see `url`. secret: of the subscription
    (`whsec_...`), or several of them; by default from the variable `HEADGATE_SECRET`."""

    address: str
    secret: str | Sequence[str] = field(default="", repr=False)
    path: str = "/"
    #: The URL of the receiver, when it is open.
    url: str = ""

    def open(self, listener: "HandlerRunner") -> AbstractAsyncContextManager[object]:
        from headgate.listener.webhook import open_webhook

        return open_webhook(self, listener)

    def secrets(self) -> list[str]:
        """Raises ValueError without a valid secret."""
        from headgate.signatures import is_key

        given = self.secret or os.environ.get("HEADGATE_SECRET", "")
        secrets = given.split() if isinstance(given, str) else list(given)
        if not secrets:
            raise ValueError(
                "the secret of the subscription is missing; set HEADGATE_SECRET to the secret that"
                " `headgate subscription create` printed"
            )
        if not all(is_key(one) for one in secrets):
            raise ValueError("a secret is `whsec_` followed by base64")
        return secrets


@dataclass(slots=True)
class AmqpQueue(EventSource):
    """Consumes a durable queue, which it binds to the exchange of the subscription."""

    url: str = field(repr=False)
    queue: str = "headgate.listener"
    exchange: str = "headgate"
    binding: str = "headgate.hook.#"

    def open(self, listener: "HandlerRunner") -> AbstractAsyncContextManager[object]:
        from headgate.listener.amqp import open_queue

        return open_queue(self, listener)


@dataclass(slots=True)
class EventStream(EventSource):
    """Reads the event stream of a project, and answers with the rights of the credentials. url,
    project, credentials: as of `Client`. stack: only this stack and its nested stacks."""

    url: str | None = None
    project: str | None = None
    credentials: ClientCredentials | None = None
    stack: str | None = None

    def open(self, listener: "HandlerRunner") -> AbstractAsyncContextManager[object]:
        from headgate.listener.stream import open_stream

        return open_stream(self, listener)


def source_of(
    webhook: str | WebhookServer | None,
    amqp: str | AmqpQueue | None,
    stream: str | EventStream | None,
) -> EventSource:
    """The one channel that is given. Raises ValueError."""
    sources: list[EventSource] = []
    if webhook is not None:
        sources.append(WebhookServer(webhook) if isinstance(webhook, str) else webhook)
    if amqp is not None:
        sources.append(AmqpQueue(amqp) if isinstance(amqp, str) else amqp)
    if stream is not None:
        sources.append(EventStream(stream) if isinstance(stream, str) else stream)
    if len(sources) != 1:
        raise ValueError("give exactly one of webhook, amqp and stream")
    return sources[0]
