"""A client of Keystone (Identity API v3): verifies tokens, creates trusts and uses them."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

import aiohttp

from engine.errors import Forbidden, Unavailable
from headgate.connection_errors import describe
from hub.auth.certificate_authority import read_authority
from hub.auth.token_authenticator import unauthorized_error

Json = Any
_BROKEN = (aiohttp.ClientError, TimeoutError, OSError, ValueError, KeyError, TypeError)


@dataclass(frozen=True, slots=True)
class KeystoneAccess:
    """url: without ``/v3``. username, password, project: of the service user. timeout: seconds of
    one request."""

    url: str
    username: str
    password: str = field(repr=False)
    project: str
    user_domain: str
    project_domain: str
    ca_file: str
    timeout: float


@dataclass(frozen=True, slots=True)
class Domain:
    """Names of users and projects are unique within their domain only."""

    id: str
    name: str

    def is_called(self, id_or_name: str) -> bool:
        return id_or_name in (self.id, self.name)


@dataclass(frozen=True, slots=True)
class TokenScope:
    """The user and project of a token. audit_id: of the token; not a secret."""

    user_id: str
    user_name: str
    user_domain: Domain
    project_id: str
    project_name: str
    project_domain: Domain
    roles: Sequence[str]
    audit_id: str = ""


@dataclass(frozen=True, slots=True)
class ApplicationCredential:
    """What the token of an application credential says about it. roles: names. is_restricted: its
    holder cannot create further credentials. access_rules: services accept only the requests
    that these allow."""

    id: str
    name: str
    user_id: str
    user_name: str
    project_id: str
    roles: Sequence[str]
    is_restricted: bool
    access_rules: bool


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token of an application credential, and its service catalog: its access rules may forbid to
    ask for that later."""

    token: str = field(repr=False)
    catalog: Sequence[Mapping[str, Json]] = field(repr=False)
    credential: ApplicationCredential


@dataclass(frozen=True, slots=True)
class DomainToken:
    """A token of the administrator of the domain of stack users, and its service catalog."""

    token: str = field(repr=False)
    user_id: str
    catalog: Sequence[Mapping[str, Json]] = field(repr=False)


class CredentialRejected(Exception):
    """Keystone gives no token for a credential. status: of its response."""

    def __init__(self, status: int) -> None:
        super().__init__(f"Keystone responded with {status}")
        self.status = status


@dataclass(frozen=True, slots=True)
class _ServiceToken:
    """The token of the service user."""

    token: str = field(default="", repr=False)
    user_id: str = ""


