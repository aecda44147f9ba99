"""Limits on the connections, unfinished bodies and event streams of a client, in all processes of
one server.

A client is an address (of IPv6, its /64 network) before it is authenticated, and a user or token
after that.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from aiohttp import web

from hub.auth.identity import Identity
from hub.auth.request_counts import RequestCounts
from hub.auth.shared_open_counts import ProcessCounts, SharedOpenCounts
from hub.auth.throttle import TooManyRequests
from hub.settings.access import ServerSection

#: Seconds.
RETRY_AFTER = 5.0


@dataclass(slots=True)
class OpenCount:
    """Open objects by client. max_open: 0 for no limit. what, setting: for the error. shared: of
    all processes; None: this one counts alone. What `shared` has no row for counts in this one."""

    max_open: int
    what: str
    setting: str
    shared: ProcessCounts | None = None
    _open: Counter[str] = field(default_factory=Counter)

    def enter(self, client: str) -> bool:
        """Count one more. Returns False, without counting, at the limit."""
        counted = None if self.shared is None else self.shared.enter(client, self.max_open)
        if counted is not None:
            return counted
        if 0 < self.max_open <= self._open[client]:
            return False
        self._open[client] += 1
        return True

    def leave(self, client: str) -> None:
        if self.shared is not None and client not in self._open:
            self.shared.leave(client)
            return
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
    """counts: of all processes. pid: of this one."""

    def __init__(self, server: ServerSection, counts: RequestCounts, pid: int) -> None:
        def count(max_open: int, what: str, setting: str, table: SharedOpenCounts) -> OpenCount:
            return OpenCount(max_open, what, setting, table.add_process(pid))

        self.connections = count(
            server.connections_per_address,
            "connections",
            "connections_per_address",
            counts.connections,
        )
        #: Requests through a trusted proxy, whose own connections are not counted.
        self.forwarded = count(
            server.connections_per_address,
            "requests",
            "connections_per_address",
            counts.forwarded,
        )
        self.bodies = count(
            server.bodies_per_user,
            "requests with unfinished bodies",
            "bodies_per_user",
            counts.bodies,
        )
        self.streams = count(
            server.streams_per_user, "event streams", "streams_per_user", counts.streams
        )


CLIENTS: web.AppKey[ClientLimits] = web.AppKey("clients", ClientLimits)


def client_of(request: web.Request, who: Identity) -> str:
    """The key of the user or token; without authentication, the name and the address."""
    return who.key or f"{who.name} {request.remote}"
