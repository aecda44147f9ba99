"""HTTP servers: the API, with its certificate and limits for connections, and the metrics."""

import asyncio
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import orjson
import structlog
from aiohttp import web
from aiohttp.http_exceptions import ContentEncodingError, LineTooLong
from structlog.typing import FilteringBoundLogger

from engine.bounded_wait import wait_at_most
from engine.errors import HeadgateError, Unavailable
from hub.api import health, http_headers
from hub.api.client_limits import CLIENTS, OpenCount
from hub.api.error_middleware import own_form, status_of
from hub.api.http_headers import Network, is_in
from hub.api.request_validation import invalid, unknown_encoding
from hub.api.routes import JSON, json_response
from hub.auth.throttle import block_of
from hub.listen_address import BACKLOG, LISTEN, METRICS, bind
from hub.metrics import CONTENT_TYPE, Metrics
from hub.settings.access import ServerSection

log: FilteringBoundLogger = structlog.get_logger()
#: Seconds for reading the rest of an unread body.
LINGERING = 10.0
#: Maximum bytes of the request line, and of each header.
MAX_LINE_BYTES = 8190
#: The errors of malformed requests: the most specific class first.
UNREADABLE: Sequence[tuple[type[BaseException], HeadgateError]] = (
    (ContentEncodingError, unknown_encoding()),
    (
        LineTooLong,
        invalid(
            "",
            "the address or a header is too long",
            f"Send at most {MAX_LINE_BYTES} bytes in each; use the body for longer data.",
            "RequestHeadersTooLarge",
        ),
    ),
    (
        Exception,
        invalid("", "the request cannot be read", "Send HTTP/1.1 with a single Content-Length."),
    ),
)
_FAULT = HeadgateError(
    "internal error of the server", remedy="See the log of the server.", code="InternalError"
)
#: Seconds until a refused connection is closed.
CLOSE_AFTER = 1.0
#: Seconds until a process that stops closes connections to which it has sent no last response.
LAST_REQUESTS = 2.0
#: Seconds in which the event loop reports connections that it has accepted.
ACCEPTED = 0.1


@dataclass(frozen=True, slots=True)
class CountedConnections:
    """Connections by address. trusted: proxies, whose connections are not counted. connected: all
    that are open. none: set when the last one is closed."""

    open: OpenCount
    trusted: Sequence[Network]
    connected: set["Connection"] = field(default_factory=set)
    none: asyncio.Event = field(default_factory=asyncio.Event)

    def block(self, transport: asyncio.BaseTransport) -> str | None:
        """The address block of a connection; None: it is not counted."""
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if isinstance(peer, tuple) else ""
        return None if is_in(address, self.trusted) else block_of(address)


