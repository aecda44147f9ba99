"""HTTP client of a Headgate server.

Importing aiohttp takes longer than everything else in the start of a command, so it is imported for
the first request only: `--help`, completion and usage errors do not need it.
"""

import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import orjson
from yarl import URL

if TYPE_CHECKING:
    import aiohttp

Json = Any
Query = Mapping[str, str] | Sequence[tuple[str, str]]
#: Seconds: for a request, for a connection, and without data or heartbeat on a stream.
TIMEOUT, CONNECT, SILENCE = 60.0, 5.0, 60.0
#: Maximum bytes of one line of an event stream.
MAX_LINE = 16 * 1024 * 1024
#: The part of an API path below the project.
_BELOW_PROJECT = re.compile(r"/v1/[^/]+(/.+)")


def _connection_errors() -> tuple[type[Exception], ...]:
    """The exceptions of a request without a usable response."""
    import aiohttp

    return (aiohttp.ClientError, TimeoutError, OSError)


class RequestError(Exception):
    """A request failed. status: of the response; 0: there was no usable response. findings: place,
    reason and remedy of each error in the request."""

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


class Client:
    """An async context manager for one server and project."""

    def __init__(
        self, url: str, project: str, credentials: ClientCredentials | None = None
    ) -> None:
        self._url = url.rstrip("/")
        self._base = f"{self._url}/v1{url_path(project)}"
        self._headers = (credentials or ClientCredentials()).headers()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=TIMEOUT, connect=CONNECT)
        self._session = aiohttp.ClientSession(timeout=timeout, headers=self._headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

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
        status, raw, location = await self._once(method, path, data, query, sent)
        if status == 302:
            # Behind a proxy, the server can have another address than the client uses.
            below = _BELOW_PROJECT.search(location)
            path = below.group(1) if below else location
            status, raw, _ = await self._once(method, path, data, None, sent)
        if status >= 400:
            raise response_error(status, _json_or_none(raw))
        return self._document(raw)

    async def read_server(self, path: str) -> Json:
        """The document at a path of the server that belongs to no project. Raises RequestError."""
        status, raw, _ = await self._once("GET", path, None, None, {}, base=self._url)
        if status >= 400:
            raise response_error(status, _json_or_none(raw))
        return self._document(raw)

    async def _once(
        self,
        method: str,
        path: str,
        data: bytes | None,
        query: Query | None,
        headers: Mapping[str, str],
        base: str | None = None,
    ) -> tuple[int, bytes, str]:
        """base: the beginning of the URL; None: that of the project."""
        url = URL(f"{base or self._base}{path}", encoded=True)
        try:
            async with self._open().request(
                method, url, data=data, params=query, headers=headers, allow_redirects=False
            ) as response:
                location = response.headers.get("Location", "")
                return response.status, await response.read(), location
        except _connection_errors() as error:
            raise self._unreachable(error) from error

    def _document(self, raw: bytes) -> Json:
        if not raw.strip():
            return None
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            reason = f"the server at {self._url} is not a Headgate server"
            raise RequestError(0, f"{reason}. Set --url or HEADGATE_URL.") from error

    def _unreachable(self, error: BaseException) -> RequestError:
        from hub.connection_errors import describe

        remedy = "Start a server with `headgate serve`, or set --url or HEADGATE_URL."
        return RequestError(0, f"no response from {self._url}: {describe(error)}. {remedy}")

    @asynccontextmanager
    async def stream(
        self, *, stack: str | None = None, last: str = ""
    ) -> AsyncGenerator[AsyncGenerator[StreamedEvent, None], None]:
        """The events of a stack (None: of the project) after the event with the ID `last`, or from
        now on. They end when the server ends the stream. The context and the iteration raise
        RequestError.
        """
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT, sock_read=SILENCE)
        try:
            response = await self._open().get(
                URL(f"{self._base}/events/stream", encoded=True),
                params={"stack": stack} if stack else {},
                headers={"Last-Event-ID": last} if last else {},
                timeout=timeout,
            )
        except _connection_errors() as error:
            raise self._unreachable(error) from error
        async with response:
            if response.status != 200:
                raise response_error(response.status, _json_or_none(await response.read()))
            async with aclosing(self._events(response)) as events:
                yield events

    async def _events(
        self, response: "aiohttp.ClientResponse"
    ) -> AsyncGenerator[StreamedEvent, None]:
        parser = EventStreamParser()
        try:
            async for chunk in response.content.iter_any():
                for fields in parser.feed(chunk):
                    yield StreamedEvent(fields.get("id", ""), orjson.loads(fields["data"]))
        except (RuntimeError, ValueError) as error:
            # aiohttp raises RuntimeError when the server breaks off a stream.
            raise self._unreachable(error) from error
        except _connection_errors() as error:
            raise self._unreachable(error) from error


