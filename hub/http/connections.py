"""Connections of clients: how long one may be idle, and what is said to what is no request."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson
import structlog
from aiohttp import web
from aiohttp.http_exceptions import ContentEncodingError, LineTooLong
from structlog.typing import FilteringBoundLogger

from engine.errors import HeadgateError
from hub.api import response_headers
from hub.api.client_limits import OpenCount
from hub.api.parts import JSON, answer, invalid, unknown_encoding
from hub.api.problems import own_form, status_of
from hub.api.proxies import Network, is_in
from hub.auth.address_blocks import block_of

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds in which the rest of a body is read that nobody asked for.
LINGERING = 10.0
#: Longest line of a request, its address and each of its headers, in bytes.
LONGEST_LINE = 8190
#: What a request may be that cannot be read: nearest family first.
UNREADABLE: Sequence[tuple[type[BaseException], HeadgateError]] = (
    (ContentEncodingError, unknown_encoding()),
    (
        LineTooLong,
        invalid(
            "",
            "the address or a header is too long",
            f"Send at most {LONGEST_LINE} bytes in each; what is longer goes into the body.",
            "RequestHeadersTooLarge",
        ),
    ),
    (
        Exception,
        invalid("", "the request cannot be read", "Send HTTP/1.1 with a single Content-Length."),
    ),
)
_FAULT = HeadgateError(
    "this is a fault of the server", remedy="Its log has more.", code="InternalError"
)


#: Seconds in which a refused connection may read why.
FAREWELL = 1.0


@dataclass(frozen=True, slots=True)
class Counted:
    """Connections by address. trusted: proxies, whose connections are not counted."""

    open: OpenCount
    trusted: Sequence[Network]

    def block(self, transport: asyncio.BaseTransport) -> str | None:
        """What a connection counts for; None: it does not count."""
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if isinstance(peer, tuple) else ""
        return None if is_in(address, self.trusted) else block_of(address)


class Connection(web.RequestHandler):
    """One connection of a client. What was sent and cannot be read is neither told nor logged: it
    may hold secrets."""

    def __init__(self, server: web.Server, counted: Counted, **more: Any) -> None:
        super().__init__(server, **more)
        self._counted = counted
        self._block: str | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._block = self._counted.block(transport)
        if self._block is not None and not self._counted.open.enter(self._block):
            self._refuse(cast(asyncio.Transport, transport))
            return
        super().connection_made(transport)

    def _refuse(self, transport: asyncio.Transport) -> None:
        """Answer before anything is read, and close. What still comes is dropped."""
        log.info("connection.refused", address=self._block)
        self._block, self._refused = None, True
        refusal = self._counted.open.refusal()
        body = orjson.dumps(own_form(refusal))
        head = (
            f"HTTP/1.1 {status_of(refusal)} Too Many Requests\r\nRetry-After: {refusal.wait}\r\n"
            f"Content-Type: {JSON}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        transport.write(head.encode() + body)
        asyncio.get_running_loop().call_later(FAREWELL, transport.close)

    def data_received(self, data: bytes) -> None:
        if not self._refused:
            super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._block is not None:
            self._counted.open.leave(self._block)
            self._block = None
        if not self._refused:
            super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Raises ConnectionError where an answer is half sent."""
        if status >= 500:
            log.error("request.bug", exc_info=exc)
        else:
            log.info("request.unreadable", sender=request.remote, reason=type(exc).__name__)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer is half sent")
        error = _FAULT if status >= 500 else _unreadable(exc)
        response = answer(own_form(error), status_of(error))
        response_headers.add_to(response, request, ())
        response.force_close()  # where the next request would begin is not known
        return response

    def log_exception(self, *args: Any, **more: Any) -> None:
        """What comes after an answer and cannot be read is no fault of ours."""
        exc = more.get("exc_info")
        if isinstance(exc, web.RequestPayloadError):
            log.info("request.unreadable", sender=None, reason=type(exc).__name__)
        else:
            log.error("connection.bug", exc_info=exc)


def _unreadable(exc: BaseException | None) -> HeadgateError:
    return next(error for family, error in UNREADABLE if isinstance(exc or Exception(), family))


def connections(server: web.Server, idle: float, counted: Counted) -> Callable[[], Connection]:
    """Makes the connections of a server. idle: seconds without a whole head of a request."""
    return lambda: Connection(
        server,
        counted,
        loop=asyncio.get_running_loop(),
        access_log=None,  # it takes none
        keepalive_timeout=idle,
        lingering_time=min(idle, LINGERING),
        max_line_size=LONGEST_LINE,
        max_field_size=LONGEST_LINE,
    )
