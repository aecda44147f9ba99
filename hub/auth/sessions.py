"""Sessions of browsers: a random cookie, and a row in the database under a hash of it.

The cookie contains no password and no token, and the row is useless without it. The credentials of
the session are checked at each request, so it ends with its token or password. When the row is
deleted, it ends at once on every process. Requests that change something need a CSRF token; see
hub/auth/cross_site.py.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from engine.errors import HeadgateError
from engine.hooks.derived_tokens import base64_text
from engine.store.access import sessions as store
from engine.store.access import tokens
from engine.store.access.sessions import NewSession, SessionRecord
from engine.store.database import Database
from hub.auth.gatekeeper import UNAUTHORIZED
from hub.auth.identity import Identity
from hub.auth.request_credentials import RequestCredentials

COOKIE = "headgate_session"
#: Random bytes of a cookie, and its format.
COOKIE_BYTES, _COOKIE = 32, re.compile(r"[A-Za-z0-9_-]{43}")
_NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """id: hash of the cookie. until: when it ends."""

    id: bytes = field(repr=False)
    credentials: RequestCredentials = field(repr=False)
    csrf: str = field(repr=False)
    until: datetime


class Sessions:
    """mode: of [auth]; sessions of another mode are invalid. lasts: duration of new sessions."""

    def __init__(
        self,
        database: Database,
        *,
        mode: str,
        lasts: timedelta,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._database = database
        self._mode = mode
        self.lasts = lasts
        self._random_bytes = random_bytes

    async def begin(
        self, credentials: RequestCredentials, who: Identity
    ) -> tuple[str, BrowserSession]:
        """The value of the cookie, and the session. who: the result of the authentication."""
        secret = self._random_bytes(COOKIE_BYTES)
        new = NewSession(
            id=hashlib.sha256(secret).digest(),
            mode=self._mode,
            owner=who.key,
            token_id=UUID(who.key) if self._mode == "tokens" else None,
            name=credentials.user if self._mode == "none" else "",
            encrypted=self._encrypt_token(secret, credentials)
            if self._mode == "keystone"
            else None,
        )
        async with self._database.connection() as conn:
            record = await store.begin(conn, new, self.lasts)
        return base64_text(secret), _session(secret, record, credentials.block)

    async def read(self, cookie: str, block: str) -> BrowserSession:
        """block: of the sender's address. Raises HeadgateError with the code Unauthorized."""
        secret = _secret(cookie)
        async with self._database.connection() as conn:
            record = await store.read(conn, hashlib.sha256(secret).digest(), self._mode)
        if record is None:
            raise session_ended()
        return _session(secret, record, block)

    async def check(self, session: BrowserSession) -> None:
        """Raises HeadgateError with the code Unauthorized if the session has ended."""
        async with self._database.connection() as conn:
            if await store.read(conn, session.id, self._mode) is None:
                raise session_ended()

    async def end(self, session_id: bytes, token_id: UUID | None = None) -> bool:
        """End the session: its cookie is invalid on every process. Returns whether it existed.
        token_id: of its credentials; a sign-in with OpenID Connect ends with its session."""
        async with self._database.connection() as conn:
            existed = await store.end(conn, session_id)
            if token_id is not None:
                await tokens.end_sign_in(conn, token_id)
        return existed

    async def replace(self, cookie: str) -> None:
        """End the current session of a browser that signs in again."""
        if _COOKIE.fullmatch(cookie):
            await self.end(hashlib.sha256(_secret(cookie)).digest())

    def _encrypt_token(self, secret: bytes, credentials: RequestCredentials) -> bytes:
        """The Keystone token, which only the cookie can decrypt."""
        nonce, token = self._random_bytes(_NONCE_BYTES), credentials.token or credentials.bearer
        return nonce + AESGCM(_key(secret)).encrypt(nonce, token.encode(), None)


def _session(secret: bytes, record: SessionRecord, block: str) -> BrowserSession:
    token = ""
    if record.encrypted is not None:
        nonce, rest = record.encrypted[:_NONCE_BYTES], record.encrypted[_NONCE_BYTES:]
        try:
            token = AESGCM(_key(secret)).decrypt(nonce, rest, None).decode()
        except InvalidTag:
            raise session_ended() from None
    credentials = RequestCredentials(
        bearer=token, user=record.name, block=block, session_token=record.token_id
    )
    return BrowserSession(record.id, credentials, _derive(secret, "csrf"), record.expires_at)


def _secret(cookie: str) -> bytes:
    """Raises HeadgateError."""
    if not _COOKIE.fullmatch(cookie):
        raise session_ended()
    return base64.urlsafe_b64decode(f"{cookie}=")


def _key(secret: bytes) -> bytes:
    return hmac.digest(secret, b"token of Keystone", "sha256")


def _derive(secret: bytes, purpose: str) -> str:
    return base64_text(hmac.digest(secret, purpose.encode(), "sha256"))


def session_ended() -> HeadgateError:
    return HeadgateError("the session has ended", remedy="Sign in again.", code=UNAUTHORIZED)
