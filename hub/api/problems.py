"""From our errors to HTTP: the one table, and the two forms in which they are told."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, NotRequired

from pydantic import Field
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
from hub.api.openapi_components import Time

#: Nearest family first.
STATUS: tuple[tuple[type[HeadgateError], int], ...] = (
    (AnswerRefused, 409),
    (Conflict, 409),
    (NotFound, 404),
    (Forbidden, 403),
    (LimitReached, 400),
    (Unavailable, 503),
    (Invalid, 400),
)
#: Codes that say more than their family.
STATUS_OF_CODE: Mapping[str, int] = {
    "Unauthorized": 401,
    "EventsGone": 410,
    "RequestTooLarge": 413,
    "UnsupportedMediaType": 415,
    "RequestHeadersTooLarge": 431,
    "DecisionUnavailable": 422,
    "RequestTimeout": 408,
    "TooManyRequests": 429,
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
    422: "The server was unable to process the contained instructions.",
    429: "Too many requests came from here.",
    500: "The server has either erred or is incapable of performing the requested operation.",
    503: "The server is currently unavailable. Please try again at a later time.",
}


class FindingDocument(TypedDict):
    """One of the errors in a request."""

    place: str
    reason: str
    remedy: str
    type: str


class HeatError(TypedDict):
    type: str
    message: str
    traceback: None
    findings: NotRequired[list[FindingDocument]]


class HeatProblem(TypedDict):
    """The error response of the routes of the Orchestration API."""

    code: Annotated[int, Field(ge=400, le=599)]
    title: str
    explanation: str
    error: HeatError


class OwnError(TypedDict):
    """`decided_by`, `decided_at` and `decision` are present when another answer came first."""

    type: str
    message: str
    place: str
    remedy: str
    findings: NotRequired[list[FindingDocument]]
    decided_by: NotRequired[str | None]
    decided_at: NotRequired[Time | None]
    decision: NotRequired[str | None]


class OwnProblem(TypedDict):
    """The error response of Headgate's own routes."""

    error: OwnError


#: The error response of every route.
Problem = TypeAliasType("Problem", OwnProblem | HeatProblem)


def status_of(error: HeadgateError) -> int:
    if error.code in STATUS_OF_CODE:
        return STATUS_OF_CODE[error.code]
    return next((status for family, status in STATUS if isinstance(error, family)), 500)


def findings_of(error: HeadgateError) -> tuple[Finding, ...]:
    return error.findings if isinstance(error, Invalid) else (error.finding,)


def heat_form(error: HeadgateError) -> HeatProblem:
    """The form the clients of the Orchestration API print, with what is found one by one."""
    message = "\n".join(_heat_line(finding) for finding in findings_of(error))
    document = heat_document(status_of(error), error.code, message)
    if isinstance(error, Invalid):
        document["error"]["findings"] = _listed(error)
    return document


def _listed(error: Invalid) -> list[FindingDocument]:
    return [
        {"place": one.place, "reason": one.reason, "remedy": one.remedy, "type": one.code}
        for one in error.findings
    ]


#: What clients of the Orchestration API know our codes as, where they know them otherwise.
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


OF_A_PROPERTY = re.compile(r"resources\..*\.properties|Resources\..*\.Properties")


def _heat_line(finding: Finding) -> str:
    """A fault of a property reads as clients know it; the remedy follows."""
    if not OF_A_PROPERTY.match(finding.place):
        return str(finding)
    said = f"Property error: : {finding.place}: : {finding.reason}"
    return f"{said.rstrip('.')}. {finding.remedy}" if finding.remedy else said


def own_form(error: HeadgateError) -> OwnProblem:
    """The form of Headgate's own routes: place, reason and remedy, each by itself."""
    first = error.finding
    document: OwnError = {
        "type": error.code,
        "message": first.reason,
        "place": first.place,
        "remedy": first.remedy,
    }
    if isinstance(error, Invalid):
        document["findings"] = _listed(error)
    if isinstance(error, AnswerRefused):
        decided = error.decided
        document["decided_by"] = decided.by
        document["decided_at"] = rfc3339(decided.at) if decided.at else None
        document["decision"] = decided.decision
    return {"error": document}
