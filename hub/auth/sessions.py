"""Sessions of browsers: a random cookie, and a row in the database under a hash of it.

The cookie holds no password and no token, and the row nothing that signs in without it. What
a session began with is judged anew at each request, so it ends with its token or password; and when
the row is deleted it ends at once, on every process. A browser sends cookies by itself, so whatever
changes something has to show a second secret, which only a page of ours can read (a CSRF token).
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

from engine.errors import Forbidden, HeadgateError
from engine.store import sessions as store
from engine.store.database import Database
from engine.store.sessions import NewSession, SessionRecord
from hub.auth.credentials import RequestCredentials
from hub.auth.gatekeeper import UNAUTHORIZED
from hub.auth.identity import Identity

COOKIE = "headgate_session"
CSRF_HEADER = "X-CSRF-Token"
#: Methods that change nothing.
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
#: Random bytes of a cookie, and how it is written.
COOKIE_BYTES, _COOKIE = 32, re.compile(r"[A-Za-z0-9_-]{43}")
_NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class Session:
    """id: hash of the cookie. until: when it ends."""

    id: bytes = field(repr=False)
    presented: RequestCredentials = field(repr=False)
    csrf: str = field(repr=False)
    until: datetime


class Sessions:
    """mode: of [auth]; a session of another mode is over. lasts: of a new one."""

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

    async def begin(self, presented: RequestCredentials, who: Identity) -> tuple[str, Session]:
        """The cookie's value, and its session. who: as whom they were identified."""
        secret = self._random_bytes(COOKIE_BYTES)
        new = NewSession(
            id=hashlib.sha256(secret).digest(),
            mode=self._mode,
            owner=who.key,
            token_id=UUID(who.key) if self._mode == "tokens" else None,
            name=presented.user if self._mode == "none" else "",
            encrypted=self._encrypted(secret, presented) if self._mode == "keystone" else None,
        )
        async with self._database.connection() as conn:
            record = await store.begin(conn, new, self.lasts)
        return _text(secret), _session(secret, record, presented.block)

    async def read(self, cookie: str, block: str) -> Session:
        """block: of the sender's address. Raises HeadgateError with the code Unauthorized."""
        secret = _secret(cookie)
        async with self._database.connection() as conn:
            record = await store.read(conn, hashlib.sha256(secret).digest(), self._mode)
        if record is None:
            raise _over()
        return _session(secret, record, block)

    async def check(self, session: Session) -> None:
        """Raises HeadgateError with the code Unauthorized, when it is over."""
        async with self._database.connection() as conn:
            if await store.read(conn, session.id, self._mode) is None:
                raise _over()

    async def end(self, session_id: bytes) -> None:
        """End the session: its cookie is invalid on every process."""
        async with self._database.connection() as conn:
            await store.end(conn, session_id)

    async def replace(self, cookie: str) -> None:
        """Ends the session of a browser that signs in anew."""
        if _COOKIE.fullmatch(cookie):
            await self.end(hashlib.sha256(_secret(cookie)).digest())

    def _encrypted(self, secret: bytes, presented: RequestCredentials) -> bytes:
        """The token of Keystone, which only the holder of the cookie can decrypt."""
        nonce, token = self._random_bytes(_NONCE_BYTES), presented.token or presented.bearer
        return nonce + AESGCM(_key(secret)).encrypt(nonce, token.encode(), None)


def _session(secret: bytes, record: SessionRecord, block: str) -> Session:
    token = ""
    if record.encrypted is not None:
        nonce, rest = record.encrypted[:_NONCE_BYTES], record.encrypted[_NONCE_BYTES:]
        try:
            token = AESGCM(_key(secret)).decrypt(nonce, rest, None).decode()
        except InvalidTag:
            raise _over() from None
    presented = RequestCredentials(
        bearer=token, user=record.name, block=block, session_token=record.token_id
    )
    return Session(record.id, presented, _derived(secret, "csrf"), record.expires_at)


def _secret(cookie: str) -> bytes:
    """Raises HeadgateError."""
    if not _COOKIE.fullmatch(cookie):
        raise _over()
    return base64.urlsafe_b64decode(f"{cookie}=")


def _key(secret: bytes) -> bytes:
    return hmac.digest(secret, b"token of Keystone", "sha256")


def _derived(secret: bytes, purpose: str) -> str:
    return _text(hmac.digest(secret, purpose.encode(), "sha256"))


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def check_origin(session: Session, method: str, csrf: str, fetch_site: str) -> None:
    """Whether a page of ours sent this. csrf: the header; fetch_site: ``Sec-Fetch-Site``.

    Raises Forbidden.
    """
    if method in SAFE:
        return
    check_site(fetch_site)
    if not hmac.compare_digest(csrf.encode(), session.csrf.encode()):
        raise _of_another_site()


def check_site(fetch_site: str) -> None:
    """Whether a browser says that a page of another site sent this. Raises Forbidden."""
    if fetch_site not in ("", "same-origin", "none"):
        raise _of_another_site()


def _of_another_site() -> Forbidden:
    return Forbidden(
        "this was not sent by a page of this server",
        remedy=f"Send {CSRF_HEADER} with the `csrf` of GET .../session, or a token in place of"
        " the cookie.",
        code="CrossSiteRequest",
    )


def _over() -> HeadgateError:
    return HeadgateError("the session is over", remedy="Sign in again.", code=UNAUTHORIZED)
