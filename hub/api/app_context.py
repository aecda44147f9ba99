"""The services and settings that handlers use, and the facts of a request that middleware sets."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from aiohttp import web

from channels.contract import Channel
from channels.dispatcher import Dispatcher
from channels.store.hook_notifications import HookPath
from channels.store.records import NotificationRecord
from channels.stream import Feed
from engine.errors import Forbidden
from engine.service import Engine
from engine.store.database import Database
from engine.store.gathered_reads import GatheredReads
from engine.store.read_database import ReadDatabase
from engine.tracing import Tracer
from engine.types.signal_urls import SignalUrls
from engine.types.software import ServerUrls
from hub.api.routes import origin_of
from hub.api.slack_answers import SlackAnswers, SlackHooks
from hub.auth.hook_tokens import HookTokens
from hub.auth.identity import HandedOverCredentials, Identity
from hub.auth.oidc_client import OidcClient
from hub.auth.passwords import PasswordHasher
from hub.auth.roles import HOLDERS, Right
from hub.keys.token_keys import StoredTokenKeys
from hub.metrics import Metrics
from hub.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class AppContext:
    """The services of one database. lists: serves lists and histories. horizon: maps a channel to
    the seconds until a delivery is dead. fetch_template: returns the text
    at a URL, of at most the given number of bytes; raises Invalid. oidc: the OpenID provider, if
    there is one. observation_credentials: None: the mode of authentication has none. slack: None:
    messages in Slack have no buttons that answer."""

    engine: Engine
    database: Database
    lists: ReadDatabase
    settings: Settings
    feed: Feed
    dispatcher: Dispatcher
    channels: Mapping[str, Channel]
    horizon: Callable[[str], float]
    sent_notifications: GatheredReads[HookPath, list[NotificationRecord]]
    hook_tokens: HookTokens
    token_keys: StoredTokenKeys
    signal_urls: SignalUrls
    servers: ServerUrls
    new_id: Callable[[], UUID]
    new_secret: Callable[[], str]
    random_bytes: Callable[[int], bytes]
    fetch_template: Callable[[str, int], Awaitable[str]]
    metrics: Metrics
    hasher: PasswordHasher
    oidc: OidcClient | None = None
    observation_credentials: HandedOverCredentials | None = None
    slack: SlackHooks | None = None


class ServerMetrics(Protocol):
    """Metrics of requests, and of the whole process."""

    def record_request(
        self, route: str, method: str, status: int, seconds: float | None
    ) -> None: ...

    async def render(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class ServerContext:
    """What requests need that concern no project. ready: returns the reasons why the process is not
    ready. slack: None: messages in Slack have no buttons that answer."""

    settings: Settings
    metrics: ServerMetrics
    tracer: Tracer
    ready: Callable[[], Awaitable[list[str]]]
    random_bytes: Callable[[int], bytes]
    slack: SlackAnswers | None = None


SERVER: web.AppKey[ServerContext] = web.AppKey("server", ServerContext)
#: The services of the cell of the request.
CONTEXT: web.RequestKey[AppContext] = web.RequestKey("context", AppContext)
#: The ID of the request in the log.
REQUEST_ID: web.RequestKey[str] = web.RequestKey("request_id", str)
#: Set if the request has the valid token of a hook or resource.
BY_TOKEN: web.RequestKey[bool] = web.RequestKey("by_token", bool)
#: The authenticated caller.
IDENTITY: web.RequestKey[Identity] = web.RequestKey("identity", Identity)


def context_of(request: web.Request) -> AppContext:
    return request[CONTEXT]


def server_of(request: web.Request) -> ServerContext:
    return request.app[SERVER]


def public_url(request: web.Request) -> str:
    """The URL of this server for people: that of the settings, or the one that the client used."""
    server = server_of(request).settings.server
    return server.public_url.rstrip("/") or origin_of(request)


def project_of(request: web.Request) -> str:
    return request.match_info["project"]


def identity_of(request: web.Request) -> Identity:
    return request[IDENTITY]


def require(identity: Identity, right: Right) -> None:
    """Raises Forbidden."""
    if not identity.may(right):
        raise Forbidden(
            f"{identity.name} has no right to {right} here",
            remedy=f"The role {HOLDERS[right]} is required; an admin can grant it.",
            code="Forbidden",
        )
