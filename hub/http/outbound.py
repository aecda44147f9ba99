"""What resource types ask over HTTP: bounded, never redirected, every address judged.

It fills the port of engine/types/http_client.py.
"""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_network
from types import TracebackType
from typing import Self

import aiohttp

from channels.webhook.client import read_whole, why_not
from channels.webhook.guard import (
    GuardedResolver,
    Lookup,
    Network,
    Refused,
    guarded_connector,
    parse_target,
)
from engine.types.http_client import NoResponse, Request, Response

#: For addresses that the operator names, not a template: there is nothing to judge.
ANYWHERE: tuple[Network, ...] = (ip_network("0.0.0.0/0"), ip_network("::/0"))


async def system_lookup(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


def plain_session(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    """Keeps no cookies, heeds no variables of the environment, unpacks nothing: few bytes could
    become many."""
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"user-agent": "headgate", "accept-encoding": "identity"},
        auto_decompress=False,
        trust_env=False,
    )


@dataclass(frozen=True, slots=True)
class OutboundSettings:
    """allow: networks that may be reached besides public ones. Times in seconds, sizes in bytes.
    remedy: what may be done about an address that is refused. tls: None: the system's
    authorities."""

    allow: tuple[Network, ...] = ()
    remedy: str = ""
    connect_timeout: float = 5.0
    timeout: float = 30.0
    max_answer: int = 1_048_576
    tls: ssl.SSLContext | None = None


class Outbound:
    """An async context manager: the session lives as long as it is entered.

    lookup: gives a host's addresses.
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

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    def refusal(self, url: str) -> tuple[str, str] | None:
        _, found = parse_target(url, self._settings.allow, remedy=self._settings.remedy)
        return (found[0].reason, found[0].remedy) if found else None

    async def ask(self, request: Request) -> Response:
        """Raises NoResponse."""
        settings = self._settings
        url, found = parse_target(request.url, settings.allow, remedy=settings.remedy)
        if url is None:
            raise NoResponse("; ".join(str(one) for one in found), retry=False)
        if self._session is None:
            raise RuntimeError("the HTTP client is used outside its context manager")
        try:
            tls = _tls(request.ca_pem, request.insecure)
        except (OSError, ValueError):
            raise NoResponse(
                "the certificate authority is not a PEM certificate", retry=False
            ) from None
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
                read = await read_whole(response.content, settings.max_answer)
                if read is None:
                    response.close()
                    raise NoResponse(
                        f"the answer is longer than {settings.max_answer} bytes", retry=False
                    )
                headers = {name.lower(): value for name, value in response.headers.items()}
                return Response(response.status, headers, read)
        except TimeoutError:
            raise NoResponse(f"no whole answer within {settings.timeout:g} s", retry=True) from None
        except (aiohttp.ClientError, OSError, UnicodeError, ValueError) as error:
            raise NoResponse(why_not(error), retry=_may_pass(error)) from error


@lru_cache(maxsize=64)
def _tls(ca_pem: str, insecure: bool) -> ssl.SSLContext | bool:
    """Raises OSError, ValueError: it is no authority."""
    if insecure:
        return False
    return ssl.create_default_context(cadata=ca_pem) if ca_pem else True


def _may_pass(error: Exception) -> bool:
    """Whether asking again may help: not where an address or a certificate is refused."""
    match error:
        case aiohttp.ClientConnectorError(os_error=Refused()):
            return False
        case aiohttp.ClientSSLError() | UnicodeError() | ValueError():
            return False
        case _:
            return True
