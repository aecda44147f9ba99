"""Speaks to a headgate over HTTP, and says in words what went wrong."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import aiohttp
import orjson

Json = Any
#: Seconds a request may take.
TIMEOUT = 60.0


class Refused(Exception):
    """What the server (or the way to it) said: status 0 when no server answered."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class StreamedEvent:
    id: str
    document: Json


class Client:
    """An async context manager for one server and project."""

    def __init__(self, url: str, project: str) -> None:
        self._url = url.rstrip("/")
        self._base = f"{self._url}/v1/{project}"
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT, connect=5)
        self._session = aiohttp.ClientSession(timeout=timeout)
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
            raise RuntimeError("the client is used outside of its context")
        return self._session

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Json = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        """path: below the project. Short paths are followed with method and body kept.

        Raises Refused.
        """
        url, data = f"{self._base}{path}", None if body is None else orjson.dumps(body)
        sent = {"Content-Type": "application/json", **(headers or {})}
        status, raw, location = await self._once(method, url, data, query, sent)
        if status == 302:
            status, raw, _ = await self._once(method, location, data, None, sent)
        answer = _json(raw)
        if status >= 400:
            raise refused(status, answer)
        return answer

    async def _once(
        self,
        method: str,
        url: str,
        data: bytes | None,
        query: Mapping[str, str] | None,
        headers: Mapping[str, str],
    ) -> tuple[int, bytes, str]:
        try:
            async with self._open().request(
                method, url, data=data, params=query, headers=headers, allow_redirects=False
            ) as response:
                location = response.headers.get("Location", "")
                return response.status, await response.read(), location
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: BaseException) -> Refused:
        said = f"no answer from {self._url} ({type(error).__name__})."
        remedy = "Start a server with `headgate serve`, or name one with --url or HEADGATE_URL."
        return Refused(0, f"{said} {remedy}")

    async def events(
        self, *, stack: str | None = None, last: str = ""
    ) -> AsyncGenerator[StreamedEvent, None]:
        """Events as they happen, after `last`; ends when the server ends the stream."""
        query = {"stack": stack} if stack else {}
        headers = {"Last-Event-ID": last} if last else {}
        timeout = aiohttp.ClientTimeout(total=None, connect=5, sock_read=60)
        try:
            async with self._open().get(
                f"{self._base}/events/stream", params=query, headers=headers, timeout=timeout
            ) as response:
                if response.status != 200:
                    raise refused(response.status, _json(await response.read()))
                fields: dict[str, str] = {}
                async for line in response.content:
                    text = line.decode().rstrip("\n")
                    if text:
                        name, _, value = text.partition(": ")
                        fields[name] = value
                    elif "data" in fields:
                        yield StreamedEvent(fields.get("id", ""), orjson.loads(fields["data"]))
                        fields = {}
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from error


def _json(raw: bytes) -> Json:
    if not raw.strip():
        return None
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None


def refused(status: int, answer: Json) -> Refused:
    """Place, reason and remedy, from either form of the server's errors."""
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict):
        return Refused(status, f"the server answered {status}")
    findings = error.get("findings") or [
        {
            "place": error.get("place"),
            "reason": error.get("message"),
            "remedy": error.get("remedy"),
        }
    ]
    lines = [_line(one) for one in findings]
    return Refused(status, "\n".join(lines), str(error.get("type", "")))


def _line(finding: Mapping[str, Json]) -> str:
    reason = str(finding.get("reason") or "")
    place, remedy = finding.get("place"), finding.get("remedy")
    said = f"{place}: {reason}" if place else reason
    return f"{said.rstrip('.')}. {remedy}" if remedy else said
