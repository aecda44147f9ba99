"""The client of the OpenStack services. Each request uses a given token.

`Cloud` is shared by all resource types of a process; `Cloud.session` returns what one operation
uses::

    session = cloud.session(call)
    found = await session.request(NETWORK, "GET", "/networks/ID", "read the network")
    ports = await session.list(NETWORK, "/ports", "ports", {"network_id": "ID"})

A path begins with a slash and follows the API version. Documents are JSON. All methods raise
`CloudError` (engine/types/openstack/service_errors.py): 429, 5xx and most conflicts have `retry`.
A response 401 to a token that came from a trust gets one new token, and the request is repeated.

It does I/O through the given `HttpClient` only. Tokens are in no text and in no log.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol
from urllib.parse import quote, urlencode, urlsplit

import orjson
import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Forbidden, HeadgateError, Unavailable
from engine.types.contract import Call
from engine.types.custom_constraints import ValidationContext
from engine.types.failure_scope import FailureScope
from engine.types.http_client import HttpClient, NoResponse, Request, Response
from engine.types.observation import request_sent
from engine.types.openstack.service_errors import (
    REQUEST_IDS,
    UNAUTHORIZED,
    CloudError,
    read_error,
)
from engine.types.openstack.services import Service
from engine.types.text_cleaning import decode_json, replace_nul
from engine.words import Json

log: FilteringBoundLogger = structlog.get_logger()

JSON: Final = "application/json"
#: The most pages of a list.
MAX_PAGES: Final = 1_000
#: Objects of a page.
PAGE: Final = 500
#: IDs in one request that reads several objects: the URL stays below 4 KB, the limit of uWSGI.
IDS_AT_ONCE: Final = 50
#: Digits from which an integer may not fit in 64 bits.
_EXACT_DIGITS: Final = 19
#: The code of the error of `CloudIdentity.observation_token` if the credential cannot be used.
OBSERVATION_CREDENTIAL_REFUSED = "ObservationCredentialRefused"
#: The fields of an object with the ID of its project.
PROJECT_FIELDS: Final = ("project_id", "tenant_id", "os-vol-tenant-attr:tenant_id")
#: A query: values by name, or a list of values for a name that is repeated.
Query = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True, slots=True)
class StackDomain:
    """The domain of Keystone in which Headgate creates users for servers, as Heat does. username,
    password: of its administrator, who is in this domain. role: of the users, by name."""

    id: str
    username: str
    password: str = field(repr=False)
    role: str


@dataclass(frozen=True, slots=True)
class CloudAccess:
    """region: the ID of the region of stacks that name none; "": the first one in the catalog.
    interface: of the endpoints, such as ``public``. reader_id, reader_secret: of the application
    credential that reads the objects of all projects; "" for none. stack_domain: None: servers get
    no users."""

    region: str = ""
    interface: str = "public"
    reader_id: str = ""
    reader_secret: str = field(default="", repr=False)
    stack_domain: StackDomain | None = None


class NoStackProject(HeadgateError):
    """The domain of stack users has no such project."""


@dataclass(frozen=True, slots=True)
class StackAdmin:
    """The administrator of the domain of stack users, with a token."""

    user_id: str
    token: str = field(repr=False)


class CloudIdentity(Protocol):
    """Keystone, as resource types use it. The methods raise HeadgateError."""

    @property
    def has_reader(self) -> bool:
        """Whether the operator has configured a credential that reads the objects of all
        projects."""
        ...

    @property
    def ca_pem(self) -> str:
        """The CA certificate of the services; "": the system's CA certificates."""
        ...

    @property
    def access(self) -> CloudAccess:
        """How the operator has configured the cloud."""
        ...

    def token(self, credential: str) -> str | Awaitable[str]:
        """A token for the credential of a request: of a trust, or the credential itself."""
        ...

    async def renew(self, token: str) -> str | None:
        """A new token in place of one that a service refused; None if it is not from a trust."""
        ...

    async def endpoint(self, service: Service, token: str, region: str) -> str | None:
        """The URL of a service in a region, from the catalog of a token; None if the catalog has
        none. region: its ID; "": the configured one. Keystone serves all regions: in one where it
        has no endpoint, its URL is that of the configured region."""
        ...

    async def regions(self, token: str) -> Sequence[str]:
        """The IDs of the regions that the catalog of a token has, sorted."""
        ...

    async def reader_token(self, refused: str = "") -> str:
        """A token of the reader credential. refused: by a service: return another one."""
        ...

    async def observation_token(self, credential: str, refused: str = "") -> str:
        """A token of `Call.observation_credential`. refused: by a service: return another one. The
        error for a credential that cannot be used has the code OBSERVATION_CREDENTIAL_REFUSED."""
        ...

    async def stack_admin(self, project: str = "", refused: str = "") -> StackAdmin:
        """The administrator of `CloudAccess.stack_domain`, with a token for the domain. project:
        the name of a project of the domain for which the token is instead. refused: by a service:
        return another one. Raises NoStackProject for a project that does not exist."""
        ...

    def forget_stack_project(self, project: str) -> None:
        """Forget the token for this project: one that is created later has the same name."""
        ...


