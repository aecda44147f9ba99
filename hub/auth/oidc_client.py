"""A client of an OpenID provider: reads its endpoints and keys, and exchanges codes."""

import asyncio
import math
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from time import monotonic
from typing import Any, Generic, Self, TypeVar
from urllib.parse import quote

import aiohttp
import orjson
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from engine.errors import Unavailable
from headgate.connection_errors import describe
from hub.auth.certificate_authority import read_authority
from hub.auth.oidc import (
    OidcRules,
    OidcUser,
    PendingSignIn,
    Provider,
    UnknownKey,
    is_complete,
    read_id_token,
    read_provider,
    read_user,
    unavailable,
    with_userinfo,
)
from hub.auth.token_authenticator import unauthorized_error

Json = Any
T = TypeVar("T")
_BROKEN = (aiohttp.ClientError, TimeoutError, OSError, ValueError)
#: Maximum bytes of a response.
MAX_RESPONSE = 262_144
#: Seconds for which endpoints and keys are cached.
CACHE_TIME = 3600.0
#: Minimum seconds between two reads of the keys, however many ID tokens name unknown ones.
MIN_REFRESH = 10.0
#: Seconds after a failed read of endpoints or keys until the next one.
RETRY_AFTER = 2.0
#: Maximum concurrent exchanges; further ones wait.
CONCURRENT = 16


