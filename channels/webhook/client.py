"""Sends one event to one URL: a signed POST with limits on time and size, without redirects."""

import asyncio
import os
import socket
import ssl
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from types import TracebackType
from typing import Self

import aiohttp
import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from yarl import URL

from channels.contract import (
    RECEIVER_DECISIONS,
    Delivered,
    Endpoint,
    EventMessage,
    Failed,
    ReceiverDecision,
)
from channels.envelope import CONTENT_TYPE
from channels.webhook import sign
from engine.errors import Finding, Invalid
from engine.outgoing_address_check import (
    GuardedResolver,
    Lookup,
    Network,
    RefusedTarget,
    guarded_connector,
    is_address,
    parse_target,
    target_finding,
)

#: Bytes of a response in the delivery history.
KEPT_ANSWER = 500

#: The status of an endpoint that is permanently gone.
GONE = 410

#: Name resolution blocks a thread until the name server responds. Webhooks have their own threads,
#: so that a slow name server does not delay other parts of the process.
RESOLVER_THREADS = 64


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """allow: allowed networks in addition to public ones. operator_allow: further ones for
    subscriptions in the settings file. Times in seconds, sizes in bytes.

    tls: None: the system's certificate authorities, no client certificate. proxy: the URL of the
    proxy of all requests, or "". A proxy resolves the names and decides which are allowed; the
    addresses are not checked here. key: signs in addition to the subscription's secrets.
    """

    allow: tuple[Network, ...] = ()
    connect_timeout: float = 5.0
    timeout: float = 15.0
    max_response: int = 65_536
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    proxy: str = field(default="", repr=False)
    key: Ed25519PrivateKey | None = field(default=None, repr=False)
    operator_allow: tuple[Network, ...] = ()

    def allowed_networks(self, *, configured: bool) -> tuple[Network, ...]:
        """configured: for a subscription in the settings file."""
        return (*self.allow, *self.operator_allow) if configured else self.allow


class WebhookChannel:
    """An async context manager, which opens and closes the HTTP sessions.

    lookup: resolves the addresses of a host; None: the system's resolver.
    """

    name = "webhook"

    def __init__(self, settings: WebhookSettings, *, lookup: Lookup | None = None) -> None:
        self._settings = settings
        self._threads = ThreadPoolExecutor(RESOLVER_THREADS, thread_name_prefix="resolve")
        self._resolvers = {
            configured: GuardedResolver(
                lookup or self._system_lookup, settings.allowed_networks(configured=configured)
            )
            for configured in (False, True)
        }
        #: By `configured`: separate connections, because the allowed networks differ.
        self._sessions: dict[bool, aiohttp.ClientSession] = {}

    @property
    def public_key(self) -> str | None:
        """The public key for receivers; None: only secrets sign."""
        return sign.public_key(self._settings.key) if self._settings.key else None

    async def __aenter__(self) -> Self:
        for configured in self._resolvers:
            self._sessions[configured] = self._session(configured)
        return self

    def _session(self, configured: bool) -> aiohttp.ClientSession:
        settings = self._settings
        return aiohttp.ClientSession(
            connector=self._connector(configured),
            proxy=settings.proxy or None,
            timeout=aiohttp.ClientTimeout(total=settings.timeout, connect=settings.connect_timeout),
            cookie_jar=aiohttp.DummyCookieJar(),
            # No compressed responses: a few bytes could decompress to many.
            headers={"user-agent": "headgate", "accept-encoding": "identity"},
            auto_decompress=False,
            trust_env=False,
        )

    def _connector(self, configured: bool) -> aiohttp.TCPConnector:
        settings = self._settings
        if settings.proxy:
            return aiohttp.TCPConnector(ssl=settings.tls or True, limit=0)
        allow = settings.allowed_networks(configured=configured)
        return guarded_connector(self._resolvers[configured], allow, tls=settings.tls)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def check_target(self, target: str) -> None:
        """Validate the target of a project and resolve its name. Raises Invalid with every
        finding."""
        url, found = parse_target(target, self._settings.allow)
        if url is None:
            raise Invalid(found)
        host = url.raw_host or ""
        if is_address(host) or self._settings.proxy:
            return
        try:
            async with asyncio.timeout(self._settings.connect_timeout):
                await self._resolvers[False].resolve(host, url.port or 0)
        except RefusedTarget as error:
            raise Invalid([target_finding(f"may not be reached: {error}", "")]) from error
        except (OSError, TimeoutError, UnicodeError) as error:
            remedy = "Check the spelling, and whether DNS has the name."
            raise Invalid([target_finding(f"{host} does not resolve", remedy)]) from error

    async def deliver(self, message: EventMessage, endpoint: Endpoint) -> Delivered | Failed:
        """Make one attempt. Raises CancelledError only."""
        body = orjson.dumps(message.document)
        signed = sign.headers(
            message.id, message.sent_at, body, endpoint.secrets, self._settings.key
        )
        headers = {"content-type": CONTENT_TYPE, **signed, **_trace(message)}
        return await self.post(message, endpoint, body, headers)

    async def post(
        self, message: EventMessage, endpoint: Endpoint, body: bytes, headers: Mapping[str, str]
    ) -> Delivered | Failed:
        """Send a body to the target of an endpoint. Raises CancelledError only."""
        allow = self._settings.allowed_networks(configured=endpoint.configured)
        url, found = _parse(endpoint.target, allow)
        if url is None:
            return Failed("; ".join(str(one) for one in found))
        session = self._sessions.get(endpoint.configured)
        if session is None:
            raise RuntimeError("the webhook channel is not open: enter its context first")
        try:
            async with session.post(
                url, data=body, headers=headers, allow_redirects=False
            ) as response:
                read = await read_whole(response.content, self._settings.max_response)
                if read is None:
                    response.close()
                return _outcome(message, response.status, response.headers, read)
        except TimeoutError:
            return Failed(f"no complete response within {self._settings.timeout:g} s")
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            return Failed(failure_reason(error))

    async def _system_lookup(self, host: str, port: int) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _addresses, host, port)
        return list(dict.fromkeys(found))