class Cloud:
    """The services of one OpenStack."""

    def __init__(self, web: HttpClient, identity: CloudIdentity) -> None:
        self.web = web
        self.identity = identity

    @property
    def has_reader(self) -> bool:
        return self.identity.has_reader

    def session(self, user: Call | ValidationContext) -> "Session":
        """A session of the credential of a call or request, in the region of its stack."""
        return Session(self, user.credential, user.region)

    def reader_session(self, region: str) -> "Session":
        """A session of the reader credential. Only with `has_reader`."""
        return Session(self, None, region)

    def can_observe(self, call: Call) -> bool:
        """Whether the object of a resource can be observed: by the reader, or, if it is recorded as
        an object of the project, by the credential of the project's owner. That credential does not
        see other objects, which would then look like missing ones."""
        return self.has_reader or (self.has_observer(call) and is_of_project(call))

    def has_observer(self, call: Call) -> bool:
        """Whether there is a credential for observations of the project of a stack."""
        return self.has_reader or bool(call.observation_credential)

    def observer_session(self, call: Call) -> "Session":
        """A session that observes the objects of a project. Only with `has_observer`."""
        observer = "" if self.has_reader else call.observation_credential
        return Session(self, None, call.region, observer)

    def stack_users_session(self, region: str, project: str = "") -> "Session":
        """A session of the administrator of the domain of stack users. project: the name of one of
        its projects, for objects of this project. Only with `CloudAccess.stack_domain`."""

        async def token(refused: str) -> str:
            return (await self.identity.stack_admin(project, refused)).token

        return Session(self, None, region, source=token)

    def region_of(self, call: Call) -> str:
        """The ID of the region of a stack, for servers; "": the first one in the catalog."""
        return call.region or self.identity.access.region

    def owner_session(self, call: Call) -> "Session":
        """A session that observes as the owner of the project, for a service that shows objects to
        their project only. Only with `Call.observation_credential`."""
        return Session(self, None, call.region, call.observation_credential)


def is_of_project(call: Call) -> bool:
    """Whether the object of a resource is recorded as one of the project of its stack. Pure."""
    shown = call.attributes.get("show")
    recorded = shown if isinstance(shown, Mapping) else {}
    return any(recorded.get(name) == call.project for name in PROJECT_FIELDS)


