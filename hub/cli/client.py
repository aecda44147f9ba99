"""Speaks to a headgate over HTTP, and says in words what went wrong."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import aiohttp
import orjson
from yarl import URL

from hub.cli.sse import Reader
from hub.connection_errors import describe

Json = Any
Query = Mapping[str, str] | Sequence[tuple[str, str]]
#: Seconds: a request whole; until a connection stands; a stream without even a heartbeat.
TIMEOUT, CONNECT, SILENCE = 60.0, 5.0, 60.0
#: What follows the project in an address of the API.
_BELOW_PROJECT = re.compile(r"/v1/[^/]+(/.+)")
_BROKEN = (aiohttp.ClientError, TimeoutError, OSError)


class Refused(Exception):
    """What the server (or the way to it) said: status 0 when no server answered. findings: place,
    reason and remedy of each, where it found something wrong with what was sent."""

    def __init__(
        self, status: int, message: str, code: str = "", findings: Sequence[Json] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.findings = findings


@dataclass(frozen=True, slots=True)
class StreamedEvent:
    id: str
    document: Json


def place(*parts: str) -> str:
    """A path below the project. Names may be anything: each stays one part of the path."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


@dataclass(frozen=True, slots=True)
class Who:
    """Who asks; "" says nothing. roles: separated by commas."""

    user: str = ""
    roles: str = ""
    token: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    def headers(self) -> dict[str, str]:
        said = {
            "X-Auth-User": self.user,
            "X-Roles": self.roles,
            "X-Auth-Token": self.token,
            "X-Auth-Key": self.password,
        }
        return {name: value for name, value in said.items() if value}


class Client:
    """An async context manager for one server and project."""

    def __init__(self, url: str, project: str, who: Who | None = None) -> None:
        self._url = url.rstrip("/")
        self._base = f"{self._url}/v1{place(project)}"
        self._who = (who or Who()).headers()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT, connect=CONNECT)
        self._session = aiohttp.ClientSession(timeout=timeout, headers=self._who)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the client is used outside its context manager")
        return self._session

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Json = None,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        """path: below the project. Short paths are followed with method and body kept.

        Raises Refused.
        """
        data = None if body is None else orjson.dumps(body)
        sent = {"Content-Type": "application/json", **(headers or {})}
        status, raw, location = await self._once(method, path, data, query, sent)
        if status == 302:
            # Only the path is taken over: the server may know itself by another name than we do.
            below = _BELOW_PROJECT.search(location)
            path = below.group(1) if below else location
            status, raw, _ = await self._once(method, path, data, None, sent)
        if status >= 400:
            raise refused(status, _json_or_none(raw))
        return self._answer(raw)

    async def _once(
        self,
        method: str,
        path: str,
        data: bytes | None,
        query: Query | None,
        headers: Mapping[str, str],
    ) -> tuple[int, bytes, str]:
        url = URL(f"{self._base}{path}", encoded=True)
        try:
            async with self._open().request(
                method, url, data=data, params=query, headers=headers, allow_redirects=False
            ) as response:
                location = response.headers.get("Location", "")
                return response.status, await response.read(), location
        except _BROKEN as error:
            raise self._unreachable(error) from error

    def _answer(self, raw: bytes) -> Json:
        if not raw.strip():
            return None
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            said = f"the server at {self._url} is not a Headgate server"
            raise Refused(0, f"{said}. Set --url or HEADGATE_URL.") from error

    def _unreachable(self, error: BaseException) -> Refused:
        said = f"no answer from {self._url}: {describe(error)}."
        remedy = "Start a server with `headgate serve`, or set --url or HEADGATE_URL."
        return Refused(0, f"{said} {remedy}")

    @asynccontextmanager
    async def stream(
        self, *, stack: str | None = None, last: str = ""
    ) -> AsyncGenerator[AsyncGenerator[StreamedEvent, None], None]:
        """Events after `last`, or from now on: nothing that happens inside the block is missed.

        The events end when the server ends the stream. Raises Refused, as do the events.
        """
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT, sock_read=SILENCE)
        try:
            response = await self._open().get(
                URL(f"{self._base}/events/stream", encoded=True),
                params={"stack": stack} if stack else {},
                headers={"Last-Event-ID": last} if last else {},
                timeout=timeout,
            )
        except _BROKEN as error:
            raise self._unreachable(error) from error
        async with response:
            if response.status != 200:
                raise refused(response.status, _json_or_none(await response.read()))
            async with aclosing(self._events(response)) as events:
                yield events

    async def _events(
        self, response: aiohttp.ClientResponse
    ) -> AsyncGenerator[StreamedEvent, None]:
        reader = Reader()
        try:
            async for chunk in response.content.iter_any():
                for fields in reader.feed(chunk):
                    yield StreamedEvent(fields.get("id", ""), orjson.loads(fields["data"]))
        except (*_BROKEN, RuntimeError, ValueError) as error:
            # aiohttp says RuntimeError of a stream that the server broke off.
            raise self._unreachable(error) from error


def _json_or_none(raw: bytes) -> Json:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None


def refused(status: int, answer: Json) -> Refused:
    """Place, reason and remedy, from either form of the server's errors."""
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict):
        return Refused(
            status,
            f"the server answered {status} without an error message; is it a Headgate server?",
        )
    found = error.get("findings") or []
    findings = found or [
        {
            "place": error.get("place"),
            "reason": error.get("message"),
            "remedy": error.get("remedy"),
        }
    ]
    said = "\n".join(_line(one) for one in findings)
    if status == 401:
        said += " Set HEADGATE_TOKEN to a token."
    return Refused(status, said, str(error.get("type", "")), found)


def _line(finding: Mapping[str, Json]) -> str:
    reason = str(finding.get("reason") or "")
    place, remedy = finding.get("place"), finding.get("remedy")
    said = f"{place}: {reason}" if place else reason
    return f"{said.rstrip('.')}. {remedy}" if remedy else said
