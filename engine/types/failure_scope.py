"""What a failed request to a provider says something about: all requests to its endpoint, or this
one alone. Pure.

The observer pauses what a failure is about and nothing else
(`engine.work.observer.endpoint_back_off`).
"""

from enum import Enum

#: Errors of servers that are about the request: its method or version is not implemented.
NOT_IMPLEMENTED = frozenset({501, 505})
#: Errors that a gateway or an overloaded service answers to every request.
GATEWAY_ERRORS = frozenset({502, 503, 504})
#: The first status of errors of servers.
SERVER_ERROR = 500


class FailureScope(Enum):
    """ENDPOINT: no request to it succeeds, such as after a timeout. SERVER: the server has an
    error, which one request or all of them can cause, such as after 500: only several failed
    requests without a success say something about the endpoint. REQUEST: this one failed, and
    others need not, such as after 401 or with a response that is not valid. OBJECT: the provider
    works, and the object of one resource cannot be read."""

    ENDPOINT = "endpoint"
    SERVER = "server"
    REQUEST = "request"
    OBJECT = "object"


def scope_of_response(status: int | None, *, throttled: bool) -> FailureScope:
    """The scope of a response that is not usable. status: None: no request was sent, because it is
    not valid. throttled: the provider requests fewer requests. Without a response, the HTTP client
    knows the scope: see `engine.types.http_client.NoResponse`."""
    if throttled or status in GATEWAY_ERRORS:
        return FailureScope.ENDPOINT
    if status is None or status < SERVER_ERROR or status in NOT_IMPLEMENTED:
        return FailureScope.REQUEST
    return FailureScope.SERVER
