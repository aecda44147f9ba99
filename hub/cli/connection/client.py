"""The client of the command line: the one of `headgate`, with the remedies of the command line, and
objects by a prefix of their ID."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from shlex import quote
from typing import TYPE_CHECKING, Any

from headgate.connection import PAGE_SIZE, ApiConnection, Query, url_path
from headgate.errors import RequestError, UnreachableError

if TYPE_CHECKING:
    from hub.cli.connection.outage import Outage

Json = Any
#: What is to be said of a request that the server may have received.
MAYBE_DONE = "the server may have carried out the request. Check before you repeat it"
#: Characters of a complete ID.
ID_LENGTH = 36
#: The beginning of an ID that is long enough to be looked for.
_PREFIX = re.compile(
    r"[0-9a-f]{4,8}|[0-9a-f]{8}(-[0-9a-f]{4}){0,2}-[0-9a-f]{0,4}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-"
    r"[0-9a-f]{0,11}",
    re.IGNORECASE,
)


#: What may be one that is too short.
_SHORT = re.compile(r"[0-9a-f]{1,3}", re.IGNORECASE)
SHORT_PREFIX = "A prefix of an ID has 4 or more characters"


class ApiClient(ApiConnection):
    """An async context manager for one server and project.

    continuation: what the server does, or may have done, if the command ends now, and the command
    that follows it; empty: nothing. Messages about an interruption and about errors end with it.
    found_stack: the name of the last stack that the command has found, as an argument.
    """

    unreachable_remedy = "Start a server with `headgate serve`, or set --url or HEADGATE_URL."
    credential_remedy = "Sign in with `headgate login`, or set HEADGATE_TOKEN to a token."
    url_place = "--url, HEADGATE_URL or the URL of the context"
    continuation = ""
    found_stack = "STACK"
    _maybe_done = False
    _outage: "Outage | None" = None

    @property
    def interruption(self) -> str:
        """The message of a command that is interrupted now."""
        text = self.continuation or (MAYBE_DONE if self._maybe_done else "")
        return f"interrupted; {text}" if text else "interrupted"

    def addition_to(self, error: RequestError) -> str:
        """The sentences about what the server does in spite of an error that ends the command. It
        does nothing for an object that does not exist."""
        if error.status == 404:
            return ""
        text = self.continuation
        if not text and self._maybe_done and isinstance(error, UnreachableError):
            text = MAYBE_DONE if error.may_have_arrived else ""
        return f"{text[0].upper()}{text[1:]}." if text else ""

    @asynccontextmanager
    async def waiting(self) -> "AsyncGenerator[None, None]":
        """In the block, requests that read are repeated while the server does not respond."""
        from hub.cli.connection.outage import Outage

        before, self._outage = self._outage, Outage()
        try:
            yield
        finally:
            self._outage = before

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Json = None,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        self._maybe_done = self._maybe_done or method != "GET"
        while True:
            try:
                result = await super().call(method, path, body=body, query=query, headers=headers)
            except RequestError as error:
                if self._outage is None or method != "GET":
                    raise
                await self._outage.endure(error)
            else:
                if self._outage is not None:
                    self._outage.end()
                return result


async def call_stack(
    client: ApiClient,
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


async def list_waiting_hooks(client: ApiClient, stack_id: str | None = None) -> list[Json]:
    """All waiting hooks of a stack, or of the project."""
    query = {"state": "waiting", "limit": "1000"} | ({"stack": stack_id} if stack_id else {})
    return await read_pages(client, url_path("hooks"), "hooks", query)


async def read_waiting_hooks(client: ApiClient, stack: Json) -> list[Json]:
    """The waiting hooks of a stack and its nested stacks; none of a deleted one."""
    if stack["stack_status"] == "DELETE_COMPLETE":
        return []
    return await list_waiting_hooks(client, stack["id"])


async def count_waiting_hooks(client: ApiClient) -> dict[str, int]:
    """ID of each root stack with waiting hooks, also in its nested stacks -> their number."""
    query = {"waiting": "true", "limit": str(PAGE_SIZE)}
    stacks = await read_pages(client, url_path("overview"), "stacks", query)
    return {one["id"]: one["hooks_waiting"] for one in stacks}


async def find_stack(client: ApiClient, name: str, *, outputs: bool = False) -> Json:
    """A stack by its name, its ID or a unique prefix of its ID. outputs: resolve its outputs.
    Raises RequestError."""
    from headgate.client import StackClient  # only a request needs it

    stacks = StackClient(client)
    try:
        stack: Json = await stacks.show(name, outputs=outputs)
    except RequestError as error:
        if error.status != 404:
            raise
        if _SHORT.fullmatch(name):
            text = f"{error} {SHORT_PREFIX}."
            raise type(error)(404, text, error.code, error.findings, error.document) from error
        if not is_prefix(name):
            raise
        found = await find_id(client, "stack", name)
        if found is None:
            raise
        stack = await stacks.show(found, outputs=outputs)
    client.found_stack = quote(stack.get("stack_name") or name)
    return stack


def is_prefix(text: str) -> bool:
    """Whether an ID can begin like this, and it is long enough to be looked for. Pure."""
    return bool(_PREFIX.fullmatch(text))


async def find_id(client: ApiClient, kind: str, prefix: str) -> str | None:
    """The ID of the one object of the project with this prefix; None: there is none. Raises
    RequestError, which lists all if there are several. kind: as in the API."""
    query = {"prefix": prefix, "kind": kind}
    found: list[Json] = (await client.call("GET", url_path("ids"), query=query))["ids"]
    if len(found) > 1:
        several = ", ".join(f"{one['id']} ({one['name']})" for one in found)
        reason = f'"{prefix}" is the beginning of the ID of more than one {kind}: {several}'
        raise RequestError(404, f"{reason}; write more of it")
    return found[0]["id"] if found else None


async def list_stacks(
    client: ApiClient, query: Mapping[str, str | Sequence[str]], limit: int | None = None
) -> list[Json]:
    """The stacks of the project, newest first, page by page. limit: the maximum number."""
    stacks: list[Json] = []
    parameters = [
        (name, one)
        for name, value in query.items()
        for one in ([value] if isinstance(value, str) else value)
    ]
    while limit is None or len(stacks) < limit:
        size = PAGE_SIZE if limit is None else min(PAGE_SIZE, limit - len(stacks))
        marker = [("marker", stacks[-1]["id"])] if stacks else []
        paged = [*parameters, ("limit", str(size)), *marker]
        page = (await client.call("GET", url_path("stacks"), query=paged))["stacks"]
        stacks += page
        if len(page) < size:
            break
    return stacks


async def find_subscription(client: ApiClient, which: str) -> Json:
    """A subscription by its ID or a unique prefix of it. Raises RequestError."""
    listing = "headgate subscription list"
    subscription_id = await whole_id(client, "subscription", which, listing)
    return await client.call("GET", url_path("subscriptions", subscription_id))


async def whole_id(client: ApiClient, kind: str, text: str, listing: str) -> str:
    """The ID with this prefix; a text that is none as it is. kind: as in the API. listing: the
    command that shows the IDs. Raises RequestError."""
    if _SHORT.fullmatch(text):
        raise RequestError(404, f"{_no_object(kind, text, listing)}. {SHORT_PREFIX}")
    if not is_prefix(text):
        return text
    found = await find_id(client, kind, text)
    if found is None:
        raise _no_object(kind, text, listing)
    return found


def _no_object(noun: str, which: str, listing: str) -> RequestError:
    return RequestError(404, f'no {noun} with the ID "{which}"; see `{listing}`')


async def select_stack(client: ApiClient, name: str | None) -> str | None:
    """The name or the ID of a stack, for the server to select by: an ID in place of a prefix of it.
    Raises RequestError."""
    if name is None or not is_prefix(name):
        return name
    return str((await find_stack(client, name))["id"])


def starting_with(found: Sequence[Json], prefix: str) -> list[Json]:
    """The items whose ID starts with the prefix. Pure."""
    return [one for one in found if one["id"].startswith(prefix.lower())]


def select_by_id(found: Sequence[Json], which: str, noun: str, listing: str) -> Json:
    """The one item whose ID starts with the argument. listing: the command that shows the items.
    Raises RequestError. Pure."""
    matching = starting_with(found, which) if which else []
    if not matching and any(one.get("name") == which for one in found):
        reason = f'"{which}" is the name of a {noun}, and the command needs the ID'
        raise RequestError(404, f"{reason}; `{listing}` shows both")
    if len(matching) == 1:
        return matching[0]
    if not matching:
        raise _no_object(noun, which, listing)
    ids = ", ".join(one["id"] for one in matching[:5])
    reason = f'"{which}" is the beginning of {len(matching)} IDs: {ids}'
    raise RequestError(404, f"{reason}; write more of it")


async def read_pages(
    client: ApiClient,
    path: str,
    key: str,
    query: Mapping[str, str],
    *,
    marker: str = "marker",
    limit: int | None = None,
) -> list[Json]:
    """The items of a list, page by page. key: of the list in a page. marker: the query parameter
    with the position of the next page. limit: the maximum number of items."""
    items: list[Json] = []
    size = {} if limit is None else {"limit": str(min(limit, PAGE_SIZE))}
    async with aclosing(client.pages(path, {**query, **size}, marker=marker)) as pages:
        async for page in pages:
            items += page[key]
            if limit is not None and len(items) >= limit:
                break
    return items[:limit]
