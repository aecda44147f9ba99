"""The HTTP server: where it listens, its certificate, an orderly end."""

import asyncio
import signal
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import cast

import structlog
from aiohttp import web
from structlog.typing import FilteringBoundLogger

from engine.errors import Unavailable
from hub.api.client_limits import CLIENTS
from hub.http.connections import Counted, connections
from hub.settings.access import Server

log: FilteringBoundLogger = structlog.get_logger()


@asynccontextmanager
async def listening(server: Server, application: web.Application) -> AsyncIterator[str]:
    """Gives the server's URL. Raises Unavailable."""
    tls = server_tls(server)
    if server.in_clear:
        log.warning("server.in_clear", remedy="Set [server] cert_file, or a proxy with TLS.")
    runner = web.AppRunner(application, shutdown_timeout=5.0)
    await runner.setup()
    try:
        listener = await _listener(server, runner, tls, application)
        try:
            with _renewed_at_hangup(tls, server):
                yield server.base_url(listener.sockets[0].getsockname()[1])
        finally:
            listener.close()
    finally:
        await runner.cleanup()


async def _listener(
    server: Server,
    runner: web.AppRunner,
    tls: ssl.SSLContext | None,
    application: web.Application,
) -> asyncio.Server:
    """Raises Unavailable."""
    manager = cast(web.Server, runner.server)  # it is set up
    counted = Counted(application[CLIENTS].connections, server.trusted_proxies)
    made = connections(manager, server.idle_timeout.total_seconds(), counted)
    loop = asyncio.get_running_loop()
    try:
        return await loop.create_server(made, server.host, server.port, ssl=tls, backlog=128)
    except OSError as error:
        raise Unavailable(
            f"cannot listen on {server.listen}: {error.strerror}",
            place="[server] listen",
            remedy="Stop what listens there, or choose another port with --listen.",
        ) from error


@contextmanager
def _renewed_at_hangup(tls: ssl.SSLContext | None, server: Server) -> Iterator[None]:
    """Certificates are renewed while we run: SIGHUP has the files read anew, for connections from
    then on. What cannot be used is told, and the one before stays."""

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
        loop.remove_signal_handler(signal.SIGHUP)


def server_tls(server: Server) -> ssl.SSLContext | None:
    """None: what is sent goes in clear. Raises Unavailable."""
    if not server.cert_file:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_certificate(context, server)
    return context


def load_certificate(context: ssl.SSLContext, server: Server) -> None:
    """For connections from now on. Raises Unavailable."""
    try:
        context.load_cert_chain(server.cert_file, server.key_file or None)
    except OSError as error:  # ssl.SSLError is one
        raise Unavailable(
            f"cannot use the certificate: {error.strerror or error}",
            place="[server] cert_file",
            remedy="Name files in PEM form that the server may read; the key without a password.",
        ) from error
