"""Query parameters of Headgate's own routes: one check of all of them, before the handler runs.

The routes of the Orchestration API treat their parameters as Heat does, and do not use it.
"""

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from uuid import UUID

from aiohttp import web

from engine.errors import Finding, Findings, nearest, one_of
from engine.hooks.durations import parse_span
from engine.words import uuid_or_none
from hub.api.request_validation import MARKER_REMEDY, parse_day, parse_marker, parse_number
from hub.api.routes import Handler, QueryParameter, Refusal


def text(description: str) -> QueryParameter:
    return QueryParameter(description)


def flag(description: str) -> QueryParameter:
    def refuse(value: str) -> Refusal | None:
        if value.lower() in ("true", "false"):
            return None
        return f'"{value}" is neither true nor false', "Send true or false."

    return QueryParameter(description, refuse, {"type": "boolean"})


def number(description: str, *, least: int = 0) -> QueryParameter:
    def refuse(value: str) -> Refusal | None:
        parsed = parse_number(value)
        if parsed is None:
            return f'"{value}" is not a number', f"Send a whole number of {least} or more."
        return None if parsed >= least else (f"must be {least} or more", f"Send {least} or more.")

    return QueryParameter(description, refuse, {"type": "integer", "minimum": least})


def limit(default: int) -> QueryParameter:
    """Items of a page. More than the largest page is that page."""
    return number(f"maximum number of items, at most 1,000; default {default:,}", least=1)


def ids(description: str) -> QueryParameter:
    """IDs, comma separated, repeated, or both."""

    def refuse(value: str) -> Refusal | None:
        for one in value.split(","):
            if one and uuid_or_none(one) is None:
                return f'"{one}" is not a valid ID', "Send ids of items, comma separated."
        return None

    return QueryParameter(description, refuse, repeatable=True)


def marker(parse: Callable[[str], object] = UUID) -> QueryParameter:
    """The place in a list. parse: raises ValueError."""

    def refuse(value: str) -> Refusal | None:
        try:
            if value:
                parse(value)
        except ValueError:
            return f'"{value}" is not a valid marker', MARKER_REMEDY
        return None

    return QueryParameter("`next` of the previous page", refuse)


def place_marker(*, numbered: bool = False) -> QueryParameter:
    """A marker with a time: see `parse_marker`."""
    return marker(lambda value: parse_marker(value, numbered=numbered))


def choice(description: str, known: Collection[str]) -> QueryParameter:
    def refuse(value: str) -> Refusal | None:
        if value in known:
            return None
        remedy = nearest(value, list(known)) or f"Known: {', '.join(known)}."
        return f'"{value}" is not known', remedy

    return QueryParameter(description, refuse, {"type": "string", "enum": list(known)})


def span(description: str) -> QueryParameter:
    def refuse(value: str) -> Refusal | None:
        if parse_span(value) is not None:
            return None
        return f'"{value}" is not a valid time', "Send 90s, 30m, 2h or 1d."

    return QueryParameter(description, refuse)


def day(description: str) -> QueryParameter:
    def refuse(value: str) -> Refusal | None:
        if not value or parse_day(value) is not None:
            return None
        return f'"{value}" is not a day', "Send a day such as 2026-11-26."

    return QueryParameter(description, refuse)


def globs(description: str) -> QueryParameter:
    """Comma separated, repeated, or both."""
    return QueryParameter(description, repeatable=True)


def with_checked_query(
    handler: Handler, known: Mapping[str, str] | Mapping[str, QueryParameter]
) -> Handler:
    """Decorate the handler of a route with the check of its query. It raises Invalid with all
    findings. Raises TypeError if a parameter has no check."""
    parameters = {name: one for name, one in known.items() if isinstance(one, QueryParameter)}
    if parameters.keys() != known.keys():
        raise TypeError(f"parameters without a check: {known.keys() - parameters.keys()}")

    @wraps(handler)
    async def handle(request: web.Request) -> web.StreamResponse:
        findings = Findings()
        for name, parameter in parameters.items():
            if parameter.required and name not in request.query:
                remedy = f"Send it: {parameter.description}."
                findings.add_finding(Finding(name, "is required", remedy, "Invalid"))
        for name in dict.fromkeys(request.query):
            for one in _findings(name, request.query.getall(name), parameters):
                findings.add_finding(one)
        findings.raise_if_any()
        return await handler(request)

    return handle


def _findings(name: str, values: list[str], known: Mapping[str, QueryParameter]) -> list[Finding]:
    parameter = known.get(name)
    if parameter is None:
        remedy = one_of(name, list(known), "Known") if known else "This route has none."
        return [Finding(name, "is not a query parameter of this route", remedy, "Invalid")]
    if len(values) > 1 and not parameter.repeatable:
        return [Finding(name, f"is given {len(values)} times", "Send it once.", "Invalid")]
    refusals = (parameter.refuse(value) for value in values)
    return [Finding(name, *refusal, "Invalid") for refusal in refusals if refusal]
