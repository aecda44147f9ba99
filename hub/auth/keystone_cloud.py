"""Keystone as the resource types of OpenStack use it: tokens, and endpoints in the catalog."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final, Protocol

from engine.errors import Unavailable
from engine.ttl_cache import TtlCache
from engine.types.openstack.cloud import CloudAccess, NoStackProject, StackAdmin
from engine.types.openstack.services import IDENTITY, Service, find_endpoint, find_regions
from hub.auth.keystone_client import CredentialRejected, IssuedToken, KeystoneClient
from hub.auth.observation_credentials import ObservationCredentials
from hub.auth.request_credentials import RequestCredentials, cache_key
from hub.auth.shared_tasks import SharedTasks

Json = Any
#: Seconds for which the catalog of a token is reused.
CATALOG_LASTS: Final = 300.0
#: Seconds for which new sessions of the reader reuse a token, and Keystone's default lifetime.
READER_TOKEN_REUSED: Final = 600.0
READER_TOKEN_LIFETIME: Final = 3_600.0
#: How many of the reader's tokens sessions can use at the same time.
MAX_READER_TOKENS: Final = 20
#: Catalogs are large: some 20 KB each.
MAX_CATALOGS: Final = 1_000
#: Projects of stack users for which tokens are kept.
MAX_STACK_TOKENS: Final = 10_000


class TrustedTokens(Protocol):
    """The tokens of the users: `hub.auth.keystone.Keystone`."""

    def exchange(self, credential: str) -> str | Awaitable[str]: ...

    async def renew(self, token: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class _ReaderToken:
    """renew_at: in seconds of the monotonic clock."""

    token: str = field(default="", repr=False)
    renew_at: float = 0.0


class KeystoneCloud:
    """Implements `engine.types.openstack.cloud.CloudIdentity`."""

    def __init__(
        self,
        client: KeystoneClient,
        tokens: TrustedTokens,
        access: CloudAccess,
        ca_pem: str = "",
        credentials: ObservationCredentials | None = None,
    ) -> None:
        """credentials: of owners of projects; None: this server stores none."""
        self._credentials = credentials
        self.ca_pem = ca_pem
        self._client = client
        self._tokens = tokens
        self.access = access
        self._stack_admins: TtlCache[str, StackAdmin] = TtlCache(max_entries=MAX_STACK_TOKENS)
        self._stack_logins: SharedTasks[StackAdmin] = SharedTasks()
        self._catalogs: TtlCache[str, Sequence[Mapping[str, Json]]] = TtlCache(
            max_entries=MAX_CATALOGS
        )
        #: Concurrent operations with a token share a catalog.
        self._reads: SharedTasks[Sequence[Mapping[str, Json]]] = SharedTasks()
        self._reader = _ReaderToken()
        self._renewing = asyncio.Lock()
        # Those of recent reader tokens: a session keeps its token when another one is renewed, and
        # access rules may forbid the reader to ask for the catalog.
        self._reader_catalogs: TtlCache[str, Sequence[Mapping[str, Json]]] = TtlCache(
            max_entries=MAX_READER_TOKENS
        )

    @property
    def has_reader(self) -> bool:
        return bool(self.access.reader_id)

    def token(self, credential: str) -> str | Awaitable[str]:
        return self._tokens.exchange(credential)

    async def renew(self, token: str) -> str | None:
        return await self._tokens.renew(token)

    async def endpoint(self, service: Service, token: str, region: str) -> str | None:
        catalog, interface = await self._catalog_of(token), self.access.interface
        found = find_endpoint(catalog, service, region or self.access.region, interface)
        if found is None and region and service is IDENTITY:
            return find_endpoint(catalog, service, self.access.region, interface)
        return found

    async def regions(self, token: str) -> Sequence[str]:
        return find_regions(await self._catalog_of(token))

    async def _catalog_of(self, token: str) -> Sequence[Mapping[str, Json]]:
        place, now = cache_key(RequestCredentials(token=token)), monotonic()
        catalog = self._reader_catalogs.get(place, now) or self._catalogs.get(place, now)
        if catalog is None and self._credentials is not None:
            catalog = self._credentials.catalog_of(token)
        if catalog is None:
            catalog = await self._reads.run(place, lambda: self._read_catalog(token, place))
        return catalog

    async def _read_catalog(self, token: str, place: str) -> Sequence[Mapping[str, Json]]:
        catalog = await self._client.catalog(token)
        self._catalogs.keep(place, catalog, monotonic() + CATALOG_LASTS)
        return catalog

    async def reader_token(self, refused: str = "") -> str:
        async with self._renewing:
            known, now = self._reader, monotonic()
            if known.token in ("", refused) or now >= known.renew_at:
                issued = await self._reader_credential_token()
                place = cache_key(RequestCredentials(token=issued.token))
                self._reader_catalogs.keep(place, issued.catalog, now + READER_TOKEN_LIFETIME)
                known = self._reader = _ReaderToken(issued.token, now + READER_TOKEN_REUSED)
            return known.token

    async def _reader_credential_token(self) -> IssuedToken:
        """Raises Unavailable, also if Keystone rejects the credential."""
        reader_id = self.access.reader_id
        try:
            return await self._client.token_by_application_credential(
                reader_id, self.access.reader_secret
            )
        except CredentialRejected as error:
            raise Unavailable(
                f"Keystone rejected the application credential {reader_id} with {error.status}",
                place="[resource_types.openstack.reader]",
                remedy="Create a new application credential, and restart the server with it.",
                code="KeystoneUnavailable",
            ) from None

    async def stack_admin(self, project: str = "", refused: str = "") -> StackAdmin:
        known = self._stack_admins.get(project, monotonic())
        if known is None or known.token == refused:
            known = await self._stack_logins.run(project, lambda: self._log_in_stack_admin(project))
        return known

    async def _log_in_stack_admin(self, project: str) -> StackAdmin:
        """Raises Unavailable, also if Keystone rejects the credential."""
        domain = self.access.stack_domain
        if domain is None:
            raise RuntimeError("there is no domain of stack users")
        try:
            issued = await self._client.token_of_domain_admin(
                domain.id, domain.username, domain.password, project
            )
        except CredentialRejected as error:
            if project:
                await self.stack_admin()  # raises an error if the administrator is rejected
                raise _missing_project(project) from None
            raise Unavailable(
                f"Keystone rejected the administrator of the domain of stack users with"
                f" {error.status}",
                place="[resource_types.openstack.stack_users]",
                remedy="Correct the settings, and give the user the role admin in the domain.",
                code="KeystoneUnavailable",
            ) from None
        now, place = monotonic(), cache_key(RequestCredentials(token=issued.token))
        self._catalogs.keep(place, issued.catalog, now + CATALOG_LASTS)
        found = StackAdmin(issued.user_id, issued.token)
        self._stack_admins.keep(project, found, now + READER_TOKEN_REUSED)
        return found

    def forget_stack_project(self, project: str) -> None:
        self._stack_admins.drop(project)

    async def observation_token(self, credential: str, refused: str = "") -> str:
        if self._credentials is None:
            raise Unavailable("this server stores no observation credentials")
        return (await self._credentials.token(credential, refused)).token


def _missing_project(name: str) -> NoStackProject:
    return NoStackProject(
        f"Keystone has no project {name} of a server, or the administrator of the domain of stack"
        " users has no role in it",
        remedy="Replace the resource that has the project.",
    )
