"""Carries one event to one URL: a signed POST, bounded in time and size, never redirected."""

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
from channels.webhook.guard import (
    JudgedResolver,
    Lookup,
    Network,
    Refused,
    finding,
    guarded_connector,
    is_address,
    parse_target,
)
from engine.errors import Finding, Invalid

#: How many letters of an answer are kept for people.
KEPT_ANSWER = 500

#: The status that says: never again.
GONE = 410

#: Resolving a name blocks a thread for as long as the name's server likes; these are our own, so
#: that one slow server delays nobody else's names.
RESOLVER_THREADS = 64


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """allow: networks that may be reached besides public ones. operator_allow: networks that
    subscriptions of the settings may reach besides these. Times in seconds, sizes in bytes.

    tls: None: the system's authorities, and no certificate of our own. proxy: the URL of one that
    everything goes through, or "". Names of targets are resolved there then, and not judged here:
    what may be reached is the proxy's to say. key: signs besides the subscription's secrets.
    """

    allow: tuple[Network, ...] = ()
    connect_timeout: float = 5.0
    timeout: float = 15.0
    max_answer: int = 65_536
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    proxy: str = field(default="", repr=False)
    key: Ed25519PrivateKey | None = field(default=None, repr=False)
    operator_allow: tuple[Network, ...] = ()

    def allowed(self, *, configured: bool) -> tuple[Network, ...]:
        """configured: for a subscription of the settings."""
        return (*self.allow, *self.operator_allow) if configured else self.allow


class WebhookChannel:
    """An async context manager: the session lives as long as it is entered.

    lookup: gives a host's addresses; None asks the system's resolver.
    """

    name = "webhook"

    def __init__(self, settings: WebhookSettings, *, lookup: Lookup | None = None) -> None:
        self._settings = settings
        self._threads = ThreadPoolExecutor(RESOLVER_THREADS, thread_name_prefix="resolve")
        self._resolvers = {
            configured: JudgedResolver(
                lookup or self._system_lookup, settings.allowed(configured=configured)
            )
            for configured in (False, True)
        }
        #: Those of the settings have connections of their own: what one may reach is not open to
        #: the other.
        self._sessions: dict[bool, aiohttp.ClientSession] = {}

    @property
    def public_key(self) -> str | None:
        """What receivers may check signatures with; None: there is no key, only secrets."""
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
            # Compressed answers are neither asked for nor unpacked: few bytes could become many.
            headers={"user-agent": "headgate", "accept-encoding": "identity"},
            auto_decompress=False,
            trust_env=False,
        )

    def _connector(self, configured: bool) -> aiohttp.TCPConnector:
        settings = self._settings
        if settings.proxy:
            return aiohttp.TCPConnector(ssl=settings.tls or True, limit=0)
        allow = settings.allowed(configured=configured)
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
        """Judge the target of a project, its name resolved. Raises Invalid with every finding."""
        url, found = parse_target(target, self._settings.allow)
        if url is None:
            raise Invalid(found)
        host = url.raw_host or ""
        if is_address(host) or self._settings.proxy:
            return
        try:
            async with asyncio.timeout(self._settings.connect_timeout):
                await self._resolvers[False].resolve(host, url.port or 0)
        except Refused as error:
            raise Invalid([finding(f"may not be reached: {error}", "")]) from error
        except (OSError, TimeoutError, UnicodeError) as error:
            remedy = "Look at the spelling, and at whether the name is in the DNS."
            raise Invalid([finding(f"{host} does not resolve", remedy)]) from error

    async def deliver(self, message: EventMessage, endpoint: Endpoint) -> Delivered | Failed:
        """Try once. Raises nothing but what cancels it."""
        allow = self._settings.allowed(configured=endpoint.configured)
        url, found = _parsed(endpoint.target, allow)
        if url is None:
            return Failed("; ".join(str(one) for one in found))
        session = self._sessions.get(endpoint.configured)
        if session is None:
            raise RuntimeError("the webhook channel was not entered")
        body = orjson.dumps(message.document)
        headers = sign.headers(
            message.id, message.sent_at, body, endpoint.secrets, self._settings.key
        )
        try:
            async with session.post(
                url,
                data=body,
                headers={"content-type": CONTENT_TYPE, **headers, **_trace(message)},
                allow_redirects=False,
            ) as response:
                read = await read_whole(response.content, self._settings.max_answer)
                if read is None:
                    response.close()
                return _outcome(message, response.status, response.headers, read)
        except TimeoutError:
            return Failed(f"no whole answer within {self._settings.timeout:g} s")
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            return Failed(why_not(error))

    async def _system_lookup(self, host: str, port: int) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _addresses, host, port)
        return list(dict.fromkeys(found))


