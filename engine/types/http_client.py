"""The HTTP client interface of resource types.

The program supplies a client that follows no redirects and limits sizes and times. Its egress
policy checks each URL during validation and again at each connection.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Protocol

from engine.types.failure_scope import FailureScope, scope_of_response

#: Statuses after which a retry may succeed.
BUSY = frozenset({429, 502, 503, 504})
#: Statuses with which a service requests fewer requests; 503 only with the header Retry-After.
TOO_MANY, UNAVAILABLE = 429, 503
#: Statuses of an object that does not exist.
GONE = frozenset({404, 410})


@dataclass(frozen=True, slots=True)
class Request:
    """ca_pem: a CA certificate in PEM form that replaces the client's trusted ones. insecure: do
    not verify the server's certificate."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    ca_pem: str = field(default="", repr=False)
    insecure: bool = False


@dataclass(frozen=True, slots=True)
class Response:
    """headers: by lower-case name. body: complete."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


class NoResponse(Exception):
    """No complete response. The text is the reason, without the path, which may contain a secret.

    retry: a retry may succeed. scope: REQUEST if the request or the response is not valid, else
    ENDPOINT: the address, the connection, TLS or the time limit has failed.
    """

    def __init__(
        self, reason: str, *, retry: bool, scope: FailureScope = FailureScope.ENDPOINT
    ) -> None:
        super().__init__(reason)
        self.retry = retry
        self.scope = scope


class ServiceError(Exception):
    """A service did not fulfil a request. retry: a retry may succeed. status: None
    without a response. public: see `public_reason` of outcomes. throttled: seconds for which the
    service requests no further requests, 0.0 if it did not say how long; None: it did not request
    that. scope: None: that of the status."""

    def __init__(
        self,
        reason: str,
        *,
        retry: bool = False,
        status: int | None = None,
        public: str = "",
        throttled: float | None = None,
        scope: FailureScope | None = None,
    ) -> None:
        super().__init__(reason)
        self.public = public
        self.retry = retry
        self.status = status
        self.throttled = throttled
        self.scope = scope or scope_of_response(status, throttled=throttled is not None)


def throttling(response: Response) -> float | None:
    """Seconds for which a service requests no further requests; see `ServiceError`."""
    if response.status not in (TOO_MANY, UNAVAILABLE):
        return None
    seconds = _retry_after(response.headers)
    return 0.0 if seconds is None and response.status == TOO_MANY else seconds


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds. The header is a number of seconds, or a date, which is compared with that of the
    response, because the clocks may differ."""
    header = headers.get("retry-after", "").strip()
    if header.isascii() and header.isdigit() and len(header) < 10:
        return float(header)
    at, now = _date(header), _date(headers.get("date", ""))
    return max((at - now).total_seconds(), 0.0) if at and now else None


def _date(header: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(header)
    except ValueError:
        return None
    return date if date.tzinfo is not None else None


class HttpClient(Protocol):
    def refusal(self, url: str) -> tuple[str, str] | None:
        """(reason, remedy) if the policy denies a URL; None if it does not. Does no I/O."""
        ...

    async def send(self, request: Request) -> Response:
        """Send a request once, with a timeout. Raises NoResponse."""
        ...
