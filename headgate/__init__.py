"""The Python client of Headgate, and the kit for programs that answer hooks.

Names are imported when they are used, so that `import headgate` loads no HTTP library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headgate.client import Client, StackPlan
    from headgate.connection import ClientCredentials, StreamedEvent
    from headgate.errors import (
        AuthenticationError,
        ConflictError,
        EventsGoneError,
        InvalidRequestError,
        NotFoundError,
        PermissionDeniedError,
        RateLimitError,
        RequestError,
        ServerError,
        UnreachableError,
        WaitTimeoutError,
    )
    from headgate.listener.answers import (
        Adopt,
        Continue,
        HookAnswer,
        Ignore,
        Patch,
        Reject,
        Repair,
        Run,
        SingleStep,
    )
    from headgate.listener.app import Listener
    from headgate.listener.notification import HookClosed, HookNotification
    from headgate.listener.sources import AmqpQueue, EventStream, WebhookServer

#: The module of each public name.
_MODULES = {
    "headgate.client": ("Client", "StackPlan"),
    "headgate.connection": ("ClientCredentials", "StreamedEvent"),
    "headgate.errors": (
        "AuthenticationError",
        "ConflictError",
        "EventsGoneError",
        "InvalidRequestError",
        "NotFoundError",
        "PermissionDeniedError",
        "RateLimitError",
        "RequestError",
        "ServerError",
        "UnreachableError",
        "WaitTimeoutError",
    ),
    "headgate.listener.answers": (
        "Adopt",
        "Continue",
        "HookAnswer",
        "Ignore",
        "Patch",
        "Reject",
        "Repair",
        "Run",
        "SingleStep",
    ),
    "headgate.listener.app": ("Listener",),
    "headgate.listener.notification": ("HookClosed", "HookNotification"),
    "headgate.listener.sources": ("AmqpQueue", "EventStream", "WebhookServer"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Adopt",
    "AmqpQueue",
    "AuthenticationError",
    "Client",
    "ClientCredentials",
    "ConflictError",
    "Continue",
    "EventStream",
    "EventsGoneError",
    "HookAnswer",
    "HookClosed",
    "HookNotification",
    "Ignore",
    "InvalidRequestError",
    "Listener",
    "NotFoundError",
    "Patch",
    "PermissionDeniedError",
    "RateLimitError",
    "Reject",
    "Repair",
    "RequestError",
    "Run",
    "ServerError",
    "SingleStep",
    "StackPlan",
    "StreamedEvent",
    "UnreachableError",
    "WaitTimeoutError",
    "WebhookServer",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
