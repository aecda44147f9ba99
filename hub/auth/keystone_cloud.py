"""Keystone as the resource types of OpenStack use it: tokens, and endpoints in the catalog."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final, Protocol

from engine.ttl_cache import TtlCache
from engine.types.openstack.cloud import CloudAccess
from engine.types.openstack.services import Service, find_endpoint
from hub.auth.credentials import RequestCredentials, cache_key
from hub.auth.keystone_client import KeystoneClient

Json = Any
#: Seconds for which the catalog of a token is reused.
CATALOG_LASTS: Final = 300.0
#: Seconds for which a token of the reader is reused; Keystone's default lifetime is an hour.
READER_TOKEN_LASTS: Final = 600.0
#: Catalogs are large: some 20 KB each.
MAX_CATALOGS: Final = 1_000


class TrustedTokens(Protocol):
    """The tokens of the users: `hub.auth.keystone.Keystone`."""

    def exchange(self, credential: str) -> str | Awaitable[str]: ...

    async def renew(self, token: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class _ReaderToken:
    """expires_at: in seconds of the monotonic clock."""

    token: str = field(default="", repr=False)
    catalog: Sequence[Mapping[str, Json]] = ()
    expires_at: float = 0.0


class KeystoneCloud:
    """Implements `engine.types.openstack.cloud.CloudIdentity`."""

    def __init__(
        self,
        client: KeystoneClient,
        tokens: TrustedTokens,
        access: CloudAccess,
        ca_pem: str = "",
    ) -> None:
        self.ca_pem = ca_pem
        self._client = client
        self._tokens = tokens
        self._access = access
        self._catalogs: TtlCache[str, Sequence[Mapping[str, Json]]] = TtlCache(
            max_entries=MAX_CATALOGS
        )
        self._reader = _ReaderToken()

    @property
    def has_reader(self) -> bool:
        return bool(self._access.reader_id)

    def token(self, credential: str) -> str | Awaitable[str]:
        return self._tokens.exchange(credential)

    async def renew(self, token: str) -> str | None:
        if token == self._reader.token:
            self._reader = _ReaderToken()
            return await self.reader_token()
        return await self._tokens.renew(token)

    async def endpoint(self, service: Service, token: str) -> str | None:
        if token == self._reader.token:
            return self._find(self._reader.catalog, service)
        place = cache_key(RequestCredentials(token=token))
        catalog = self._catalogs.get(place, monotonic())
        if catalog is None:
            catalog = await self._client.catalog(token)
            self._catalogs.keep(place, catalog, monotonic() + CATALOG_LASTS)
        return self._find(catalog, service)

    def _find(self, catalog: Sequence[Mapping[str, Json]], service: Service) -> str | None:
        return find_endpoint(catalog, service, self._access.region, self._access.interface)

    async def reader_token(self) -> str:
        known = self._reader
        if not known.token or monotonic() >= known.expires_at:
            token, catalog = await self._client.token_by_application_credential(
                self._access.reader_id, self._access.reader_secret
            )
            known = self._reader = _ReaderToken(token, catalog, monotonic() + READER_TOKEN_LASTS)
        return known.token
