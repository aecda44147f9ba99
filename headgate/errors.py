"""The errors of requests to a server. Each names the place, the reason and the remedy."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headgate.documents import FindingDocument, Warning

Json = Any


class RequestError(Exception):
    """A request failed.

    status: of the response; 0: there was no usable response. code: the type of the error, such as
    ``StackNotFound``. findings: place, reason and remedy of each error in the request. document:
    the error in the response, with further keys of some errors. request_id: the server's log has
    it; empty without a response.
    """

    request_id = ""

    def __init__(
        self,
        status: int,
        message: str,
        code: str = "",
        findings: "Sequence[FindingDocument]" = (),
        document: Mapping[str, Json] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.findings = findings
        self.document = document or {}

    def _first(self, key: str, name: str) -> str:
        finding: Mapping[str, Json] = self.findings[0] if self.findings else {}
        return str(finding.get(key) or self.document.get(name) or "")

    @property
    def place(self) -> str:
        """Where the first error is: a parameter, a header or a position in a document."""
        return self._first("place", "place")

    @property
    def reason(self) -> str:
        return self._first("reason", "message") or str(self)

    @property
    def warnings(self) -> "Sequence[Warning]":
        """The warnings about a template that was refused."""
        return self.document.get("warnings") or ()

    @property
    def remedy(self) -> str:
        return self._first("remedy", "remedy")

    @property
    def help(self) -> str:
        """The URL of the server's page about this type of errors; empty if it has none."""
        return str(self.document.get("help") or "")


class UnreachableError(RequestError):
    """The server did not respond, or it is not a Headgate server.

    may_have_arrived: whether the server may have received the request, and carried it out.
    """

    may_have_arrived = False

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(0, f"{reason}. {remedy}", document={"message": reason, "remedy": remedy})


class InvalidRequestError(RequestError):
    """400, 405, 413, 415: the request is wrong. `findings` has each error."""


class AuthenticationError(RequestError):
    """401: the credential is missing or not valid."""


class PermissionDeniedError(RequestError):
    """403: a right is missing."""


class NotFoundError(RequestError):
    """404: the object does not exist."""


class ConflictError(RequestError):
    """409: the request conflicts with the current state. For a hook that has been answered,
    `document` has `decision`, `decided_by` and `decided_at`."""


class EventsGoneError(RequestError):
    """410: events after the last one that you read were purged."""


class RateLimitError(RequestError):
    """429: too many requests. `retry_after`: seconds, as the server asks; 0: not known."""

    retry_after = 0.0


class ServerError(RequestError):
    """5xx: the server cannot process the request now."""


class WaitTimeoutError(Exception):
    """A wait ended without its condition. The change continues on the server."""


_CLASSES: Mapping[int, type[RequestError]] = {
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    410: EventsGoneError,
    429: RateLimitError,
}
#: Keys of a finding, and where an error without findings has them.
_FINDING_KEYS = {"place": "place", "reason": "message", "remedy": "remedy"}


def response_error(
    status: int,
    document: Json,
    retry_after: str = "",
    remedy: str = "",
    request_id: str = "",
) -> RequestError:
    """The error of a response. document: in either form of the API's errors; None: no JSON. remedy:
    of the client, after those of the server."""
    result = _response_error(status, document, retry_after, remedy)
    result.request_id = request_id
    return result


def _response_error(status: int, document: Json, retry_after: str, remedy: str) -> RequestError:
    kind = _CLASSES.get(status, ServerError if status >= 500 else InvalidRequestError)
    error = document.get("error") if isinstance(document, dict) else None
    if not isinstance(error, dict):
        reason = f"the server responded with {status} and no error message"
        return kind(status, f"{reason}; is it a Headgate server?")
    findings = error.get("findings") or []
    only = {key: error.get(name) for key, name in _FINDING_KEYS.items()}
    message = f"{findings_text(findings or [only], {})} {remedy}".rstrip()
    result = kind(status, message, str(error.get("type", "")), findings, error)
    if isinstance(result, RateLimitError) and retry_after.isdecimal():
        result.retry_after = float(retry_after)
    return result


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
