"""Limits on the connections, unfinished bodies and event streams of a client, for each process.

A client is an address (of IPv6, its /64 network) before it is authenticated, and a user or token
after that.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from aiohttp import web

from hub.auth.identity import Identity
from hub.auth.throttle import TooManyRequests
from hub.settings.access import ServerSection

#: Seconds.
RETRY_AFTER = 5.0


@dataclass(slots=True)
class OpenCount:
    """Open objects by client. max_open: 0 for no limit. what, setting: for the error."""

    max_open: int
    what: str
    setting: str
    _open: Counter[str] = field(default_factory=Counter)

    def enter(self, client: str) -> bool:
        """Count one more. Returns False, without counting, at the limit."""
        if 0 < self.max_open <= self._open[client]:
            return False
        self._open[client] += 1
        return True

    def leave(self, client: str) -> None:
        self._open[client] -= 1
        if self._open[client] <= 0:
            del self._open[client]

    @contextmanager
    def hold(self, client: str) -> Iterator[None]:
        """Raises TooManyRequests."""
        if not self.enter(client):
            raise self.refusal()
        try:
            yield
        finally:
            self.leave(client)

    def refusal(self) -> TooManyRequests:
        return TooManyRequests(
            f"this client has {self.max_open} {self.what} open",
            "Close some, or wait for the time in Retry-After; the limit is"
            f" [server] {self.setting}.",
            RETRY_AFTER,
        )


class ClientLimits:
    def __init__(self, server: ServerSection) -> None:
        self.connections = OpenCount(
            server.connections_per_address, "connections", "connections_per_address"
        )
        #: Requests through a trusted proxy, whose own connections are not counted.
        self.forwarded = OpenCount(
            server.connections_per_address, "requests", "connections_per_address"
        )
        self.bodies = OpenCount(
            server.bodies_per_user, "requests with unfinished bodies", "bodies_per_user"
        )
        self.streams = OpenCount(server.streams_per_user, "event streams", "streams_per_user")


CLIENTS: web.AppKey[ClientLimits] = web.AppKey("clients", ClientLimits)


def client_of(request: web.Request, who: Identity) -> str:
    """The key of the user or token; without authentication, the name and the address."""
    return who.key or f"{who.name} {request.remote}"
