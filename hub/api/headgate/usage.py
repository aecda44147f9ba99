"""What a project has used, by day."""

import csv
import io
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from aiohttp import web

from channels.envelope import rfc3339
from engine.store.observer.provider_endpoints import PausedEndpoint
from engine.store.projects.usage import DayUsage
from hub.api.app_context import context_of, project_of
from hub.api.headgate import responses
from hub.api.openapi_components import document_of
from hub.api.query_parameters import day
from hub.api.request_validation import parse_day
from hub.api.routes import Route, json_response

#: Days that are shown without a query.
DAYS = 30
CSV = "text/csv"


async def show(request: web.Request) -> web.Response:
    first, last, days = await _read(request)
    usage, project = context_of(request).engine.usage, project_of(request)
    paused = await usage.paused_endpoints(project)
    requested = await usage.requested_endpoints(project)
    found = responses.Usage(
        first=str(first),
        last=str(last),
        usage=[_document(one) for one in days],
        paused=[_paused_document(one) for one in paused],
        endpoints=[
            responses.RequestedEndpoint(
                endpoint=one.endpoint,
                requests=one.requests,
                requests_per_minute=one.per_minute,
                used=one.used,
            )
            for one in requested
        ],
    )
    return json_response(found)


async def show_csv(request: web.Request) -> web.Response:
    _, _, days = await _read(request)
    text = io.StringIO()
    table = csv.DictWriter(text, list(responses.DayUsage.__annotations__))
    table.writeheader()
    table.writerows(_document(one) for one in days)
    return web.Response(text=text.getvalue(), content_type=CSV)


async def _read(request: web.Request) -> tuple[date, date, Sequence[DayUsage]]:
    """The days of the query, and their usage. Raises Invalid."""
    last = _query_day(request, "to") or datetime.now(UTC).date()
    first = _query_day(request, "from") or last - timedelta(days=DAYS - 1)
    engine = context_of(request).engine
    return first, last, await engine.usage.read(project_of(request), first, last)


def _query_day(request: web.Request, name: str) -> date | None:
    return parse_day(request.query.get(name, ""))


def _document(one: DayUsage) -> responses.DayUsage:
    return document_of(responses.DayUsage, one, day=str(one.day))


def _paused_document(one: PausedEndpoint) -> responses.PausedEndpoint:
    reason = one.reason or "the endpoint failed"
    if one.per_minute is not None:
        reason = f"the budget of {one.per_minute:g} requests per minute is used up"
    elif one.throttled:
        reason = one.reason or "the endpoint requested fewer requests"
    return responses.PausedEndpoint(
        endpoint=one.endpoint,
        resource_type=one.type,
        requests_per_minute=one.per_minute,
        used=one.used,
        until=rfc3339(one.until),
        reason=reason,
    )


QUERY = {
    "from": day("the first day, such as 2026-11-01. Default: 29 days before the last one"),
    "to": day("the last day. Default: today, in UTC"),
}
ROUTES = (
    Route("GET", "/v1/{project}/usage", show, "What the project used on each day", "access",
          query=QUERY, response=responses.Usage),
    Route("GET", "/v1/{project}/usage.csv", show_csv, "The same as CSV", "access",
          query=QUERY, content_type=CSV),
)  # fmt: skip
