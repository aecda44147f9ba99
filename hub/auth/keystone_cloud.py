"""Keystone as the resource types of OpenStack use it: tokens, and endpoints in the catalog."""

from collections.abc import Awaitable, Mapping, Sequence
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
        self._reader: tuple[str, float] = "", 0.0

    @property
    def has_reader(self) -> bool:
        return bool(self._access.reader_id)

    def token(self, credential: str) -> str | Awaitable[str]:
        return self._tokens.exchange(credential)

    async def renew(self, token: str) -> str | None:
        if token == self._reader[0]:
            self._reader = "", 0.0
            return await self.reader_token()
        return await self._tokens.renew(token)

    async def endpoint(self, service: Service, token: str) -> str | None:
        place = cache_key(RequestCredentials(token=token))
        catalog = self._catalogs.get(place, monotonic())
        if catalog is None:
            catalog = await self._client.catalog(token)
            self._catalogs.keep(place, catalog, monotonic() + CATALOG_LASTS)
        return find_endpoint(catalog, service, self._access.region, self._access.interface)

    async def reader_token(self) -> str:
        token, expires_at = self._reader
        if not token or monotonic() >= expires_at:
            token = await self._client.token_by_application_credential(
                self._access.reader_id, self._access.reader_secret
            )
            self._reader = token, monotonic() + READER_TOKEN_LASTS
        return token
