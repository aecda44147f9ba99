"""Turns errors into responses, in the format of the route: Heat's, or Headgate's own."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, NotRequired

import structlog
from aiohttp import web
from pydantic import Field
from structlog.typing import FilteringBoundLogger
from typing_extensions import TypeAliasType, TypedDict

from channels.envelope import rfc3339
from engine.errors import (
    AnswerRefused,
    Conflict,
    Finding,
    Forbidden,
    HeadgateError,
    Invalid,
    LimitReached,
    NotFound,
    Unavailable,
)
from hub.api.app_context import REQUEST_ID, SERVER, public_url
from hub.api.cells import ADMISSION
from hub.api.heat_sentences import (
    SEPARATOR,
    VALIDATE_SEPARATOR,
    InvalidTemplate,
    heat_sentence,
)
from hub.api.openapi_components import Time, Uri
from hub.api.orchestration.request_texts import warning_document
from hub.api.orchestration.responses import Warning
from hub.api.request_validation import check_request, has_valid_host, invalid
from hub.api.routes import PREFIXES, Handler, json_response
from hub.auth.throttle import TooManyRequests

log: FilteringBoundLogger = structlog.get_logger()

#: The first matching class counts.
STATUS: tuple[tuple[type[HeadgateError], int], ...] = (
    (AnswerRefused, 409),
    (Conflict, 409),
    (NotFound, 404),
    (Forbidden, 403),
    (LimitReached, 400),
    (Unavailable, 503),
    (Invalid, 400),
)
#: Codes whose status differs from that of their class.
STATUS_OF_CODE: Mapping[str, int] = {
    "Unauthorized": 401,
    "EventsGone": 410,
    "RequestTooLarge": 413,
    "UnsupportedMediaType": 415,
    "RequestHeadersTooLarge": 431,
    "RequestTimeout": 408,
    "TooManyRequests": 429,
    "MethodNotAllowed": 405,
}
EXPLANATION: Mapping[int, str] = {
    400: "The server could not comply with the request since it is either malformed or otherwise "
    "incorrect.",
    401: "This server could not verify that you are authorized to access this resource.",
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    405: "The method is not allowed for this resource.",
    408: "The server has waited too long for the request.",
    409: "There was a conflict when trying to complete your request.",
    410: "The requested resource is no longer available.",
    413: "The body of your request was too large.",
    415: "The server does not support this content type.",
    429: "This client has sent too many requests.",
    500: "The server has either erred or is incapable of performing the requested operation.",
    503: "The server is currently unavailable. Please try again at a later time.",
}


class FindingDocument(TypedDict):
    """One of the errors in a request. file: a name in `files`, `template` or `environment`. line,
    column: from 1. quote: the line, and a caret below the column. These are null if they are
    unknown.
    """

    place: str
    reason: str
    remedy: str
    type: str
    file: str | None
    line: int | None
    column: int | None
    quote: str | None


class HeatError(TypedDict):
    """message: Heat's sentence, where it has one; `place` and `remedy` are then separate.
    warnings: also found in the request that is refused. help: the page about the type; absent if
    the request could not be read, or its host is not one of this server.
    """

    type: str
    message: str
    traceback: None
    place: NotRequired[str]
    remedy: NotRequired[str]
    findings: NotRequired[list[FindingDocument]]
    warnings: NotRequired[list[Warning]]
    help: NotRequired[Uri]


class HeatProblem(TypedDict):
    """The error response of the routes of the Orchestration API."""

    code: Annotated[int, Field(ge=400, le=599)]
    title: str
    explanation: str
    error: HeatError


class OwnError(TypedDict):
    """`decided_by`, `decided_at` and `decision` are present when another answer came first. help:
    the page about the type; absent if the request could not be read, or its host is not one of
    this server."""

    type: str
    message: str
    place: str
    remedy: str
    findings: NotRequired[list[FindingDocument]]
    decided_by: NotRequired[str | None]
    decided_at: NotRequired[Time | None]
    decision: NotRequired[str | None]
    help: NotRequired[Uri]


class OwnProblem(TypedDict):
    """The error response of Headgate's own routes."""

    error: OwnError


