"""All that happened to a stack: for whoever comes later than the stream."""

from typing import cast

from aiohttp import web

from channels.store.history import Bounds, bounds_of, history
from channels.stream.feed import document
from engine.errors import NotFound
from engine.store.connection import Connection
from engine.store.records import StackRecord
from hub.api.headgate import responses
from hub.api.orchestration.stacks import S
from hub.api.parts import (
    Route,
    answer,
    parts_of,
    query_flag,
    query_limit,
    query_number,
    stack_of,
)

USUAL = 500


async def happened(request: web.Request) -> web.Response:
    """In order; `next` is the place to go on after."""
    stack = await stack_of(request)
    limit = query_limit(request, default=USUAL) or USUAL
    after = query_number(request, "after", default=0)
    nested = query_flag(request, "nested")
    async with parts_of(request).database.transaction(replan=True) as conn:
        within = await _within(conn, stack, request)
        found = await history(conn, stack.id, within, nested=nested, after=after, limit=limit + 1)
    shown = found[:limit]
    return answer(
        responses.History(
            events=[cast(responses.CloudEvent, document(one.published)) for one in shown],
            next=shown[-1].place if len(found) > limit else None,
        )
    )


async def _within(conn: Connection, stack: StackRecord, request: web.Request) -> Bounds:
    """What was asked for. Raises NotFound (code TraversalNotFound)."""
    number = query_number(request, "traversal", default=0)
    if "traversal" not in request.query:
        return Bounds()
    found = await bounds_of(conn, stack.id, number)
    if found is None:
        raise NotFound(
            f"there is no traversal {number}",
            remedy="GET .../versions lists the retained versions.",
            code="TraversalNotFound",
        )
    return found


ROUTES = (
    Route("GET", f"{S}/history", happened, "All events of a stack, in order", "events",
          query={
              "traversal": "only those of this traversal, by its number",
              "nested": "true: with those of stacks inside, by time",
              "after": "`next` of the previous page; for a single stack also an event number",
              "limit": "at most so many",
          },
          response=responses.History),
)  # fmt: skip
