"""Endpoints in the service catalog of Keystone."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import monotonic
from typing import Any

from engine.ttl_cache import TtlCache
from engine.types.remote_stack import RemoteEndpoint
from hub.auth.keystone_client import KeystoneClient
from hub.auth.request_credentials import RequestCredentials, cache_key

Json = Any
SERVICE_TYPE = "orchestration"
INTERFACE = "public"
#: Seconds for which an endpoint is reused.
REMEMBER = 300.0


class KeystoneCatalog:
    def __init__(
        self, client: KeystoneClient, exchange: Callable[[str], str | Awaitable[str]], ca_pem: str
    ) -> None:
        """exchange: as `Authenticator.exchange`. ca_pem: the CA certificate of the cloud; empty:
        the system's CA certificates."""
        self._client = client
        self._exchange = exchange
        self._ca_pem = ca_pem
        self._known: TtlCache[str, RemoteEndpoint] = TtlCache()

    async def find(self, region: str, token: str) -> RemoteEndpoint | None:
        """The endpoint in a region, for the project of a token or trust. Raises HeadgateError."""
        key = cache_key(RequestCredentials(token=token), region)
        known = self._known.get(key, monotonic())
        if known is None:
            exchanged = self._exchange(token)
            current = exchanged if isinstance(exchanged, str) else await exchanged
            url = endpoint_url(await self._client.catalog(current), region)
            if url is None:
                return None
            known = RemoteEndpoint(region, url, ("*",), ca_pem=self._ca_pem)
            self._known.keep(key, known, monotonic() + REMEMBER)
        return known


def endpoint_url(catalog: Sequence[Mapping[str, Json]], region: str) -> str | None:
    """The public URL of the Orchestration API in a region."""
    for service in catalog:
        for one in service.get("endpoints", []) if service.get("type") == SERVICE_TYPE else []:
            named = region in (one.get("region_id"), one.get("region"))
            if named and one.get("interface") == INTERFACE:
                return str(one["url"]).rstrip("/")
    return None
