"""From our errors to HTTP: the one table, and the two forms in which they are told."""

import re
from collections.abc import Mapping
from http import HTTPStatus

from channels.envelope import rfc3339
from channels.schemas.words import NOTHING, TEXT, TEXT_OR_NULL, TIME, fields, list_of, or_null
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
from engine.words import Json
from hub.api.shapes import Shape, texts

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


def status_of(error: HeadgateError) -> int:
    if error.code in STATUS_OF_CODE:
        return STATUS_OF_CODE[error.code]
    return next((status for family, status in STATUS if isinstance(error, family)), 500)


def findings_of(error: HeadgateError) -> tuple[Finding, ...]:
    return error.findings if isinstance(error, Invalid) else (error.finding,)


def heat_form(error: HeadgateError) -> Json:
    """The form the clients of the Orchestration API print, with what is found one by one."""
    message = "\n".join(_heat_line(finding) for finding in findings_of(error))
    document = heat_document(status_of(error), error.code, message)
    if isinstance(error, Invalid):
        document["error"]["findings"] = _listed(error)
    return document


def _listed(error: Invalid) -> list[Json]:
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


def heat_document(status: int, code: str, message: str) -> Json:
    return {
        "code": status,
        "title": HTTPStatus(status).phrase,
        "explanation": EXPLANATION.get(status, HTTPStatus(status).description),
        "error": {"type": HEAT_TYPES.get(code, code), "message": message, "traceback": None},
    }


#: All that is wrong with what was sent, one by one.
_FINDINGS = {"findings": list_of(fields(texts(("place", "reason", "remedy", "type"))))}

HEAT_PROBLEM = Shape("HeatProblem", fields({
    "code": {"type": "integer", "minimum": 400, "maximum": 599},
    "title": TEXT,
    "explanation": TEXT,
    "error": fields({"type": TEXT, "message": TEXT, "traceback": NOTHING}, _FINDINGS),
}))  # fmt: skip


OF_A_PROPERTY = re.compile(r"resources\..*\.properties|Resources\..*\.Properties")


def _heat_line(finding: Finding) -> str:
    """A fault of a property reads as clients know it; the remedy follows."""
    if not OF_A_PROPERTY.match(finding.place):
        return str(finding)
    said = f"Property error: : {finding.place}: : {finding.reason}"
    return f"{said.rstrip('.')}. {finding.remedy}" if finding.remedy else said


def own_form(error: HeadgateError) -> Json:
    """The form of Headgate's own routes: place, reason and remedy, each by itself."""
    first = error.finding
    document: dict[str, Json] = {
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


#: The last three keys: where another answer was first.
OWN_PROBLEM = Shape("OwnProblem", fields({"error": fields(
    texts(("type", "message", "place", "remedy")),
    {
        **_FINDINGS,
        "decided_by": TEXT_OR_NULL,
        "decided_at": or_null(TIME),
        "decision": TEXT_OR_NULL,
    },
)}))  # fmt: skip
#: What every route may answer in place of what was asked for.
PROBLEM = Shape("Problem", {"oneOf": [OWN_PROBLEM, HEAT_PROBLEM]})
