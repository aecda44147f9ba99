"""The HTTP client of resource types: it limits sizes and times, follows no redirects, and checks
every address. It implements engine/types/http_client.py."""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_network
from typing import Protocol, Self

import aiohttp

from channels.webhook.client import failure_reason, read_whole
from engine.errors import Unavailable
from engine.outgoing_address_check import (
    GuardedResolver,
    Lookup,
    Network,
    RefusedTarget,
    guarded_connector,
    parse_target,
)
from engine.types.failure_scope import FailureScope
from engine.types.http_client import NoResponse, Request, Response

#: For addresses in the settings, which are not restricted.
ALL_NETWORKS: tuple[Network, ...] = (ip_network("0.0.0.0/0"), ip_network("::/0"))


async def system_lookup(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


def plain_session(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    """A session without cookies, proxies from the environment and decompression, whose output could
    be large."""
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"user-agent": "headgate", "accept-encoding": "identity"},
        auto_decompress=False,
        trust_env=False,
    )


@dataclass(frozen=True, slots=True)
class OutboundSettings:
    """allow: allowed networks in addition to public ones. Times in seconds, sizes in bytes.
    remedy: for errors about refused addresses. tls: None: the system's certificate authorities."""

    allow: tuple[Network, ...] = ()
    remedy: str = ""
    connect_timeout: float = 5.0
    timeout: float = 30.0
    max_response: int = 1_048_576
    tls: ssl.SSLContext | None = None


class Outbound:
    """An async context manager, which opens and closes the HTTP session.

    lookup: returns the addresses of a host.
    """

    def __init__(self, settings: OutboundSettings, *, lookup: Lookup = system_lookup) -> None:
        self._settings = settings
        self._resolver = GuardedResolver(lookup, settings.allow, remedy=settings.remedy)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        settings = self._settings
        self._session = plain_session(
            guarded_connector(
                self._resolver, settings.allow, remedy=settings.remedy, tls=settings.tls
            )
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    def refusal(self, url: str) -> tuple[str, str] | None:
        _, found = parse_target(url, self._settings.allow, remedy=self._settings.remedy)
        return (found[0].reason, found[0].remedy) if found else None

    async def send(self, request: Request) -> Response:
        """Raises NoResponse."""
        settings = self._settings
        url, found = parse_target(request.url, settings.allow, remedy=settings.remedy)
        if url is None:
            reason = "; ".join(str(one) for one in found)
            raise NoResponse(reason, retry=False, scope=FailureScope.REQUEST)
        if self._session is None:
            raise RuntimeError("the HTTP client is used outside its context manager")
        try:
            tls = _tls(request.ca_pem, request.insecure)
        except (OSError, ValueError):
            reason = "the certificate authority is not a PEM certificate"
            raise NoResponse(reason, retry=False, scope=FailureScope.REQUEST) from None
        try:
            async with self._session.request(
                request.method,
                url,
                data=request.body,
                headers=request.headers,
                allow_redirects=False,
                ssl=tls,
                timeout=aiohttp.ClientTimeout(
                    total=settings.timeout, connect=settings.connect_timeout
                ),
            ) as response:
                read = await read_whole(response.content, settings.max_response)
                if read is None:
                    response.close()
                    reason = f"the response is longer than {settings.max_response} bytes"
                    raise NoResponse(reason, retry=False, scope=FailureScope.REQUEST)
                headers = {name.lower(): value for name, value in response.headers.items()}
                return Response(response.status, headers, read)
        except TimeoutError:
            raise NoResponse(
                f"no complete response within {settings.timeout:g} s", retry=True
            ) from None
        except (aiohttp.ClientError, OSError, UnicodeError, ValueError) as error:
            raise NoResponse(
                failure_reason(error), retry=_is_retryable(error), scope=_scope_of(error)
            ) from error


@lru_cache(maxsize=64)
def _tls(ca_pem: str, insecure: bool) -> ssl.SSLContext | bool:
    """Raises OSError or ValueError for an invalid certificate authority."""
    if insecure:
        return False
    return ssl.create_default_context(cadata=ca_pem) if ca_pem else True


def _is_retryable(error: Exception) -> bool:
    """Whether a retry may succeed: False if an address or a certificate was refused."""
    match error:
        case aiohttp.ClientConnectorError(os_error=RefusedTarget()):
            return False
        case aiohttp.ClientSSLError() | UnicodeError() | ValueError():
            return False
        case _:
            return True


def _scope_of(error: Exception) -> FailureScope:
    """REQUEST if its URL or the response is not valid."""
    match error:
        case aiohttp.ClientSSLError():
            return FailureScope.ENDPOINT
        case aiohttp.ClientResponseError() | UnicodeError() | ValueError():
            return FailureScope.REQUEST
        case _:
            return FailureScope.ENDPOINT


class Certificates(Protocol):
    """PEM files: a certificate authority, a client certificate and its key; "" for none."""

    @property
    def ca_file(self) -> str: ...
    @property
    def cert_file(self) -> str: ...
    @property
    def key_file(self) -> str: ...


def tls_context(files: Certificates, place: str) -> ssl.SSLContext | None:
    """None: the system's authorities, and no client certificate. Raises Unavailable."""
    if not (files.ca_file or files.cert_file):
        return None
    try:
        context = ssl.create_default_context(cafile=files.ca_file or None)
        if files.cert_file:
            context.load_cert_chain(files.cert_file, files.key_file or None)
    except OSError as error:  # ssl.SSLError is one
        raise Unavailable(
            f"cannot use the certificates: {error.strerror or error}",
            place=place,
            remedy="Name files in PEM form that the server may read.",
        ) from error
    return context