class KeystoneClient:
    """An async context manager."""

    def __init__(self, access: KeystoneAccess) -> None:
        self._access = access
        self._own = _ServiceToken()
        self._renewing = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=self._access.timeout)
        connector = aiohttp.TCPConnector(
            ssl=read_authority(self._access.ca_file, "[auth.keystone] ca_file")
        )
        self._session = aiohttp.ClientSession(timeout=timeout, connector=connector)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def verify(self, token: str) -> TokenScope:
        """Raises HeadgateError with the code Unauthorized, Forbidden (no project) or
        Unavailable."""
        try:
            status, document, _ = await self._ask("GET", "/auth/tokens", subject=token)
            if status == 200:
                return _scope_of(document["token"])
        except _BROKEN as error:
            raise unavailable(describe(error)) from error
        if status != 404:
            raise unavailable(f"it responded with {status}")
        raise unauthorized_error(
            "Keystone rejected the token: it is invalid, revoked or expired",
            "Get a new one: `openstack token issue`.",
        )

    async def make_trust(self, token: str, of: TokenScope, expires_at: str) -> str | None:
        """Create a trust and return its ID; None: refused. expires_at: in RFC 3339."""
        own = await self._renew(None)
        trust = {
            "trustor_user_id": of.user_id,
            "trustee_user_id": own.user_id,
            "project_id": of.project_id,
            "impersonation": True,
            "roles": [{"name": role} for role in of.roles],
            "expires_at": expires_at,
        }
        try:
            status, document, _ = await self._request(
                "POST", "/OS-TRUST/trusts", {"trust": trust}, {"X-Auth-Token": token}
            )
            return str(document["trust"]["id"]) if status == 201 else None
        except _BROKEN as error:
            raise unavailable(describe(error)) from error

    async def delete_trust(self, trust: str, token: str | None) -> None:
        """Delete a trust, with a token of its user, or from the trust itself; None: with that of
        the service user. Keystone may refuse it. Raises Unavailable."""
        path = f"/OS-TRUST/trusts/{trust}"
        try:
            if token is None:
                status, _, _ = await self._ask("DELETE", path)
            else:
                status, _, _ = await self._request("DELETE", path, None, {"X-Auth-Token": token})
        except _BROKEN as error:
            raise unavailable(describe(error)) from error
        if _is_temporary(status):
            raise unavailable(f"it responded with {status}")

    async def token_by_trust(self, trust: str) -> str:
        """Raises Unavailable, and Forbidden if the trust is no longer valid."""
        try:
            status, _, headers = await self._log_in({"OS-TRUST:trust": {"id": trust}})
        except _BROKEN as error:
            raise unavailable(describe(error)) from error
        if _is_temporary(status):
            raise unavailable(f"it responded with {status}")
        if status != 201:
            raise Forbidden(
                f"the trust of this change is no longer valid: Keystone responded with {status}",
                remedy="Update the stack, or answer its hook, with a token of your own.",
                code="TrustRefused",
            )
        return headers["X-Subject-Token"]

    async def token_by_application_credential(self, credential_id: str, secret: str) -> IssuedToken:
        """Raises Unavailable, CredentialRejected."""
        identity = {
            "methods": ["application_credential"],
            "application_credential": {"id": credential_id, "secret": secret},
        }
        try:
            status, document, headers = await self._request(
                "POST", "/auth/tokens", {"auth": {"identity": identity}}, {}
            )
            if status == 201:
                token = document["token"]
                catalog = list(token["catalog"])
                return IssuedToken(headers["X-Subject-Token"], catalog, _credential_of(token))
        except _BROKEN as error:
            raise unavailable(describe(error)) from error
        if _is_temporary(status):
            raise unavailable(f"it responded with {status}")
        raise CredentialRejected(status)

    async def token_of_domain_admin(
        self, domain_id: str, username: str, password: str, project: str = ""
    ) -> DomainToken:
        """A token for a domain, with a user of it. project: the name of a project of the domain,
        for which the token is instead. Raises Unavailable, CredentialRejected."""
        domain = {"id": domain_id}
        user = {"name": username, "domain": domain, "password": password}
        scope = {"project": {"name": project, "domain": domain}} if project else {"domain": domain}
        identity = {"methods": ["password"], "password": {"user": user}}
        body = {"auth": {"identity": identity, "scope": scope}}
        try:
            status, document, headers = await self._request("POST", "/auth/tokens", body, {})
            if status == 201:
                token = document["token"]
                catalog = list(token["catalog"])
                return DomainToken(headers["X-Subject-Token"], token["user"]["id"], catalog)
        except _BROKEN as error:
            raise unavailable(describe(error)) from error
        if _is_temporary(status):
            raise unavailable(f"it responded with {status}")
        raise CredentialRejected(status)

    async def expiry_of(self, credential: ApplicationCredential, token: str) -> datetime | None:
        """When an application credential expires; None: never, or Keystone shows it neither to its
        owner nor to the service user. token: of the credential. Raises Unavailable."""
        path = f"/users/{credential.user_id}/application_credentials/{credential.id}"
        try:
            status, document, _ = await self._request("GET", path, None, {"X-Auth-Token": token})
            if status in (401, 403):  # its access rules do not allow the request
                status, document, _ = await self._ask("GET", path)
            if status == 200:
                return _time(document["application_credential"].get("expires_at"))
        except _BROKEN as error:
            raise unavailable(describe(error)) from error
        if _is_temporary(status):
            raise unavailable(f"it responded with {status}")
        return None

    async def catalog(self, token: str) -> Sequence[Mapping[str, Json]]:
        """The services in the catalog of a token's project. Raises Unavailable, Unauthorized."""
        try:
            status, document, _ = await self._request(
                "GET", "/auth/catalog", None, {"X-Auth-Token": token}
            )
            if status == 200:
                return list(document["catalog"])
        except _BROKEN as error:
            raise unavailable(describe(error)) from error
        if status == 401:
            raise unauthorized_error("Keystone rejected the token", "Request the change again.")
        raise unavailable(f"it responded with {status} to the request for the service catalog")

    async def _ask(
        self, method: str, path: str, *, subject: str = ""
    ) -> tuple[int, Json, Mapping[str, str]]:
        """With the service user's token, which is renewed once if it has expired. subject: the
        token that the request is about."""
        own, seen = await self._renew(None), 0
        while True:
            headers = {"X-Auth-Token": own.token}
            if subject:
                headers["X-Subject-Token"] = subject
            found = await self._request(method, path, None, headers)
            if found[0] != 401 or seen:
                return found
            own, seen = await self._renew(own), 1

    async def _renew(self, expired: _ServiceToken | None) -> _ServiceToken:
        """The service user's token. expired: a token that must be renewed. Raises Unavailable."""
        async with self._renewing:
            if not self._own.token or self._own is expired:
                domain = {"name": self._access.project_domain}
                project = {"name": self._access.project, "domain": domain}
                try:
                    status, document, headers = await self._log_in({"project": project})
                    if status == 201:
                        user_id = document["token"]["user"]["id"]
                        self._own = _ServiceToken(headers["X-Subject-Token"], user_id)
                except _BROKEN as error:
                    raise unavailable(describe(error)) from error
                if status != 201:
                    raise unavailable(
                        f"Keystone rejected the service user's credentials with {status}"
                    )
            return self._own

    async def _log_in(self, scope: Json) -> tuple[int, Json, Mapping[str, str]]:
        user = {
            "name": self._access.username,
            "domain": {"name": self._access.user_domain},
            "password": self._access.password,
        }
        identity = {"methods": ["password"], "password": {"user": user}}
        body = {"auth": {"identity": identity, "scope": scope}}
        return await self._request("POST", "/auth/tokens", body, {})

    async def _request(
        self, method: str, path: str, body: Json, headers: Mapping[str, str]
    ) -> tuple[int, Json, Mapping[str, str]]:
        if self._session is None:
            raise RuntimeError("the Keystone client is used outside its context manager")
        url = f"{self._access.url}/v3{path}"
        async with self._session.request(method, url, json=body, headers=headers) as response:
            has_document = response.status < 300 and response.status != 204
            document = await response.json() if has_document else None
            return response.status, document, response.headers


