"""Error responses of OpenStack services: the message of the service, and whether to retry. Pure.

Each service has its own form of an error:

- Neutron: ``{"NeutronError": {"type", "message", "detail"}}``
- Nova, Cinder: ``{"badRequest": {"message", "code"}}``, where the key names the error
- Keystone, Glance, Heat: ``{"error": {"message", "code", "title"}}``
- Octavia, Designate, Magnum and other services: ``{"faultstring"}`` or ``{"message"}``
- Barbican, Zaqar: ``{"title", "description"}``
- Designate, about fields: ``{"type", "errors": {"errors": [{"path", "message"}]}}``
- Aodh: ``{"error_message": {"faultstring"}}``
- Placement: ``{"errors": [{"title", "detail"}]}``
- Glance also answers with HTML
"""

import re
from collections.abc import Mapping
from typing import Final

import orjson

from engine.types.failure_scope import FailureScope
from engine.types.http_client import BUSY, Response, ServiceError, throttling
from engine.types.openstack.services import LOAD_BALANCER, MESSAGING, NETWORK, Service
from engine.types.text_cleaning import decode_text, replace_nul
from engine.words import Json

#: Characters of a service's message that a reason has.
MAX_MESSAGE: Final = 1_000
#: Seconds of the longest pause that a service can ask for.
MAX_RETRY_AFTER: Final = 300.0
NOT_FOUND: Final = frozenset({404, 410})
UNAUTHORIZED, FORBIDDEN, CONFLICT = 401, 403, 409
#: A quota; with a pause, the limit of requests of Trove and of former releases of Nova and Cinder.
TOO_LARGE: Final = 413
#: Errors of servers that stay: the service does not implement the request.
_NEVER: Final = frozenset({501, 505})
#: The headers with the ID of a request, for the log.
REQUEST_IDS: Final = ("x-openstack-request-id", "x-compute-request-id")
#: Conflicts of Neutron that a retry may solve: it names all others after their reason.
_TRANSIENT: Final = frozenset({"", "Conflict", "HTTPConflict", "RevisionNumberConstraintFailed"})
#: Conflicts of other services that a retry does not solve: a limit, a duplicate.
_FINAL = re.compile(r"OverQuota|Exists|AlreadyAllocated|Duplicate|InUse|AlreadyExists|duplicate_")
#: Characters of a message from which tags are removed: it may quote a long text of a user.
_MAX_MARKUP: Final = 8 * MAX_MESSAGE
#: A tag has no other one inside: so each character is read once, whatever the text.
_TAGS = re.compile(r"</?[a-zA-Z][^<>]*>")


class CloudError(ServiceError):
    """An OpenStack service did not fulfil a request.

    The text has the service's own message. kind: the service's name of the error, such as
    ``NetworkInUse`` or ``itemNotFound``; "" if it has none. retry_after: the pause in seconds that
    the service asks for, or None. message: the service's message alone.
    """

    def __init__(
        self,
        reason: str,
        *,
        retry: bool = False,
        status: int | None = None,
        public: str = "",
        kind: str = "",
        message: str = "",
        retry_after: float | None = None,
        throttled: float | None = None,
        scope: FailureScope | None = None,
    ) -> None:
        super().__init__(
            reason, retry=retry, status=status, public=public, throttled=throttled, scope=scope
        )
        self.kind = kind
        self.message = message or reason
        self.retry_after = retry_after

    @property
    def is_missing(self) -> bool:
        """Whether the object of the request does not exist."""
        return self.status in NOT_FOUND


def read_error(service: Service, doing: str, response: Response) -> CloudError:
    """The error of a response. doing: the request, as `create the network`."""
    kind, message = _parse(response)
    status = response.status
    conflict = status == CONFLICT and _passes(service, kind)
    own_words = f": {message}" if message else ""
    pause = _retry_after(response)
    limited = status == TOO_LARGE and bool(pause)
    return CloudError(
        f"{service.name} refused to {doing}{own_words} (HTTP {status})",
        retry=status in BUSY or limited or conflict or (status >= 500 and status not in _NEVER),
        status=status,
        public=f"{service.name} refused to {doing} (HTTP {status})",
        kind=kind,
        message=message,
        retry_after=pause,
        throttled=pause if limited else throttling(response),
    )


def _passes(service: Service, kind: str) -> bool:
    """Whether a retry may solve a conflict. Types of Octavia wait while something is immutable; its
    other conflicts stay, and those of Zaqar."""
    if service is NETWORK:
        return kind in _TRANSIENT
    return service not in (LOAD_BALANCER, MESSAGING) and not _FINAL.search(kind)


def _parse(response: Response) -> tuple[str, str]:
    """(kind, message)"""
    text = decode_text(response.body)
    try:
        document = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        return "", _clean(text)
    return _of_document(document)


def _of_document(document: Json) -> tuple[str, str]:
    if not isinstance(document, Mapping):
        return "", _clean(document)
    if isinstance(inside := document.get("error_message"), Mapping):
        return _of_document(inside)
    if isinstance(text := document.get("faultstring") or document.get("message"), str):
        return str(document.get("faultcode") or document.get("type") or ""), _clean(text)
    if isinstance(text := document.get("description"), str):
        return str(document.get("title") or ""), _clean(text)
    if isinstance(invalid := document.get("errors"), Mapping):
        return str(document.get("type") or ""), _clean("; ".join(_invalid_fields(invalid)))
    if isinstance(errors := document.get("errors"), list) and errors:
        first = errors[0] if isinstance(errors[0], Mapping) else {}
        return str(first.get("title") or ""), _clean(first.get("detail") or first.get("title"))
    for kind, inner in document.items():
        if isinstance(inner, Mapping) and "message" in inner:
            named = inner.get("type") or inner.get("title") or kind
            return str(named), _clean(inner["message"])
        if isinstance(inner, str):
            return str(kind), _clean(inner)
    return "", ""


def _invalid_fields(invalid: Mapping[str, Json]) -> list[str]:
    """`field: reason` of each invalid field."""
    found = invalid.get("errors")
    entries = [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
    paths = [one.get("path") for one in entries]
    places = [".".join(map(str, one)) if isinstance(one, list) else "" for one in paths]
    return [f"{place}: {one.get('message')}" for place, one in zip(places, entries, strict=True)]


def _clean(text: Json) -> str:
    markup = _without_head(str(text or ""))[:_MAX_MARKUP]
    plain = _TAGS.sub(" ", str(replace_nul(markup)))
    return " ".join(plain.split())[:MAX_MESSAGE].rstrip(".")


def _without_head(text: str) -> str:
    """Return an HTML page without its head."""
    before, _, page = text.partition("<head>")
    _, end, after = page.partition("</head>")
    return f"{before} {after}" if end else text


def _retry_after(response: Response) -> float | None:
    """Seconds. A date is ignored: no service of OpenStack sends one."""
    header = response.headers.get("retry-after", "")
    return min(float(header), MAX_RETRY_AFTER) if header.isdecimal() else None