def _trace(message: EventMessage) -> dict[str, str]:
    return {"traceparent": message.traceparent} if message.traceparent else {}


@lru_cache(maxsize=1024)
def _parse(target: str, allow: tuple[Network, ...]) -> tuple[URL | None, list[Finding]]:
    """Cached: the result depends on the text only, and not on the resolved addresses."""
    return parse_target(target, allow)


def _addresses(host: str, port: int) -> list[str]:
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(info[4][0]) for info in infos]


async def read_whole(content: aiohttp.StreamReader, limit: int) -> bytes | None:
    """The body; None: it is larger than the limit, and the rest is not read."""
    read = bytearray()
    async for chunk in content.iter_any():
        read += chunk
        if len(read) > limit:
            return None
    return bytes(read)


def _without_token(message: EventMessage, body: bytes | None) -> bytes | None:
    """Mask the hook token in a response: readers of the delivery history may not answer the
    hook."""
    token = message.document.get("data", {}).get("token")
    return body.replace(token.encode(), b"******") if body and token else body


def _outcome(
    message: EventMessage, code: int, headers: Mapping[str, str], body: bytes | None
) -> Delivered | Failed:
    """The result of an attempt from its response. body: None: it was larger than the limit."""
    body = _without_token(message, body)
    kept = (body or b"")[:KEPT_ANSWER].decode(errors="replace").replace("\x00", "\ufffd")
    if 200 <= code < 300:
        decision, note = _decision(body) if message.waiting else (None, "")
        return Delivered(code, kept, decision, note)
    if 300 <= code < 400:
        return Failed("it redirects; redirects are not followed", code, kept)
    after = _retry_after(headers.get("retry-after", ""), message.sent_at)
    return Failed(f"it answered {code}", code, kept, after, final=code == GONE)


def _decision(body: bytes | None) -> tuple[ReceiverDecision | None, str]:
    """The decision in a response, if any; or a note about a decision that is ignored."""
    if body is None:
        return None, "the response is too long and was not read, so a decision in it is ignored"
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None, ""
    if not isinstance(answer, dict) or "decision" not in answer:
        return None, ""
    decision, reason = answer["decision"], answer.get("reason")
    if decision not in RECEIVER_DECISIONS:
        known = " or ".join(RECEIVER_DECISIONS)
        return None, f"the decision in the response is unknown; it must be {known}"
    more = {
        name: answer[name] for name in ("data", "properties", "digest", "extend") if name in answer
    }
    return ReceiverDecision(decision, reason if isinstance(reason, str) else "", more), ""


def _retry_after(header: str, now: datetime) -> float | None:
    """Seconds. The header is a number of seconds or an HTTP date."""
    if header.isascii() and header.isdigit() and len(header) < 10:
        return float(header)
    try:
        date = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max((date - now).total_seconds(), 0.0) if date.tzinfo is not None else None


def _cause(error: OSError) -> str:
    """The system's text for the error number. The text of the error contains the address."""
    return os.strerror(error.errno) if error.errno else "it cannot be reached"


def failure_reason(error: Exception) -> str:
    """The reason of a failure, without the target's path, which may contain a secret, and without
    the resolved addresses, which may belong to an internal network."""
    match error:
        case aiohttp.ClientConnectorError(os_error=RefusedTarget() as refused):
            return f"may not be reached: {refused}"
        case aiohttp.ClientConnectorCertificateError(
            certificate_error=ssl.SSLCertVerificationError(verify_message=why)
        ):
            return f"no secure connection to {error.host}: {why.rstrip('.')}"
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            return f"no secure connection to {error.host}: the TLS handshake failed"
        case aiohttp.ClientConnectorError():
            return f"no connection to {error.host}:{error.port}: {_cause(error.os_error)}"
        case aiohttp.ServerDisconnectedError() | ConnectionError():
            return "the connection was closed before the response was complete"
        case aiohttp.ClientPayloadError():
            return "the response is incomplete"
        case aiohttp.ClientResponseError():
            return "the response is not valid HTTP"
        case _:
            return "the request failed"
