"""Requests and event streams of one server and project.

Importing aiohttp takes longer than everything else in the start of a command, so it is imported for
the first request only, with yarl: `headgate --help`, completion and usage errors do not need them.
"""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, urlsplit

import orjson

from headgate.errors import RequestError, UnreachableError, response_error
from headgate.event_stream_parser import EventStreamParser

if TYPE_CHECKING:
    import aiohttp

Json = Any
Query = Mapping[str, str] | Sequence[tuple[str, str]]
#: The default URL of a server, and the default project.
URL, PROJECT = "http://127.0.0.1:8004", "default"
#: Items in a page of a list.
PAGE_SIZE = 1000
#: Seconds: for a request, for a connection, and without data or heartbeat on a stream.
TIMEOUT, CONNECT, SILENCE = 60.0, 5.0, 60.0
#: The part of an API path below the project.
_BELOW_PROJECT = re.compile(r"/v1/[^/]+(/.+)")


def _connection_errors() -> tuple[type[Exception], ...]:
    """The exceptions of a request without a usable response."""
    import aiohttp

    return (aiohttp.ClientError, TimeoutError, OSError)


@dataclass(frozen=True, slots=True)
class StreamedEvent:
    """An event of a stream. id: for `Last-Event-ID`; document: the CloudEvent."""

    id: str
    document: Json


class StreamedEvents:
    """The events of one connection, an async iterator."""

    def __init__(
        self, events: AsyncGenerator[StreamedEvent, None], parser: EventStreamParser, last: str
    ) -> None:
        self._events, self._parser, self._first = events, parser, last

    @property
    def last(self) -> str:
        """The ID of the place up to which the stream has been read, for `Last-Event-ID`: also
        before the first event. Empty: not known."""
        return self._parser.last_id or self._first

    def __aiter__(self) -> "StreamedEvents":
        return self

    async def __anext__(self) -> StreamedEvent:
        return await anext(self._events)