class Session:
    """Requests of one operation. region: "": the configured one. credential: None: of the reader
    or, if observer is not empty, of this `Call.observation_credential`. source: gives the tokens
    instead; its argument is one that a service has refused, or ""."""

    def __init__(
        self,
        cloud: Cloud,
        credential: str | None,
        region: str,
        observer: str = "",
        source: Callable[[str], Awaitable[str]] | None = None,
    ) -> None:
        self._cloud = cloud
        self.credential = credential
        self.region = region
        self._observer = observer
        self._source = source
        self._token = ""

    @property
    def reads_all_projects(self) -> bool:
        """Whether lists may be requested for all projects."""
        return self.credential is None and not self._observer and self._source is None

    async def request(
        self,
        service: Service,
        method: str,
        path: str,
        doing: str,
        body: Json = None,
        query: Query | None = None,
        microversion: str = "",
        media_type: str = JSON,
    ) -> Json:
        """Send a request and return the document of the response, or None if it has none.

        doing: the request, for messages: `create the network`. microversion: other than that of
        the service. media_type: of the body. Raises CloudError.
        """
        response = await self.send(
            service, method, path, doing, body, query, microversion, media_type
        )
        return _document(service, doing, response)

    async def send(
        self,
        service: Service,
        method: str,
        path: str,
        doing: str,
        body: Json = None,
        query: Query | None = None,
        microversion: str = "",
        media_type: str = JSON,
        headers: Mapping[str, str] | None = None,
        endpoint: str = "",
    ) -> Response:
        """As `request`, but return the response: its status is from 200 to 299.

        body: bytes are sent as they are. headers: further ones of the request. They must have no
        control characters. endpoint: in place of the service's, at the same server.
        """
        url = f"{endpoint or await self.endpoint(service, doing)}{path}"
        return await self._send(
            service, method, url, doing, body, query, microversion, media_type, headers
        )

    async def find(
        self, service: Service, path: str, key: str, doing: str
    ) -> Mapping[str, Json] | None:
        """The object at a path, below `key` in the response; None if it does not exist."""
        try:
            document = await self.request(service, "GET", path, doing)
        except CloudError as error:
            if error.is_missing:
                return None
            raise
        return object_in(service, doing, document, key)

    async def create(
        self,
        service: Service,
        path: str,
        key: str,
        doing: str,
        body: Json,
        microversion: str = "",
    ) -> Mapping[str, Json]:
        """Create an object in the collection at a path, and return it, below `key` in the
        response; it has an ID.

        Other responses are like none: the object may exist, so that a repeated call looks for it.
        """
        response = await self.send(service, "POST", path, doing, body, microversion=microversion)
        try:
            found = object_in(service, doing, _document(service, doing, response), key)
            id_of(service, found)
        except CloudError as error:
            raise CloudError(str(error), retry=True, public=error.public) from None
        return found

    async def delete(
        self,
        service: Service,
        path: str,
        doing: str,
        query: Query | None = None,
        microversion: str = "",
    ) -> None:
        """Delete what is at a path, unless it does not exist."""
        try:
            await self.send(service, "DELETE", path, doing, None, query, microversion)
        except CloudError as error:
            if not error.is_missing:
                raise

    async def list(
        self, service: Service, path: str, key: str, query: Query | None = None
    ) -> list[Mapping[str, Json]]:
        """All objects of a list. key: of the objects in the response, as `ports`."""
        return [one async for page in self.pages(service, path, key, query) for one in page]

    async def pages(
        self,
        service: Service,
        path: str,
        key: str,
        query: Query | None = None,
        *,
        page: int = PAGE,
        microversion: str = "",
        headers: Mapping[str, str] | None = None,
        lenient: bool = False,
    ) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        """Yield the pages of a list. page: its most objects; 0: as many as the service chooses.
        headers: further ones of the requests. lenient: accept values that JSON does not have, NaN,
        infinite numbers and lone surrogates, where objects contain values of users.

        Follows the link `next`: of Neutron, Nova and Cinder (``ports_links``), of Glance (``next``)
        and of Keystone and Zaqar (``links``).
        """
        doing = f"list the {key.replace('_', ' ')}"
        url = f"{await self.endpoint(service, doing)}{path}"
        limit = {"limit": str(page)} if page and service.limits else {}
        first = {**(query or {}), **limit}
        following: Query | None = first
        for _ in range(MAX_PAGES):
            response = await self._send(
                service, "GET", url, doing, None, following, microversion, headers=headers
            )
            document = _document(service, doing, response, lenient=lenient)
            found = _objects_in(service, doing, document, key)
            yield found
            link = _next_link(service, doing, document, key)
            if not link or not found:
                return
            url, following = _same_server(service, doing, url, link), None
        raise CloudError(f"{service.name}: the list of {key} has more than {MAX_PAGES} pages")

    async def by_ids(
        self, service: Service, path: str, key: str, ids: Sequence[str]
    ) -> AsyncIterator[Mapping[str, Json]]:
        """Yield the objects with these IDs that exist, for a list that filters by several IDs."""
        for start in range(0, len(ids), IDS_AT_ONCE):
            chunk = ids[start : start + IDS_AT_ONCE]
            async for page in self.pages(service, path, key, {"id": list(chunk)}):
                for one in page:
                    yield one

    async def endpoint(self, service: Service, doing: str) -> str:
        """The URL of a service, without a slash at the end. Raises CloudError."""
        url = await self.find_endpoint(service, doing)
        if url is None:
            reason = f"the service catalog of this project has no endpoint of {service.name}"
            if self.region:
                reason = f"{reason} in the region {self.region}"
            raise CloudError(f"cannot {doing}: {reason}", public=reason)
        return url

    async def regions(self, doing: str) -> Sequence[str]:
        """The IDs of the regions in the service catalog, sorted. Raises CloudError."""
        try:
            return await self._cloud.identity.regions(await self._known_token())
        except HeadgateError as error:
            raise _no_token_error(doing, error) from None

    async def find_endpoint(self, service: Service, doing: str) -> str | None:
        """As `endpoint`; None if the service catalog has no such service."""
        try:
            token = await self._known_token()
            return await self._cloud.identity.endpoint(service, token, self.region)
        except HeadgateError as error:
            raise _no_token_error(doing, error) from None

    async def _known_token(self) -> str:
        if not self._token:
            identity = self._cloud.identity
            if self.credential is None:
                self._token = await self._observer_token()
            elif self.credential:
                found = identity.token(self.credential)
                self._token = found if isinstance(found, str) else await found
            else:
                raise Forbidden(
                    "there is no credential of a user",
                    remedy="Update the stack with a token of your own.",
                    code="Unauthorized",
                )
        return self._token

    async def _send(
        self,
        service: Service,
        method: str,
        url: str,
        doing: str,
        body: Json,
        query: Query | None,
        microversion: str,
        media_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        if query:
            url = f"{url}{'&' if '?' in url else '?'}{urlencode(query, doseq=True)}"
        response = await self._once(
            service, method, url, doing, body, microversion, media_type, headers
        )
        if response.status == UNAUTHORIZED:
            try:
                renewed = await self._renew_token()
            except HeadgateError as error:
                raise _no_token_error(doing, error) from None
            if renewed:
                self._token = renewed
                response = await self._once(
                    service, method, url, doing, body, microversion, media_type, headers
                )
        if 200 <= response.status < 300:
            return response
        refused = read_error(service, doing, response)
        if not refused.is_missing:
            _log(service, method, url, response, refused)
        raise refused

    async def _renew_token(self) -> str | None:
        if self.credential is None:
            return await self._observer_token(refused=self._token)
        return await self._cloud.identity.renew(self._token)

    async def _observer_token(self, refused: str = "") -> str:
        identity = self._cloud.identity
        if self._source is not None:
            return await self._source(refused)
        if self._observer:
            return await identity.observation_token(self._observer, refused)
        return await identity.reader_token(refused)

    async def _once(
        self,
        service: Service,
        method: str,
        url: str,
        doing: str,
        body: Json,
        microversion: str,
        media_type: str,
        further: Mapping[str, str] | None,
    ) -> Response:
        headers = {
            "Accept": "application/json",
            **dict(service.headers),
            **(further or {}),
            "X-Auth-Token": self._token,
        }
        if version := microversion or service.microversion:
            headers["OpenStack-API-Version"] = version
        if body is not None:
            headers["Content-Type"] = media_type
        sent = body if isinstance(body, bytes | None) else orjson.dumps(body)
        request_sent()
        try:
            return await self._cloud.web.send(
                Request(method, url, headers, sent, self._cloud.identity.ca_pem)
            )
        except NoResponse as error:
            public = f"{service.name} did not answer the request to {doing}"
            raise CloudError(
                f"{public}: {error}", retry=error.retry, public=public, scope=error.scope
            ) from None


def segment(value: Json) -> str:
    """A part of a path: a name or ID with special characters escaped.

    Raises CloudError for what cannot be one: an empty text, or the dots that lead out of a
    collection.
    """
    text = "" if value is None else str(value)
    if text in ("", ".", ".."):
        reason = f'there is no object with the ID "{text}"'
        raise CloudError(reason, status=404, public="the object does not exist")
    return quote(text, safe="")


def _no_token_error(doing: str, error: HeadgateError) -> CloudError:
    public = f"cannot {doing}: Keystone gave no token"
    if error.code == OBSERVATION_CREDENTIAL_REFUSED or isinstance(error, NoStackProject):
        public = f"cannot {doing}: {error}"
    retry = isinstance(error, Unavailable) and error.code != "Unauthorized"
    scope = FailureScope.ENDPOINT if retry else FailureScope.REQUEST
    return CloudError(f"cannot {doing}: {error}", retry=retry, public=public, scope=scope)


def _document(service: Service, doing: str, response: Response, *, lenient: bool = False) -> Json:
    if not response.body:
        return None
    try:
        return decode_json(response.body)
    except ValueError:
        try:
            if lenient:
                return replace_nul(json.loads(response.body, parse_int=_integer))
        except (ValueError, RecursionError):
            pass
        reason = f"{service.name} answered the request to {doing} with no JSON"
        raise CloudError(reason, public=reason) from None


def _integer(text: str) -> int | float:
    """As orjson reads it; Python refuses to read the longest ones."""
    return int(text) if len(text) < _EXACT_DIGITS else float(text)


def object_in(service: Service, doing: str, document: Json, key: str) -> Mapping[str, Json]:
    """The object below a key of a response; "": the response. Raises CloudError."""
    found = _inside(document, key)
    if not isinstance(found, Mapping):
        raise _without(service, doing, f"`{key}`" if key else "an object")
    return found


def id_of(service: Service, found: Mapping[str, Json], name: str = "id") -> str:
    """The ID of an object of a response, a text or number. name: of the field. Raises
    CloudError."""
    value = found.get(name)
    if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
        reason = f"{service.name} answered without `{name}` of an object"
        raise CloudError(reason, public=reason)
    return str(value)


def _objects_in(
    service: Service, doing: str, document: Json, key: str
) -> Sequence[Mapping[str, Json]]:
    found = _inside(document, key)
    if not isinstance(found, list):
        raise _without(service, doing, f"`{key}`")
    if not all(isinstance(one, Mapping) for one in found):
        raise _without(service, doing, f"objects in `{key}`")
    return found


def _inside(document: Json, key: str) -> Json:
    """The value below a key; None: there is none. Without a key: the document."""
    if not key:
        return document
    return document.get(key) if isinstance(document, Mapping) else None


def _without(service: Service, doing: str, what: str) -> CloudError:
    reason = f"{service.name} answered the request to {doing} without {what}"
    return CloudError(reason, public=reason)


def _next_link(service: Service, doing: str, document: Json, key: str) -> str:
    """The URL of the next page; "" if there is none."""
    if not isinstance(document, Mapping):
        return ""
    name = f"{key}_links"
    links = document.get(name) or []
    if not isinstance(links, list) or not all(isinstance(one, Mapping) for one in links):
        raise _without(service, doing, f"links in `{name}`")
    following = [one.get("href") for one in links if one.get("rel") == "next"]
    link = following[0] if following else document.get("next")
    if link is None and isinstance(own := document.get("links"), Mapping):
        link = own.get("next")
    elif link is None and isinstance(own, list):
        known = (one for one in own if isinstance(one, Mapping) and one.get("rel") == "next")
        link = next(known, {}).get("href")
    if not isinstance(link, str | None):
        raise _without(service, doing, "a URL of the next page")
    return link or ""


def _same_server(service: Service, doing: str, url: str, link: str) -> str:
    """The URL of the next page, at the server of the first one: a service behind a proxy may name
    another host or scheme."""
    try:
        here, there = urlsplit(url), urlsplit(link)
    except ValueError:
        raise _without(service, doing, "a valid URL of the next page") from None
    path = there.path
    if path == here.path or not there.netloc or here.path.endswith(path):
        path = here.path
    if there.netloc not in ("", here.netloc) and path != here.path:
        reason = f"{service.name}: the next page of the request to {doing} is on another server"
        raise CloudError(reason, public=reason)
    return f"{here.scheme}://{here.netloc}{path}{f'?{there.query}' if there.query else ''}"


def _log(service: Service, method: str, url: str, response: Response, error: CloudError) -> None:
    """Log the ID of a request that a service refused, so that the operator finds it there."""
    ids = [one for name in REQUEST_IDS if (one := response.headers.get(name))]
    log.info(
        "openstack.refused",
        service=service.name,
        method=method,
        path=urlsplit(url).path,
        status=response.status,
        kind=error.kind,
        request_id=ids[0] if ids else "",
    )
