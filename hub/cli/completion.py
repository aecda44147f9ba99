"""Completion of the names of stacks, hooks, resources and subscriptions, which the server knows.

A completion that fails completes nothing: an error would be printed into the line that is edited.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from hub.cli.connection.client import ApiClient

Json = Any
#: Seconds for the response; the maximum number of candidates.
TIMEOUT, MAX_CANDIDATES = 3.0, 200
Candidates = list[tuple[str, str]]


def complete_stacks(ctx: typer.Context, incomplete: str) -> Candidates:
    async def work(client: "ApiClient") -> Candidates:
        from headgate.connection import url_path

        query = {"search": incomplete, "limit": str(MAX_CANDIDATES)}
        found = (await client.call("GET", url_path("overview"), query=query))["stacks"]
        return [(one["name"], f"{one['action']}_{one['status']}") for one in found]

    return _complete(ctx, incomplete, work)


def complete_hooks(ctx: typer.Context, incomplete: str) -> Candidates:
    """Waiting ones: their places; their IDs only once one is begun."""

    async def work(client: "ApiClient") -> Candidates:
        from hub.cli.connection.client import list_waiting_hooks
        from hub.cli.printing.output import hook_path, may_answer

        found = await list_waiting_hooks(client)
        places = [(hook_path(one), may_answer(one)) for one in found]
        return [*places, *([(one["id"], hook_path(one)) for one in found] if incomplete else [])]

    return _complete(ctx, incomplete, work)


def complete_resources(ctx: typer.Context, incomplete: str) -> Candidates:
    """Those of the stack that is named before."""

    async def work(client: "ApiClient") -> Candidates:
        from hub.cli.connection.client import call_stack
        from hub.cli.printing.output import with_own_names

        found = await call_stack(client, ctx.params["stack"], "GET", "resources")
        named = [with_own_names(one) for one in found["resources"]]
        return [(one["resource_name"], one["resource_type"]) for one in named]

    return _complete(ctx, incomplete, work)


def complete_subscriptions(ctx: typer.Context, incomplete: str) -> Candidates:
    async def work(client: "ApiClient") -> Candidates:
        from headgate.connection import url_path

        found = (await client.call("GET", url_path("subscriptions")))["subscriptions"]
        return [(one["id"], f"{one['channel']} {one['target']}") for one in found]

    return _complete(ctx, incomplete, work)


def complete_contexts(incomplete: str) -> list[str]:
    from hub.cli.connection.saved_contexts import ContextError, contexts_path, read_contexts

    try:
        saved = read_contexts(contexts_path())
    except ContextError:
        return []
    return [name for name in saved.contexts if name.startswith(incomplete)]


def complete_formats(incomplete: str) -> list[str]:
    """The values of -o; an expression follows the last one."""
    from hub.cli.printing.formats import FormatKind

    words = [one if one != FormatKind.JSONPATH else f"{one}=" for one in FormatKind]
    return [word for word in words if word.startswith(incomplete)]


def _complete(
    ctx: typer.Context,
    incomplete: str,
    work: Callable[["ApiClient"], Awaitable[Candidates]],
) -> Candidates:
    """The candidates that start with the text, from the server that the line so far names."""
    import asyncio

    from headgate.errors import RequestError
    from hub.cli.connection.client import ApiClient
    from hub.cli.connection.connections import ChosenConnection
    from hub.cli.connection.saved_contexts import ContextError
    from hub.cli.printing.tables import plain

    async def run() -> Candidates:
        chosen = ChosenConnection(
            ctx.params.get("context") or "",
            ctx.params.get("url"),
            ctx.params.get("project"),
            ctx.params.get("user") or "",
        )
        connection = chosen.resolve()
        client = ApiClient(connection.url, connection.project, connection.credentials)
        async with asyncio.timeout(TIMEOUT), client:
            return await work(client)

    try:
        found = asyncio.run(run())
    except (RequestError, ContextError, TimeoutError):
        return []
    matching = [(value, plain(text)) for value, text in found if value.startswith(incomplete)]
    return matching[:MAX_CANDIDATES]