def _is_temporary(status: int) -> bool:
    return status == 429 or status >= 500


def _scope_of(token: Mapping[str, Json]) -> TokenScope:
    """Raises Forbidden."""
    project, user = token.get("project"), token["user"]
    if project is None:
        raise Forbidden(
            "the token is not scoped to a project",
            remedy="Set OS_PROJECT_NAME and request a project-scoped token.",
            code="InvalidTenant",
        )
    return TokenScope(
        user["id"],
        user["name"],
        _domain(user),
        project["id"],
        project["name"],
        _domain(project),
        [role["name"] for role in token.get("roles", [])],
        next(iter(token.get("audit_ids", [])), ""),
    )


def _credential_of(token: Mapping[str, Json]) -> ApplicationCredential:
    """What a token of an application credential says about it. Raises KeyError, TypeError."""
    found, user = token["application_credential"], token["user"]
    return ApplicationCredential(
        found["id"],
        found["name"],
        user["id"],
        user["name"],
        token["project"]["id"],
        [role["name"] for role in token.get("roles", [])],
        found.get("restricted") is True,
        bool(found.get("access_rules")),
    )


def _time(text: str | None) -> datetime | None:
    """A time of Keystone, which is in UTC. Raises ValueError."""
    if not text:
        return None
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _domain(of: Mapping[str, Json]) -> Domain:
    return Domain(of["domain"]["id"], of["domain"]["name"])


def unavailable(reason: str) -> Unavailable:
    return Unavailable(
        f"Keystone is unavailable: {reason}",
        place="[auth.keystone] url",
        remedy="Try again later; running changes continue.",
        code="KeystoneUnavailable",
    )