def _json_or_none(raw: bytes) -> Json:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None


def response_error(status: int, document: Json) -> RequestError:
    """The error of a response. document: in either form of the API's errors; None: no JSON."""
    error = document.get("error") if isinstance(document, dict) else None
    if not isinstance(error, dict):
        reason = f"the server responded with {status} and no error message"
        return RequestError(status, f"{reason}; is it a Headgate server?")
    findings = error.get("findings") or []
    only = {key: error.get(name) for key, name in _FINDING_KEYS.items()}
    message = findings_text(findings or [only], {})
    if status == 401:
        message += " Set HEADGATE_TOKEN to a token."
    return RequestError(status, message, str(error.get("type", "")), findings)


#: Keys of a finding, and where an error without findings has them.
_FINDING_KEYS = {"place": "place", "reason": "message", "remedy": "remedy"}


def findings_text(findings: Sequence[Json], names: Mapping[str, str]) -> str:
    """The errors, each with its position and the quoted line. names: of files, where the server has
    other ones."""
    return "\n".join(_finding_text(one, names) for one in findings)


def _finding_text(finding: Mapping[str, Json], names: Mapping[str, str]) -> str:
    reason = str(finding.get("reason") or "")
    place, remedy = finding.get("place"), finding.get("remedy")
    text = f"{place}: {reason}" if place else reason
    text = f"{text.rstrip('.')}. {remedy}" if remedy else text
    file, line = finding.get("file"), finding.get("line")
    if file and line:
        text = f"{names.get(file, file)}:{line}:{finding.get('column')}: {text}"
    quote = str(finding.get("quote") or "")
    return "\n".join([text, *(f"    {each}" for each in quote.splitlines())])


async def find_stack(client: Client, name: str) -> Json:
    """A stack by name or ID, without its outputs. Raises RequestError."""
    query = {"resolve_outputs": "false"}
    return (await client.call("GET", url_path("stacks", name), query=query))["stack"]


async def call_stack(
    client: Client,
    name: str,
    method: str,
    *parts: str,
    body: Json = None,
    query: Query | None = None,
) -> Json:
    """Send a request to a path below a stack. Raises RequestError."""
    path = stack_path(await find_stack(client, name), *parts)
    return await client.call(method, path, body=body, query=query)


def stack_path(stack: Json, *parts: str) -> str:
    """The path of a stack, or below it."""
    return url_path("stacks", stack["stack_name"], stack["id"], *parts)


async def list_waiting_hooks(client: Client, stack_id: str | None = None) -> list[Json]:
    """All waiting hooks of a stack, or of the project."""
    query = {"state": "waiting", "limit": "1000"} | ({"stack": stack_id} if stack_id else {})
    return await read_pages(client, url_path("hooks"), "hooks", query)


async def read_pages(
    client: Client, path: str, key: str, query: Mapping[str, str], *, marker: str = "marker"
) -> list[Json]:
    """All items of a list, page by page. key: of the list in a page. marker: the query parameter
    with the position of the next page."""
    items: list[Json] = []
    parameters = dict(query)
    while True:
        page = await client.call("GET", path, query=parameters)
        items += page[key]
        if not page.get("next"):
            return items
        parameters[marker] = str(page["next"])


class EventStreamParser:
    """Parses server-sent events from chunks of bytes into their fields: id, event, data."""

    def __init__(self) -> None:
        self._rest = b""
        self._fields: dict[str, str] = {}

    def feed(self, chunk: bytes) -> Iterator[dict[str, str]]:
        """The events that this chunk completes. Raises ValueError if a line is too long."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_LINE:
            raise ValueError(f"a line of the stream is longer than {MAX_LINE} bytes")
        for line in lines:
            event = self._line(line.rstrip(b"\r").decode(errors="replace"))
            if event is not None:
                yield event

    def _line(self, line: str) -> dict[str, str] | None:
        if line.startswith(":"):
            return None
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return None
        fields, self._fields = self._fields, {}
        return fields if "data" in fields else None
