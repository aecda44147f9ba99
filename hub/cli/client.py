"""The client of the command line: the one of `headgate`, with the remedies of the command line."""

from collections.abc import Mapping
from typing import Any

from headgate.client import find_stack
from headgate.connection import ApiConnection, Query, url_path

Json = Any


class ApiClient(ApiConnection):
    """An async context manager for one server and project."""

    unreachable_remedy = "Start a server with `headgate serve`, or set --url or HEADGATE_URL."
    credential_remedy = "Set HEADGATE_TOKEN to a token."


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


async def read_pages(
    client: ApiClient, path: str, key: str, query: Mapping[str, str], *, marker: str = "marker"
) -> list[Json]:
    """All items of a list, page by page. key: of the list in a page. marker: the query parameter
    with the position of the next page."""
    return [one async for page in client.pages(path, query, marker=marker) for one in page[key]]