#: The error response of every route.
Problem = TypeAliasType("Problem", OwnProblem | HeatProblem)


#: The path of the pages about types of errors.
ERROR_PAGES = "/errors"
#: Headers of a response with the status 503. A failover of the database takes seconds.
RETRY_SOON = {"Retry-After": "2"}


def status_of(error: HeadgateError) -> int:
    if error.code in STATUS_OF_CODE:
        return STATUS_OF_CODE[error.code]
    return next((status for family, status in STATUS if isinstance(error, family)), 500)


def findings_of(error: HeadgateError) -> tuple[Finding, ...]:
    return error.findings if isinstance(error, Invalid) else (error.finding,)


def heat_form(error: HeadgateError) -> HeatProblem:
    """The error in Heat's format, with a line in the message for each finding."""
    findings, separator = findings_of(error), SEPARATOR
    if isinstance(error, InvalidTemplate):
        findings, separator = error.originals, VALIDATE_SEPARATOR
    alone = len(findings) == 1
    sentences = [heat_sentence(one, separator, alone=alone) for one in findings]
    lines = [known or str(one) for one, known in zip(findings, sentences, strict=True)]
    document = heat_document(status_of(error), error.code, "\n".join(lines))
    if alone and sentences[0] is not None:
        document["error"]["place"] = findings[0].shown_place
        document["error"]["remedy"] = findings[0].remedy
    document["error"]["findings"] = _finding_documents(error)
    if error.warnings:
        document["error"]["warnings"] = [warning_document(one) for one in error.warnings]
    return document


def _finding_documents(error: HeadgateError) -> list[FindingDocument]:
    return [
        {
            "place": one.shown_place,
            "reason": one.reason,
            "remedy": one.remedy,
            "type": one.code,
            "file": one.file if one.line else None,
            "line": one.line or None,
            "column": one.column or None,
            "quote": one.quote or None,
        }
        for one in findings_of(error)
    ]


#: Heat's types of errors by our codes, where they differ.
HEAT_TYPES: Mapping[str, str] = {
    "Invalid": "HTTPBadRequest",
    "MethodNotAllowed": "HTTPMethodNotAllowed",
    "Unavailable": "HTTPServiceUnavailable",
}


def heat_document(status: int, code: str, message: str) -> HeatProblem:
    return {
        "code": status,
        "title": HTTPStatus(status).phrase,
        "explanation": EXPLANATION.get(status, HTTPStatus(status).description),
        "error": {"type": HEAT_TYPES.get(code, code), "message": message, "traceback": None},
    }


def own_form(error: HeadgateError) -> OwnProblem:
    """The error in the format of Headgate's own routes."""
    first = error.finding
    document: OwnError = {
        "type": error.code,
        "message": first.reason,
        "place": first.place,
        "remedy": first.remedy,
    }
    document["findings"] = _finding_documents(error)
    if isinstance(error, AnswerRefused):
        decided = error.decided
        document["decided_by"] = decided.by
        document["decided_at"] = rfc3339(decided.at) if decided.at else None
        document["decision"] = decided.decision
    return {"error": document}