class Connection(web.RequestHandler):
    """One connection of a client. Malformed requests are not logged, because they can contain
    secrets."""

    def __init__(self, server: web.Server, counted: CountedConnections, **more: Any) -> None:
        super().__init__(server, **more)
        self._counted = counted
        self._block: str | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._block = self._counted.block(transport)
        if self._block is not None and not self._counted.open.enter(self._block):
            self._refuse(cast(asyncio.Transport, transport))
            return
        self._counted.connected.add(self)
        self._counted.none.clear()
        super().connection_made(transport)

    def _refuse(self, transport: asyncio.Transport) -> None:
        """Send an error before anything is read, and close. Further data is ignored."""
        log.info("connection.refused", address=self._block)
        self._block, self._refused = None, True
        refusal = self._counted.open.refusal()
        body = orjson.dumps(own_form(refusal))
        head = (
            f"HTTP/1.1 {status_of(refusal)} Too Many Requests\r\nRetry-After: {refusal.wait}\r\n"
            f"Content-Type: {JSON}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        transport.write(head.encode() + body)
        asyncio.get_running_loop().call_later(CLOSE_AFTER, transport.close)

    def data_received(self, data: bytes) -> None:
        if not self._refused:
            super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._block is not None:
            self._counted.open.leave(self._block)
            self._block = None
        self._counted.connected.discard(self)
        if not self._counted.connected:
            self._counted.none.set()
        if not self._refused:
            super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Raises ConnectionError if a part of a response was sent."""
        if status >= 500:
            log.error("request.failed", exc_info=exc)
        else:
            log.info("request.unreadable", sender=request.remote, reason=type(exc).__name__)
        if request.writer.output_size > 0:
            raise ConnectionError("a part of the response was sent")
        error = _FAULT if status >= 500 else _unreadable(exc)
        response = json_response(own_form(error), status_of(error))
        http_headers.add_headers(response, request, ())
        response.force_close()  # the start of the next request is unknown
        return response

    def log_exception(self, *args: Any, **more: Any) -> None:
        """Log malformed data after a request as information."""
        exc = more.get("exc_info")
        if isinstance(exc, web.RequestPayloadError):
            log.info("request.unreadable", sender=None, reason=type(exc).__name__)
        else:
            log.error("connection.failed", exc_info=exc)


def _unreadable(exc: BaseException | None) -> HeadgateError:
    return next(error for family, error in UNREADABLE if isinstance(exc or Exception(), family))


def connections(
    server: web.Server, idle: float, counted: CountedConnections
) -> Callable[[], Connection]:
    """A factory of connections. idle: seconds without a complete request header."""
    return lambda: Connection(
        server,
        counted,
        loop=asyncio.get_running_loop(),
        access_log=None,  # the middleware logs requests
        keepalive_timeout=idle,
        lingering_time=min(idle, LINGERING),
        max_line_size=MAX_LINE_BYTES,
        max_field_size=MAX_LINE_BYTES,
    )


@asynccontextmanager
async def serve_api(
    server: ServerSection, application: web.Application, sockets: Sequence[socket.socket] = ()
) -> AsyncIterator[str]:
    """Serve an application; return its URL. Raises Unavailable.

    sockets: that listen already, shared with other processes; none: opens its own.
    """
    tls = server_tls(server)
    if server.in_clear:
        log.warning("server.in_clear", remedy="Set [server] cert_file, or a proxy with TLS.")
    closing = asyncio.Event()
    application.on_response_prepare.append(_closing_connections(closing))
    runner = web.AppRunner(application, shutdown_timeout=5.0)
    await runner.setup()
    try:
        own = [shared.dup() for shared in sockets] or bind(server.listen, LISTEN)
        port = own[0].getsockname()[1]
        counted = CountedConnections(application[CLIENTS].connections, server.trusted_proxies)
        listeners = await _listeners(server, runner, tls, counted, own)
        try:
            with _reload_on_hangup(tls, server):
                yield server.base_url(port)
        finally:
            for listener in listeners:
                listener.close()
            closing.set()
            if sockets:
                await _wait_for_clients(counted)
    finally:
        await runner.cleanup()


def _closing_connections(
    closing: asyncio.Event,
) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    """A signal handler: after `closing`, each response is the last one of its connection, so that
    its client sends the next request to another process."""

    async def prepare(_: web.Request, response: web.StreamResponse) -> None:
        if closing.is_set():
            response.force_close()
            response.headers["Connection"] = "close"  # it has been decided before

    return prepare


async def _wait_for_clients(counted: CountedConnections) -> None:
    """Other processes accept new connections. Give clients of this one time to receive a last
    response: those that have just connected, too."""
    await asyncio.sleep(ACCEPTED)
    if counted.connected:
        await wait_at_most(counted.none, LAST_REQUESTS)


async def _listeners(
    server: ServerSection,
    runner: web.AppRunner,
    tls: ssl.SSLContext | None,
    counted: CountedConnections,
    sockets: Sequence[socket.socket],
) -> list[asyncio.Server]:
    manager = cast(web.Server, runner.server)  # not None after setup
    connection_factory = connections(manager, server.idle_timeout.total_seconds(), counted)
    loop = asyncio.get_running_loop()
    return [
        await loop.create_server(connection_factory, sock=one, ssl=tls, backlog=BACKLOG)
        for one in sockets
    ]


@contextmanager
def _reload_on_hangup(tls: ssl.SSLContext | None, server: ServerSection) -> Iterator[None]:
    """On SIGHUP, read the certificate again, for new connections. An invalid one is logged, and the
    old one stays in use."""

    def renew() -> None:
        if tls is None:
            return
        try:
            load_certificate(tls, server)
        except Unavailable as error:
            log.error("server.certificate_kept", reason=str(error))
        else:
            log.info("server.certificate_renewed", file=server.cert_file)

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, renew)
    try:
        yield
    finally:
        # Without a handler, SIGHUP would end the process while it finishes its operations.
        loop.add_signal_handler(signal.SIGHUP, ignore_hangup)


def ignore_hangup() -> None:
    """A handler of SIGHUP for processes and times without a certificate to read again."""


def server_tls(server: ServerSection) -> ssl.SSLContext | None:
    """The TLS context of the certificate; None: without TLS. Raises Unavailable."""
    if not server.cert_file:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_certificate(context, server)
    return context


def load_certificate(context: ssl.SSLContext, server: ServerSection) -> None:
    """Load the certificate for new connections. Raises Unavailable."""
    try:
        context.load_cert_chain(server.cert_file, server.key_file or None)
    except OSError as error:  # ssl.SSLError is one
        raise Unavailable(
            f"cannot use the certificate: {error.strerror or error}",
            place="[server] cert_file",
            remedy="Name files in PEM form that the server may read; the key without a password.",
        ) from error


#: Seconds for open requests at the end.
SHUTDOWN = 1.0


def monitoring_application(
    metrics: Metrics, ready: Callable[[], Awaitable[list[str]]]
) -> web.Application:
    """/metrics, /healthz and /readyz, without authentication. ready: the reasons why the process is
    not ready."""

    async def show_metrics(_: web.Request) -> web.Response:
        written = await metrics.render()
        return web.Response(body=written, content_type=CONTENT_TYPE, charset="utf-8")

    async def healthz(_: web.Request) -> web.Response:
        return health.show_liveness()

    async def readyz(_: web.Request) -> web.Response:
        return health.show_readiness(await ready())

    application = web.Application()
    application.router.add_get("/metrics", show_metrics)
    application.router.add_get("/healthz", healthz)
    application.router.add_get("/readyz", readyz)
    return application


@asynccontextmanager
async def serve_monitoring(
    application: web.Application, address: str, sockets: Sequence[socket.socket] = ()
) -> AsyncIterator[None]:
    """Serve an application at [metrics] address, HOST:PORT. sockets: see `serve_api`. Raises
    Unavailable."""
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=SHUTDOWN)
    await runner.setup()
    try:
        own = [shared.dup() for shared in sockets] or bind(address, METRICS)
        for one in own:
            await web.SockSite(runner, one).start()
        yield
    finally:
        await runner.cleanup()