class _CachedDocument(Generic[T]):
    """A document of the provider. Requests at the same time share one read; after a failure, the
    last one is used, and the next read waits for RETRY_AFTER."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._document: T | None = None
        self._read_at = self._failed_at = -math.inf
        self._error: Unavailable | None = None
        self._reading: asyncio.Task[T] | None = None

    async def read(self, read: Callable[[], Coroutine[None, None, T]], max_age: float) -> T:
        """max_age: seconds; an older document is read again. Raises Unavailable."""
        if self._document is not None and self._clock() - self._read_at <= max_age:
            return self._document
        try:
            return await self._share_read(read)
        except Unavailable:
            if self._document is None:
                raise
            return self._document

    async def _share_read(self, read: Callable[[], Coroutine[None, None, T]]) -> T:
        """Raises Unavailable, also for RETRY_AFTER seconds after a failure."""
        if self._error is not None and self._clock() - self._failed_at <= RETRY_AFTER:
            raise self._error
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(read())
        try:
            found = await asyncio.shield(self._reading)
        except Unavailable as error:
            self._error, self._failed_at = error, self._clock()
            raise
        self._document, self._read_at, self._error = found, self._clock(), None
        return found


class OidcClient:
    """An async context manager. timeout: seconds of one request, and of the wait for a turn."""

    def __init__(
        self,
        rules: OidcRules,
        *,
        client_secret: str,
        ca_file: str,
        timeout: float,
        now: Callable[[], datetime],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.rules = rules
        self._client_secret = client_secret
        self._ca_file = ca_file
        self._timeout = timeout
        self._now = now
        self._session: aiohttp.ClientSession | None = None
        self._turns = asyncio.Semaphore(CONCURRENT)
        self._discovery: _CachedDocument[Provider] = _CachedDocument(clock)
        self._keys: _CachedDocument[KeySet] = _CachedDocument(clock)

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=read_authority(self._ca_file, "[auth.oidc] ca_file"))
        timeout = aiohttp.ClientTimeout(total=self._timeout)
        self._session = aiohttp.ClientSession(timeout=timeout, connector=connector)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def provider(self) -> Provider:
        """Raises Unavailable."""
        return await self._discovery.read(self._read_provider, CACHE_TIME)

    async def _read_provider(self) -> Provider:
        url = f"{self.rules.issuer.rstrip('/')}/.well-known/openid-configuration"
        return read_provider(await self._get(url), self.rules.issuer)

    async def exchange(self, code: str, pending: PendingSignIn, redirect_uri: str) -> OidcUser:
        """The user for whom the provider issued a code.

        Raises Unavailable, and HeadgateError with the code Unauthorized.
        """
        try:
            async with asyncio.timeout(self._timeout):
                await self._turns.acquire()
        except TimeoutError:
            raise unavailable("too many people sign in at once") from None
        try:
            document = await self._exchange_code(code, pending, redirect_uri)
            claims = await self._read(document["id_token"], pending.nonce)
            if not is_complete(claims, self.rules):
                claims = await self._add_userinfo(claims, document.get("access_token"))
            return read_user(claims, self.rules)
        finally:
            self._turns.release()

    async def _add_userinfo(
        self, claims: Mapping[str, Json], access_token: Json
    ) -> Mapping[str, Json]:
        """Raises Unavailable, and HeadgateError with the code Unauthorized."""
        url = (await self.provider()).userinfo_endpoint
        if not url or not isinstance(access_token, str):
            return claims
        headers = {"Authorization": f"Bearer {access_token}"}
        return with_userinfo(claims, await self._get(url, headers))

    async def _read(self, token: str, nonce: str) -> Mapping[str, Json]:
        """The claims of an ID token. If the token names an unknown key, the provider has replaced
        its keys, which are read again."""
        keys = await self._read_keys(CACHE_TIME)
        try:
            return read_id_token(token, keys, self.rules, nonce, self._now())
        except UnknownKey:
            keys = await self._read_keys(MIN_REFRESH)
        try:
            return read_id_token(token, keys, self.rules, nonce, self._now())
        except UnknownKey:
            raise unauthorized_error(
                "the ID token is signed with a key that the provider does not publish",
                "Sign in again in a minute. If it happens again, the operator checks [auth.oidc]"
                " issuer.",
            ) from None

    async def _read_keys(self, max_age: float) -> KeySet:
        """max_age: seconds; older ones are read again. Raises Unavailable."""
        return await self._keys.read(self._import_keys, max_age)

    async def _import_keys(self) -> KeySet:
        document = await self._get((await self.provider()).jwks_uri)
        try:
            return KeySet.import_key_set(document)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise unavailable(f"its keys cannot be read: {type(error).__name__}") from None

    async def _exchange_code(
        self, code: str, pending: PendingSignIn, redirect_uri: str
    ) -> Mapping[str, Json]:
        """A response with an ID token: Core 1.0, section 3.1.3."""
        provider = await self.provider()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "client_id": self.rules.client_id,
            "code_verifier": pending.verifier,
        }
        headers = {"Accept": "application/json"}
        if self._client_secret and provider.basic:
            # RFC 6749, section 2.3.1: both are encoded first.
            login = (quote(one, safe="") for one in (self.rules.client_id, self._client_secret))
            headers["Authorization"] = aiohttp.encode_basic_auth(*login)
        elif self._client_secret:
            form["client_secret"] = self._client_secret
        status, document = await self._request("POST", provider.token_endpoint, form, headers)
        found = document if isinstance(document, Mapping) else {}
        if status == 200 and isinstance(found.get("id_token"), str):
            return found
        if status == 200:
            raise unavailable("its response to a code has no ID token")
        if status == 400 and found.get("error") == "invalid_grant":
            raise unauthorized_error(
                "the provider rejected the authorization code", "Sign in again."
            )
        if status in (400, 401):
            raise unavailable(
                f"it refused the client with {status}; the operator compares [auth.oidc] client_id"
                " and client_secret with the provider"
            )
        raise unavailable(f"it responded with {status} to a code")

    async def _get(self, url: str, headers: Mapping[str, str] | None = None) -> Json:
        """Raises Unavailable."""
        sent = {"Accept": "application/json", **(headers or {})}
        status, document = await self._request("GET", url, None, sent)
        if status != 200:
            raise unavailable(f"it responded with {status} to GET {url}")
        return document

    async def _request(
        self, method: str, url: str, form: Mapping[str, str] | None, headers: Mapping[str, str]
    ) -> tuple[int, Json]:
        """Status and document; None: the response is not JSON. Raises Unavailable."""
        if self._session is None:
            raise RuntimeError("the client is used outside its context manager")
        try:
            async with self._session.request(
                method, url, data=form, headers=headers, allow_redirects=False
            ) as response:
                body = await response.content.read(MAX_RESPONSE + 1)
                while len(body) <= MAX_RESPONSE and (more := await response.content.readany()):
                    body += more
        except _BROKEN as error:
            raise unavailable(describe(error)) from error
        if len(body) > MAX_RESPONSE:
            raise unavailable(f"its response is longer than {MAX_RESPONSE} bytes")
        try:
            return response.status, orjson.loads(body)
        except orjson.JSONDecodeError:
            if response.status == 200:
                raise unavailable(f"its response to {method} {url} is not JSON") from None
            return response.status, None