def _trace(message: EventMessage) -> dict[str, str]:
    return {"traceparent": message.traceparent} if message.traceparent else {}


@lru_cache(maxsize=1024)
def _parsed(target: str, allow: tuple[Network, ...]) -> tuple[URL | None, list[Finding]]:
    """What a target says does not change from one delivery to the next; its address may."""
    return parse_target(target, allow)


def _addresses(host: str, port: int) -> list[str]:
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(info[4][0]) for info in infos]


async def read_whole(content: aiohttp.StreamReader, limit: int) -> bytes | None:
    """The body, or None when it is larger than the limit: then the rest is left unread."""
    read = bytearray()
    async for chunk in content.iter_any():
        read += chunk
        if len(read) > limit:
            return None
    return bytes(read)


def _without_token(message: EventMessage, body: bytes | None) -> bytes | None:
    """Mask the hook token in a response: people who may not answer read what is kept of it."""
    token = message.document.get("data", {}).get("token")
    return body.replace(token.encode(), b"******") if body and token else body


def _outcome(
    message: EventMessage, code: int, headers: Mapping[str, str], body: bytes | None
) -> Delivered | Failed:
    """Read an answer. body None: there was more of it than is read."""
    body = _without_token(message, body)
    kept = (body or b"")[:KEPT_ANSWER].decode(errors="replace").replace("\x00", "\ufffd")
    if 200 <= code < 300:
        decision, note = _decision(body) if message.waiting else (None, "")
        return Delivered(code, kept, decision, note)
    if 300 <= code < 400:
        return Failed("it redirects, which is not followed", code, kept)
    after = _retry_after(headers.get("retry-after", ""), message.sent_at)
    return Failed(f"it answered {code}", code, kept, after, final=code == GONE)


def _decision(body: bytes | None) -> tuple[ReceiverDecision | None, str]:
    """What the receiver decided in its answer, if anything; else a note where it seems to try."""
    if body is None:
        return None, "the answer is too long to hold a decision; it was not read"
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None, ""
    if not isinstance(said, dict) or "decision" not in said:
        return None, ""
    decision, reason = said["decision"], said.get("reason")
    if decision not in RECEIVER_DECISIONS:
        known = " or ".join(RECEIVER_DECISIONS)
        return None, f"the answer's decision is not known; it may be {known}"
    more = {name: said[name] for name in ("data", "properties", "digest", "extend") if name in said}
    return ReceiverDecision(decision, reason if isinstance(reason, str) else "", more), ""


def _retry_after(said: str, now: datetime) -> float | None:
    """Seconds: the header is a number of them, or a date."""
    if said.isascii() and said.isdigit() and len(said) < 10:
        return float(said)
    try:
        date = parsedate_to_datetime(said)
    except ValueError:
        return None
    return max((date - now).total_seconds(), 0.0) if date.tzinfo is not None else None


def _cause(error: OSError) -> str:
    """The system's text for it. The error's own names the address that was connected to."""
    return os.strerror(error.errno) if error.errno else "it cannot be reached"


def why_not(error: Exception) -> str:
    """What went wrong, without the target's path, which may hold a secret, and without the
    addresses that its name resolves to, which may be of an inner network."""
    match error:
        case aiohttp.ClientConnectorError(os_error=Refused() as refused):
            return f"may not be reached: {refused}"
        case aiohttp.ClientConnectorCertificateError(
            certificate_error=ssl.SSLCertVerificationError(verify_message=why)
        ):
            return f"no secure connection to {error.host}: {why.rstrip('.')}"
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            return f"no secure connection to {error.host}: {type(error).__name__}"
        case aiohttp.ClientConnectorError():
            return f"no connection to {error.host}:{error.port}: {_cause(error.os_error)}"
        case aiohttp.ServerDisconnectedError() | ConnectionError():
            return "the connection was closed before the answer was whole"
        case _:
            return f"no whole answer: {type(error).__name__}"