def url_path(*parts: str) -> str:
    """A path below the project. Each part is quoted, and can contain any character."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """Empty ones are not sent. roles: separated by commas."""

    user: str = ""
    roles: str = ""
    token: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    def headers(self) -> dict[str, str]:
        headers = {
            "X-Auth-User": self.user,
            "X-Roles": self.roles,
            "X-Auth-Token": self.token,
            "X-Auth-Key": self.password,
        }
        return {name: value for name, value in headers.items() if value}


class ApiConnection:
    """An async context manager for one server and project. timeout: seconds for a request."""

    #: The remedies in errors: without a response, and after one with the status 401.
    unreachable_remedy = "Check the URL, and that the server runs."
    credential_remedy = ""
    #: The place of the URL, in the remedy for one with the wrong scheme.
    url_place = "the URL"

    def __init__(
        self,
        url: str,
        project: str,
        credentials: ClientCredentials | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        self.url = url.rstrip("/")
        self.project = project
        self._base = f"{self.url}/v1{url_path(project)}"
        self._headers = (credentials or ClientCredentials()).headers()
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None
        self._has_responded = False

    async def __aenter__(self) -> Self:
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=self._timeout, connect=CONNECT)
        self._session = aiohttp.ClientSession(timeout=timeout, headers=self._headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> "aiohttp.ClientSession":
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
        """Send a request and return the document of the response, or None. path: below the project.

        Follows a redirect from a short path, with the same method and body. Raises RequestError.
        """
        data = None if body is None else orjson.dumps(body)
        sent = {"Content-Type": "application/json", **(headers or {})}
        response = await self._once(method, path, data, query, sent)
        if response.status == 302:
            # Behind a proxy, the server can have another address than the client uses.
            below = _BELOW_PROJECT.search(response.location)
            path = below.group(1) if below else response.location
            response = await self._once(method, path, data, None, sent)
        return self._document(response)

    async def redirect_of(self, path: str) -> str:
        """The address to which a path sends browsers. Raises RequestError."""
        response = await self._once("GET", path, None, None, {"Accept": "application/json"})
        if response.status >= 400:
            raise self._error(response)
        return response.location

    async def read_server(self, path: str) -> Json:
        """The document at a path of the server that belongs to no project. Raises RequestError."""
        return self._document(await self._once("GET", path, None, None, {}, base=self.url))

    async def _once(
        self,
        method: str,
        path: str,
        data: bytes | None,
        query: Query | None,
        headers: Mapping[str, str],
        base: str | None = None,
    ) -> "_Response":
        """base: the beginning of the URL; None: that of the project."""
        from yarl import URL

        url = URL(f"{base or self._base}{path}", encoded=True)
        try:
            async with self._open().request(
                method, url, data=data, params=query, headers=headers, allow_redirects=False
            ) as response:
                location = response.headers.get("Location", "")
                result = _Response(
                    response.status, await response.read(), location, _error_headers(response)
                )
        except _connection_errors() as error:
            raise await self._no_response(error) from error
        await self._check_scheme(url.raw_path, result)
        self._has_responded = True
        return result

    async def _no_response(self, error: BaseException) -> UnreachableError:
        from headgate.connection_errors import is_no_http

        if not self._has_responded and is_no_http(error) and await self._expects_tls():
            return self._wrong_scheme("https")
        return self._unreachable(error)

    async def _check_scheme(self, path: str, response: "_Response") -> None:
        """Raises UnreachableError for a response that says that the URL must begin with https://.
        path: of the request."""
        if self._has_responded or not self.url.startswith("http://"):
            return
        # The server itself redirects to other paths, perhaps at the public URL of its proxy.
        target = urlsplit(response.location)
        if (target.scheme, target.path) == ("https", path) or (
            response.status == 400
            and _json_or_none(response.raw) is None
            and await self._expects_tls()
        ):
            raise self._wrong_scheme("https")

    async def _expects_tls(self) -> bool:
        from headgate.connection_errors import uses_tls

        url = urlsplit(self.url)
        return url.scheme == "http" and await uses_tls(url.hostname or "", url.port or 80, CONNECT)

    def _wrong_scheme(self, scheme: str) -> UnreachableError:
        """scheme: the right one."""
        right = f"{scheme}://{self.url.partition('://')[2]}"
        uses = "expects TLS" if scheme == "https" else "does not use TLS"
        reason = f"no response from {self.url}: the server {uses} there"
        return UnreachableError(reason, f"Set {self.url_place} to {right}.")

    def _document(self, response: "_Response") -> Json:
        if response.status >= 400:
            raise self._error(response)
        if not response.raw.strip():
            return None
        try:
            return orjson.loads(response.raw)
        except orjson.JSONDecodeError as error:
            reason = f"the server at {self.url} is not a Headgate server"
            raise UnreachableError(reason, self.unreachable_remedy) from error

    def _error(self, response: "_Response") -> RequestError:
        remedy = self.credential_remedy if response.status == 401 else ""
        document = _json_or_none(response.raw)
        retry_after, request_id = response.error_headers
        return response_error(response.status, document, retry_after, remedy, request_id)

    def _unreachable(self, error: BaseException) -> UnreachableError:
        from headgate.connection_errors import (
            TlsMistake,
            authority_remedy,
            describe,
            may_have_arrived,
            tls_mistake,
        )

        mistake = tls_mistake(error)
        if mistake is TlsMistake.PLAIN_SERVER:
            return self._wrong_scheme("http")
        remedies = {
            TlsMistake.AUTHORITY: authority_remedy(),
            TlsMistake.NAME: f"Use a name of the certificate as the host in {self.url_place}, or"
            " let the server present a certificate for this host.",
            TlsMistake.TIME: "Renew the certificate of the server, or correct the clock of this"
            " machine.",
        }
        remedy = remedies[mistake] if mistake else self.unreachable_remedy
        result = UnreachableError(f"no response from {self.url}: {describe(error)}", remedy)
        result.may_have_arrived = may_have_arrived(error)
        return result

    @asynccontextmanager
    async def stream(
        self, *, query: Query | None = None, last: str = ""
    ) -> AsyncGenerator[StreamedEvents, None]:
        """The events of the project after the event with the ID `last`, or from now on. They end
        when the server ends the stream. The context and the iteration raise RequestError. query:
        selects events, as for `GET /v1/{project}/events/stream`.
        """
        import aiohttp
        from yarl import URL

        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT, sock_read=SILENCE)
        try:
            response = await self._open().get(
                URL(f"{self._base}/events/stream", encoded=True),
                params=query or {},
                headers={"Last-Event-ID": last} if last else {},
                timeout=timeout,
            )
        except _connection_errors() as error:
            raise self._unreachable(error) from error
        async with response:
            if response.status != 200:
                raise self._error(
                    _Response(response.status, await response.read(), "", _error_headers(response))
                )
            parser = EventStreamParser()
            async with aclosing(self._events(response, parser)) as events:
                yield StreamedEvents(events, parser, last)

    async def _events(
        self, response: "aiohttp.ClientResponse", parser: EventStreamParser
    ) -> AsyncGenerator[StreamedEvent, None]:
        try:
            async for chunk in response.content.iter_any():
                for fields in parser.feed(chunk):
                    yield StreamedEvent(fields.get("id", ""), orjson.loads(fields["data"]))
        except (RuntimeError, ValueError) as error:
            # aiohttp raises RuntimeError when the server breaks off a stream.
            raise self._unreachable(error) from error
        except _connection_errors() as error:
            raise self._unreachable(error) from error

    async def pages(
        self, path: str, query: Mapping[str, str], *, marker: str = "marker"
    ) -> AsyncGenerator[Json, None]:
        """The pages of a list. marker: the query parameter with the position of the next page."""
        parameters = dict(query)
        while True:
            page = await self.call("GET", path, query=parameters)
            yield page
            if not page.get("next"):
                return
            parameters[marker] = str(page["next"])


@dataclass(frozen=True, slots=True)
class _Response:
    status: int
    raw: bytes
    location: str
    error_headers: tuple[str, str]


def _error_headers(response: "aiohttp.ClientResponse") -> tuple[str, str]:
    """Retry-After, and the ID of the request."""
    headers = response.headers
    return headers.get("Retry-After", ""), headers.get("X-Openstack-Request-Id", "")


def _json_or_none(raw: bytes) -> Json:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