@web.middleware
async def error_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer errors in the format of the route. Unexpected errors are logged and not shown."""
    try:
        check_request(request)
        return await handler(request)
    except HeadgateError as error:
        return _error_response(request, error)
    except web.HTTPRequestEntityTooLarge:
        max_bytes = request.app[SERVER].settings.server.max_body
        remedy = f"Send at most {max_bytes} bytes; the limit is [server] max_body."
        return _error_response(
            request,
            LimitReached("the request is too large", remedy=remedy, code="RequestTooLarge"),
        )
    except web.HTTPMethodNotAllowed as error:
        return _method_not_allowed(request, sorted(error.allowed_methods))
    except web.HTTPNotFound:
        reason = f"no resource at {request.path}"
        return _error_response(
            request,
            NotFound(
                reason,
                place="path",
                remedy="See /openapi.json for all routes.",
                code="NotFound",
            ),
        )
    except web.RequestPayloadError:
        reason = (
            "the body cannot be read: it is incomplete, or its encoding is not Content-Encoding"
        )
        response = _error_response(request, invalid("", reason, "Send the complete body again."))
        response.force_close()  # the start of the next request is unknown
        return response
    except web.HTTPException:
        raise
    except Exception as error:
        log.error("request.failed", id=request[REQUEST_ID], path=request.path, exc_info=error)
        return _internal_error(request)


def _error_response(request: web.Request, error: HeadgateError) -> web.Response:
    form = own_form if _is_own(request) else heat_form
    document = _with_link(form(error), error.code, request)
    return json_response(document, status_of(error), error_headers(request, error))


def _with_link(
    document: OwnProblem | HeatProblem, code: str, request: web.Request
) -> OwnProblem | HeatProblem:
    """The error response with `help`, unless the link would lead to a host that is not valid or is
    not this server."""
    by_settings = request.app[SERVER].settings.server.public_url
    if by_settings or (code != "UnknownHost" and has_valid_host(request)):
        return with_help(document, code, public_url(request))
    return document


def with_help(
    document: OwnProblem | HeatProblem, code: str, server_url: str
) -> OwnProblem | HeatProblem:
    """The error response with the URL of the page about its type."""
    document["error"]["help"] = f"{server_url}{ERROR_PAGES}/{code}"
    return document


def error_headers(request: web.Request, error: HeadgateError) -> dict[str, str]:
    """When to retry, or how to authenticate."""
    if isinstance(error, TooManyRequests):
        return {"Retry-After": str(error.wait)}
    if status_of(error) == 503:
        return RETRY_SOON
    admission = request.get(ADMISSION)
    challenge = admission.gatekeeper.authenticator.challenge if admission else ""
    # A browser would open its own password prompt over the dashboard.
    by_script = request.headers.get("Sec-Fetch-Mode", "navigate") != "navigate"
    if status_of(error) == 401 and challenge and not by_script:
        return {"WWW-Authenticate": challenge}
    return {}


def _internal_error(request: web.Request) -> web.Response:
    error = HeadgateError(
        "this is a fault of the server",
        remedy=f"See its log under the ID {request[REQUEST_ID]}.",
        code="InternalError",
    )
    return _error_response(request, error)


def _is_own(request: web.Request) -> bool:
    """Whether it is one of Headgate's own routes. Stacks and resources may have any name."""
    segments = request.rel_url.raw_path.strip("/").split("/")
    if segments[0] not in PREFIXES:
        return True
    if len(segments) > 2 and segments[2] in OWN_OF_PROJECT:
        return True
    if len(segments) < 6 or segments[2] != "stacks":
        return False
    return segments[5] in OWN_OF_STACK or (
        segments[5] == "resources" and segments[7:] == ["inspect"]
    )


#: Own routes below a project.
OWN_OF_PROJECT = frozenset({
    "hooks", "subscriptions", "events", "webhook-key", "tokens", "session", "quotas", "overview",
    "decisions", "observations", "observation-credential", "usage", "usage.csv",
})  # fmt: skip
#: Own routes below a stack.
OWN_OF_STACK = frozenset({
    "graph", "why", "breakpoints", "run-to", "decisions", "history", "versions",
    "resource_snapshots", "pin", "drift", "dependencies",
})  # fmt: skip


def _method_not_allowed(request: web.Request, allowed: list[str]) -> web.Response:
    headers = {"Allow": ", ".join(allowed)}
    if request.method == "OPTIONS":
        return web.Response(status=204, headers=headers)
    error = Conflict(
        f"{request.method} is not allowed here",
        place="method",
        remedy=f"Allowed: {headers['Allow']}.",
        code="MethodNotAllowed",
    )
    form = own_form(error) if _is_own(request) else heat_document(405, error.code, str(error))
    return json_response(_with_link(form, error.code, request), 405, headers)
